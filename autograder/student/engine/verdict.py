"""From records to a verdict: the same for `check` in a notebook and for the judge.

TRUST BOUNDARY. When grading, this runs in the judge's process, where no student's code ever runs.
The records come from outside and are only data; every function here takes them as hostile.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from autograder.student.course import is_exercise
from autograder.student.engine.compare import NEARLY
from autograder.student.engine.deviations import same_deviations
from autograder.student.engine.gate import admit
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.mistakes.match import Mistake, match_mistakes
from autograder.student.engine.mistakes.wording import describe_guess, describe_other_problems
from autograder.student.engine.observe import MOST
from autograder.student.engine.ready_made import is_forbidden
from autograder.student.engine.rounding import PRECISION, charged_to_dtype
from autograder.student.engine.runs import (
    LOST,
    Aspect,
    Exercise,
    Finding,
    Make,
    RaisedException,
    Record,
    Run,
    Trial,
)
from autograder.student.engine.words import describe_call, describe_exception, one_line

CORRECT, WRONG, CRASH, MISSING = "correct", "wrong", "crash", "missing"
TIMEOUT, MEMORY, POLICY = "timeout", "memory", "policy"


@dataclass(frozen=True)
class AspectVerdict:
    """The outcome of one aspect. `points` is what it is worth; `message` says what is wrong.

    `error` is the largest deviation from what was expected, where there is one to measure.
    `judged` is false for an aspect that does not count yet because the first one fails. `kind` is
    how it fails: "value", "gradient", "nan", "shape", "dtype", "digits" (too few of them),
    "missing" (a gradient), "kind" (of result), "raised", "lost" (with its process), "mismatch" (of
    parameters) or "kept" (from an earlier call);
    `relative` the largest error relative to the largest expected number; `call` the end of the
    message, which tells the call that fails.
    """

    title: str
    points: float
    passed: bool
    hint: str | None = None
    message: str | None = None
    error: float | None = None
    tolerance: float | None = None
    judged: bool = True
    kind: str = ""
    relative: float | None = None
    call: str = ""


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth and why. `mistake` names the known mistake that it is.

    `other_problems` says what else is wrong with it. `suspected_mistakes` names those that it only
    looks like, one or two at once, with their causes in `suspicion`. `note` replaces the aspects if
    none was judged; `remark` adds something to know. `forbidden_operations` holds those that it
    ran, each with its place in the answer. `pointer` says where it goes astray: a hint that the
    answer may have forged, several lines, indented where it is code.
    """

    exercise: str
    points: float
    score: float
    verdict: str
    aspects: tuple[AspectVerdict, ...]
    mistake: str | None = None
    cause: str | None = None
    note: str | None = None
    remark: str | None = None
    forbidden_operations: tuple[tuple[str, str], ...] = ()
    other_problems: str | None = None
    suspected_mistakes: tuple[str, ...] = ()
    suspicion: str | None = None
    pointer: str | None = None


class CourseFault(RuntimeError):
    """Our own code failed while it made what is expected: no answer is to blame for that."""


