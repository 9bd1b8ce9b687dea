"""Judges what a student wrote: cells run in the sandbox, verdicts are made here.

TRUST BOUNDARY. This is the trusted side. Student code is read here as text (its syntax tree), never
run; what comes back from the sandbox is data that may be forged. The reference, its results, the
known mistakes and the verdict exist on this side only.
"""

import ast
import hashlib
import hmac
import json
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from autograder.engine.policy import Code, told
from autograder.engine.probe import undisturbed
from autograder.engine.runs import Exercise, Record, Run
from autograder.engine.verdict import (
    CORRECT,
    CRASH,
    MEMORY,
    MISSING,
    POLICY,
    TIMEOUT,
    Mistake,
    Verdict,
    decide,
    told_to_run,
    withheld,
)
from autograder.exercises import chapters, exercises_of, find_exercise
from autograder.grader.notebook.needs import needless
from autograder.grader.notebook.reading import CHECK, Unusable, cells_of, json_of
from autograder.grader.sandbox.host import (
    Limits,
    SandboxLost,
    Worker,
    WorkerDied,
    clean,
)

MAX_FILE = 20 << 20
_SMALL = 20_000
MAX_SOURCE = 500_000  # characters of code: parsing takes a thousand times as much memory
_SHOWN = 1200  # characters of a message in a verdict
_OUTPUT_BUDGET = 32 << 20  # a submission's outputs
_REASONS = {"timeout": TIMEOUT, "memory": MEMORY, "crash": CRASH}


@dataclass(frozen=True)
class Cell:
    """A code cell. `check` names the exercise of a check cell.

    Not run are check cells, those to `skip` (they only draw), and those of the course as released
    (`ours`) that no other cell needs.
    """

    source: str
    check: str | None = None
    skip: bool = False
    ours: bool = False


@dataclass
class Judged:
    """Outputs by cell number, verdicts by exercise, and notes on what happened on the way."""

    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def seed_for(secret: bytes, student: str, assignment: str, exercise: str) -> bytes:
    """The seed of a student's inputs: HMAC-SHA256, the same at every regrade, and unguessable."""
    message = json.dumps([student, assignment, exercise]).encode()
    return hmac.digest(secret, message, hashlib.sha256)


# --- cells --------------------------------------------------------------------------------------


def judge_cells(
    cells: Sequence[Cell],
    exercises: Sequence[tuple[str, Exercise]],
    seeds: Mapping[str, bytes],
    *,
    device: str = "cpu",
    isolation: str = "bwrap",
    limits: Limits | None = None,
    module: str = "__main__",
) -> Judged:
    """Run the cells in order and judge each exercise at its check cell, or else at the end.

    `exercises` holds pairs of a chapter's slug and one of its exercises; `seeds` the seed of each
    by name. A cell or a probe that ends the process costs its own exercise: the rest goes on in a
    fresh process, in which the cells that succeeded have been run again. A wrong answer that calls
    other wrong ones (`Exercise.given`) is judged once more with the course's own in their place.
    Marks that a forbidden operation may have earned are withheld. Raises
    `IsolationError`.
    """
    started = time.monotonic()
    asked = {exercise.name: (slug, exercise) for slug, exercise in exercises}
    judged, fates, room = Judged(), {}, _OUTPUT_BUDGET
    others: dict[str, Verdict] = {}  # on answers that others call, outside `exercises`
    code = Code()  # of the cells whose effects persist
    idle = _not_run(cells)
    with _Session(isolation, limits or Limits(), device, module, judged.notes) as session:
        importer = threading.Thread(target=_import_references, args=({s for s, _ in exercises},))
        importer.start()

        def verdict_on(name: str, seed: bytes, instead: Mapping[str, str] | None = None) -> Verdict:
            slug, exercise = asked.get(name) or find_exercise(name)
            return _judge(session, slug, exercise, seed, fates.get(name), instead)

        def judge(name: str) -> None:
            verdict = verdict_on(name, seeds[name])
            given = asked[name][1].given
            hopeless = verdict.verdict in (CORRECT, MISSING) or _came_to_grief(fates.get(name))
            if given and not hopeless:
                for other in given.keys() - judged.verdicts.keys() - others.keys():
                    others[other] = verdict_on(other, seeds[name] + other.encode())
                wrong = {
                    other: block
                    for other, block in given.items()
                    if (judged.verdicts | others)[other].verdict != CORRECT
                }
                if wrong:
                    verdict = _better(verdict, verdict_on(name, seeds[name], wrong), wrong)
            judged.verdicts[name] = _held_back(verdict, asked[name][1], code)

        for number, cell in enumerate(cells):
            if cell.check is not None:
                _read_into(code, "")
                if cell.check in asked and cell.check not in judged.verdicts:
                    judge(cell.check)
            elif number in idle:
                _read_into(code, "")
            else:
                outputs, fate = session.execute(cell.source)
                room -= sum(len(json.dumps(output)) for output in outputs)
                judged.outputs[number] = outputs if room > 0 else [_LEFT_OUT]
                _read_into(code, "" if _came_to_grief(fate) else cell.source)
                for name in defined_names(cell.source) & asked.keys():
                    fates[name] = fate
        for name in asked:
            if name not in judged.verdicts:
                judge(name)
        importer.join()
    judged.verdicts = {name: judged.verdicts[name] for name in asked}
    judged.seconds = time.monotonic() - started
    return judged


