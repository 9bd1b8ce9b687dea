# what: results as NamedTuples, cached properties, class methods, descriptors, singledispatch, nonlocal
# answers: multi_head_numpy, MultiHeadAttention, head_importance
from collections import Counter, OrderedDict, deque, namedtuple
from functools import cached_property, singledispatch
from itertools import chain, count, repeat
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import nn

A = TypeVar("A", np.ndarray, torch.Tensor)


class Attended(NamedTuple):
    output: torch.Tensor
    weights: torch.Tensor


class Positive:
    """a descriptor"""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, obj, kind=None):
        return self if obj is None else getattr(obj, self.name)

    def __set__(self, obj, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive, not {value}")
        setattr(obj, self.name, value)


class Heads(Generic[A]):
    num = Positive()

    def __init__(self, d_model: int, num: int):
        self.d_model, self.num = d_model, num

    @cached_property
    def size(self) -> int:
        if self.d_model % self.num:
            raise ValueError(f"{self.d_model} is not divisible by {self.num}")
        return self.d_model // self.num

    @classmethod
    def of(cls, x: A, num: int) -> "Heads[A]":
        return cls(x.shape[-1], num)

    def slices(self):
        yield from (slice(h * self.size, (h + 1) * self.size) for h in range(self.num))


@singledispatch
def transposed(x):
    raise TypeError(type(x))


@transposed.register
def _(x: np.ndarray):
    return x.swapaxes(-1, -2)


@transposed.register
def _(x: torch.Tensor):
    return x.mT


# %%
def multi_head_numpy(query, key, value, num_heads):
    outs = deque()
    for s in Heads.of(query, num_heads).slices():
        scores = (
            query[:, s]
            @ transposed(key[:, s])
            / np.sqrt(
                np.asarray(
                    s.stop - s.start,
                    np.result_type(query, np.float16) if query.dtype.kind == "f" else float,
                )
            )
        )
        e = np.exp(scores - scores.max(1, keepdims=True))
        outs.append(e / e.sum(1, keepdims=True) @ value[:, s])
    return np.concatenate(outs, axis=1)


# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        self.heads: Heads[torch.Tensor] = Heads(d_model, num_heads)
        self.heads.size  # raises
        layers = OrderedDict((f"W_{c}", nn.Linear(d_model, d_model, bias)) for c in "qkvo")
        for name, layer in layers.items():
            self.add_module(name, layer)
        self.p = dropout
        self.calls = Counter()

    @property
    def num_heads(self):
        return self.heads.num

    def forward(self, query, key, value, head_mask=None) -> Attended:
        self.calls["forward"] += 1
        q, k, v = self.W_q(query), self.W_k(key), self.W_v(value)
        n = 0

        def one_head(s, m):
            nonlocal n
            n += 1
            w = torch.softmax(q[..., s] @ transposed(k[..., s]) * self.heads.size**-0.5, dim=-1)
            return nn.functional.dropout(w, self.p, self.training) @ v[..., s] * m, w

        masks = repeat(1.0) if head_mask is None else head_mask.unbind()
        outs, weights = zip(*map(one_head, self.heads.slices(), masks))
        assert n == self.num_heads
        return Attended(self.W_o(torch.cat(outs, -1)), torch.stack(weights, 1))


# %%
Point = namedtuple("Point", "head importance")


def head_importance(attention, x):
    numbers = count()
    with torch.no_grad():
        full = attention(x, x, x)[0]
        found = []
        for row in 1 - torch.eye(attention.num_heads, dtype=x.dtype):
            moved = full - attention(x, x, x, head_mask=row)[0]
            found.append(Point(next(numbers), torch.linalg.norm(moved, dim=-1).mean()))
    return torch.stack([p.importance for p in chain(found)])