def decide(
    exercise: Exercise,
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    expected: Sequence[Sequence[Record]],
    mistakes: Callable[[], Iterable[Mistake]] = tuple,
    *,
    search_depth: int = 4,
    make: Make | None = None,
) -> Verdict:
    """Judge the records of an answer's runs against those of the reference on the same runs.

    `mistakes` is called only if the answer is wrong; `search_depth` says how hard to look for
    one that a second slip hides, at the price of more of the mistakes' records. `make` makes one
    more run of the answer, where a finding needs it. Each argument holds one sequence per aspect,
    with one item per run.
    """
    raised = [record.raised for row in records for record in row]
    pairs = zip(raised, (run for row in runs for run in row), strict=True)
    called = [error for error, run in pairs if any(step.is_call for step in run.steps)]
    first = called[0] if called and all(called) else None
    if first and first.types[0] == "NotImplementedError" and _is_stub(first):
        return _unwritten(exercise, first)
    rows = zip(records, runs, expected, strict=True)
    records = [[admit(*trial) for trial in zip(*row, strict=True)] for row in rows]
    found = _findings(exercise, runs, records, expected)
    verdicts = _aspect_verdicts(exercise, found)  # as mistakes are judged, of which no run is made
    if all(v.passed for v in verdicts):
        full = exercise.points
        return Verdict(
            exercise.name,
            full,
            full,
            CORRECT,
            verdicts,
            forbidden_operations=_operations_that_ran(exercise, records),
        )
    if raised[0] and all(raised):  # two answers that always raise alike need not be the same
        return no_marks(exercise, CRASH, _story([one for one in raised if one]))
    if make and any(finding.alone for finding in found):
        told = _aspect_verdicts(exercise, [_made_alone(finding, make) for finding in found])
    else:
        told = verdicts
    score = round(sum(v.points for v in told if v.passed), 6)
    drawn = [any(run.random for run in row) for row in runs]
    runs = _to_compare(runs, verdicts)
    # What fails first: there most of the mistakes are unlike the answer, after a record or two.
    order = sorted(range(len(verdicts)), key=lambda i: verdicts[i].passed)

    def in_order(rows: Sequence[Sequence]) -> list[Sequence]:
        return [rows[i] for i in order]

    def is_this(mistake: Mistake) -> bool:
        if not equal(*map(in_order, (runs, records, mistake.records))):
            return False
        theirs = _judge(exercise, runs, mistake.records, expected)  # dtypes and side effects, too
        return all(
            (mine.passed == other.passed and (not by_lot or _told_alike(mine, other)))
            or (not by_lot and any(run.random for run in row))  # on a simulated device
            for mine, other, row, by_lot in zip(verdicts, theirs, runs, drawn, strict=True)
        ) and same_deviations(runs, records, mistake.records, expected)

    known = next(filter(is_this, mistakes()), None)

    def failed(given: Sequence[Sequence[Record]]) -> frozenset[int]:
        judged = verdicts if given is records else _judge(exercise, runs, given, expected)
        return frozenset(i for i, aspect in enumerate(judged) if not aspect.passed)

    like = (
        None if known else match_mistakes(runs, records, expected, mistakes(), failed, search_depth)
    )
    if like and like.certain:
        known = like.mistakes[0]
    name, cause = (known.name, known.cause) if known else (None, None)
    return Verdict(
        *(exercise.name, exercise.points, score, WRONG, told, name, cause),
        remark=None if known or like else _describe_digits(told),
        forbidden_operations=_operations_that_ran(exercise, records),
        other_problems=describe_other_problems(like, exercise.arguments)
        if like and like.certain
        else None,
        suspected_mistakes=() if not like or like.certain else tuple(m.name for m in like.mistakes),
        suspicion=None if not like or like.certain else describe_guess(like, exercise.arguments),
    )


def _told_alike(mine: AspectVerdict, other: AspectVerdict) -> bool:
    """Whether two answers fail in the same words, and are off by about as much."""
    words, numbers = zip(
        *(_split_numbers(each.message or "") for each in (mine, other)), strict=True
    )
    near = (abs(a - b) <= max(a, b) / 3 for a, b in zip(*numbers, strict=False))
    return words[0] == words[1] and all(near)


def _split_numbers(message: str) -> tuple[str, list[float]]:
    """The words of a message and the numbers in it."""
    return _NUMBER.sub("", message), [*map(float, _NUMBER.findall(message))]


OF_DIGITS = (
    "A small number is added or left out, or digits are lost: in float32 or less, in a rounded "
    "constant, in the difference of two large numbers, in a fit in place of a formula."
)
_SIDE = 0.1  # of the points: the hint of a lesser aspect waits until the first one passes
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def _to_compare(
    runs: Sequence[Sequence[Run]], verdicts: Sequence[AspectVerdict]
) -> Sequence[Sequence[Run]]:
    """The runs by which an answer is compared with known mistakes: those on a simulated device
    only if nothing else is wrong, since an answer with any mistake may or may not work there."""
    rows = [*zip(runs, verdicts, strict=True)]
    if all(v.passed or any(run.simulated for run in row) for row, v in rows):
        return runs
    return [[replace(run, random=run.random or run.simulated) for run in row] for row in runs]


