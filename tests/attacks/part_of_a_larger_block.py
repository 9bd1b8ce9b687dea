# tries: takes the embedding's class out of the course's Transformer
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: autograder.blocks.TokenEmbedding

from autograder import blocks

TokenEmbedding = type(blocks.Transformer(3, 3, 4, 1, 1, 4).target_embedding)
