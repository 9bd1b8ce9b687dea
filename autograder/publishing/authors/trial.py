"""Tries an exercise: its reference, its known mistakes and its right answers, each judged.

TRUST BOUNDARY. Runs the course's own answers in this process. No student's code gets here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from autograder.bank import banks
from autograder.judge.reference import (
    expected,
    known_mistakes,
    records,
    reference,
    without_warnings,
)
from autograder.notebook import stubs
from autograder.student import course
from autograder.student.course import find_exercise
from autograder.student.engine.probe import preserve_generators, probe_within
from autograder.student.engine.runs import Record, Run, made_once
from autograder.student.engine.verdict import CORRECT, WRONG, Mistake, Verdict, decide
from autograder.student.expected import SEED

MISTAKES, RIGHTS, REFERENCE = "mistakes", "rights", "reference"
ENOUGH = {MISTAKES: 6, RIGHTS: 4}
OTHERS = b"the matrix, once"  # the seed of the second set of inputs
OPEN = "TODO"  # what the beginning of an exercise leaves to be written


class Inputs(NamedTuple):
    """An exercise's inputs drawn from one seed, and what reference and mistakes give on them."""

    runs: Sequence[Sequence[Run]]
    expected: Sequence[Sequence[Record]]
    mistakes: Mapping[str, Mistake]


@dataclass(frozen=True)
class TrialResult:
    """A known answer, and the verdict on it with each set of inputs."""

    kind: str
    name: str
    verdicts: tuple[Verdict, ...]

    @property
    def is_caught(self) -> bool:
        """Whether it lost marks with each set of inputs, without counting as a crash."""
        return all(v.verdict == WRONG and v.score < v.points for v in self.verdicts)

    @property
    def is_named(self) -> bool:
        """Whether it was taken for itself each time."""
        return all(v.mistake == self.name for v in self.verdicts)

    @property
    def full(self) -> bool:
        """Whether it earned full marks each time."""
        return all(v.verdict == CORRECT and v.score == v.points for v in self.verdicts)

    @property
    def steady(self) -> bool:
        """Whether it earned the same each time, whatever numbers were drawn."""
        return len({v.score for v in self.verdicts}) == 1

    def failed_titles(self) -> list[str]:
        """The titles of the aspects that fail with the first set of inputs."""
        return [aspect.title for aspect in self.verdicts[0].aspects if not aspect.passed]

    def problems(self) -> Iterator[str]:
        """What is wrong with this answer, or with how it is judged."""
        first = next((v for v in self.verdicts if v.verdict != CORRECT), self.verdicts[0])
        if self.kind != MISTAKES:
            if not self.full:
                told = next((a.message for a in first.aspects if a.message), first.note)
                marks = f"{first.score:g} of {first.points:g}"
                yield f"{self.name} is right and gets {marks}: {told or first.verdict}"
            return
        if not self.is_caught:
            yield f"{self.name} gets full marks, or counts as a crash: no aspect sees what is wrong"
        elif not self.is_named:
            taken = sorted({v.mistake or "no known mistake" for v in self.verdicts} - {self.name})
            yield f"{self.name} is taken for {', '.join(taken)}"
        if not self.steady:
            told = ", ".join(f"{score:g}" for score in sorted({v.score for v in self.verdicts}))
            yield f"{self.name}: its marks depend on the numbers drawn ({told})"


