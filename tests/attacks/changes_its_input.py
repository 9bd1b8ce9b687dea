# tries: writes into its argument, and is right otherwise
# by: the probe looks
# layer: judged outside
# verdict: wrong
# most: 2.75
# says: in place

import numpy as np


def softmax(scores, axis=-1):
    kept = scores if scores.dtype.kind == "f" else scores.astype(float)
    top = kept.max(axis, keepdims=True, initial=-np.inf)
    kept -= np.where(np.isfinite(top), top, 0)  # writes into the caller's array
    np.exp(kept, out=kept)
    total = kept.sum(axis, keepdims=True)
    kept /= np.where(total > 0, total, 1)
    return kept.copy()
