"""Judges what a student wrote: cells run in the sandbox, verdicts are made here.

TRUST BOUNDARY. This is the trusted side. Student code is read here as text (its syntax tree), never
run; what comes back from the sandbox is data that may be forged. The reference, its results, the
known mistakes and the verdict exist on this side only.
"""

import threading
import time
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module

from autograder.judge.allowance import SECONDS, TOTAL, LimitExceeded, limit_computing
from autograder.judge.block_code import blocks_before, blocks_for
from autograder.judge.dependent_answers import judge_with, stand_ins
from autograder.judge.failed_cells import MissingModules
from autograder.judge.judgement import GRADED, Judgement
from autograder.judge.runner import REASONS, SHOWN, CellFailure, Runner, died, ran_out_of_memory
from autograder.notebook.cells_to_skip import cells_to_skip
from autograder.notebook.names import Names, defined_names, in_their_lines, names_in, parse
from autograder.sandbox.host import ProcessDied, SandboxLost
from autograder.sandbox.limits import Limits
from autograder.sandbox.outputs import Output, clean
from autograder.student.course import exercises_of, find_exercise
from autograder.student.engine.block_access import ABSENT
from autograder.student.engine.policy import Code, describe_uses
from autograder.student.engine.probe import preserve_generators
from autograder.student.engine.runs import Exercise, Record, Run, distinct, lost_record
from autograder.student.engine.verdict import (
    CORRECT,
    CRASH,
    MEMORY,
    MISSING,
    POLICY,
    TIMEOUT,
    WRONG,
    CourseFault,
    Mistake,
    Verdict,
    decide,
    describe_operations,
    no_marks,
)

_POINTER_LINES, _POINTER_WIDTH = 8, 120  # of what is shown of a pointer


@dataclass(frozen=True)
class Cell:
    """A code cell. `check` names the exercise of a check cell.

    Check cells are not run, nor are those to `skip` (they only draw), nor those of the course as
    released (`ours`) that no other cell needs.
    """

    source: str
    check: str | None = None
    skip: bool = False
    ours: bool = False


def judge_cells(
    cells: Sequence[Cell],
    exercises: Sequence[tuple[str, Exercise]],
    seeds: Mapping[str, bytes],
    *,
    device: str = "cpu",
    isolation: str = "bwrap",
    limits: Limits | None = None,
    module: str = "__main__",
) -> Judgement:
    """Run the cells in order and judge each exercise at its check cell, or else at the end.

    `exercises` holds pairs of a chapter's slug and one of its exercises; `seeds` the seed of each
    by name. A cell or a probe that ends the process costs only its own exercise: the rest goes on
    in a fresh process, in which the cells that succeeded have been run again. An answer whose code
    names wrong answers to earlier exercises of its chapter is judged with the course's own blocks
    in their place where there are any, and as it is unless that gives full marks: the better
    counts. Exercises of several chapters are judged chapter by chapter, each as in a notebook of
    its own. Marks that a forbidden operation may have earned are withheld. Raises `IsolationError`.
    """
    started, rest = time.monotonic(), (limits or Limits()).total_seconds
    judgement, used = Judgement(GRADED), 0.0
    for slug in dict.fromkeys(slug for slug, _ in exercises) or [""]:
        own = [pair for pair in exercises if pair[0] == slug]
        left = replace(limits or Limits(), total_seconds=max(1.0, rest - used))
        found, took = _judge_chapter(cells, own, seeds, (isolation, left, device, module))
        used += took
        judgement = Judgement(
            GRADED,
            {**judgement.verdicts, **found.verdicts},
            round(time.monotonic() - started, 3),
            notes=(*judgement.notes, *(n for n in found.notes if n not in judgement.notes)),
            outputs=judgement.outputs or found.outputs,
        )
    return judgement


