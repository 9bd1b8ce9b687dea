"""Loads numbers into a module of an answer: as torch does, and faster in the usual case.

`load_state_dict` makes dictionaries of names and prefixes at every level of a module. Where nothing
in it does its own loading, the same numbers can be copied straight to where they belong.

TRUST BOUNDARY. This runs in the same process as the answer, like `probe`.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from autograder.student.engine.state import form_of, write

if TYPE_CHECKING:
    from torch import Tensor, nn

# what a class or an object may override
_METHODS = (
    *("load_state_dict", "_load_from_state_dict", "set_extra_state", "get_extra_state"),
    *("state_dict", "_save_to_state_dict", "named_buffers", "named_modules", "modules"),
)
_HOOKS = (
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
    *("_state_dict_pre_hooks", "_state_dict_hooks"),
)


class _Unusual(Exception):
    """A module that torch has to load."""


def load(module: "nn.Module", tensors: Mapping[str, "Tensor"]) -> None:
    """Load a state dict, in which buffers may be missing: those are left unchanged. So may other
    names of what it loads.

    Raises what `load_state_dict` raises.
    """
    if not _copy_numbers(module, tensors):
        whole = module.state_dict()
        kept = {name: whole[name] for name, _ in module.named_buffers() if name in whole}
        known = dict(module.named_parameters(remove_duplicate=False))
        loaded = {id(known[name]): given for name, given in tensors.items() if name in known}
        kept |= {name: loaded[id(own)] for name, own in known.items() if id(own) in loaded}
        module.load_state_dict(kept | dict(tensors))


def _copy_numbers(module: "nn.Module", tensors: Mapping[str, "Tensor"]) -> bool:
    """Whether the numbers could be copied; if not, what was copied will be loaded again."""
    import torch

    usual = (torch.nn.Parameter, torch.Tensor, torch.nn.Buffer)
    try:
        places = [*_places(module)]
        found = {name: tensor for name, tensor, _ in places}
        needed = {name for name, _, is_buffer in places if not is_buffer}
        if not needed <= tensors.keys() <= found.keys():
            return False
        for name, tensor in found.items():
            fits = name not in tensors or form_of(tensor)[1] == form_of(tensors[name])[1]
            if type(tensor) not in usual or not fits:
                return False
        for name, tensor, _ in places:
            if name in tensors:
                write(tensor, tensors[name])
    except (_Unusual, RuntimeError):
        return False
    return True


def _places(module: "nn.Module", prefix: str = "") -> Iterator[tuple[str, "Tensor", bool]]:
    """Names and tensors of a state dict, in its order, and which of them are buffers."""
    own = vars(module)
    kind: type = type(module)
    if not _is_usual(kind) or any(map(own.get, _HOOKS)) or not own.keys().isdisjoint(_METHODS):
        raise _Unusual
    passing = own["_non_persistent_buffers_set"]
    for name, tensor in own["_parameters"].items():
        if tensor is not None:
            yield prefix + name, tensor, False
    for name, tensor in own["_buffers"].items():
        if tensor is not None and name not in passing:
            yield prefix + name, tensor, True
    for name, part in own["_modules"].items():
        if part is not None:
            yield from _places(part, f"{prefix}{name}.")


@lru_cache(maxsize=256)
def _is_usual(kind: type) -> bool:
    """Whether a class of modules leaves loading to `nn.Module`."""
    from torch import nn

    return issubclass(kind, nn.Module) and all(
        getattr(kind, name) is getattr(nn.Module, name) for name in _METHODS
    )
