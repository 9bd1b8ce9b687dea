"""Signatures: how values are recognised again without being kept.

A signature is a few numbers computed from an array: its shape and scale, two fixed random
projections (equal only for the same numbers in the same order), three moments (equal for the same
numbers in any order). What is stored of it are `keys`: hashes of these numbers, rounded. Nothing
can be computed from a key; it can only be met again, by computing the same value.

TRUST BOUNDARY. Runs in the student's own process, or in the sandbox; nothing that comes of it is
trusted. The stored keys are public: with them one can test a value that one has computed, as
`check` does with a result, and see how many values right answers pass through.
"""

import hashlib
import itertools
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from autograder.student.engine.arrays import Value, as_array

LARGEST = 1 << 14  # the most entries of an array that is looked at
FILLED = 1e8  # beyond this, a number stands for infinity: masks are filled with −1e9 or −∞
RICH = 8  # so many whole numbers are seldom equal by chance
_CELL = 2e-3  # numbers are rounded to multiples of this
_NEAR = 3e-4  # and this close to the next multiple, both are tried
_SLIGHTLY = 5e-3  # what differs by less may have differed before, unnoticed
_STEPS = 25  # so many cells of a logarithm are half a percent
KEY_BYTES = 3  # two values in 16 million have the same key by chance


@dataclass(frozen=True)
class ValueSignature:
    """What an array is recognised by. `plain` marks booleans and integers."""

    shape: tuple[int, ...]
    scale: float  # the largest absolute value; the rest is of the array divided by it
    ordered: tuple[float, ...]
    loose: tuple[float, ...]
    plain: bool
    filled: bool = False  # holds a finite number so large that it stands for infinity
    nan: bool = False  # holds a NaN

    @property
    def even(self) -> bool:
        """Whether all entries are equal, as in zeros and ones, or nearly so."""
        return abs(self.loose[1] - self.loose[0] ** 2) < 1e-9

    @property
    def binary(self) -> bool:
        """Whether all entries are 0 or 1, as in masks and one-hot rows."""
        mean, squares, cubes = self.loose
        return self.scale in (0.0, 1.0) and abs(mean - squares) + abs(squares - cubes) < 1e-9

    @property
    def rich(self) -> bool:
        """Whether an equal one is unlikely by chance, unlike for masks and a few tokens."""
        return not self.plain or (self.scale > 1 and math.prod(self.shape) >= RICH)

    def same(self, other: "ValueSignature") -> bool:
        """Whether both are of the same numbers in the same order."""
        return self.shape == other.shape and _close(self.numbers, other.numbers)

    def is_near(self, other: "ValueSignature") -> bool:
        """Whether both may be of the same numbers, rounded or slightly changed on the way."""
        return self.shape == other.shape and _close(self.numbers, other.numbers, _SLIGHTLY)

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        return _logarithm(self.scale), *self.ordered

    @cached_property
    def key(self) -> int:
        """What is stored of the numbers in their order."""
        return next(_keys("same", self.shape, self.numbers, 0.0))

    def all_keys(self) -> Iterator[int]:
        """The keys that arrays of nearly the same numbers may have been stored under."""
        return _keys("same", self.shape, self.numbers, _NEAR)

    def keys_of_neighbours(self) -> Iterator[int]:
        """The keys that arrays may have been stored under that are slightly larger or smaller."""
        steps = range(-_STEPS, _STEPS + 1)
        for larger in steps:
            scale, *ordered = self.numbers
            yield from _keys("same", self.shape, (scale + larger * _CELL, *ordered), _NEAR)

    @cached_property
    def loose_key(self) -> int:
        """What is stored of the numbers in any order."""
        return next(_keys("loose", (math.prod(self.shape),), self._any_order, 0.0))

    def loose_keys(self) -> Iterator[int]:
        return _keys("loose", (math.prod(self.shape),), self._any_order, _NEAR)

    @cached_property
    def ray_key(self) -> int:
        """What is stored of the numbers up to a positive factor."""
        return next(_keys("ray", self.shape, self.ordered, 0.0))

    def ray_keys(self) -> Iterator[int]:
        return _keys("ray", self.shape, self.ordered, _NEAR)

    @property
    def _any_order(self) -> tuple[float, ...]:
        return _logarithm(self.scale), *self.loose


def merely_reshaped(found: ValueSignature, before: ValueSignature | None) -> bool:
    """Whether axes of length 1 have come or gone, or leading axes have become one."""
    if before is None or not replace(before, shape=found.shape).same(found):
        return False
    ours, theirs = found.shape, before.shape
    rows = len(ours) < len(theirs) and ours[-1:] == theirs[-1:]
    return rows or [n for n in ours if n != 1] == [n for n in theirs if n != 1]


def reordered(found: ValueSignature, other: ValueSignature) -> bool:
    """Whether two arrays hold the same numbers, in any order, and not all of them equal."""
    return found.rich and not found.even and found.loose_key in other.loose_keys()


def signature(value: Value) -> ValueSignature | None:
    """The signature of an array, a tensor or a number; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = np.float64(value) if abs(value) < 1e300 else None
    array = as_array(value)
    if array is None or array.data.size > LARGEST:
        return None
    data = array.data.astype(np.float64).ravel()
    size = data.size
    if not size:
        return ValueSignature(array.data.shape, 0.0, (0.0, 0.0), (0.0,) * 3, True)
    sizes = np.abs(data)
    finite = sizes < FILLED  # false for NaN
    if finite.all():
        scale, filled, nan = float(sizes.max()), False, False
        data = data / (scale or 1.0)
    else:
        scale = float(sizes[finite].max(initial=0.0))
        filled, nan = bool(np.isfinite(data).sum() > finite.sum()), bool(np.isnan(data).any())
        with np.errstate(all="ignore"):
            odd = np.where(np.isnan(data), 7.0, 3.0 * np.sign(data))
            data = np.where(finite, data / (scale or 1.0), odd)
    squares = data * data
    moments = (float(data.mean()), float(squares.mean()), float((squares * data).mean()))
    ordered = _directions(size) @ data
    first, second = (float(x) for x in ordered)
    plain = array.data.dtype.kind in "biu"
    return ValueSignature(array.data.shape, scale, (first, second), moments, plain, filled, nan)


@lru_cache(maxsize=256)
def _directions(size: int) -> np.ndarray:
    """Two directions to project on. NumPy promises the same numbers in every version."""
    drawn = np.random.RandomState(size).standard_normal((2, size))
    return drawn / math.sqrt(size)


def _logarithm(scale: float) -> float:
    return 10 * math.log(scale) if scale > 1e-30 else -999.0


def _close(ours: tuple[float, ...], theirs: tuple[float, ...], by: float = 2 * _NEAR) -> bool:
    return all(abs(a - b) <= by for a, b in zip(ours, theirs, strict=True))


def _keys(
    kind: str, shape: tuple[int, ...], numbers: tuple[float, ...], near: float
) -> Iterator[int]:
    """The hashes of the numbers, rounded; with `near`, in every way that rounding may fall."""
    cells = [
        sorted({round((x - near) / _CELL), round((x + near) / _CELL)})
        if near
        else ([round(x / _CELL)])
        for x in numbers
    ]
    head = repr((kind, shape)).encode()
    for cell in itertools.product(*cells):
        data = head + struct.pack(f"<{len(cell)}q", *cell)
        digest = hashlib.blake2b(data, digest_size=KEY_BYTES).digest()
        yield int.from_bytes(digest, "little")
