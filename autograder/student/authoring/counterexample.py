"""Exercises that ask for inputs: one that shows the bug of a function, and one that hides it.

A chapter shows a wrong function. The answer returns a pair of inputs for it, `(shows, hides)`; both
functions, the wrong one and a right one, are then run on each, and their results compared. The
wrong ones are no secret, and neither are the right ones, which are calls of torch or of the
course's blocks: `check` needs nothing that a student must not have. The idea, turned round, is that
of Examplar, which judges tests by wrong and right implementations: J. Wrenn, S. Krishnamurthi,
"Executable examples for programming problem comprehension" (2019).

TRUST BOUNDARY. When grading, this runs on the judge's side. What an answer returned arrives here as
data, which may be anything that `values.decode` builds, and nothing of it is ever called or asked
to describe itself. The functions that run are the course's own. They get copies of arrays that are
plain numbers of the expected number of axes and sizes, few (`MOST`), finite and not large, so that
no answer can make them take long, need much memory or fail. In a notebook it all runs in the
student's own process, for the student's own use.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module

import numpy as np

from autograder.student import course
from autograder.student.authoring.declaration import Declaration
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import Runs
from autograder.student.engine.compare import describe, wrong, wrong_kind
from autograder.student.engine.probe import materialise
from autograder.student.engine.runs import Finding, Trial
from autograder.student.engine.values import Array

LONGEST = 64  # of an axis whose length the answer chooses
MOST = 1 << 16  # numbers in one input
SHOWN = 0.01  # right and wrong have to differ by this much to be told apart by any sensible test
SAME = 1e-12  # what float64 leaves of two ways to compute the same number
HIDDEN = 1e-6  # of the largest number that goes in or comes out: so near, they count as the same

BUGS = "exercises/bugs.py"  # of the course: right and wrong functions, which no sandbox has

Shape = tuple[int | str, ...]  # a name stands for any length, the same wherever it occurs
Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Bug:
    """A wrong function beside a right one, and the form of the inputs that both take.

    `function` names the two, `wrong_…` and `right_…` of the course's `exercises/bugs.py`; they take
    tensors, or arrays where `numpy` says so. `names` are their arguments' names, of which `ids` are
    integers; `shapes` makes their shapes from the arguments of the exercise, `extra_arguments` what
    the functions get after them. `unfit` says what else keeps an input from being one, `dull` why
    an input would hide any bug of this kind, so that it is no feat to hide this one; both say None
    where all is well.
    """

    names: tuple[str, ...]
    shapes: Callable[..., Sequence[Shape]]
    function: str
    dull: Callable[[Arrays], str | None]
    unfit: Callable[[Arrays], str | None] = lambda arrays: None
    extra_arguments: Callable[..., Sequence[object]] = lambda *arguments: ()
    ids: tuple[str, ...] = ()
    largest: float = 1e3
    numpy: bool = False

    def declare(self, exercise: Declaration, sizes: Runs, *, shows: str, hides: str) -> None:
        """The two aspects of such an exercise, for inputs of some sizes; their hints are given."""
        exercise.aspect("an input that shows the bug", 1.0, self.shows_the_bug, shows, sizes)
        exercise.aspect("an input that hides it", 0.5, self.hides_the_bug, hides, sizes)

    def shows_the_bug(self, trial: Trial) -> Finding:
        """Whether right and wrong differ on the first input of the pair."""
        arrays = self._input(trial, 0)
        if isinstance(arrays, Finding):
            return arrays
        return self._compare(trial, arrays, self._judge_shown)

    def hides_the_bug(self, trial: Trial) -> Finding:
        """Whether right and wrong agree on the second input, which must not be dull."""
        arrays = self._input(trial, 1)
        if isinstance(arrays, Finding):
            return arrays
        boring = self.dull(arrays)
        if boring:
            return wrong(f"hides: {boring}")
        return self._compare(trial, arrays, partial(self._judge_hidden, arrays))

    def _judge_shown(self, right: np.ndarray, mistaken: np.ndarray) -> Finding:
        apart, _ = _largest_difference(right, mistaken)
        if apart >= SHOWN:
            return Finding(True)
        if apart < SAME:
            return wrong(f"shows: right and wrong agree on it; both give {_shortly(right)}")
        how = "that is rounding" if apart < HIDDEN else "a test with a tolerance may let that pass"
        return wrong(
            f"shows: right and wrong differ by {apart:.1g} at most; {how}: expected {SHOWN:g}"
        )

    def _judge_hidden(self, given: Arrays, right: np.ndarray, mistaken: np.ndarray) -> Finding:
        apart, where = _largest_difference(right, mistaken)
        scale = max(1.0, *(np.abs(a[np.isfinite(a)]).max(initial=0) for a in (*given, right)))
        if apart <= HIDDEN * scale:
            return Finding(True)
        place = f" at [{', '.join(map(str, where))}]" if where else ""
        return wrong(
            f"hides: right and wrong differ by {apart:.1g}{place}: "
            f"right gives {right[where]:.6g}, wrong {mistaken[where]:.6g}"
        )

    def _compare(
        self, trial: Trial, arrays: Arrays, judge: Callable[[np.ndarray, np.ndarray], Finding]
    ) -> Finding:
        """What `judge` says of the results of both functions, if there are two to compare."""
        results = []
        for kind in ("right", "wrong"):
            function = getattr(
                import_module(f"{course.package()}.exercises.bugs"), f"{kind}_{self.function}"
            )
            try:
                results.append(
                    self._run(function, arrays, self.extra_arguments(*_arguments(trial)))
                )
            except Exception as error:  # noqa: BLE001  (an input that both functions cannot take)
                return wrong(f"the functions cannot take this input: {str(error)[:200]}")
        return judge(*results)

    def _run(self, function: Callable, arrays: Arrays, given: Sequence[object]) -> np.ndarray:
        with np.errstate(all="ignore"):
            if self.numpy:
                return function(*(array.copy() for array in arrays), *given)
            import torch

            with torch.no_grad():
                tensors = (torch.from_numpy(array.copy()) for array in arrays)
                others = (materialise(value, "cpu") for value in given)
                return function(*tensors, *others).double().numpy()

    def _input(self, trial: Trial, which: int) -> list[np.ndarray] | Finding:
        """One input of the pair as arrays of float64 and int64, or what is wrong with its form."""
        pair, name = trial.record.value, ("shows", "hides")[which]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            return wrong_kind(f"expected a pair (shows, hides), got {describe(pair)}")
        value = pair[which]
        if len(self.names) == 1:
            value = (value,)
        if not isinstance(value, tuple | list) or len(value) != len(self.names):
            form = f"a tuple ({', '.join(self.names)})"
            return wrong_kind(f"{name}: expected {form}, got {describe(value)}")
        lengths: dict[str, int] = {}
        arrays = []
        shapes = self.shapes(*_arguments(trial))
        for part, given, shape in zip(self.names, value, shapes, strict=True):
            what = name if len(self.names) == 1 else f"{name}, {part}"
            problem = self._mismatch(given, part in self.ids, shape, lengths)
            if problem:
                return wrong_kind(f"{what}: {problem}")
            arrays.append(given.data.astype(np.int64 if part in self.ids else np.float64))
        problem = self.unfit(arrays)
        return wrong(f"{name}: {problem}") if problem else arrays

    def _mismatch(
        self, given: Value, ids: bool, shape: Shape, lengths: dict[str, int]
    ) -> str | None:
        """What is wrong with one array of an input; its lengths are added to `lengths`."""
        told = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
        if not isinstance(given, Array):
            return f"expected an array of shape {told}, got {describe(given)}"
        data = given.data
        if data.ndim != len(shape):
            return f"expected shape {told}, got {tuple(map(int, data.shape))}"
        for length, wanted in zip(data.shape, shape, strict=True):
            if isinstance(wanted, str) and not 1 <= length <= LONGEST:
                return f"{wanted} = {length}: expected 1 to {LONGEST}"
            if length != (
                lengths.setdefault(wanted, length) if isinstance(wanted, str) else wanted
            ):
                known = "".join(f", {k} = {v}" for k, v in lengths.items())
                return f"expected shape {told}{known}, got {tuple(map(int, data.shape))}"
        if math.prod(data.shape) > MOST:
            return f"expected at most {MOST} numbers, got {math.prod(data.shape)}"
        if ids and data.dtype.kind not in "iu":
            return f"expected integers, got {given.dtype}"
        if data.dtype.kind == "f" and not np.isfinite(data).all():
            return "a number in it is not finite"
        if data.dtype.kind != "b" and (data.astype(np.float64) > self.largest).any():
            return f"a number in it is larger than {self.largest:g}"
        if data.dtype.kind != "b" and (data.astype(np.float64) < -self.largest).any():
            return f"a number in it is smaller than {-self.largest:g}"
        return None


def _arguments(trial: Trial) -> tuple:
    """The arguments of the call, as the functions take them."""
    return trial.run.steps[-1].args


def _largest_difference(a: np.ndarray, b: np.ndarray) -> tuple[float, tuple[int, ...]]:
    """The largest difference between two arrays, and where; infinite where one alone is NaN."""
    with np.errstate(all="ignore"):
        apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
    apart = np.where(np.isnan(apart), np.inf, apart)
    where = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return float(apart[where]), tuple(map(int, where))


def _shortly(numbers: np.ndarray) -> str:
    """The first few numbers of an array."""
    shown = [f"{n:.3g}" for n in numbers.ravel()[:4]]
    return ", ".join(shown) + (", …" if numbers.size > 4 else "")