_LEFT_OUT = {
    "output_type": "stream",
    "name": "stderr",
    "text": "[the submission's outputs are too large; this one was left out]\n",
}


@dataclass(frozen=True)
class _Fate:
    """How the cell that defines a name failed: its process `died`, or it raised something."""

    verdict: str
    note: str
    died: bool


def _not_run(cells: Sequence[Cell]) -> set[int]:
    """The numbers of the cells, besides the checks, that are not run."""
    idle = {number for number, cell in enumerate(cells) if cell.skip or not cell.source.strip()}
    rest = [n for n, cell in enumerate(cells) if n not in idle and cell.check is None]
    return idle | {rest[n] for n in needless([(cells[n].source, cells[n].ours) for n in rest])}


def _came_to_grief(fate: _Fate | None) -> bool:
    return fate is not None and fate.died


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
    reasons = [f"The answer runs {told_to_run(verdict.ran)}."] if verdict.ran else []
    if code.tampering:
        reasons.append(f"The file reaches into the grader: {told(code.tampering, code.cells)}.")
    why = " ".join(reasons)
    if not why:
        return verdict
    earned = f"{verdict.score:g} of {verdict.points:g} points"
    note = f"For a person to look at. {why} Judged by its results it would earn {earned}."
    return withheld(exercise, POLICY, clean(note))


def _better(own: Verdict, helped: Verdict, instead: Mapping[str, str]) -> Verdict:
    """The better of two verdicts on an answer: as it is, and with other answers replaced."""
    if helped.score <= own.score:
        return own
    names = ", ".join(instead)
    remark = f"Judged with the course's own {names}, because yours is not right yet."
    return replace(helped, remark=remark)