def _describe_digits(aspects: Sequence[AspectVerdict]) -> str | None:
    """A remark that everything that fails is nearly right, if so: perhaps it lacks precision."""
    failed = [aspect for aspect in aspects if not aspect.passed and aspect.judged]
    sizes = [math.inf if a.relative is None else a.relative for a in failed if a.kind != "dtype"]
    others = any(a.kind not in ("value", "gradient", *PRECISION) for a in failed)
    if others or not sizes or max(sizes) > NEARLY:
        return None
    digits = max(int(-math.log10(max(sizes))), 1)
    return f"Nearly right: what fails is off in digit {digits + 1} at the earliest. {OF_DIGITS}"


def _operations_that_ran(
    exercise: Exercise, records: Sequence[Sequence[Record]]
) -> tuple[tuple[str, str], ...]:
    """The operations among those that ran which the exercise forbids."""
    seen: dict[str, str] = {}
    for record in (record for row in records for record in row):
        seen = {**record.operations, **seen}
    patterns = exercise.watch_patterns
    return tuple((name, at) for name, at in seen.items() if is_forbidden(name, patterns))[:MOST]


def describe_operations(forbidden_operations: Sequence[tuple[str, str]]) -> str:
    """The first of some operations with its place, and the number of other places."""
    name, place = forbidden_operations[0]
    others = len({at for _, at in forbidden_operations}) - 1
    more = f" (and in {others} more place{'s' * (others > 1)})" if others else ""
    return name + (f" in {place}" if place else "") + more


def _judge(
    exercise: Exercise,
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    expected: Sequence[Sequence[Record]],
) -> tuple[AspectVerdict, ...]:
    return _aspect_verdicts(exercise, _findings(exercise, runs, records, expected))


def _findings(
    exercise: Exercise,
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    expected: Sequence[Sequence[Record]],
) -> list[Finding]:
    """What each aspect finds."""
    told = exercise.arguments, exercise.returns
    columns = zip(exercise.aspects, runs, records, expected, strict=True)
    return [
        _found(aspect, [Trial(a, b, c, *told) for a, b, c in zip(*rows, strict=True)])
        for aspect, *rows in columns
    ]


def _aspect_verdicts(exercise: Exercise, found: Sequence[Finding]) -> tuple[AspectVerdict, ...]:
    found, narrowed = charged_to_dtype(exercise.aspects, found)
    verdicts: list[AspectVerdict] = []
    for aspect, finding in zip(exercise.aspects, found, strict=True):
        counts = not aspect.only_if_right or not verdicts or verdicts[0].passed
        passed = finding.passed and counts
        message = finding.message and one_line(finding.message)
        waits = f"checked once “{exercise.aspects[0].title}” passes"
        beside = verdicts and not verdicts[0].passed and aspect.points < _SIDE * exercise.points
        fits = not passed and counts and finding.instructive and not beside
        verdicts.append(
            AspectVerdict(
                aspect.title,
                aspect.points,
                passed,
                aspect.hints.get(finding.kind, aspect.hint) if fits else None,
                None if passed else message if counts else waits,
                finding.error,
                finding.tolerance,
                judged=counts,
                kind="" if passed or not counts else finding.kind,
                relative=None if passed else finding.relative,
                call="" if passed or not counts else finding.call,
            )
        )
    others = [
        not v.passed and v.judged and bool(a.own) and v.kind not in (*a.own, LOST)
        for a, v in zip(exercise.aspects, verdicts, strict=True)
    ]
    others = [other and i not in narrowed for i, other in enumerate(others)]
    if all(v.passed or other for v, other in zip(verdicts, others, strict=True)):
        # What is wrong are values, if only those of the dtypes' runs, where all digits count.
        strays = (v for v, a in zip(verdicts, exercise.aspects, strict=True) if _is_stray(v, a))
        if not (stray := next(strays, None)):
            return tuple(verdicts)
        first = verdicts[0]
        verdicts[0] = replace(stray, title=first.title, points=first.points, hint=None)
    for i, aspect in enumerate(exercise.aspects):
        if others[i]:
            verdicts[i] = AspectVerdict(aspect.title, aspect.points, True)
    return tuple(verdicts)


