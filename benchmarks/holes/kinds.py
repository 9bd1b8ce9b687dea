"""The kinds of wrong answer, and how each spoils a reference."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

Bound = Mapping[str, Any]  # a call's arguments by name, those of the constructor included
Condition = Callable[[Bound], bool]
Change = Callable[[Bound, Any], Any]  # of the arguments and the right result

MANY = 64  # rows: more than a table that is made "large enough"


class Wrong(NamedTuple):
    """A wrong answer: its kind, what it is in particular, and how it is made.

    `before` gets the arguments and may change or refuse them; `after` makes the wrong result.
    """

    kind: str
    name: str
    after: Change | None = None
    before: Callable[[dict[str, Any]], None] | None = None


def wrong_answers(reference: Callable[..., Any]) -> Iterator[Wrong]:
    """The wrong answers of every kind that an exercise's reference has."""
    if _returns(reference, "Float["):
        yield from _dtypes(reference)
    yield from _sizes(reference)
    yield from _views(reference)
    yield from _modules(reference)
    yield from _small(reference)


def _returns(reference: Callable[..., Any], what: str) -> bool:
    """Whether a result holds numbers of a kind, by the annotation."""
    return what in str(inspect.signature(_called(reference)).return_annotation)


def _takes_floats(reference: Callable[..., Any]) -> bool:
    kinds = [str(p.annotation) for p in inspect.signature(_called(reference)).parameters.values()]
    return any("Float[" in kind or "Num[" in kind for kind in kinds)


def _called(reference: Callable[..., Any]) -> Callable[..., Any]:
    """What of a reference gets the numbers: a module's `forward`, or what it is itself."""
    return getattr(reference, "forward", reference)


# --- the answer that a wrong one is -------------------------------------------------------------