class _Session:
    """A worker, replaced when it dies, and the cells that it has run."""

    def __init__(self, isolation: str, limits: Limits, device: str, module: str, notes: list[str]):
        self.options = (isolation, limits, device)
        self.limits, self.module, self.notes = limits, module, notes
        self.deadline = time.monotonic() + limits.total_seconds
        self.done: list[str] = []
        self.deaths = 0
        self.worker: Worker | None = Worker(*self.options)

    def __enter__(self) -> "_Session":
        return self

    def __exit__(self, *_: object) -> None:
        if self.worker is not None:
            self.worker.close()

    def execute(self, source: str) -> tuple[list[dict[str, Any]], _Fate | None]:
        """Run a cell: its outputs, and what went wrong if something did."""
        try:
            outputs = self._with_worker(lambda worker: self._execute(worker, source))
        except WorkerDied as death:
            self._bury(death, "A cell")
            note = f"The cell that defines it {death.detail}."
            return [_death_output(death)], _Fate(_REASONS[death.reason], note, True)
        self.done.append(source)
        error = next((o for o in outputs if o["output_type"] == "error"), None)
        if error is None:
            return outputs, None
        what = f"{error['ename']}: {error['evalue']}" if error["evalue"] else error["ename"]
        verdict = MEMORY if _ran_out_of_memory([error["ename"]], error["evalue"]) else CRASH
        return outputs, _Fate(verdict, f"The cell that defines it raised {what[:_SHOWN]}.", False)

    def probe(
        self,
        name: str,
        runs: Sequence[Run],
        instead: Mapping[str, str] | None,
        watch: Sequence[str],
    ) -> list[Record] | None:
        """Make an exercise's runs. Raises `WorkerDied`."""
        try:
            return self._with_worker(
                lambda worker: worker.probe_all(
                    name, runs, self._seconds(self.limits.probe_seconds), instead, watch
                )
            )
        except WorkerDied as death:
            self._bury(death, f"A call of {name}")
            raise

    def _with_worker(self, ask: Callable[[Worker], Any]) -> Any:
        """Ask a worker, and ask again if the sandbox was lost through no fault of the code in it.

        Raises `WorkerDied`, or `SandboxLost` after the third loss.
        """
        for _ in range(3):
            try:
                return ask(self._alive())
            except SandboxLost:
                self.worker = None
        raise SandboxLost("the sandbox ended three times in a row without a reason")

    def _execute(self, worker: Worker, source: str) -> list[dict[str, Any]]:
        return worker.execute(source, self._seconds(self.limits.cell_seconds), self.module)

    def _seconds(self, wanted: float) -> float:
        return max(0.0, min(wanted, self.deadline - time.monotonic()))

    def _alive(self) -> Worker:
        """A worker that has run all the cells so far. Raises `WorkerDied` at a limit."""
        while self.worker is None:
            if time.monotonic() > self.deadline:
                text = f"was not run: the submission took {self.limits.total_seconds:g} s in all"
                raise WorkerDied("timeout", text)
            if self.deaths > self.limits.restarts:
                text = f"was not run: the submission ended its process {self.deaths} times"
                raise WorkerDied("crash", text)
            self.worker = Worker(*self.options)
            for number, source in enumerate(self.done):
                try:
                    self._execute(self.worker, source)
                except WorkerDied as death:
                    self._bury(death, "A cell that had succeeded before")
                    del self.done[number]
                    break
        return self.worker

    def _bury(self, death: WorkerDied, what: str) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None
            self.deaths += 1
        self.notes.append(f"{what} {death.detail}.")


def _death_output(death: WorkerDied) -> dict[str, Any]:
    name = {"timeout": "Timeout", "memory": "OutOfMemory", "crash": "ProcessEnded"}[death.reason]
    text = f"this cell {death.detail}"
    return {
        "output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"],
    }  # fmt: skip


def _judge(
    session: _Session,
    slug: str,
    exercise: Exercise,
    seed: bytes,
    fate: _Fate | None,
    instead: Mapping[str, str] | None = None,
) -> Verdict:
    if fate is not None and fate.died:
        return withheld(exercise, fate.verdict, fate.note)
    runs = _runs(slug, exercise.name, seed)
    try:
        every = [run for row in runs for run in row]
        flat = session.probe(exercise.name, every, instead, exercise.watched)
    except WorkerDied as death:
        return withheld(exercise, _REASONS[death.reason], f"A call of it {death.detail}.")
    if flat is None:
        if fate is not None:
            return withheld(exercise, fate.verdict, fate.note)
        return withheld(exercise, MISSING, f"{exercise.name} is not defined.")
    rest = iter(flat)
    records = [[next(rest) for _ in row] for row in runs]
    with _TRUSTED, undisturbed():  # the runs seed the process's generators: one at a time
        task = _task(slug, exercise.name, seed, session.options[2])
        try:
            verdict = decide(exercise, task.runs, records, task.expected, task.mistakes)
        except Exception as error:  # noqa: BLE001  (no record may bring the judge down)
            note = f"What came back is not an answer ({type(error).__name__})."
            return withheld(exercise, CRASH, note)
    raised = [record.raised for record in flat if record.raised]
    if verdict.verdict != CORRECT and any(_ran_out_of_memory(r.types, r.message) for r in raised):
        verdict = replace(verdict, verdict=MEMORY)
    return _fit_to_show(verdict)


def _ran_out_of_memory(types: Sequence[str], message: str) -> bool:
    allocator = "can't allocate memory" in message or "not enough memory" in message
    return allocator or not {"MemoryError", "OutOfMemoryError"}.isdisjoint(types)


