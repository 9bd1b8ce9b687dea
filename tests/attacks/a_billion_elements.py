# tries: answers with 10⁹ elements that take no memory
# by: values: sizes are checked before anything is made
# layer: values
# verdict: memory

import numpy as np


def softmax(scores, axis=-1):
    return np.broadcast_to(np.float64(0.2), (10**9,))