class Trial:
    """An exercise with all its known answers, judged with two sets of inputs.

    Raises `KeyError` for an unknown exercise.
    """

    def __init__(self, name: str):
        self.name = name
        self.slug, self.exercise = find_exercise(name)
        self._tried: dict[tuple[str, str], TrialResult] = {}

    @property
    def is_written(self) -> bool:
        """Whether there is a reference, and not only its beginning."""
        return stubs.CODE_STUB not in stubs.source(self.slug, self.name)

    @cached_property
    def bank(self) -> Mapping[str, Mapping]:
        """The known answers by kind; empty if there is no bank yet."""
        bank = banks(self.slug).get(self.name)
        return {kind: getattr(bank, kind, {}) for kind in ENOUGH}

    @cached_property
    def inputs(self) -> list[Inputs]:
        """Two sets of inputs, those that `check` uses first."""
        return [self.draw(SEED + self.name.encode()), self.draw(OTHERS)]

    def draw(self, seed: bytes) -> Inputs:
        """The inputs that a seed gives; the mistakes' records are made when they are read."""
        runs = self.exercise.runs(seed)
        right = expected(self.slug, self.name, runs)
        known = known_mistakes(self.slug, self.name, runs) if self.bank[MISTAKES] else ()
        return Inputs(runs, right, {m.name: m for m in known})

    def try_answer(self, kind: str, answer: str) -> TrialResult:
        """A known answer, judged.

        A mistake runs a second time with the first set of inputs; otherwise its records suffice.
        Of the others, the verdict also says which operations that the exercise withholds they run.
        """
        if (kind, answer) not in self._tried:
            found: list[Verdict] = []
            for i in self.inputs:
                again = kind == MISTAKES and not found
                mine = records(self.bank[kind][answer], i.runs) if again else None
                found.append(self.verdict(kind, answer, i, mine))
            self._tried[kind, answer] = TrialResult(kind, answer, tuple(found))
        return self._tried[kind, answer]

    def verdict(
        self, kind: str, answer: str, i: Inputs, mine: Sequence[Sequence[Record]] | None = None
    ) -> Verdict:
        """The verdict on a known answer with some inputs, from its records there: by default, a
        mistake's are those among the inputs, and the others' are made."""
        if mine is None:
            known = kind == MISTAKES
            mine = i.mistakes[answer].records if known else self._records_of(kind, answer, i.runs)
        code = self._answer(kind, answer)
        return decide(
            *(self.exercise, i.runs, mine, i.expected, i.mistakes.values),
            make=lambda run: records(code, [[run]])[0][0],
        )

    def _answer(self, kind: str, answer: str) -> Callable:
        return reference(self.slug, answer) if kind == REFERENCE else self.bank[kind][answer]

    def _records_of(
        self, kind: str, answer: str, runs: Sequence[Sequence[Run]]
    ) -> list[list[Record]]:
        code, watch = self._answer(kind, answer), self.exercise.watch_patterns
        with preserve_generators(), without_warnings():
            return made_once(runs, lambda run: probe_within(code, run, watch=watch))

    def answers(self) -> Iterator[tuple[str, str]]:
        """Kind and name of the reference and of every known answer."""
        yield REFERENCE, self.name
        yield from ((kind, answer) for kind, bank in self.bank.items() for answer in bank)

    def never_failed(self) -> list[str]:
        """The aspects that no mistake fails, so that nobody knows whether they work."""
        failed = {
            title
            for a in self.bank[MISTAKES]
            for title in self.try_answer(MISTAKES, a).failed_titles()
        }
        return [aspect.title for aspect in self.exercise.aspects if aspect.title not in failed]

    def problems(self) -> Iterator[str]:
        """Everything that has to be fixed before the exercise is released, a line each."""
        for kind, answer in self.answers():
            yield from self.try_answer(kind, answer).problems()
        for kind, enough in ENOUGH.items():
            if (has := len(self.bank[kind])) < enough:
                yield f"{has} {kind.replace('rights', 'right answers')}: expected {enough} or more"
        for title in self.never_failed():
            yield f"no mistake fails “{title}”, so nobody knows whether it works"


def find_todos(root: Path, slug: str, name: str) -> list[str]:
    """The places, as file:line, where the beginning of an exercise still says what to write."""
    files = [
        root / "solutions" / f"{slug}.py",
        course.folder("exercises") / slug / f"{name}.py",
        *(root / "solutions" / "mistakes" / slug / f"{name}.{kind}" for kind in ("py", "txt")),
        *sorted((root / "book").glob(f"[0-9]*_{slug}.md")),
        *sorted((root / "tests").rglob(f"test_{slug}*.py")),
        root / "CHANGELOG.md",
    ]
    found = []
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        places = (number for number, line in enumerate(lines, 1) if OPEN in line)
        found += [f"{path.relative_to(root)}:{number}" for number in places]
    return found
