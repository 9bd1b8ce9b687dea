# tries: takes the embedding's class out of the course's Transformer
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: blocks.Transformer is a right answer

from attention_by_hand import blocks

TokenEmbedding = type(blocks.Transformer(3, 3, 4, 1, 1, 4).target_embedding)
