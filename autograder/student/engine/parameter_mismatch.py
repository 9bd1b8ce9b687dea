"""How the parameters of an answer's module differ from the expected ones, in a student's words.

TRUST BOUNDARY. This runs in the same process as the answer, like `probe`. What it says is only
text, which is cut and cleaned before it is shown.
"""

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from autograder.student.engine.arrays import Value
from autograder.student.engine.words import describe_codes, describe_shape

if TYPE_CHECKING:
    from torch import Tensor, nn

_CONTAINERS: dict[type, str] = {
    list: "nn.ModuleList",
    tuple: "nn.ModuleList",
    dict: "nn.ModuleDict",
}
_SHOWN = 4  # differences


class ParameterMismatch(RuntimeError):
    """The parameters of a module are not those that are expected."""


def describe_mismatch(module: "nn.Module", tensors: Mapping[str, "Tensor"]) -> str:
    """What keeps a state dict from being loaded; empty if nothing is seen."""
    own = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    buffers = {name for name, _ in module.named_buffers()}
    wanted = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    missing = [name for name in wanted if name not in own]
    surplus = [name for name in own if name not in wanted and name not in buffers]
    told = []
    if missing:
        for path, container in _containers(module):
            kind = f"a plain {type(container).__name__}, whose layers torch does not see"
            told.append(f"`{path}` is {kind}: expected an `{_CONTAINERS[type(container)]}`")
            missing = [name for name in missing if not any(map(str.isdigit, name.split(".")))]
        for name in [name for name in missing if _is_plain(module, name)]:
            told.append(f"`{name}` is a plain tensor: expected an `nn.Parameter`")
            missing.remove(name)
    pairs = _pair_names(surplus, missing, own, wanted)
    told += dict.fromkeys(_describe_renaming(mine, theirs) for mine, theirs in pairs)
    surplus = [name for name in surplus if name not in {mine for mine, _ in pairs}]
    missing = [name for name in missing if name not in {theirs for _, theirs in pairs}]
    if surplus:
        shapes = ", ".join(f"`{name}` {describe_shape(own[name])}" for name in surplus[:_SHOWN])
        told.append(f"expected no parameter called {shapes}")
    told += [f"there is no parameter called {describe_codes(missing)}"] if missing else []
    for name, shape in wanted.items():
        if own.get(name, shape) != shape:
            shapes = f"expected shape {describe_shape(shape)}, got {describe_shape(own[name])}"
            told.append(f"the parameter `{name}`: {shapes}")
    more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
    return "; ".join(told[:_SHOWN]) + more


def _containers(module: "nn.Module") -> Iterator[tuple[str, list | tuple | dict]]:
    """Plain lists, tuples and dictionaries of modules, which are attributes, and where they are."""
    from torch import nn

    for prefix, part in module.named_modules():
        for name, value in vars(part).items():
            if type(value) in _CONTAINERS and not name.startswith("_"):
                items = value.values() if isinstance(value, dict) else value
                if value and all(isinstance(item, nn.Module) for item in items):
                    yield f"{prefix}.{name}".lstrip("."), value


def _is_plain(module: Value, name: str) -> bool:
    """Whether a tensor stands where a parameter of this name is expected."""
    from torch import Tensor

    *path, last = name.split(".")
    for part in path:
        module = getattr(module, part, None)
    return isinstance(getattr(module, "__dict__", {}).get(last), Tensor)


def _pair_names(
    surplus: list[str],
    missing: list[str],
    own: Mapping[str, tuple[int, ...]],
    wanted: Mapping[str, tuple[int, ...]],
) -> list[tuple[str, str]]:
    """A module's own names with expected ones: of the same shape, the most alike first."""

    def likeness(mine: str, theirs: str) -> tuple[int, float]:
        ratio = SequenceMatcher(None, mine, theirs).ratio()
        return _common_end(mine, theirs), ratio

    fit = [(m, t) for m in surplus[:100] for t in missing[:100] if own[m] == wanted[t]]
    pairs: dict[str, str] = {}
    for mine, theirs in sorted(fit, key=lambda pair: likeness(*pair), reverse=True):
        if mine not in pairs and theirs not in pairs.values():
            pairs[mine] = theirs
    return [(mine, pairs[mine]) for mine in surplus if mine in pairs]


def _common_end(one: str, other: str) -> int:
    """How many of the last parts of two names are the same."""
    pairs = zip(reversed(one.split(".")), reversed(other.split(".")), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), 0)


def _describe_renaming(mine: str, theirs: str) -> str:
    """Which name is another, the layer's if it is that."""
    same = _common_end(mine, theirs)
    layers = [".".join(name.split(".")[:-same]) if same else "" for name in (mine, theirs)]
    if all(layers):
        return "your layer is called `{}`; expected `{}`".format(*layers)
    return f"your parameter is called `{mine}`; expected `{theirs}`"
