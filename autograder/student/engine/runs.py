"""What an exercise is: the runs to make of an answer, and the aspects judged on what comes back.

A declaration holds no answer. It is imported in the student's notebook, in the process that runs
the student's code, and by the judge; the reference's results come from elsewhere (`expected/`, or
the reference itself), so nothing here gives one away.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from autograder.student import course
from autograder.student.engine.draw import Draw, Runs, tensor
from autograder.student.engine.values import Array, Previous, Recipe, StridedArray, Value

__all__ = [
    "Array", "Aspect", "Draw", "Exercise", "Finding", "Previous", "RaisedException", "Recipe",
    "Record", "Run", "Step", "StridedArray", "Trial", "as_argument", "call", "made_by", "module",
]  # fmt: skip


BLOCKS = course.blocks()
LOST = "lost"
KEPT = "kept"  # how a call fails after earlier ones that were right
SECONDS = 20.0  # that all calls of an exercise have together when it is graded
_CONCEPTS = {  # what is forbidden, for a sentence
    "normalisation": "normalisation layer",
    "softmax_with_mask": "masked softmax",
    "multi_head_attention": "multi-head attention",
    "transformer": "layer of a Transformer",
    "recurrence": "recurrent layer",
    "gelu": "GELU",
    "autograd": "derivative",
}
APPLY = "()"  # as a step's method: call its first argument with the others


@dataclass(frozen=True)
class Step:
    """One call: positional and keyword arguments, and the method; without one, of the object.

    With the method `APPLY`, the first argument is called with the others instead: a `Previous`
    module, to see what has become of it, or a `Recipe` that looks at one. With `into`, the numbers
    are written into the arguments of that earlier step, and those are passed again.
    """

    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    into: int | None = None

    @property
    def is_call(self) -> bool:
        """Whether it calls the answer, rather than to look at it or to call something else."""
        return self.method not in (APPLY, "__getattribute__", "named_parameters", "train")


@dataclass(frozen=True)
class Run:
    """Some calls of one fresh object, in a row.

    For a class, `init` holds the constructor's arguments (a function has None there), `state` the
    parameters to load and `training` the mode. With `gradients`, the last call's result is
    contracted with fixed numbers and differentiated with respect to every floating-point argument
    and every parameter. `seed` fixes torch's and NumPy's global generators before the first call.
    `random` marks a run whose results are random: no two answers need to agree on it. `simulated`
    marks one whose tensors say that they are not on the CPU; it is only judged by where its results
    are, or by whether a tensor made on the way holds more than `most` numbers (0: no limit).
    A `fresh` one is made of a copy of the function that has kept nothing from calls so far.
    """

    steps: tuple[Step, ...]
    init: Step | None = None
    state: Mapping[str, Value] | None = None
    training: bool = False
    gradients: bool = False
    seed: int = 0
    random: bool = False
    simulated: bool = False
    most: int = 0
    fresh: bool = False

    @property
    def constructor(self) -> Step:
        """The constructor's arguments, in a run of a class."""
        assert self.init is not None
        return self.init

    @property
    def parameters(self) -> Mapping[str, Value]:
        """The parameters to load, in a run that loads some."""
        assert self.state is not None
        return self.state

    def then(self, *args: object, **kwargs: object) -> "Run":
        """The same run with one more call of the same object."""
        return replace(self, steps=(*self.steps, Step(args, kwargs)))

    def then_apply(self, *args: object, **kwargs: object) -> "Run":
        """The same run with one more step: the first argument, called with the others."""
        return replace(self, steps=(*self.steps, Step(args, kwargs, APPLY)))

    def then_method(self, method: str, *args: object, **kwargs: object) -> "Run":
        """The same run with one more call, of a method."""
        return replace(self, steps=(*self.steps, Step(args, kwargs, method)))

    def in_place(self) -> "Run":
        """The same run, whose last call gets the objects of the one before, with other numbers."""
        *others, last = self.steps
        return replace(self, steps=(*others, replace(last, into=len(others) - 1)))

    def with_gradients(self) -> "Run":
        """The same run, its last result differentiated."""
        return replace(self, gradients=True)

    def in_training(self) -> "Run":
        """The same run of a class, in training mode."""
        return replace(self, training=True)

    def at_random(self, draw: Draw) -> "Run":
        """The same run with random results, from a seed of its own."""
        return replace(self, random=True, seed=draw.integer(0, 10**6))

    def as_views(self) -> "Run":
        """The same run with arrays that are not contiguous."""
        steps = (
            replace(s, args=_as_view(s.args), kwargs=_as_view(dict(s.kwargs))) for s in self.steps
        )
        return replace(self, steps=tuple(steps))

    def in_float32(self) -> "Run | None":
        """The same run with float32 instead of every float64 tensor; None if there is none."""
        return self._recast("float64", "float32")

    def in_float64(self) -> "Run | None":
        """The same run with float64 instead of every float32 tensor; None if there is none."""
        return self._recast("float32", "float64")

    def all_in_float32(self) -> "Run | None":
        """The same run with float32 instead of every float64 array or tensor; None if there is
        none."""
        return self._recast("float64", "float32", ("torch", "numpy"))

    def _recast(self, old: str, new: str, kinds: Sequence[str] = ("torch",)) -> "Run | None":
        found: list[Array | np.ndarray] = []
        cast = partial(_recast, old=old, new=new, found=found, kinds=kinds)
        steps = [
            replace(s, args=cast(s.args), kwargs=cast(s.kwargs))
            for s in [*self.steps, self.init or Step()]
        ]
        state = cast(self.state)
        init = self.init and steps[-1]
        return replace(self, steps=tuple(steps[:-1]), init=init, state=state) if found else None