def _judge_chapter(
    cells: Sequence[Cell],
    exercises: Sequence[tuple[str, Exercise]],
    seeds: Mapping[str, bytes],
    options: tuple[str, Limits, str, str],
) -> tuple[Judgement, float]:
    """The same for exercises of one chapter, and the seconds of its own time that it took.

    `options` are those of the runner.
    """
    asked = {exercise.name: (slug, exercise) for slug, exercise in exercises}
    verdicts, failures = dict[str, Verdict](), dict[str, CellFailure | None]()
    outputs, notes = dict[int, list[Output]](), list[str]()
    others: dict[str, Verdict] = {}  # on answers that others call, outside `exercises`
    code = Code()  # of the cells whose effects persist
    read: list[Names] = []  # of the same cells
    defined, absent = set[str](), MissingModules(notes)  # by the cells so far
    idle, is_file = _not_run(cells), options[3] != "__main__"
    blocks = blocks_before(exercises[0][0]) if exercises else frozenset()
    with Runner(*options, notes, blocks) as runner:
        importer = threading.Thread(target=_import_references, args=({s for s, _ in exercises},))
        importer.start()

        def verdict_on(name: str, seed: bytes, instead: Mapping[str, str]) -> Verdict:
            slug, exercise = asked.get(name) or find_exercise(name)
            exercise = replace(exercise, allows={**exercise.allows, **instead})  # it may run them
            return _judge(runner, slug, exercise, seed, failures.get(name), instead)

        def judge(name: str) -> None:
            def made(other: str, instead: Mapping[str, str]) -> Verdict:
                return verdict_on(other, seeds[name] + other.encode() * (other != name), instead)

            built_on = {} if died(failures.get(name)) else stand_ins(asked[name][0], name, read)
            verdict = judge_with(built_on, name, ChainMap(others, verdicts), made)
            verdicts[name] = absent.told(_held_back(verdict, asked[name][1], code))

        for number, cell in enumerate(cells):
            if cell.check is not None:
                _read_into(code, "")
                if cell.check in asked and cell.check not in verdicts:
                    judge(cell.check)
            elif number in idle:
                _read_into(code, "")
            else:
                outputs[number], failure = absent.execute(runner, cell.source)
                ran = _defining(runner, cell.source) if died(failure) and not is_file else ""
                _read_into(code, ran if died(failure) else cell.source)
                code.cells = 0 if is_file else code.cells  # its statements are one
                read.append(names_in(cell.source))
                ends = is_file and failure is not None and ABSENT not in failure.note
                for name in (asked.keys() if ends else defined_names(cell.source)) & asked.keys():
                    failures[name] = (
                        None
                        if died(failure) and name in (defined if ends else defined_names(ran))
                        else failure
                    )
                defined |= defined_names(cell.source)
                if ends:  # as if it was imported; what we withhold ends nothing
                    break
        for name in asked:
            if name not in verdicts:
                judge(name)
        for name, verdict in verdicts.items():  # no mark can change any more
            if verdict.verdict in (WRONG, CRASH) and verdict.mistake is None:
                verdicts[name] = replace(verdict, pointer=_shown(runner.point(name)))
        importer.join()
    verdicts = {name: verdicts[name] for name in asked}
    return Judgement(GRADED, verdicts, notes=tuple(notes), outputs=outputs), runner.used


def _defining(runner: Runner, source: str) -> str:
    """Run a cell that died once more, up to its last definition or to what it died of; return what
    has run. So an answer counts whatever comes below it."""
    try:
        statements = in_their_lines(source)
    except SyntaxError:
        return ""
    while statements and not defined_names(statements[-1]):
        statements.pop()
    ran = []
    for statement in statements:
        if runner.execute(statement)[1] is not None:
            break
        ran.append(statement)
    return "\n".join(ran)


def _not_run(cells: Sequence[Cell]) -> set[int]:
    """The numbers of the cells, besides the checks, that are not run."""
    idle = {number for number, cell in enumerate(cells) if cell.skip or not cell.source.strip()}
    rest = [n for n, cell in enumerate(cells) if n not in idle and cell.check is None]
    return idle | {rest[n] for n in cells_to_skip([(cells[n].source, cells[n].ours) for n in rest])}


def _read_into(code: Code, source: str) -> None:
    """Add a cell to the analysed code of a submission; one that cannot be parsed adds nothing."""
    try:
        tree = parse(source)
    except SyntaxError:
        tree = parse("")
    code.add(tree)


def _held_back(verdict: Verdict, exercise: Exercise, code: Code) -> Verdict:
    """The verdict, its marks withheld if a person has to review how they were earned."""
    if not verdict.score:
        return verdict
    ran = verdict.forbidden_operations
    reasons = [f"The answer runs {describe_operations(ran)}."] if ran else []
    if code.tampering:
        reasons.append(
            f"The file reaches into the grader: {describe_uses(code.tampering, code.cells)}."
        )
    why = " ".join(reasons)
    if not why:
        return verdict
    earned = f"{verdict.score:g} of {verdict.points:g} points"
    note = f"For a person to look at. {why} Judged by its results it would earn {earned}."
    return no_marks(exercise, POLICY, clean(note))


