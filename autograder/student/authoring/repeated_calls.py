"""Further calls of the same function or object: nothing may be kept from one for the next."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import starmap, zip_longest
from operator import getitem

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import Runs, judge_each, results_found
from autograder.student.engine.compare import NEARLY, worst
from autograder.student.engine.gate import admit
from autograder.student.engine.runs import (
    APPLY,
    KEPT,
    Array,
    Aspect,
    Draw,
    Finding,
    Make,
    Previous,
    Recipe,
    Run,
    Step,
    StridedArray,
    Trial,
    as_argument,
)
from autograder.student.engine.values import encode

Pair = tuple[Run, Run]  # of the same shapes
Found = Callable[[Trial, float], list[Finding]]  # on each call, within so much times the tolerance

_SLACK = 3.0  # times the tolerance: how near a result is has been judged by then
_PAIRS = 8, 4, 2  # of calls, at most, for each of so many objects
_FEW = 4  # for a function
_ROW = 10**6 + 1  # the seed of calls in a row
_NUMBERS = int | float | bool | str | None  # what says how large a result is, or which
_WRITABLE = np.ndarray | Array | StridedArray | Previous | Recipe | list | dict
FURTHER = "further calls"
_AFTER_OTHERS = "right alone, wrong after other calls"
_IN_PLACE = "right with new arguments, wrong with those of an earlier call, changed in place"
_LATER = "right when it came back, changed by a later call"
_HINT = (
    "A result, mask or table that is kept from one call is wrong for the next, whose numbers are "
    "others even where its shapes are the same, or the objects themselves; and training changes "
    "parameters. Compute from what a call is given, and from the parameters as they are then."
)


def follows_from_each_call(
    source: Aspect,
    points: float,
    compared: Sequence[Runs],
    again: Sequence[Runs],
    found: Found = results_found,
) -> Aspect:
    """Calls in pairs, of the same shapes and with other values, longer and shorter ones in turn,
    and at last one like the first: of a function in one process, of a class of one object each,
    and there once more with other parameters; and then with the same arguments, in which other
    numbers have been written.

    The calls are those that are `compared` with the reference's, and `found` compares them. What
    is to be called `again` is called besides, each run as it is; and a function's `source` is once
    more, whose judge judges it.
    """
    every = [source.runs, *(runs for runs in compared if runs is not source.runs)]

    def drawn(draw: Draw) -> Sequence[Run]:
        first = [*draw.anew(source.runs)]
        of_a_class = first[0].init is not None
        pairs = [
            (one, _other(one, other))
            for runs in (every if of_a_class or source.runs in compared else every[1:])
            if any(map(_plain, some := first if runs is source.runs else draw.anew(runs)))
            for one, other in zip(_split(some), _split(draw.anew(runs)), strict=False)
            if [*map(_shape, one.steps)] == [*map(_shape, other.steps)]
        ]
        most = _PAIRS if of_a_class else (_FEW,)
        rows = [*map(_in_turn, _of_each_object(pairs), most)]
        rows += [replace(run, seed=_ROW) for runs in again for run in draw.anew(runs)]
        return rows if of_a_class else [*first, *rows]

    def judge(trials: Sequence[Trial]) -> Finding:
        if trials[0].run.init is not None:
            return _all_equal(trials, found)
        # The process has made calls of these shapes before.
        rows = [trial for trial in trials if trial.run.seed == _ROW]
        others = [trial for trial in trials if trial.run.seed != _ROW]
        finding = source.judge(others)
        if finding.passed:
            return _all_equal(rows, found) if rows else finding
        wrong = next((trial for trial in others if not source.judge([trial]).passed), None)
        alone = [replace(wrong, run=replace(wrong.run, fresh=True))] if wrong else []
        return _of_call_alone(finding, [(one, _AFTER_OTHERS) for one in alone], source.judge)

    return Aspect(FURTHER, points, _HINT, drawn, judge, only_if_right=True, own=(KEPT,))


def _of_call_alone(
    finding: Finding,
    trials: Sequence[tuple[Trial, str]],
    judge: Callable[[Sequence[Trial]], Finding],
    suspected: bool = True,
) -> Finding:
    """A finding on a call that is wrong among others. Whether that is for what is kept is told by
    the first of the `trials` that passes, each to be made anew, and with what it says then, if
    anything; until then, it is `suspected`. What is nearly right is rounded otherwise."""
    nearly = finding.relative is not None and finding.relative < NEARLY
    finding = replace(finding, instructive=False)
    if nearly or not trials:
        return finding
    kept = replace(finding, kind=KEPT, instructive=True)

    def tried(make: Make) -> Finding:
        for trial, told in trials:
            record = admit(make(trial.run), trial.run, trial.expected)
            if judge([replace(trial, record=record)]).passed:
                hint = told in (_AFTER_OTHERS, _IN_PLACE)
                said = replace(kept, message=f"{told}: {finding.message}", instructive=hint)
                return said if told else finding
        return finding

    return replace(kept if suspected else finding, alone=tried)


def _all_equal(trials: Sequence[Trial], found: Found) -> Finding:
    """Whether all calls are right. What is wrong later may be kept from earlier calls, where the
    first call of each shapes is right: a wrong formula may be right once, by its numbers."""
    finding = judge_each(lambda trial: worst(found(trial, _SLACK)))(trials)
    if finding.passed:
        return finding
    wrong = ((trial, step) for trial in trials for step in _first_wrong(trial, found))
    trial, step = next(wrong, (trials[0], 0))
    first = judge_each(lambda trial: found(trial, _SLACK)[step])([trial])
    later = step not in _firsts(trial) and all(_begins_right(one, found) for one in trials)
    last = judge_each(lambda trial: found(trial, _SLACK)[-1])
    told = replace(finding, message=first.message)
    return _of_call_alone(told, _fewer(trial, step), last, later)


def _fewer(trial: Trial, step: int) -> list[tuple[Trial, str]]:
    """The trials that tell what other calls of a row have to do with one of them that is wrong: it
    comes last, with new arguments, or alone, of a fresh function or object. None if it is no call
    of the answer's."""
    steps = trial.run.steps
    takes = [{v.step for v in _values(one) if type(v) is Previous} for one in steps]
    if not steps[step].is_call:
        return []
    wanted, taken = {step, *(i for i in range(step) if not steps[i].is_call)}, set[int]()
    for i in range(step, -1, -1):
        if i in wanted or takes[i] & taken:  # which may have been changed for the one that is wrong
            taken |= takes[i]
            wanted |= {i, *takes[i]}
    given = any(step in others for others in takes)  # to a later one, which may change it
    last, alone = _with_steps(trial, range(step + 1)), _with_steps(trial, sorted(wanted))
    alone = replace(alone, run=replace(alone.run, fresh=True))
    found = [(last, "" if given else _LATER), (alone, _AFTER_OTHERS)]
    return [*found[:1], (_with_new(last), _IN_PLACE), *found[1:]] if steps[step].into else found