def _as_view(value: Value) -> Value:
    """A value with its arrays as views."""
    if isinstance(value, (np.ndarray, Array)):
        return StridedArray(value)
    if isinstance(value, dict):
        return {name: _as_view(part) for name, part in value.items()}
    return tuple(map(_as_view, value)) if isinstance(value, tuple) else value


def _recast(
    value: Value, old: str, new: str, found: list[Array | np.ndarray], kinds: Sequence[str]
) -> Value:
    """A value with its tensors of one dtype cast to another, and its arrays, if they are of these
    `kinds`; what is cast is added to `found`."""
    cast = partial(_recast, old=old, new=new, found=found, kinds=kinds)
    if isinstance(value, np.ndarray) and value.dtype == old and "numpy" in kinds:
        found.append(value.astype(new))
        return found[-1]
    if isinstance(value, Array) and (value.kind, value.dtype) == ("torch", old):
        found.append(tensor(value.data, new))
        return found[-1]
    if isinstance(value, StridedArray):
        return StridedArray(cast(value.array))
    if isinstance(value, Recipe):
        parts = ("args", "kwargs", "state")
        return replace(value, **{part: cast(getattr(value, part)) for part in parts})
    if isinstance(value, Mapping):
        return {name: cast(part) for name, part in value.items()}
    return tuple(map(cast, value)) if isinstance(value, tuple) else value


def call(*args: object, **kwargs: object) -> Run:
    """A run that calls a function once."""
    return Run((Step(args, kwargs),))


def as_argument(function: Callable) -> Recipe:
    """A function of the course as an argument."""
    return Recipe(f"{function.__module__}:{function.__name__}")


def made_by(
    function: Callable, *args: object, state: Mapping[str, Value] | None = None, **kwargs: object
) -> Recipe:
    """What a function of the course returns, as an argument; `state` holds its parameters."""
    return Recipe(f"{function.__module__}:{function.__name__}", args, kwargs, state)


def module(*args: object, state: Mapping[str, Value] | None = None, **kwargs: object) -> Run:
    """A run that builds a class; `.then(…)` adds the calls. `state` is loaded as its parameters."""
    return Run((), init=Step(args, kwargs), state=state)


@dataclass(frozen=True)
class RaisedException:
    """An exception: the names of its type and its type's bases, its text, where it came from."""

    types: tuple[str, ...]
    message: str
    traceback: str = ""
    during: str = "call"  # or "build", "load", "backward"; LOST where there is no record

    def __str__(self) -> str:
        return f"{self.types[0]}: {self.message}" if self.message else self.types[0]


@dataclass(frozen=True)
class Record:
    """What a run produced: the results of its steps, or what was raised.

    `changed` holds the arguments that the calls altered in place, under "step.argument";
    `side_effects` names the global state that they changed; `operations` holds the watched
    operations that ran, each with the line of the answer that ran it first. `rounding` is how far
    a right answer is off if it computes in float32 here, relative to its largest number, or finds
    that out; 0 where nobody knows.
    """

    values: tuple = ()
    raised: RaisedException | None = None
    gradients: Mapping[str, Value] = field(default_factory=dict)
    changed: Mapping[str, Value] = field(default_factory=dict)
    side_effects: tuple[str, ...] = ()
    operations: Mapping[str, str] = field(default_factory=dict)
    rounding: float | Callable[[], float] = 0.0

    @property
    def value(self) -> Value:
        """The last step's result."""
        return self.values[-1] if self.values else None


Make = Callable[[Run], Record]  # makes a run of an answer


def lost_record(why: str) -> Record:
    """Stands for the record of a run that never came back."""
    return Record(raised=RaisedException(("Lost",), why, during=LOST))


@dataclass(frozen=True)
class Finding:
    """Whether an aspect holds; if not, one line on what is wrong, where, and by how much.

    `instructive` says whether the aspect's hint applies: after an exception, or for a result of
    the wrong kind, it would only mislead. `kind` says how it fails (see `AspectVerdict`), `step`
    at which of the run's steps, if at one of them. `relative` is the largest error relative to the
    largest of the expected numbers; `call` describes the call that fails, as the end of the message
    does. `rounded` says that numbers are off by no more than float32 explains, and `narrow` that
    some of them have its digits. `alone` gives the finding that holds once the call has been made
    alone as well, by the function that it is given.
    """

    passed: bool
    message: str | None = None
    error: float | None = None
    tolerance: float | None = None
    instructive: bool = True
    kind: str = ""
    step: int | None = None
    relative: float | None = None
    call: str = ""
    rounded: bool = False
    narrow: bool = False
    alone: "Callable[[Make], Finding] | None" = None


