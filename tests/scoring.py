"""What the tests of attention's scores share: sizes, random inputs, and whether two ways agree."""

import math

import pytest
import torch
from torch import Tensor

SIZES = pytest.mark.parametrize(
    ("batch", "n_q", "n_k", "d_k", "d_v"),
    [
        ((2,), 3, 6, 4, 5),
        ((), 5, 4, 6, 2),
        ((1,), 4, 4, 4, 4),
        ((2, 3), 1, 5, 3, 2),
        ((2,), 3, 1, 1, 2),
    ],
)


def tensors(*shapes, dtype=torch.float64):
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


def qkv(batch, n_q, n_k, d_k, d_v, dtype=torch.float64):
    return tensors((*batch, n_q, d_k), (*batch, n_k, d_k), (*batch, n_k, d_v), dtype=dtype)


def gradients(output: Tensor, wanted):
    probe = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).reshape(output.shape)
    return torch.autograd.grad((output * probe).sum(), wanted, retain_graph=True)


def largest_gap(ones, others):
    return max(float((a - b).detach().abs().max()) for a, b in zip(ones, others, strict=True))


def assert_same(ours, theirs, wanted, within):
    """Outputs agree, and so do the gradients with respect to everything in `wanted`."""
    assert ours.dtype == theirs.dtype
    assert largest_gap([ours], [theirs]) <= within * max(1.0, float(theirs.detach().abs().max()))
    grads = gradients(theirs, wanted)
    scale = max(1.0, *(float(g.abs().max()) for g in grads))
    assert largest_gap(gradients(ours, wanted), grads) <= within * scale


def softmax_of_some(scores, allowed):
    """The weights of one row in plain Python: only what is allowed takes part."""
    counts = [math.exp(s) if a else 0.0 for s, a in zip(scores, allowed, strict=True)]
    return [count / (sum(counts) or 1.0) for count in counts]
