# tries: has IPython execute and evaluate strings, by `ex` and `ev`
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: is a right answer to an exercise

shell = get_ipython()  # noqa: F821
shell.ex("import attention_by_hand.blocks as b")
MultiHeadAttention = shell.ev("b.MultiHeadAttention")