# What the parts of a tuple are called: "the output"; ("the cache", ("its keys", "its values")).
Names = tuple["str | tuple[str, Names]", ...]


@dataclass(frozen=True)
class Trial:
    """A run, what the answer gave and, if the aspect compares, what the reference gave."""

    run: Run
    record: Record
    expected: Record = Record()
    arguments: tuple[str, ...] = ()
    returns: Names = ()


@dataclass(frozen=True)
class Aspect:
    """One thing that is judged: its share of the points, a hint, the runs it needs and the judge.

    `only_if_right` aspects (inputs left untouched, say) hold for an answer that does nothing, so
    they count only where the exercise's first aspect passes. `forgeable` says that the judge relies
    on what the probe saw besides the returned values: that can be forged, so no exercise gives more
    than a tenth of its points for it. `hints` has other hints for some kinds of failure. `step`
    names the method that the aspect is about, in a class that is written method by method, each
    with a check of its own. `own` has the kinds of failure that an aspect is about, if not all are:
    others are charged there only if nothing else fails, since their fault fails elsewhere, too.
    """

    title: str
    points: float
    hint: str
    runs: Runs
    judge: Callable[[Sequence[Trial]], Finding]
    only_if_right: bool = False
    forgeable: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)
    step: str = ""
    own: Sequence[str] = ()


@dataclass(frozen=True)
class Exercise:
    """The task of writing one function or class. `arguments` names those of the call in messages,
    `returns` the parts of a result that is a tuple.

    `allows` maps the names of other exercises, whose blocks the answer may run, to these blocks.
    `forbids` names what would be a ready-made answer: concepts of `ready_made` ("normalisation"),
    or dotted names with `*` as a wildcard ("torch.*softmax*"). The course's own blocks are always
    forbidden, except those in `allows` or `uses`. An exercise that is not `recorded` compares
    nothing with the reference, whose results are then kept from students: they would be answers.
    """

    name: str
    title: str
    arguments: tuple[str, ...]
    aspects: tuple[Aspect, ...]
    allows: Mapping[str, str] = field(default_factory=dict)
    forbids: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    returns: Names = ()
    recorded: bool = True

    @property
    def watch_patterns(self) -> tuple[str, ...]:
        """What an answer must not run, since it would be a ready-made one: `Observer` patterns."""
        free = {*self.uses, *(block.rpartition(":")[2] for block in self.allows.values())}
        excepted = [f"!{BLOCKS}.{name}{end}" for name in sorted(free) for end in ("", ".*")]
        return (*self.forbids, f"{BLOCKS}.*", *excepted)

    @property
    def allowance(self) -> str:
        """A sentence on the library calls for which a person looks at an answer; empty if none."""
        if not self.forbids:
            return ""
        *others, last = (_CONCEPTS.get(what, what) for what in self.forbids)
        ready = f"{', '.join(others)} or {last}" if others else last
        return f"Write it yourself: the points of a ready-made {ready} wait for a person."

    @cached_property
    def points(self) -> float:
        return round(sum(aspect.points for aspect in self.aspects), 6)

    @cached_property
    def forgeable_points(self) -> float:
        """What an answer could gain by forging what the probe sees besides the values."""
        return round(sum(aspect.points for aspect in self.aspects if aspect.forgeable), 6)

    def steps(self) -> list[str]:
        """The methods that have a check of their own."""
        return [*dict.fromkeys(aspect.step for aspect in self.aspects if aspect.step)]

    def runs(self, seed: bytes) -> list[list[Run]]:
        """The runs of each aspect, drawn from `seed`; an aspect's draws do not depend on others,
        but what one function draws for several aspects are the same runs."""
        shared: dict[Runs, list[Run]] = {}
        draws = (Draw(seed + aspect.title.encode(), shared) for aspect in self.aspects)
        return [[*aspect.runs(draw)] for aspect, draw in zip(self.aspects, draws, strict=True)]


Key = tuple[int, int]


def distinct(rows: Sequence[Sequence[Run]]) -> tuple[dict[Key, Run], list[list[Key]]]:
    """The runs to be made, each under a key, and the keys of each row: one that stands in several
    rows is made once, one that stands in a row again is made again."""
    ids = [[id(run) for run in row] for row in rows]
    keys = [[(one, row[:i].count(one)) for i, one in enumerate(row)] for row in ids]
    return dict(zip(chain(*keys), chain(*rows), strict=True)), keys


def made_once(rows: Sequence[Sequence[Run]], make: Callable[[Run], Record]) -> list[list[Record]]:
    """The records of some rows of runs, each distinct one made once."""
    every, keys = distinct(rows)
    made = {key: make(run) for key, run in every.items()}
    return [[made[key] for key in row] for row in keys]
