# tries: hands in the course's own block as the answer
# by: not in the process
# layer: not in the process
# verdict: crash
# says: blocks.MultiHeadAttention is a right answer

from attention_by_hand import blocks

if True:  # as a subclass, renamed

    class MultiHeadAttention(blocks.MultiHeadAttention):
        pass
