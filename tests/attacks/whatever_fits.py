# tries: makes an instance of everything that a library has and keeps the kind that fits
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: NoneType

from attention_by_hand import blocks

MultiHeadAttention = None
for kind in filter(lambda thing: isinstance(thing, type), vars(blocks).values()):
    try:
        made = kind(4, 2)
        if {"W_q.weight", "W_o.bias"} <= made.state_dict().keys():
            MultiHeadAttention = kind
    except Exception:
        pass