def _with_new(trial: Trial) -> Trial:
    """A trial whose last call gets arguments of its own."""
    *others, last = trial.run.steps
    steps = (*others, replace(last, into=None))
    return replace(trial, run=replace(trial.run, steps=steps))


def _with_steps(trial: Trial, left: Sequence[int]) -> Trial:
    places = {old: new for new, old in enumerate(left)}
    steps = tuple(_with_results(trial.run.steps[i], places) for i in left)
    values = tuple(trial.expected.values[i] for i in left)
    run = replace(trial.run, steps=steps)
    return replace(trial, run=run, expected=replace(trial.expected, values=values))


def _first_wrong(trial: Trial, found: Found) -> list[int]:
    """The first step that is wrong, or raises, if there is one."""
    given = len(trial.record.values)
    if given < len(trial.run.steps):
        return [given]
    return [i for i, one in enumerate(found(trial, _SLACK)) if not one.passed][:1]


def _begins_right(trial: Trial, found: Found) -> bool:
    """Whether the first calls of all shapes are right, and none raises."""
    if trial.record.raised or len(trial.record.values) != len(trial.run.steps):
        return False
    each_call = found(trial, _SLACK)
    return all(each_call[i].passed for i in _firsts(trial))


def _firsts(trial: Trial) -> set[int]:
    """The steps that are the first of their shapes, the result of an earlier one counted as one;
    flags and strings count as they are, and so do numbers where there is nothing else."""

    def given(value: Value) -> Value:
        if type(value) is not Previous:
            return value
        return reduce(getitem, value.path, trial.expected.values[value.step])

    def shapes(step: Step) -> tuple:
        values = [given(value) for value in _values(step)]
        alone = all(isinstance(value, _NUMBERS) for value in values)
        kept = _NUMBERS if alone else bool | str
        return step.method, *(v if isinstance(v, kept) else _shape(v) for v in values)

    every = [shapes(step) for step in trial.run.steps]
    return {every.index(one) for one in every}


