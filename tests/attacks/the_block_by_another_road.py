# tries: holds the course's own block, found by getattr, inside
# by: not in the process
# layer: not in the process
# verdict: crash
# says: blocks.MultiHeadAttention is a right answer

from importlib import import_module

library = import_module("attention_by_hand.blocks")
MultiHeadAttention = getattr(library, "MultiHead" + "Attention")
