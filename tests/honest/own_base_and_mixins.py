# what: a base class of one's own, mixins, chains of super(), abstract methods, __init_subclass__
# answers: SelfAttention, AdditiveAttention, BilinearAttention
import abc
import math

import torch
from torch import Tensor, nn


class LooksMixin:
    """keeps the last weights for plotting"""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.last_weights = None

    def remember(self, w):
        self.last_weights = w.detach()
        return w


class Attention(LooksMixin, nn.Module, abc.ABC):
    kinds = {}

    def __init_subclass__(cls, kind=None, **kw):
        super().__init_subclass__(**kw)
        Attention.kinds[kind or cls.__name__] = cls

    @abc.abstractmethod
    def score(self, query: Tensor, key: Tensor) -> Tensor: ...

    def dropped(self, weights):
        return weights

    def forward(self, query, key, value):
        weights = self.remember(self.score(query, key).softmax(dim=-1))
        return self.dropped(weights) @ value, weights


# %%
class Dot(Attention):
    def score(self, query, key):
        return query @ key.mT / math.sqrt(key.size(-1))


class SelfAttention(Dot, kind="self"):
    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, n, bias=False) for n in (d_k, d_k, d_v))

    def forward(self, x):
        return super().forward(self.W_q(x), self.W_k(x), self.W_v(x))


print(Attention.kinds, SelfAttention.__mro__)


# %%
class AdditiveAttention(Attention, kind="additive"):
    def __init__(self, query_size: int, key_size: int, hidden_size: int, dropout: float = 0.0):
        super().__init__()
        self.W_q = nn.Linear(query_size, hidden_size, bias=False)
        self.W_k = nn.Linear(key_size, hidden_size, bias=False)
        self.w_v = nn.Linear(hidden_size, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def dropped(self, weights):
        return self.dropout(super().dropped(weights))

    def score(self, query, key):
        q, k = self.W_q(query), self.W_k(key)
        return self.w_v(torch.tanh(q[:, :, None, :] + k[:, None, :, :]))[..., 0]


# %%
class BilinearAttention(Attention, kind="bilinear"):
    def __init__(self, query_size: int, key_size: int):
        super().__init__()
        self.W = nn.Parameter(nn.init.xavier_uniform_(torch.empty(query_size, key_size)))

    def score(self, query, key):
        return (query @ self.W).bmm(key.mT) / math.prod(self.W.shape) ** 0.25