def _judge(
    runner: Runner,
    slug: str,
    exercise: Exercise,
    seed: bytes,
    failure: CellFailure | None,
    instead: Mapping[str, str],
) -> Verdict:
    if failure is not None and failure.died:
        return no_marks(exercise, failure.verdict, failure.note)
    task, end, told = _task(slug, exercise.name, seed, runner.options[2]), None, ""
    every, keys = distinct(task.runs)
    ahead = threading.Thread(target=task.expect)  # while the sandbox is at work
    ahead.start()
    try:
        blocks = blocks_for(slug, exercise, instead)
        flat = runner.probe(
            exercise.name, [*every.values()], instead, exercise.watch_patterns, blocks
        )
    except ProcessDied as death:
        end, told = REASONS[death.reason], f"a call of it {death.detail}"
        if all(record.raised for record in death.records):  # there is nothing to judge
            return no_marks(exercise, end, f"A{told[1:]}.")
        missing = len(every) - len(death.records)
        flat = [*death.records, *[lost_record(f"not reached, since {told}")] * missing]
    finally:
        ahead.join()
    if flat is None:
        if failure is not None:
            return no_marks(exercise, failure.verdict, failure.note)
        return no_marks(exercise, MISSING, f"{exercise.name} is not defined.")
    made = dict(zip(every, flat, strict=True))
    records = [[made[key] for key in row] for row in keys]

    def make(run: Run) -> Record:
        with suppress(ProcessDied, SandboxLost):
            return (
                runner.probe(exercise.name, [run], instead, exercise.watch_patterns, blocks) or []
            )[0]
        return lost_record("its process has ended")

    with _TRUSTED, preserve_generators():  # the runs seed the process's generators: one at a time
        try:
            known = tuple if end else task.mistakes  # each is like an answer that is seen in part
            left = TOTAL - (time.process_time() - runner.began)
            if left <= 0:
                raise LimitExceeded(TIMEOUT, f"{TOTAL:.3g} s of computing time")
            with limit_computing(min(SECONDS, left)):
                verdict = decide(
                    *(exercise, task.runs, records, task.expected, known),
                    search_depth=1,
                    make=None if end else make,
                )
        except LimitExceeded as error:
            return no_marks(exercise, error.reason, f"Judging what came back {error}.")
        except CourseFault:  # ours: there is no verdict, and a submission in a class no mark yet
            raise
        except Exception as error:  # noqa: BLE001  (no record may bring the judge down)
            note = f"What came back is not an answer ({type(error).__name__})."
            return no_marks(exercise, CRASH, note)
    if end:
        verdict = replace(
            verdict, verdict=end, remark=f"A{told[1:]}. What came back before counts."
        )
        return _fit_to_show(verdict)
    raised = [record.raised for record in flat if record.raised]
    if verdict.verdict != CORRECT and any(ran_out_of_memory(r.types, r.message) for r in raised):
        verdict = replace(verdict, verdict=MEMORY)
    return _fit_to_show(verdict)


def _fit_to_show(verdict: Verdict) -> Verdict:
    """The verdict, with every text that may come from a student shortened and cleaned."""

    def text(value: str | None) -> str | None:
        return value and clean(value[:SHOWN] + ("…" if len(value) > SHOWN else ""))

    aspects = tuple(replace(aspect, message=text(aspect.message)) for aspect in verdict.aspects)
    ran = tuple((text(name) or "", text(at) or "") for name, at in verdict.forbidden_operations)
    return replace(verdict, aspects=aspects, note=text(verdict.note), forbidden_operations=ran)


def _shown(pointer: str | None) -> str | None:
    """What the sandbox says about where an answer goes astray, cut to size and cleaned."""
    if not pointer or not pointer.strip():
        return None
    lines = (clean(line[:_POINTER_WIDTH]) for line in pointer.splitlines()[:_POINTER_LINES])
    return "\n".join(lines)


# --- the trusted side's own runs ----------------------------------------------------------------

_TRUSTED = threading.Lock()


class _Task:
    """An exercise's runs for one seed, with what the reference and the known mistakes give."""

    def __init__(self, slug: str, name: str, seed: bytes, device: str):
        from autograder.judge.reference import known_mistakes, on_demand, reference

        self.runs = _runs(slug, name, seed)
        if not any(run.simulated for row in self.runs for run in row):  # then they were made there
            device = "cpu"
        right = reference(slug, name)
        self.expected = on_demand(right, self.runs, device, rounding=True)
        self._known: list[Mistake] = []
        self._rest = known_mistakes(slug, name, self.runs, device)

    def expect(self) -> None:
        """Make what is expected; where that fails, it fails again when it is needed."""
        with suppress(Exception), _TRUSTED, preserve_generators():
            for records in self.expected:
                tuple(records)

    def mistakes(self) -> Iterator[Mistake]:
        """The known mistakes, each made when it is first needed."""
        yield from self._known
        for mistake in self._rest:
            self._known.append(mistake)
            yield mistake


@lru_cache(maxsize=128)  # some chapters, in each group
def _runs(slug: str, name: str, seed: bytes) -> list[list[Run]]:
    exercise = next(e for e in exercises_of(slug) if e.name == name)
    return exercise.runs(seed)


@lru_cache(maxsize=128)  # some chapters, in each group
def _task(slug: str, name: str, seed: bytes, device: str) -> _Task:
    return _Task(slug, name, seed, device)


def _import_references(slugs: set[str]) -> None:
    """Import what is needed for a verdict while the sandbox starts and the cells run."""
    import_module("autograder.judge.reference")
    for slug in slugs:
        import_module(f"solutions.{slug}")
