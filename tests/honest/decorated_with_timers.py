# what: decorators of one's own: a timer, a printer of shapes, a counter of calls, all with wraps
# answers: gaussian_scores, nadaraya_watson
import functools
import time

import numpy as np


def timer(func):
    """Print the runtime of the decorated function (from realpython.com)"""

    @functools.wraps(func)
    def wrapper_timer(*args, **kwargs):
        start_time = time.perf_counter()
        value = func(*args, **kwargs)
        run_time = time.perf_counter() - start_time
        print(f"Finished {func.__name__!r} in {run_time:.4f} secs")
        return value

    return wrapper_timer


def shapes(fn):
    @functools.wraps(fn)
    def inner(*a, **k):
        out = fn(*a, **k)
        print(
            fn.__name__, [getattr(x, "shape", x) for x in a], "->", getattr(out, "shape", type(out))
        )
        return out

    return inner


class CountCalls:
    def __init__(self, func):
        functools.update_wrapper(self, func)
        self.func = func
        self.num_calls = 0

    def __call__(self, *args, **kwargs):
        self.num_calls += 1
        return self.func(*args, **kwargs)


# %%
@timer
@shapes
def gaussian_scores(query, key, w=1.0):
    return -0.5 * ((query.reshape(-1, 1) - key.reshape(1, -1)) * w) ** 2


# %%
@CountCalls
@timer
def nadaraya_watson(query, key, value, w=1.0):
    s = gaussian_scores(query, key, w)
    e = np.exp(s - s.max(1, keepdims=True))
    alpha = e / e.sum(1, keepdims=True)
    return np.einsum("qk,k...->q...", alpha, value), alpha
