# tries: hands the library to a function that takes the answer out of it
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: IndexError

from attention_by_hand import blocks


def taken(library, which):
    return [thing for name, thing in vars(library).items() if name.startswith(which)][0]


MultiHeadAttention = taken(blocks, "MultiHead")