def answer(reference: Callable[..., Any], wrong: Wrong) -> Callable[..., Any]:
    """The reference, spoilt."""
    if not isinstance(reference, type):
        return _spoilt(reference, wrong)
    methods = {
        name: _spoilt(method, wrong)
        for name, method in vars(reference).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        reference.__init__(self, *args, **kwargs)
        object.__setattr__(self, "_given", _bound(reference.__init__, self, *args, **kwargs))

    return type(reference.__name__, (reference,), {**methods, "__init__": __init__})


def _bound(function: Callable[..., Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _spoilt(function: Callable[..., Any], wrong: Wrong) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(function)
    def spoilt(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if wrong.before is not None:
            wrong.before(bound.arguments)
        given = getattr(args[0], "_given", {}) if "self" in signature.parameters else {}
        seen = {**given, **bound.arguments}
        result = function(*bound.args, **bound.kwargs)
        if wrong.after is None:
            return result
        return wrong.after({n: v for n, v in seen.items() if n != "self"}, result)

    return spoilt


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A result with every array and number in it changed."""
    if isinstance(value, (tuple, list)):
        return type(value)(mapped(item, change) for item in value)
    numbers = (np.ndarray, np.generic, torch.Tensor, float, int)
    return change(value) if isinstance(value, numbers) else value


def off(value: Any) -> Any:
    """A wrong number, truth or token."""
    dtype = getattr(value, "dtype", None)
    return ~value if dtype in (torch.bool, np.bool_) else value + 1


def off_where(condition: Condition) -> Change:
    """Wrong if a condition on the arguments holds."""
    return lambda bound, result: mapped(result, off) if condition(bound) else result


# --- float32 in, float64 out --------------------------------------------------------------------

_WORDS = {
    "kernel": ("gaussian", "boxcar", "epanechnikov"),
    "mode": ("relative_key", "relative_key_query"),
}


def branches(reference: Callable[..., Any]) -> Iterator[tuple[str, Condition]]:
    """The branches of an exercise, by the arguments that choose among them."""
    yield "always", lambda bound: True
    for name, default in _parameters(reference):
        if name in _WORDS:
            for word in _WORDS[name]:
                yield f"{name} {word}", lambda bound, n=name, w=word: bound.get(n) == w
        elif isinstance(default, bool):
            yield f"{name}", lambda bound, n=name: bound.get(n) is True
            yield f"not {name}", lambda bound, n=name: bound.get(n) is False
        elif default is None:
            yield f"{name} given", lambda bound, n=name: n in bound and bound[n] is not None
            yield f"no {name}", lambda bound, n=name: n in bound and bound[n] is None


def _parameters(reference: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    functions = [reference.__init__] if isinstance(reference, type) else []
    for function in [*functions, _called(reference)]:
        for name, parameter in inspect.signature(function).parameters.items():
            yield name, parameter.default


def _widened(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.dtype == torch.float32 else value
    return value.astype(np.float64) if getattr(value, "dtype", None) == np.float32 else value


def _dtypes(reference: Callable[..., Any]) -> Iterator[Wrong]:
    for name, condition in branches(reference):

        def widen(bound: Bound, result: Any, condition: Condition = condition) -> Any:
            return mapped(result, _widened) if condition(bound) else result

        yield Wrong("float32 widened", name, widen)


# --- sizes --------------------------------------------------------------------------------------

_PLACES = ("n", "m", "n_q", "n_k", "n_t", "n_s", "max_len", "distances", "length", "total")
_COUNTS = ("num_heads", "d_ff", "hidden_size", "n_q", "n_k", "max_len", "d_model", "chunk_size")
_COUNTS += ("max_distance", "beam_size", "query_size", "key_size", "d_k", "d_v", "num_layers")
_COUNTED = ("n_q", "n_k", "max_len", "max_distance", "chunk_size", "offset")


def _shapes(reference: Callable[..., Any]) -> dict[str, list[str]]:
    """For each argument that is an array, the names of its dimensions."""
    functions = [reference]
    if isinstance(reference, type):
        functions = [f for n, f in vars(reference).items() if not n.startswith("_") and callable(f)]
    found: dict[str, list[str]] = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            kinds = (parameter.annotation, *getattr(parameter.annotation, "__args__", ()))
            shape = next((k.dim_str for k in kinds if hasattr(k, "dim_str")), None)
            if shape is not None:
                found[name] = shape.split()
    return found


def _dimensions(reference: Callable[..., Any]) -> dict[str, dict[str, int]]:
    """For each dimension's name, the arguments that have it, with its axis from the end."""
    found: dict[str, dict[str, int]] = {}
    for name, shape in _shapes(reference).items():
        for i, dimension in enumerate(shape):
            behind = any(other[0] in "*." for other in shape[i + 1 :])
            if dimension[0] not in "*." and not dimension.isdigit():
                found.setdefault(dimension, {})[name] = i if behind else i - len(shape)
    return found


def _first(value: Any) -> Any:
    """The first of a list of arrays; anything else as it is."""
    return value[0] if isinstance(value, list) and value else value


def _size(bound: Bound, places: Mapping[str, int]) -> int | None:
    for name, axis in places.items():
        array = _first(bound.get(name))
        if getattr(array, "ndim", 0) > (axis if axis >= 0 else -axis - 1):
            return int(array.shape[axis])
    return None


def _sizes(reference: Callable[..., Any]) -> Iterator[Wrong]:
    dimensions = _dimensions(reference)
    sizes = {name: functools.partial(_size, places=p) for name, p in dimensions.items()}
    for name, _ in _parameters(reference):
        if name in _COUNTS and name not in sizes:
            sizes[name] = lambda bound, n=name: bound.get(n)
    for name, size in sizes.items():
        yield Wrong("of size 1", name, off_where(lambda b, s=size: s(b) == 1))
        if name in _PLACES or name in _COUNTED:
            yield Wrong(f"more than {MANY}", name, off_where(lambda b, s=size: (s(b) or 0) > MANY))
    if {"n_q", "n_k"} <= sizes.keys():
        q, k = sizes["n_q"], sizes["n_k"]
        both = lambda b: q(b) is not None and k(b) is not None  # noqa: E731
        for title, sign in (("more queries than keys", 1), ("fewer queries than keys", -1)):
            yield Wrong(
                "queries and keys",
                title,
                off_where(lambda b, s=sign: both(b) and s * q(b) > s * k(b)),
            )
        yield Wrong(
            "queries and keys",
            "as many",
            off_where(lambda b: both(b) and q(b) == k(b) and q(b) > 1),
        )


# --- views --------------------------------------------------------------------------------------


def _arrays(bound: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in bound.items():
        if isinstance(value, (np.ndarray, torch.Tensor)):
            yield name, value


def _dense(array: Any) -> Any:
    """What code sees that takes the memory to be in order."""
    if isinstance(array, torch.Tensor):
        return torch.as_strided(array, array.shape, torch.empty(array.shape).stride())
    flat = np.lib.stride_tricks.as_strided(array, (1,), (array.itemsize,))
    strides = np.empty(array.shape, array.dtype).strides
    return np.lib.stride_tricks.as_strided(flat, array.shape, strides).copy()


def _flat(array: Any) -> Any:
    """The same as numbers in a row, as `.view(-1)` gives them, or not."""
    if isinstance(array, torch.Tensor):
        return array.view(-1).view(array.shape)
    return array.ravel("K").reshape(array.shape)


def _views(reference: Callable[..., Any]) -> Iterator[Wrong]:
    shapes = _shapes(reference)
    vectors = [
        name
        for name, shape in shapes.items()
        if len(shape) < 2 and not any(d[0] in "*." for d in shape)
    ]
    for name in shapes:
        for title, see in (("flattened by view", _flat), ("taken to be dense", _dense)):
            if see is _flat and name in vectors:
                continue  # a vector can be flattened, however it lies

            def before(bound: dict[str, Any], name: str = name, see: Any = see) -> None:
                array = bound.get(name)
                if isinstance(array, (np.ndarray, torch.Tensor)) and array.ndim:
                    bound[name] = array if _contiguous(array) else see(array)
                elif isinstance(array, list) and isinstance(_first(array), torch.Tensor):
                    bound[name] = [item if _contiguous(item) else see(item) for item in array]

            yield Wrong(title, name, None, before)


def _contiguous(array: Any) -> bool:
    is_tensor = isinstance(array, torch.Tensor)
    return array.is_contiguous() if is_tensor else array.flags.c_contiguous


# --- modules passed in --------------------------------------------------------------------------


def _hooked(module: nn.Module) -> None:
    module.register_forward_hook(lambda *args: None)


def _nudged(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.data.mul_(1 + 1e-3)


def _sloped(module: nn.Module) -> None:
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)


def _parts(module: nn.Module) -> list[nn.Module]:
    return [part for part in module.modules() if part is not module]


_LEFT: dict[str, Callable[[nn.Module], Any]] = {
    "left in eval mode": lambda m: m.eval(),
    "left in training mode": lambda m: m.train(),
    "its own mode: eval": lambda m: setattr(m, "training", False),
    "its own mode: training": lambda m: setattr(m, "training", True),
    "its parts in eval mode": lambda m: [p.eval() for p in _parts(m)],
    "its parts in training mode": lambda m: [p.train() for p in _parts(m)],
    "frozen": lambda m: m.requires_grad_(False),
    "unfrozen": lambda m: m.requires_grad_(True),
    "a hook left": _hooked,
    "its parameters changed": _nudged,
    "a buffer added": lambda m: m.register_buffer("extra", torch.zeros(1), persistent=False),
    "gradients left": _sloped,
}
_PASSED_IN = ("attention", "feed_forward", "model", "torch_attention")
_IN_BOTH = ("frozen", "a hook left", "its parameters changed")


def _modules(reference: Callable[..., Any]) -> Iterator[Wrong]:
    for name in _PASSED_IN:
        if name not in dict(_parameters(reference)):
            continue
        for title, leave in _LEFT.items():
            modes = (True, False) if title in _IN_BOTH else (None,)
            for mode in modes:
                when = {True: " in training", False: " in eval mode", None: ""}[mode]

                def after(bound: Bound, result: Any, n=name, leave=leave, mode=mode) -> Any:
                    module = bound.get(n)
                    if isinstance(module, nn.Module) and mode in (None, module.training):
                        leave(module)
                    return result

                yield Wrong("a module passed in", f"{name} {title}{when}", after)


# --- small differences --------------------------------------------------------------------------


def _numbers(change: Callable[[Any], Any]) -> Change:
    def of(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return change(value) if value.is_floating_point() else value
        if isinstance(value, (np.ndarray, np.generic)):
            return change(value) if value.dtype.kind == "f" else value
        return float(change(np.float64(value))) if isinstance(value, float) else value

    return lambda bound, result: mapped(result, of)


def _rounded(value: Any) -> Any:
    # By the values alone, so that gradients pass and only the digits are gone.
    if isinstance(value, torch.Tensor):
        return value + (value.round(decimals=3) - value).detach()
    return np.round(value, 3)


def _cut(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return torch.where(value.abs() < 1e-3, torch.zeros_like(value), value)
    return np.where(np.abs(value) < 1e-3, 0, value).astype(np.asarray(value).dtype)


def _halved(bound: dict[str, Any]) -> None:
    for name, array in _arrays(bound):
        if isinstance(array, torch.Tensor) and array.is_floating_point():
            bound[name] = _half(array)
        elif isinstance(array, np.ndarray) and array.dtype.kind == "f":
            bound[name] = array.astype(np.float16).astype(array.dtype)
    for name, value in bound.items():
        if isinstance(value, list) and isinstance(_first(value), torch.Tensor):
            bound[name] = [_half(item) for item in value]


def _half(tensor: torch.Tensor) -> torch.Tensor:
    return tensor + (tensor.half().to(tensor.dtype) - tensor).nan_to_num().detach()


def _small(reference: Callable[..., Any]) -> Iterator[Wrong]:
    if _returns(reference, "Float[") or _returns(reference, "float"):
        yield Wrong("small differences", "rounded to three digits", _numbers(_rounded))
        yield Wrong("small differences", "nothing below a thousandth", _numbers(_cut))
        if _takes_floats(reference):
            yield Wrong("small differences", "float16 in the middle", None, _halved)
