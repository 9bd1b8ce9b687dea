# tries: allocates without end
# by: limits (memory)
# layer: limits
# verdict: memory

import numpy as np


def softmax(scores, axis=-1):
    kept = []
    while True:
        kept.append(np.zeros(1 << 25))