def _is_stray(verdict: AspectVerdict, aspect: Aspect) -> bool:
    """Whether an aspect of dtypes fails by numbers that are wrong in all dtypes."""
    fails = not verdict.passed and verdict.kind == "value" and verdict.relative is not None
    return fails and "dtype" in aspect.own


def _found(aspect: Aspect, trials: Sequence[Trial]) -> Finding:
    """What an aspect finds; a result that makes its judge raise is wrong, and one that is lost."""
    for trial in trials:
        if trial.record.raised and trial.record.raised.during == LOST:
            call = describe_call(trial.run, trial.arguments)
            told = f"{trial.record.raised.message}{call and f' ({call})'}"
            return Finding(False, told, instructive=False, kind=LOST, call=call)
    return _safely(lambda: aspect.judge(trials))


def _made_alone(finding: Finding, make: Make) -> Finding:
    """The finding once the call that fails has been made alone, where that tells more."""
    alone = finding.alone
    return _safely(lambda: alone(make)) if alone else finding


def _safely(judge: Callable[[], Finding]) -> Finding:
    try:
        return judge()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  (no result may bring the judge down)
        message = f"what came back cannot be judged ({type(error).__name__})"
        return Finding(False, message, instructive=False)


def passes(aspect: Aspect, trial: Trial) -> bool:
    """Whether one of an aspect's runs passes, judged by itself."""
    return _found(aspect, [trial]).passed


def _story(raised: Sequence[RaisedException]) -> str:
    """How every call ends, as a sentence; where they do not end alike, how the first does."""
    told = describe_exception(raised[0]).rstrip(".")
    if not told.startswith("raised"):
        return f"{told[0].upper()}{told[1:]}."
    alike = len({(one.types[0], one.traceback.rpartition("\n")[2]) for one in raised}) == 1
    return f"Every call {told}." if alike else f"Every call raises an exception. The first {told}."


def _is_stub(raised: RaisedException) -> bool:
    """Whether a line of the answer raises it, or one that cannot be read, and no library."""
    line = (raised.traceback.splitlines() or [""])[-1]
    code = line.partition(", in ")[2].partition(": ")[2]
    return "raise NotImplementedError" in code if code else not raised.message


def _unwritten(exercise: Exercise, raised: RaisedException) -> Verdict:
    """The verdict on an answer that only raises NotImplementedError, itself or through another."""
    last = (raised.traceback.splitlines() or [""])[-1]
    place, _, rest = last.partition(", in ")
    inside = rest.partition(":")[0]
    if inside != exercise.name and is_exercise(inside):
        note = f"It calls {inside}, which raises NotImplementedError: write that first."
        return no_marks(exercise, CRASH, note)
    where = f" in {place}" if place else ""
    note = f"Not written yet: it raises NotImplementedError{where}. Write your code in its place."
    return no_marks(exercise, MISSING, note)


def no_marks(exercise: Exercise, verdict: str, note: str) -> Verdict:
    """No marks and no aspects judged: the answer is missing, or its process failed."""
    note = one_line(note)
    aspects = tuple(AspectVerdict(a.title, a.points, False, None, note) for a in exercise.aspects)
    return Verdict(exercise.name, exercise.points, 0.0, verdict, aspects, note=note)


def without_traceback(record: Record) -> Record:
    """The part of a record that is stored: no tracebacks."""
    raised = record.raised and replace(record.raised, traceback="")
    return replace(record, raised=raised)