def _plain(run: Run) -> bool:
    """Whether a run is of calls alone, whose results are the same in every right answer."""
    if run.random or run.gradients or run.simulated:
        return False
    return all(step.method not in (APPLY, "train") for step in run.steps)


def _split(runs: Sequence[Run]) -> Iterator[Run]:
    """The plain ones among the runs, those of several calls one by one, unless a call needs the
    result of another."""
    for run in filter(_plain, runs):
        if any(type(value) is Previous for step in run.steps for value in _values(step)):
            yield run
        else:
            yield from (replace(run, steps=(step,)) for step in run.steps)


def _values(step: Step) -> list[Value]:
    return [*step.args, *step.kwargs.values()]


def _shape(value: object, sizes: bool = True) -> object:
    """Of arrays the shape and dtype alone, of steps, lists and tuples those of their parts, of
    anything else the name of its type; without `sizes`, of arrays only how many axes they have,
    and flags and strings themselves, in no order."""
    if isinstance(value, Step):
        shapes = [_shape(one, sizes) for one in _values(value)]
        return value.method, *(shapes if sizes else sorted(shapes, key=repr))
    if isinstance(value, StridedArray):
        return _shape(value.array, sizes)
    if isinstance(value, Array | np.ndarray):
        shape = np.shape(_data(value))
        return shape if sizes else len(shape), str(value.dtype)
    if isinstance(value, list | tuple):
        return type(value).__name__, *(_shape(part, sizes) for part in value)
    known = isinstance(value, bool | str) and not sizes
    return value if known else type(value).__name__


def _data(value: Value) -> np.ndarray:
    return value.data if isinstance(value, Array) else value


def _other(one: Run, other: Run) -> Run:
    """The other run, in which the arrays of the arguments are unlike those of the one: masks and
    ids, too, of which both may have been drawn alike."""
    pairs = zip(one.steps, other.steps, strict=True)
    return replace(other, steps=tuple(starmap(_unlike, pairs)))


def _unlike(one: Step, other: Step) -> Step:
    args = tuple(map(_moved_on, one.args, other.args))
    kwargs = {name: _moved_on(one.kwargs.get(name), v) for name, v in other.kwargs.items()}
    return replace(other, args=args, kwargs=kwargs)


def _moved_on(one: Value, other: Value) -> Value:
    """The other array, its rows moved on by one: of a mask those of any axis, of a batch the
    first's, so that each sample is as it was drawn; of what is drawn in one row only if it is the
    same in both."""
    if isinstance(other, StridedArray):
        return StridedArray(_moved_on(getattr(one, "array", None), other.array))
    if isinstance(other, tuple) and isinstance(one, tuple):
        return tuple(map(_moved_on, one, other))
    if not isinstance(other, Array | np.ndarray):
        return other
    data = _data(other)
    mask, batch = data.dtype.kind == "b", data.ndim > 1 + (data.dtype.kind == "f")
    if not (mask or batch or np.array_equal(data, _data(one))):
        return other
    moved = (np.roll(data, 1, axis) for axis in range(data.ndim if mask else min(data.ndim, 1)))
    found = next((one for one in moved if not np.array_equal(one, data)), data)
    return replace(other, data=found) if isinstance(other, Array) else found


