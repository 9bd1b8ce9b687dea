# what: everything of NumPy imported by its names, the way of MATLAB and of pylab
# answers: softmax, gaussian_scores, nadaraya_watson
from numpy import *


# %%
def softmax(scores, axis=-1):
    s = scores if issubdtype(scores.dtype, floating) else scores.astype(float64)
    top = amax(s, axis=axis, keepdims=True)
    top = where(top == -inf, zeros_like(top), top)
    e = exp(s - top)
    tot = sum(e, axis=axis, keepdims=True)
    tot[tot == 0] = 1
    return e / tot


# %%
def gaussian_scores(query, key, w=1.0):
    Q, K = meshgrid(query, key, indexing="ij")
    return -0.5 * square((Q - K) * w)


# %%
def nadaraya_watson(query, key, value, w=1.0):
    a = softmax(gaussian_scores(query, key, w))
    return dot(a, value), a