def _fit_to_show(verdict: Verdict) -> Verdict:
    """The verdict, with every text that may come from a student shortened and cleaned."""

    def text(value: str | None) -> str | None:
        return value and clean(value[:_SHOWN] + ("…" if len(value) > _SHOWN else ""))

    aspects = tuple(replace(aspect, error=text(aspect.error)) for aspect in verdict.aspects)
    ran = tuple((text(name), text(place)) for name, place in verdict.ran)
    return replace(verdict, aspects=aspects, note=text(verdict.note), ran=ran)


# --- the trusted side's own runs ----------------------------------------------------------------

_TRUSTED = threading.Lock()


class _Task:
    """An exercise's runs for one seed, with what the reference and the known mistakes give."""

    def __init__(self, slug: str, name: str, seed: bytes, device: str):
        from autograder.grader.reference import known_mistakes, on_demand, reference

        self.runs = _runs(slug, name, seed)
        self.expected = on_demand(reference(slug, name), self.runs, device)  # not for stubs
        self._known: list[Mistake] = []
        self._rest = known_mistakes(slug, name, self.runs, device)

    def mistakes(self) -> Iterator[Mistake]:
        """The known mistakes, each made when it is first needed."""
        yield from self._known
        for mistake in self._rest:
            self._known.append(mistake)
            yield mistake


@lru_cache(maxsize=64)
def _runs(slug: str, name: str, seed: bytes) -> list[list[Run]]:
    exercise = next(e for e in exercises_of(slug) if e.name == name)
    return exercise.runs(seed)


@lru_cache(maxsize=64)
def _task(slug: str, name: str, seed: bytes, device: str) -> _Task:
    return _Task(slug, name, seed, device)


def _import_references(slugs: set[str]) -> None:
    """Import what is needed for a verdict while the sandbox starts and the cells run."""
    import_module("autograder.grader.reference")
    for slug in slugs:
        import_module(f"solutions.{slug}")


# --- reading code without running it ------------------------------------------------------------

_MAGIC = re.compile(
    r"^([ \t]*)(?:%%?(?:time|timeit|capture)[ \t]+(?=[A-Za-z_(])(.*)|[%!?].*)$", re.MULTILINE
)
_MAGIC_VALUE = re.compile(r"^([ \t]*+[\w, \t]++=[ \t]*+)[%!].*$", re.MULTILINE)
_DEFINITION = re.compile(
    r"^(?:(?:async\s+)?def\s+|class\s+)([A-Za-z_]\w*)|^([A-Za-z_]\w*)\s*=(?!=)", re.MULTILINE
)


class _TooMuch(SyntaxError):
    """It may be Python, but it is longer or more deeply nested than we parse."""


def parse(source: str) -> ast.Module:
    """The syntax tree of a cell, with IPython's lines taken as empty; not to be changed.

    Raises `SyntaxError`, also for code too deep for the parser.
    """
    return (_parse_once if len(source) <= _SMALL else _parse)(source)


def _parse(source: str) -> ast.Module:
    if len(source) > MAX_SOURCE:
        raise _TooMuch(f"more than {MAX_SOURCE} characters of code")
    try:
        try:
            return ast.parse(source)
        except SyntaxError:
            return ast.parse(_without_magics(source))
    except (ValueError, RecursionError, MemoryError) as error:
        raise _TooMuch(f"too deeply nested or not a text ({type(error).__name__})") from None


def _without_magics(source: str) -> str:
    """A cell with the lines that only IPython understands neutralised; what `%time` runs stays."""
    plain = _MAGIC.sub(lambda line: line[1] + (line[2] or "pass"), source)
    return _MAGIC_VALUE.sub(r"\1None", plain)


_parse_once = lru_cache(maxsize=512)(_parse)  # most cells of a class are those of the release


def defined_names(source: str) -> set[str]:
    """The names that a cell defines at its top level: def, class, assignment; not by an import."""
    try:
        return set(_defined(parse(source).body))
    except (SyntaxError, RecursionError):  # it defines nothing; these are the names it meant to
        return {a or b for a, b in _DEFINITION.findall(source)}


