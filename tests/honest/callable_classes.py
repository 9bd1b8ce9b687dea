# what: functions that are instances of small classes with __slots__, properties and __call__
# answers: softmax, gaussian_scores
import numpy as np


class Softmax:
    __slots__ = ("_default_axis", "name")

    def __init__(self, axis=-1):
        self._default_axis = axis
        self.name = "softmax"

    @property
    def default_axis(self):
        return self._default_axis

    def __repr__(self):
        return f"{type(self).__name__}(axis={self.default_axis})"

    def __call__(self, scores, axis=None):
        axis = self.default_axis if axis is None else axis
        if not np.issubdtype(scores.dtype, np.floating):
            scores = scores.astype(float)
        biggest = scores.max(axis=axis, keepdims=True)
        e = np.exp(scores - np.where(np.isfinite(biggest), biggest, 0))
        s = e.sum(axis=axis, keepdims=True)
        return e / np.where(s > 0, s, 1)


softmax = Softmax()
softmax


# %%
class Gaussian:
    """exp(-½u²), as its exponent"""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, query, key, w=1.0):
        return self.factor * self.squared(query, key) * (w * w)

    @staticmethod
    def squared(a, b):
        return (a[:, np.newaxis] - b) ** 2


gaussian_scores = Gaussian(-1 / 2)
