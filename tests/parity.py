"""Two modules with the same weights, ours and torch's: do outputs and gradients agree?

A gradient is judged twice. Absolutely: the loss is a mean over tokens, as in training, so that the
bound does not depend on how many tokens there are. And against the largest gradient of all that
are compared, which does not depend on the scale of the loss. Float32 leaves little more: over 800
random layers as in these tests, ours and torch's gradients are no farther from each other than
each is from float64's, 1.6e-7 of the largest gradient in the median and 6.5e-7 at worst.
"""

from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
from torch import Tensor, nn

PRECISION = pytest.mark.parametrize(
    ("dtype", "within"), [(torch.float32, 1e-6), (torch.float64, 1e-12)]
)


def close(a: Tensor, b: Tensor, within: float) -> bool:
    return a.shape == b.shape and torch.allclose(a, b, rtol=0.0, atol=within)


def double(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def shaken(module: nn.Module) -> nn.Module:
    """The module with parameters that are not what a new one has."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def some_mask(*shape: int) -> Tensor:
    """A random mask, True = may attend, in which every query sees something."""
    mask = torch.rand(shape) < 0.6
    mask[..., 0] |= ~mask.any(-1)
    return mask


def tokens(*shape: int, vocab: int = 7) -> Tensor:
    """Random tokens without the first, which stands for padding."""
    return torch.randint(1, vocab, shape)


def assert_same_gradients(
    mine: Mapping[str, Tensor], others: Mapping[str, Tensor], within: float
) -> None:
    """Each of our gradients is, to `within`, torch's of the same name; there are no others."""
    assert mine.keys() == others.keys()
    largest = max(grad.abs().max().item() for grad in others.values())
    for name, grad in mine.items():
        assert grad.shape == others[name].shape, name
        off = (grad - others[name]).abs().max().item()
        assert off <= within, f"{name} is off by {off:.1e}"
        assert off <= within * largest, f"{name} is off by {off / largest:.1e} of the largest"


def assert_parity(
    ours: nn.Module,
    theirs: nn.Module,
    inputs: Sequence[Tensor],
    within: float,
    *,
    call: Callable[..., Tensor] | None = None,
    their_call: Callable[..., Tensor] | None = None,
) -> None:
    """Outputs, and gradients of all inputs and all parameters, agree to `within`.

    `call` and `their_call` take the inputs and give the output if calling the module is not enough,
    with masks for example.
    """
    found, probe = [], None
    for module, function in ((ours, call or ours), (theirs, their_call or theirs)):
        leaves = [x.detach().clone().requires_grad_(x.is_floating_point()) for x in inputs]
        out = function(*leaves)
        probe = torch.randn_like(out) if probe is None else probe
        tokens = out.shape[:-1].numel()
        wanted = {f"input {i}": x for i, x in enumerate(leaves) if x.requires_grad}
        wanted |= dict(module.named_parameters())
        grads = torch.autograd.grad((out * probe).sum() / tokens, [*wanted.values()])
        found.append((out, our_names(dict(zip(wanted, grads, strict=True)))))
    (out, mine), (their_out, others) = found
    assert out.shape == their_out.shape
    off = (out - their_out).abs().max().item()
    assert off <= within, f"the output is off by {off:.1e}"
    assert_same_gradients(mine, others, within)


def our_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What torch keeps, under our names: `in_proj` is cut into `W_q`, `W_k` and `W_v`."""
    named = {}
    for name, tensor in tensors.items():
        ours = name.replace("multihead_attn", "cross_attn").replace("out_proj", "W_o")
        ours = ours.replace("coder.layers", "coder_layers").replace("coder.norm", "coder_norm")
        if "in_proj_" in ours:
            for letter, part in zip("qkv", tensor.chunk(3), strict=True):
                named[ours.replace("in_proj_", f"W_{letter}.")] = part
        else:
            named[ours] = tensor
    return named
