"""Reads an exercise's signature, and writes the code that draws inputs which fit it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

_SIZES = (3, 5, 4, 2, 6, 7)  # of axes in the order of their names, no two alike
_OTHER = (1, 4, 2, 3, 5, 6)
_FLOATS = ("Float", "Num", "Real", "Inexact", "Shaped")
_WHOLE = ("Int", "Integer", "UInt")
_SUBSCRIPT = re.compile(r"(?:\w+\.)*(\w+)\[(?:\w+\.)*(\w+), *['\"]([^'\"]*)['\"]\]")
_NUMBERS = {"int": "draw.integer(2, 5)", "float": "draw.number(0.5, 2.0)", "bool": "True"}
_NUMBERS |= {"str": '"a text"'}


@dataclass(frozen=True)
class Parameter:
    """A parameter of the exercise: name, annotation and default, as they are written."""

    name: str
    annotation: str
    default: str | None

    @property
    def array(self) -> tuple[str, str, list[str]] | None:
        """For an array: what it holds ("Float"), its type ("Tensor"), and its axes."""
        found = _SUBSCRIPT.fullmatch(self.annotation)
        if found:
            return found[1], found[2], found[3].split()
        kind = self.annotation.rpartition(".")[2]
        plain = kind in ("ndarray", "Tensor") or not self.annotation and self.default is None
        return ("Float", kind or "ndarray", ["a", "b"]) if plain else None

    @property
    def floats(self) -> bool:
        return self.array is not None and self.array[0] in _FLOATS

    def draw_code(self, sizes: dict[str, int], dtype: str = "") -> str:
        """The code that draws a value of this parameter; axes have these sizes."""
        if self.array is None:
            return _NUMBERS.get(self.annotation, "None")
        holds, kind, axes = self.array
        shape = "".join(f", {size}" for size in _shape(axes, sizes))[2:]
        torch = kind == "Tensor"
        if holds in _FLOATS:
            method = "tensor" if torch and dtype != "float64" else "double" if torch else "normal"
            last = f', dtype="{dtype}"' if dtype and not torch else ""
            return f"draw.{method}({shape}{last})"
        if holds in _WHOLE:
            code = f"draw.integers(0, 3, {shape})"
        else:
            code = f"draw.integers(0, 1, {shape}).astype(bool)"
        return f"tensor({code})" if torch else code


@dataclass(frozen=True)
class Signature:
    """A function's name, parameters, and what it returns, as it is written."""

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    text: str

    @property
    def torch(self) -> bool:
        return "Tensor" in self.text

    @property
    def gives_one_array_of_floats(self) -> bool:
        found = Parameter("", self.returns, "").array
        return found is not None and found[0] in _FLOATS

    def required(self) -> tuple[Parameter, ...]:
        """The parameters without a default."""
        return tuple(p for p in self.parameters if p.default is None)

    def call(self, *, other: bool = False, dtype: str = "") -> str:
        """The code of a call with random arguments; `other` shapes are as unusual as possible."""
        sizes = self._sizes(_OTHER if other else _SIZES)
        return f"call({', '.join(p.draw_code(sizes, dtype) for p in self.required())})"

    def _sizes(self, sizes: tuple[int, ...]) -> dict[str, int]:
        axes = [axis for p in self.parameters if p.array for axis in p.array[2]]
        number = count()
        return {axis: sizes[next(number) % len(sizes)] for axis in dict.fromkeys(axes)}


def _shape(axes: list[str], sizes: dict[str, int]) -> Iterator[int]:
    for axis in axes:
        if not axis.startswith(("...", "*")):
            yield int(axis) if axis.isdigit() else sizes[axis]
    if axes and all(axis.startswith(("...", "*")) for axis in axes):
        yield from (3, 4)


def parse(name: str, text: str) -> Signature:
    """Read `(x: Float[Tensor, "n d"], axis: int = -1) -> Tensor`, or the names alone.

    Raises `ValueError` for anything that is not a signature.
    """
    text = text.strip()
    whole = text if text.startswith("(") else f"({text})"
    try:
        function = ast.parse(f"def {name}{whole}: ...").body[0]
    except SyntaxError as error:
        raise ValueError(f"{name}{whole} is not a signature: {error.msg}") from None
    assert isinstance(function, ast.FunctionDef)
    return of_function(function)


def of_function(function: ast.FunctionDef) -> Signature:
    """The signature of a function whose source was parsed. Raises `ValueError` for *args."""
    given = function.args
    if given.vararg or given.kwarg or not (given.args or given.kwonlyargs):
        raise ValueError(f"{function.name}: expected parameters with names, and no * or **")
    every = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(every) - len(given.defaults)) + given.defaults
    pairs = [
        *zip(every, defaults, strict=True),
        *zip(given.kwonlyargs, given.kw_defaults, strict=True),
    ]
    parameters = tuple(
        Parameter(
            arg.arg,
            ast.unparse(arg.annotation) if arg.annotation else "",
            ast.unparse(default) if default else None,
        )
        for arg, default in pairs
    )
    returns = ast.unparse(function.returns) if function.returns else ""
    text = f"({ast.unparse(given)})" + (f" -> {returns}" if returns else "")
    return Signature(function.name, parameters, returns, text.replace("'", '"'))


def names_in(signature: Signature) -> set[str]:
    """The names that the annotations use."""
    tree = ast.parse(f"def f{signature.text}: ...")
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
