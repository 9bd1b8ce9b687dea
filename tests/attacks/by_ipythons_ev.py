# tries: has IPython execute and evaluate strings, by `ex` and `ev`
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: autograder.blocks.MultiHeadAttention.forward

shell = get_ipython()  # noqa: F821
shell.ex("import autograder.blocks as b")
MultiHeadAttention = shell.ev("b.MultiHeadAttention")
