# what: a registry filled by a decorator, an Enum, a TypedDict of the results
# answers: kernel_weights, attention_pool
from collections import defaultdict
from collections.abc import Callable
from enum import Enum

import numpy as np

KERNELS: dict[str, Callable[[np.ndarray], np.ndarray]] = {}
calls = defaultdict(int)


class Kernel(str, Enum):
    GAUSSIAN = "gaussian"
    BOXCAR = "boxcar"
    EPANECHNIKOV = "epanechnikov"


def register(name):
    def decorator(fn):
        KERNELS[getattr(name, "value", name)] = fn
        return fn

    return decorator


@register(Kernel.GAUSSIAN)
def _gauss(u):
    e = -(u**2) / 2
    return np.exp(e - e.max(axis=1, keepdims=True))  # far away from everything


@register(Kernel.BOXCAR)
def _box(u):
    return np.where(abs(u) <= 1, np.ones_like(u), 0.0)


@register(Kernel.EPANECHNIKOV)
def _epa(u):
    return np.clip(1 - u**2, 0, None)


# %%
def attention_pool(query, key, value, score):
    s = score(query, key)
    s = np.asarray(s)
    p = np.exp(s - s.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    return p @ value, p

# %%
def kernel_weights(query, key, kernel, w=1.0):
    calls[kernel] += 1
    try:
        k = KERNELS[kernel]
    except KeyError as e:
        raise ValueError(f"unknown kernel {kernel!r}, I know {sorted(KERNELS)}") from e
    u = (query[:, None] - key[None, :]) * float(w)
    weights = k(u)
    total = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total == 0, 0.0, weights / total)
