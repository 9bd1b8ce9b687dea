"""Reference implementations, one module per chapter: NumPy, torch and `autograder.blocks`.

`mistakes` is the bank of known answers, with one module per exercise.
"""
