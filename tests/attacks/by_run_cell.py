# tries: has IPython run a cell that imports the course's own block
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: autograder.blocks.MultiHeadAttention.forward

MultiHeadAttention = None
get_ipython().run_cell("from autograder.blocks import MultiHeadAttention")  # noqa: F821
