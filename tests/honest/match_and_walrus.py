# what: match statements, walrus, dataclasses, star patterns, positional-only arguments
# answers: kernel_weights, attention_pool
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Result:
    output: np.ndarray
    weights: np.ndarray = field(repr=False)

    def __iter__(self):
        yield self.output
        yield self.weights


# %%
def attention_pool(query, key, value, score):
    match score(query, key):
        case np.ndarray(ndim=2) as s if s.size > 0:
            weights = np.exp(s - s.max(axis=1)[:, None])
            weights /= weights.sum(axis=1)[:, None]
        case other:
            raise TypeError(type(other))
    output, weights = Result(np.tensordot(weights, value, axes=(1, 0)), weights)
    return output, weights

# %%
def kernel_weights(query, key, kernel, w=1.0):
    u = np.subtract.outer(query, key) * float(w)
    match kernel.split():
        case ["gaussian"]:
            g = np.exp((s := -0.5 * u * u) - s.max(axis=-1, keepdims=True))
        case ["boxcar"]:
            g = ((-1 <= u) & (u <= 1)).astype(u.dtype)
        case ["epanechnikov"]:
            g = (1 - u * u) * (u * u < 1)
        case [*others]:
            raise ValueError(f"no such kernel: {' '.join(others)}")
    if not (total := g.sum(axis=-1, keepdims=True)).all():
        total = np.where(total, total, 1)
    return g / total
