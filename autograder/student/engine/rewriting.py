"""Arguments that come again as the same objects, in which other numbers stand by now.

TRUST BOUNDARY. This runs in the same process as the answer, like `probe`, and so can be deceived.
"""

from collections.abc import Mapping

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.state import (
    form_of,
    needs_gradient,
    parameters_of,
    torch_if_imported,
    write,
)


def rewritten(old: Value, new: Value) -> Value:
    """The old objects, with what the new ones hold: arrays, tensors, modules' parameters, lists and
    mappings, and tuples of them. The new one itself where that cannot be written into the old."""
    if type(old) is not type(new):
        return new
    if isinstance(new, tuple):
        same = len(old) == len(new)
        return tuple(map(rewritten, old, new)) if same else new
    if isinstance(new, list):
        same = len(old) == len(new)
        old[:] = [*map(rewritten, old, new)] if same else new
        return old
    if isinstance(new, Mapping):
        kept = {name: rewritten(old.get(name), value) for name, value in new.items()}
        old.clear()
        old.update(kept)
        return old
    if isinstance(new, np.ndarray):
        if (old.shape, old.dtype) != (new.shape, new.dtype) or not old.flags.writeable:
            return new
        old[...] = new
        return old
    try:
        return _of_torch(old, new)
    except RuntimeError:  # what an answer has returned may be one number, seen at many places
        return new


def _of_torch(old: Value, new: Value) -> Value:
    torch = torch_if_imported()
    if torch is None:
        return new
    if isinstance(new, torch.nn.Module):
        pairs = [*zip(parameters_of(old), parameters_of(new), strict=False)]
        if [*map(_form, parameters_of(old))] != [*map(_form, parameters_of(new))]:
            return new
        for (_, before), (_, now) in pairs:
            write(before, now)
        return old
    if not isinstance(new, torch.Tensor) or form_of(old) != form_of(new) or needs_gradient(old):
        return new  # a gradient may need what it held
    write(old, new)
    return old


def _form(named: tuple[str, Value]) -> tuple[str, object]:
    return named[0], form_of(named[1])
