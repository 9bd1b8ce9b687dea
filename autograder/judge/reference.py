"""What the right answers and the known wrong ones give on a set of runs.

TRUST BOUNDARY. Everything here is our own code, run in the judge's process; no student's code and
none of its objects ever get here.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib import import_module

import numpy as np

from autograder.bank import banks, cause
from autograder.student.engine.arrays import Value
from autograder.student.engine.compare import GPU_FACTOR, compare
from autograder.student.engine.probe import preserve_generators, probe_within
from autograder.student.engine.records import on_device
from autograder.student.engine.runs import Array, Key, Record, Run, distinct, made_once
from autograder.student.engine.verdict import CourseFault, Mistake

Rows = Sequence[Sequence[Run]]


def reference(slug: str, name: str) -> Callable:
    """The reference implementation of an exercise."""
    return getattr(import_module(f"solutions.{slug}"), name)


def records(answer: Callable, runs: Rows, device: str = "cpu") -> list[list[Record]]:
    """What a trusted answer gives on each run of each aspect, on the CPU.

    For another device, what is expected there (see `_made`).
    """
    with preserve_generators(), without_warnings():
        return made_once(runs, lambda run: _made(answer, run, device))


@contextmanager
def without_warnings() -> Iterator[None]:
    """Without warnings: known mistakes overflow and divide by zero on purpose."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def expected(slug: str, name: str, runs: Rows, device: str = "cpu") -> list[list[Record]]:
    """What the reference gives on each run of each aspect, and how far it is off in float32."""
    answer = reference(slug, name)
    with preserve_generators(), without_warnings():
        return made_once(runs, lambda run: _with_rounding(answer, run, device))


def on_demand(
    answer: Callable, runs: Rows, device: str = "cpu", rounding: bool = False
) -> list[Sequence[Record]]:
    """Like `records`, or with `rounding` like `expected`, but each made on first access: for use
    `with preserve_generators()`."""
    make = partial(_with_rounding, later=True) if rounding else _made
    every, keys = distinct(runs)
    made: dict[Key, Record] = {}
    return [_Lazily(partial(make, answer), every, device, row, made) for row in keys]


def known_mistakes(slug: str, name: str, runs: Rows, device: str = "cpu") -> Iterator[Mistake]:
    """The bank's mistakes for an exercise, each with its records, made on first access.

    Most mistakes differ from an answer in the first run or two, so most records are never made.
    Making them advances the global random generators: `with preserve_generators()` restores them.
    """
    for title, answer in banks(slug)[name].mistakes.items():
        yield Mistake(title, cause(answer), on_demand(answer, runs, device))


def _made(answer: Callable, run: Run, device: str) -> Record:
    """What a trusted answer gives on a run: on the CPU, whatever the device, so that nothing of
    ours touches a driver that hostile code uses, too.

    Another device adds in another order, so numbers in float32 are then computed in float64, if
    that changes nothing but the digits.
    """
    record = probe_within(answer, run, "cpu")
    if device == "cpu" or run.simulated:
        return record
    wide = None if record.raised or run.random else run.in_float64()
    if wide is not None:
        finer = probe_within(answer, wide, "cpu")
        if not finer.raised:
            values = _finer(record.values, finer.values)
            gradients = _finer(record.gradients, finer.gradients)
            record = replace(record, values=values, gradients=gradients)
    return on_device(record, device)


def _with_rounding(answer: Callable, run: Run, device: str, later: bool = False) -> Record:
    """The same, which also says how far the answer is off where it computes in float32; `later`
    finds it out on demand."""
    record = _made(answer, run, device)
    if record.raised or run.random or run.simulated:  # nothing is compared
        return record

    @cache
    def rounding() -> float:
        narrow = run.all_in_float32()
        if narrow is None:
            return 0.0
        with without_warnings():
            rounded = _made(answer, narrow, device)
        pairs = [(rounded.values, record.values), (rounded.gradients, record.gradients)]
        return max(compare(*pair).relative or 0.0 for pair in pairs)

    return replace(record, rounding=rounding if later else rounding())


def _finer(value: Value, wide: Value) -> Value:
    """A result in float32, with the digits of the same result in float64 where both agree."""
    if isinstance(value, Array) and isinstance(wide, Array):
        if (value.dtype, wide.dtype) != ("float32", "float64"):
            return value
        digits = replace(value, data=wide.data.astype(np.float32))
        return digits if compare(digits, value, slack=GPU_FACTOR).passed else value
    if isinstance(value, tuple | list) and isinstance(wide, type(value)):
        same = len(value) == len(wide)
        return type(value)(map(_finer, value, wide)) if same else value
    if isinstance(value, Mapping) and isinstance(wide, Mapping) and value.keys() == wide.keys():
        return {name: _finer(value[name], wide[name]) for name in value}
    return value


class _Lazily(Sequence[Record]):
    """A trusted answer's records on some runs, each made on first access to its key.

    Raises `CourseFault` where one cannot be made.
    """

    def __init__(
        self,
        make: Callable[[Run, str], Record],
        every: Mapping[Key, Run],
        device: str,
        keys: Sequence[Key],
        made: dict[Key, Record],
    ):
        self.make, self.every, self.device = make, every, device
        self.keys, self.made = keys, made

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, index: int) -> Record:  # type: ignore[override]  # and no slices
        key = self.keys[index]
        if key not in self.made:
            try:
                with without_warnings():
                    self.made[key] = self.make(self.every[key], self.device)
            except Exception as error:
                told = f"an answer of the course could not be run ({type(error).__name__}: {error})"
                raise CourseFault(told) from error
        return self.made[key]
