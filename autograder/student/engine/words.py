"""Values, calls and exceptions in words, for messages.

TRUST BOUNDARY. When grading, what is described comes from a student's process. It is only data, of
the kinds that `values.decode` builds, and never describes itself.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.runs import APPLY, RaisedException, Run, Step
from autograder.student.engine.values import (
    Array,
    Opaque,
    Previous,
    Recipe,
    StridedArray,
    TooLarge,
    describe_size,
)

_FEW = 8  # strings of a list or tuple, or parts of an argument, that a message shows


def describe(value: Value) -> str:
    """A value in a few words, for a message: `None`, `an array of shape (3, 4)`, `['a', 'b']`."""
    if isinstance(value, Array):
        return f"a NumPy number ({value.dtype})" if value.kind == "scalar" else describe_size(value)
    if isinstance(value, TooLarge):
        return f"{value.type_name}, too large to compare"
    if isinstance(value, Opaque):
        return f"an object of type {value.type_name}"
    if isinstance(value, (tuple, list)):
        if 0 < len(value) <= _FEW and all(type(item) is str for item in value):
            return repr(type(value)(item[:20] for item in value))
        return describe_size(value)
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge integer"
    if value is None or isinstance(value, (bool, int, float, str)):
        return _cut(repr(value), 60)
    return f"an object of type {type(value).__name__}"


def describe_call(run: Run, arguments: Sequence[str], step: int | None = None) -> str:
    """A call of a run in a few words: `for query of shape (3,), key of shape (5,), w=1.7`.

    `step` is the place of the call among the run's steps; without it, the last call is meant.
    """
    calls = [i for i, s in enumerate(run.steps) if s.method != APPLY] or [*range(len(run.steps))]
    upto = calls if step is None else [i for i in calls if i <= step]
    at = upto[-1] if upto else None
    parts = []
    if at is not None:
        called = run.steps[at]
        names = () if called.method else arguments
        named = zip([*names, *[""] * len(called.args)], called.args, strict=False)
        shown = [_argument(*pair, at) for pair in (*named, *called.kwargs.items())]
        place = f"in call {calls.index(at) + 1} of {len(calls)}" if len(calls) > 1 else ""
        method = f"of .{called.method}(…)" if called.method not in ("", APPLY) else ""
        where = " ".join(filter(None, [place, method]))
        parts += [", ".join(filter(None, [where, "for " * bool(shown) + ", ".join(shown)]))]
    init = run.init or Step()
    built = [_argument(*pair) for pair in (*(("", v) for v in init.args), *init.kwargs.items())]
    parts += ["built with " + ", ".join(built)] if built else []
    parts += ["in training mode"] if run.training else []
    return "; ".join(filter(None, parts))


def _argument(name: str, value: Value, step: int = 0) -> str:
    """An argument of a call: `x of shape (2, 3)`, `w=1.7`, `cache returned by call 1`."""
    inside = value.array if isinstance(value, StridedArray) else value
    if isinstance(inside, Array | np.ndarray):
        data = inside.data if isinstance(inside, Array) else inside
        if data.ndim:
            view = " (a view)" if isinstance(value, StridedArray) else ""
            return f"{name or 'an array'} of shape {describe_shape(data.shape)}{view}"
    if isinstance(inside, Previous):
        before = "the previous call" if inside.step == step - 1 else f"call {inside.step + 1}"
        return f"{name or 'what was'} returned by {before}"
    return f"{name}={_brief(inside)}" if name else _brief(inside)


def _brief(value: Value) -> str:
    if isinstance(value, Array | np.ndarray):
        data = value.data if isinstance(value, Array) else value
        return describe_shape(data.shape) if data.ndim else f"{data.item():g}"
    if isinstance(value, StridedArray):
        return _brief(value.array)
    if isinstance(value, Recipe):
        return value.name.rpartition(":")[2]
    if isinstance(value, tuple | list):
        arrays = [v for v in value if isinstance(v, Array | np.ndarray | StridedArray)]
        inner = _list_of(map(_brief, value), len(value))
        return f"({inner}), by shape" if arrays else f"({inner})"
    if isinstance(value, Mapping):
        return "{" + _list_of((f"{k!r}: {_brief(v)}" for k, v in value.items()), len(value)) + "}"
    return _cut(repr(value), 40)


def _cut(text: str, most: int) -> str:
    """A text of at most so many letters, of which the last stays: the quote that ends it."""
    return text if len(text) <= most else f"{text[: most - 2]}…{text[-1]}"


def _list_of(parts: Iterable[str], number: int) -> str:
    """The parts of a list of `number`, or the first few of them."""
    shown = ", ".join(itertools.islice(parts, _FEW))
    return shown + (f", … ({number} in all)" if number > _FEW else "")


def describe_shape(shape: Sequence[int]) -> str:
    return str(tuple(int(n) for n in shape))


def describe_index(where: Sequence[int]) -> str:
    return "[" + ", ".join(str(int(i)) for i in where) + "]"


def describe_numbers(*values: Value) -> list[str]:
    """Numbers with enough digits to show that they differ, six at least."""
    for digits in (6, 10, 17):
        shown = [f"{v + 0.0:.{digits}g}" if v.dtype.kind == "f" else str(v) for v in values]
        if len({*shown}) == len(shown):
            break
    return shown


# --- exceptions ---------------------------------------------------------------------------------

MISMATCH = (
    "ParameterMismatch"  # its message says how parameters differ from those that are expected
)
_LONGEST = 200
_HELP = (
    *(
        (words, "`__init__` has to begin with `super().__init__()`")
        for words in (
            *("before Module.__init__() call", "has no attribute '_modules'"),
            *("has no attribute '_parameters'", "has no attribute '_buffers'"),
        )
    ),
    (
        "a leaf Variable that requires grad",
        "`+=`, `x[…] = …` and methods that end in `_` change the tensor itself: make a new one",
    ),
    (
        "Expected size 1 but got size",
        "nothing is broadcast here: an axis of length 1 has to be expanded first",
    ),
    ("on Tensor that requires grad", "NumPy knows no gradients: use torch's own functions"),
    *(
        (words, "this device is not available here: use that of the arguments")
        for words in (
            *("Torch not compiled with", "Cannot access accelerator device", "from the 'MPS'"),
            *("No CUDA GPUs are available", "NVIDIA driver", "invalid device ordinal"),
        )
    ),
)
_SIZES = re.compile(
    r"size mismatch for (\S+): copying a param with shape torch.Size\(\[([\d, ]*)\]\) from "
    r"checkpoint, the shape in current model is torch.Size\(\[([\d, ]*)\]\)"
)
_ARGUMENTS = re.compile(
    r"unexpected keyword argument|missing \d+ required|positional arguments? but"
    r"|multiple values for"
)


def refuses_arguments(raised: RaisedException) -> bool:
    """Whether an answer does not take the stub's arguments; with lines of the answer, the mismatch
    is between two calls of its own."""
    wrong = raised.types[0] == "TypeError" and not raised.traceback
    return wrong and _ARGUMENTS.search(raised.message) is not None


def describe_exception(raised: RaisedException) -> str:
    """An exception where a result was expected: what was going on, its text, the answer's line."""
    if raised.types[0] == MISMATCH:
        return raised.message
    doing = {
        "build": "building it ",
        "load": "loading its parameters ",
        "backward": "the backward pass ",
    }
    where = f" ({raised.traceback.splitlines()[-1]})" if raised.traceback else ""
    words = str(raised).partition(" Hint: enable anomaly detection")[0]  # torch's, for others
    words = _SIZES.sub(_sizes, " ".join(words.split()))
    words = words if len(words) <= _LONGEST else f"{words[:_LONGEST].rstrip()} …"
    text = f"{doing.get(raised.during, '')}raised {words}{where}"
    if refuses_arguments(raised):
        text += "; keep the names and the order of the stub's arguments"
    return text + next((f"; {told}" for words, told in _HELP if words in raised.message), "")


def _sizes(found: re.Match[str]) -> str:
    """Torch's words for a parameter of another shape, in fewer, and whether it is transposed."""
    name, given, wanted = found.groups()
    turned = given != wanted and given.split(", ") == wanted.split(", ")[::-1]
    told = f"{name} is ({given}) in what is loaded and ({wanted}) in the model"
    return told + ": transposed, it would fit" * turned


def describe_codes(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:6])
    return shown + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def one_line(text: str) -> str:
    """A text that may be a student's as one line in which nothing is invisible.

    So none of its lines looks like one of ours, in a table, a list, a log or on a console.
    """
    return "".join(c for c in " ".join(text.split()) if c.isprintable())
