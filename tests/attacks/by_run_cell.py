# tries: has IPython run a cell that imports the course's own block
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: is a right answer to an exercise

MultiHeadAttention = None
get_ipython().run_cell("from attention_by_hand.blocks import MultiHeadAttention")  # noqa: F821