def _defined(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value is not None:
                for target in targets:
                    yield from (n.id for n in ast.walk(target) if _is_stored(n))
        elif isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
            for part in ("body", "orelse", "finalbody"):
                yield from _defined(getattr(node, part, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _defined(handler.body)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


# --- files --------------------------------------------------------------------------------------


def judge_file(
    path: str | os.PathLike[str],
    exercises: Sequence[str] | None = None,
    seed: bytes | None = None,
    device: str = "cpu",
    isolation: str = "bwrap",
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Judge a `.py` or `.ipynb` on every exercise that it defines, or on the named ones.

    `seed` fixes the inputs; without it they are fresh. Returns what `judge --json` prints. Raises
    `Unusable` for a file that cannot be judged, `IsolationError` for a machine that cannot isolate
    it.
    """
    text = _read_text(Path(path))
    is_notebook = Path(path).suffix == ".ipynb"
    cells, names = _notebook(text) if is_notebook else _script(text)
    known = {e.name: (slug, e) for slug in chapters() for e in exercises_of(slug)}
    wanted = known.keys() if exercises is None else set(exercises)
    asked = [known[name] for name in known if name in names & wanted]
    if not asked:
        what = "no exercise" if exercises is None else f"none of {', '.join(exercises)}"
        raise Unusable(f"defines {what}")
    base = os.urandom(32) if seed is None else seed
    seeds = {exercise.name: base + exercise.name.encode() for _, exercise in asked}
    judged = judge_cells(
        cells,
        asked,
        seeds,
        device=device,
        isolation=isolation,
        limits=limits,
        module="__main__" if is_notebook else "answer",
    )
    return as_json(str(path), device, judged.verdicts)


def as_json(file: str, device: str, verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """The object that `judge --json` prints for a file."""
    return {
        "file": file,
        "device": device,
        "points": round(sum(v.points for v in verdicts.values()), 6),
        "score": round(sum(v.score for v in verdicts.values()), 6),
        "exercises": {
            name: {
                "points": verdict.points,
                "score": verdict.score,
                "verdict": verdict.verdict,
                "mistake": verdict.mistake,
                "aspects": [
                    {
                        "title": aspect.title,
                        "passed": aspect.passed,
                        "points": aspect.points,
                        "hint": aspect.hint,
                        "error": aspect.error,
                    }
                    for aspect in verdict.aspects
                ],
            }
            for name, verdict in verdicts.items()
        },
    }


def _read_text(path: Path) -> str:
    """A file's text; only a regular file of a sensible size is ever read."""
    if path.suffix not in (".py", ".ipynb"):
        raise Unusable("is neither a .py nor an .ipynb file")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a FIFO must not block us
    except (OSError, ValueError) as error:
        raise Unusable(getattr(error, "strerror", None) or str(error)) from None
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        raise Unusable("is a directory" if stat.S_ISDIR(mode) else "is not a regular file")
    with open(fd, "rb") as file:
        data = file.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise Unusable(f"is larger than {MAX_FILE >> 20} MB")
    if not data.strip():
        raise Unusable("is empty")
    if b"\0" in data:
        raise Unusable("is not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unusable(f"is not UTF-8 (byte {error.start})") from None


def _script(text: str) -> tuple[list[Cell], set[str]]:
    try:
        parse(text)
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise Unusable(f"has a syntax error{where}: {error.msg}") from None
    return [Cell(text)], defined_names(text)


def _notebook(text: str) -> tuple[list[Cell], set[str]]:
    """A notebook's code cells, and the exercises it answers: by grade id or by definition."""
    cells: list[Cell] = []
    names = set[str]()
    for found in cells_of(json_of(text), []):
        if found.kind != "code":
            continue
        grade_id = found.grade_id or ""
        if grade_id.startswith(CHECK):
            name = grade_id.removeprefix(CHECK)
            cells.append(Cell(found.source, check=name))
            names.add(name)
        else:
            cells.append(Cell(found.source, skip="draw" in found.tags))
            names |= {grade_id, *defined_names(found.source)} - {""}
    return list(_answered_above(cells)), names


def _answered_above(cells: Sequence[Cell]) -> Iterator[Cell]:
    """The cells; a check above its answer is dropped, and the exercise is judged at the end."""
    below = [defined_names(cell.source) if cell.check is None else set() for cell in cells]
    above = set[str]()
    for number, cell in enumerate(cells):
        above |= below[number]
        late = cell.check not in above and any(cell.check in names for names in below[number:])
        yield Cell("") if late else cell
