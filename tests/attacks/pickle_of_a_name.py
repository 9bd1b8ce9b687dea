# tries: loads the course's own block from a pickle that holds its name
# by: not in the process
# layer: not in the process
# verdict: crash
# most: 0
# says: blocks.MultiHeadAttention is a right answer

import pickle

MultiHeadAttention = pickle.loads(b"cattention_by_hand.blocks\nMultiHeadAttention\n.")
