# tries: returns an array whose class claims to equal everything
# by: values: only the plain array travels
# layer: values
# verdict: wrong

import numpy as np


class Liar(np.ndarray):
    __eq__ = lambda self, other: np.ones(self.shape, bool)
    __ne__ = lambda self, other: np.zeros(self.shape, bool)
    __array__ = lambda self, *args, **kwargs: np.full(self.shape, 1 / self.shape[-1])
    __array_ufunc__ = lambda self, *args, **kwargs: np.zeros(1)
    __array_function__ = lambda self, *args, **kwargs: np.True_
    __sub__ = __rsub__ = lambda self, other: np.zeros(self.shape)


def softmax(scores, axis=-1):
    return (scores * 0).view(Liar)
