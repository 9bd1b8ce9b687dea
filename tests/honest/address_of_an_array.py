# what: looks at the address of an array's data, as NumPy's guide shows, to see what is copied
# answers: softmax
import numpy as np


def adress(a):
    # from the NumPy docs, "how do I know if it is a view?"
    return a.__array_interface__["data"][0], a.ctypes.data


def softmax(scores, axis=-1):
    x = np.array(
        scores, dtype=np.result_type(scores, np.float16) if scores.dtype.kind == "f" else float
    )
    print("copy?", adress(x) != adress(scores), hex(scores.ctypes.data), scores.flags.owndata)
    m = np.max(x, axis=axis, keepdims=True)
    m[np.isinf(m)] = 0.0
    e = np.exp(x - m)
    z = e.sum(axis=axis, keepdims=True)
    return np.divide(e, z, out=np.zeros_like(e), where=z > 0)
