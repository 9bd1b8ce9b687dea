"""Reference implementations, one module per chapter: NumPy, torch and `attention_by_hand.blocks`.

`mistakes` is the bank of known answers, with one module per exercise.
"""