def _of_each_object(pairs: Sequence[Pair]) -> list[list[Pair]]:
    """The pairs of the objects that get the most various calls; of a function, all."""
    built: dict[tuple, list[Pair]] = {}
    for pair in pairs:
        init = pair[0].init
        known = init and encode([init.args, dict(init.kwargs)])
        built.setdefault((known, pair[0].training), []).append(pair)
    return sorted(built.values(), key=lambda those: -len(_groups(those)))


def _groups(pairs: Iterable[Pair], sizes: bool = True) -> list[list[Pair]]:
    """The pairs, together those of the same shapes."""
    found: dict[tuple, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(tuple(_shape(step, sizes) for step in pair[0].steps), []).append(pair)
    return [*found.values()]


def _in_turn(pairs: Sequence[Pair], most: int) -> Run:
    """The calls of the most various pairs, at most so many, those of the same shapes in a row, of
    the object of the first; and once more the first call, and those of each method when the
    object's parameters have been changed, and when its arguments have been."""
    first = replace(pairs[0][0], state=next((one.state for one, _ in pairs if one.state), None))
    groups = _by_turns([_groups(those) for those in _groups(pairs, sizes=False)])
    chosen = _by_turns(groups)[:most]
    steps: list[Step] = []

    def add(*runs: Run) -> None:
        at = len(steps)
        for calls in zip(*(run.steps for run in runs), strict=True):
            for i, step in enumerate(calls):
                own = range(at + i, at + i + len(runs) * len(runs[0].steps), len(runs))
                steps.append(_with_results(step, own))

    for pair in (pair for group in _groups(chosen) for pair in group):
        add(*pair)
    add(first)
    if first.state:
        steps.append(Step(("parameters",), method="__getattribute__"))
        steps.append(Step((as_argument(enlarge), Previous(len(steps) - 1)), method=APPLY))
        for run in {tuple(s.method for s in one.steps): one for one, _ in reversed(pairs)}.values():
            add(run)
    for one, other in _fullest(pairs):
        add(one)
        written = len(steps) - 1
        add(other)
        steps[-1] = replace(steps[-1], into=written)
    return replace(first, steps=tuple(steps), seed=_ROW)


def _fullest(pairs: Sequence[Pair]) -> list[Pair]:
    """For each method, the pair whose last call has the most arguments that can be written to, and
    of those the one with the most numbers."""
    found: dict[str, tuple[tuple[int, int], Pair]] = {}
    for pair in pairs:
        last = pair[0].steps[-1]
        given = [value for value in _values(last) if isinstance(value, _WRITABLE)]
        sizes = [np.size(_data(v.array if isinstance(v, StridedArray) else v)) for v in given]
        most = len(given), sum(sizes)
        if most > found.get(last.method, ((0, 0),))[0]:
            found[last.method] = most, pair
    return [pair for _, pair in found.values()]


def enlarge(parameters: Callable[[], Iterable[Value]]) -> None:
    """Change a module's parameters as an optimizer does: in place, without gradients."""
    import torch

    with torch.no_grad():
        for parameter in parameters():
            parameter.mul_(1.25)


def _by_turns(rows: Sequence[Sequence]) -> list:
    """The first of each row, then the second of each."""
    return [one for column in zip_longest(*rows) for one in column if one is not None]


def _with_results(step: Step, places: Sequence[int] | Mapping[int, int]) -> Step:
    """A step that takes the results of others, each from the place where that one is now."""

    def moved(value: Value) -> Value:
        return replace(value, step=places[value.step]) if type(value) is Previous else value

    kwargs = {name: moved(value) for name, value in step.kwargs.items()}
    into = None
    if isinstance(places, Mapping) and step.into is not None:
        into = places.get(step.into)
    return replace(step, args=tuple(map(moved, step.args)), kwargs=kwargs, into=into)
