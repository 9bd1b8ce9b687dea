"""From records to a verdict: the same for `check` in a notebook and for the judge.

TRUST BOUNDARY. When grading, this runs in the judge's process, where no student's code ever runs.
The records come from outside and are only data; every function here takes them as hostile.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from autograder.engine.compare import GRADIENT_FACTOR, compare
from autograder.engine.observe import MOST, forbidden
from autograder.engine.runs import Aspect, Exercise, Finding, Raised, Record, Run, Trial
from autograder.exercises import is_exercise

CORRECT, WRONG, CRASH, MISSING = "correct", "wrong", "crash", "missing"
TIMEOUT, MEMORY, POLICY = "timeout", "memory", "policy"


@dataclass(frozen=True)
class AspectVerdict:
    """The outcome of one aspect. `points` is what it is worth; `message` says what is wrong.

    `error` is the largest deviation from what was expected, where there is one to measure.
    `judged` is false for an aspect that does not count yet because the first one fails.
    """

    title: str
    points: float
    passed: bool
    hint: str | None = None
    message: str | None = None
    error: float | None = None
    tolerance: float | None = None
    judged: bool = True


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer: its name, its cause for the student, its records on the same runs."""

    name: str
    cause: str
    records: Sequence[Sequence[Record]]


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth and why. `mistake` names the known mistake that it equals.

    `note` replaces the aspects where none was judged; `remark` adds something to know. `ran` holds
    the forbidden operations that it ran, each with its place in the answer.
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
    ran: tuple[tuple[str, str], ...] = ()


def decide(
    exercise: Exercise,
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    expected: Sequence[Sequence[Record]],
    mistakes: Callable[[], Iterable[Mistake]] = tuple,
) -> Verdict:
    """Judge the records of an answer's runs against those of the reference on the same runs.

    `mistakes` is called only if the answer is wrong. Each argument holds one sequence per aspect,
    with one item per run.
    """
    raised = [record.raised for row in records for record in row]
    if all(raised) and raised[0].types[0] == "NotImplementedError":
        return _unwritten(exercise, raised[0])
    verdicts = _judge(exercise, runs, records, expected)
    score = round(sum(v.points for v in verdicts if v.passed), 6)
    if all(v.passed for v in verdicts):
        full = exercise.points
        return Verdict(exercise.name, full, full, CORRECT, verdicts, ran=_ran(exercise, records))
    if all(raised):  # two answers that always raise alike need not be the same
        return withheld(exercise, CRASH, f"Every call {_story(raised[0])}.")

    def is_this(mistake: Mistake) -> bool:
        if not equal(runs, records, mistake.records):
            return False
        theirs = _judge(exercise, runs, mistake.records, expected)  # dtypes and side effects, too
        return all(
            mine.passed == other.passed or any(run.random for run in row)
            for mine, other, row in zip(verdicts, theirs, runs, strict=True)
        )

    known = next(filter(is_this, mistakes()), None)
    name, cause = (known.name, known.cause) if known else (None, None)
    return Verdict(
        *(exercise.name, exercise.points, score, WRONG, verdicts, name, cause),
        ran=_ran(exercise, records),
    )


def _ran(exercise: Exercise, records: Sequence[Sequence[Record]]) -> tuple[tuple[str, str], ...]:
    """The operations among those that ran which the exercise forbids."""
    seen: dict[str, str] = {}
    for record in (record for row in records for record in row):
        seen = {**record.operations, **seen}
    patterns = exercise.watched
    return tuple((name, at) for name, at in seen.items() if forbidden(name, patterns))[:MOST]


def operations_told(ran: Sequence[tuple[str, str]]) -> str:
    """The first of some operations with its place, and the number of other places."""
    name, place = ran[0]
    others = len({at for _, at in ran}) - 1
    more = f" (and in {others} more place{'s' * (others > 1)})" if others else ""
    return name + (f" in {place}" if place else "") + more


def _judge(
    exercise: Exercise,
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    expected: Sequence[Sequence[Record]],
) -> tuple[AspectVerdict, ...]:
    verdicts: list[AspectVerdict] = []
    for aspect, *columns in zip(exercise.aspects, runs, records, expected, strict=True):
        trials = [Trial(*row, exercise.arguments) for row in zip(*columns, strict=True)]
        finding = _found(aspect, trials)
        counts = not aspect.only_if_right or not verdicts or verdicts[0].passed
        passed = finding.passed and counts
        message = finding.message and " ".join(finding.message.split())
        waits = f"counts once “{exercise.aspects[0].title}” holds"
        verdicts.append(
            AspectVerdict(
                aspect.title,
                aspect.points,
                passed,
                None if passed or not counts or not finding.instructive else aspect.hint,
                None if passed else message if counts else waits,
                finding.error,
                finding.tolerance,
                judged=counts,
            )
        )
    return tuple(verdicts)


def _found(aspect: Aspect, trials: Sequence[Trial]) -> Finding:
    """What an aspect finds; a result that makes its judge raise is wrong."""
    try:
        return aspect.judge(trials)
    except Exception as error:  # noqa: BLE001  (no result may bring the judge down)
        message = f"what came back cannot be judged ({type(error).__name__})"
        return Finding(False, message, instructive=False)


def _story(raised: Raised) -> str:
    lines = raised.traceback.splitlines()
    return f"raised {str(raised).rstrip('.')}" + (f" ({lines[-1]})" if lines else "")


def _unwritten(exercise: Exercise, raised: Raised) -> Verdict:
    """The verdict on an answer that only raises NotImplementedError, itself or through another."""
    last = (raised.traceback.splitlines() or [""])[-1]
    place, _, rest = last.partition(", in ")
    inside = rest.partition(":")[0]
    if inside != exercise.name and is_exercise(inside):
        note = f"It calls {inside}, which raises NotImplementedError: write that first."
        return withheld(exercise, CRASH, note)
    where = f" in {place}" if place else ""
    note = f"Not written yet: it raises NotImplementedError{where}. Write your code in its place."
    return withheld(exercise, MISSING, note)


def withheld(exercise: Exercise, verdict: str, note: str) -> Verdict:
    """No marks and no aspects judged: the answer is missing, or its process failed."""
    aspects = tuple(AspectVerdict(a.title, a.points, False, None, note) for a in exercise.aspects)
    return Verdict(exercise.name, exercise.points, 0.0, verdict, aspects, note=note)


def equal(
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    others: Sequence[Sequence[Record]],
) -> bool:
    """Whether two answers did the same on every run that is not random."""
    return all(
        run.random or _same(a, b)
        for row, left, right in zip(runs, records, others, strict=True)
        for run, a, b in zip(row, left, right, strict=True)
    )


def _same(a: Record, b: Record) -> bool:
    if (a.raised is None) != (b.raised is None):
        return False
    if a.raised is not None:
        return a.raised.types[0] == b.raised.types[0]
    if len(a.values) != len(b.values) or a.changed.keys() != b.changed.keys():
        return False
    pairs = [*zip(a.values, b.values, strict=True)]
    pairs += [(a.changed[k], b.changed[k]) for k in a.changed]
    names = {*a.gradients, *b.gradients}
    slopes = [(a.gradients.get(name), b.gradients.get(name)) for name in names]
    return all(compare(x, y).passed for x, y in pairs) and all(
        compare(x, y, slack=GRADIENT_FACTOR).passed for x, y in slopes
    )


def stripped(record: Record) -> Record:
    """The part of a record that is stored: no tracebacks."""
    raised = record.raised and replace(record.raised, traceback="")
    return replace(record, raised=raised)
