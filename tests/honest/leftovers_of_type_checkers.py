# what: `from __future__`, TYPE_CHECKING imports, reveal_type, type: ignore, overload, jaxtyping, beartype
# answers: permutation_gap, sinusoidal_encoding, relative_position_scores
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, overload

import torch
from beartype import beartype
from jaxtyping import Float, Int, jaxtyped
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.nn.functional import scaled_dot_product_attention as sdpa  # noqa: F401
    from typing_extensions import TypeAlias

    Mode: TypeAlias = Literal["relative_key", "relative_key_query"]

T = TypeVar("T", bound=Tensor)


class Attends(Protocol):
    def __call__(self, x: Tensor, /) -> Tensor: ...


# %%
def permutation_gap(attention: Attends, x: Tensor, permutation: Tensor) -> float:
    grad_before = torch.is_grad_enabled()
    with torch.no_grad():
        a: Tensor = attention(x[:, permutation])
        b: Tensor = attention(x)[:, permutation]
    if TYPE_CHECKING:
        reveal_type(a)  # Revealed type is "torch.Tensor"
    assert torch.is_grad_enabled() == grad_before
    return float(torch.max(torch.abs(a - b)))  # type: ignore[no-any-return]


# %%
def sinusoidal_encoding(
    max_len: int, d_model: int, base: float = 10000.0
) -> Float[Tensor, "{max_len} {d_model}"]:
    i = torch.arange(d_model) // 2
    omega = cast(Tensor, base ** (-2.0 * i.double() / d_model))
    angles = torch.arange(max_len).double().unsqueeze(1) * omega
    even = torch.arange(d_model) % 2 == 0
    return torch.where(even, angles.sin(), angles.cos()).to(torch.float32)


# %%
@overload
def rel(n: int, m: int, k: int) -> Int[Tensor, "n m"]: ...
@overload
def rel(n: int, m: int, k: None = ...) -> Int[Tensor, "n m"]: ...
def rel(n: int, m: int, k: Any = None):  # pyright: ignore
    d = torch.arange(m - n, m)[:, None] - torch.arange(m)[None, :]
    return d if k is None else d.clip(-k, k) + k


@jaxtyped(typechecker=beartype)
def relative_position_scores(
    query: Float[Tensor, "b h q d"],
    key: Float[Tensor, "b h k d"],
    distance_embedding: Float[Tensor, "m d"],
    mode: str,
) -> Float[Tensor, "b h q k"]:
    if mode not in ("relative_key", "relative_key_query"):
        raise ValueError(f"unknown mode {mode!r}")
    k = (distance_embedding.shape[0] - 1) // 2
    a = distance_embedding[rel(query.shape[2], key.shape[2], k)]
    s = (query.unsqueeze(3) * a).sum(-1)
    return s if mode == "relative_key" else s + (key.unsqueeze(2) * a).sum(-1)
