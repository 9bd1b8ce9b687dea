"""Runs a submission's cells and probes, in a fresh sandbox whenever one has died.

TRUST BOUNDARY. Trusted code of the judging process. Cells pass through it as text; what comes back
from the sandbox is data that may be forged. How often a submission may end its process, and how
long it may take in all, is limited here.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from autograder.judge.block_code import (
    all_blocks,
    blocks_in,
    is_earlier,
    names_by_module,
    pieces,
)
from autograder.sandbox.host import ProcessDied, Sandbox, SandboxLost
from autograder.sandbox.limits import Limits
from autograder.sandbox.outputs import Output
from autograder.sandbox.process_end import lost_the_gpu
from autograder.student import pointing
from autograder.student.engine.locator.trace import WAITING
from autograder.student.engine.runs import Record, Run
from autograder.student.engine.verdict import CRASH, MEMORY, TIMEOUT

Reply = TypeVar("Reply")
DEFINING = "The cell that defines it"
_POINT_SECONDS = 10.0
SHOWN = 1200  # characters of a message in a verdict
REASONS = {"timeout": TIMEOUT, "memory": MEMORY, "crash": CRASH}


@dataclass(frozen=True)
class CellFailure:
    """How the cell that defines a name failed: its process `died`, or it raised something."""

    verdict: str
    note: str
    died: bool


def died(failure: CellFailure | None) -> bool:
    """Whether the process died in a cell that failed in this way, if it did fail."""
    return failure is not None and failure.died


class Runner:
    """A sandbox, replaced when its process dies, and the cells that it has run.

    `blocks` are those of the course that its cells may use.
    """

    def __init__(
        self,
        isolation: str,
        limits: Limits,
        device: str,
        module: str,
        notes: list[str],
        blocks: frozenset[str] = frozenset(),
    ):
        self.options = (isolation, limits, device)
        self.limits, self.module, self.notes, self.blocks = limits, module, notes, blocks
        self.began = time.process_time()  # of the judge's process
        self.there = frozenset[str]()  # the blocks in the sandbox's process
        self.spent = 0.0  # seconds of their own time, in sandboxes that have ended
        self.done: list[str] = []
        self.deaths = 0
        self.sandbox: Sandbox | None = Sandbox(*self.options)

    @property
    def used(self) -> float:
        """Seconds that the submission has taken in all, of its own time."""
        return self.spent + (self.sandbox.used if self.sandbox is not None else 0.0)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        if self.sandbox is not None:
            self.sandbox.close()

    def execute(self, source: str) -> tuple[list[Output], CellFailure | None]:
        """Run a cell: its outputs, and what went wrong if something did."""
        try:
            outputs = self._with_sandbox(lambda sandbox: self._execute(sandbox, source))
        except ProcessDied as death:
            self._note_death(death, "A cell")
            note = f"{DEFINING} {death.detail}."
            return [_death_output(death)], CellFailure(REASONS[death.reason], note, True)
        self.done.append(source)
        error = next((o for o in outputs if o["output_type"] == "error"), None)
        if error is None:
            return outputs, None
        what = f"{error['ename']}: {error['evalue']}" if error["evalue"] else error["ename"]
        verdict = MEMORY if ran_out_of_memory([error["ename"]], error["evalue"]) else CRASH
        return outputs, CellFailure(verdict, f"{DEFINING} raised {what[:SHOWN]}.", False)

    def probe(
        self,
        name: str,
        runs: Sequence[Run],
        instead: Mapping[str, str] | None,
        watch: Sequence[str],
        blocks: frozenset[str],
    ) -> list[Record] | None:
        """Make an exercise's runs, where these blocks are at hand. Raises `ProcessDied`.

        In a process that has a block of this exercise, or of one after it, they are not made.
        """
        if not all(is_earlier(block, name) for block in blocks_in(self.there)):
            self._end()

        def make(left: Sequence[Run]) -> list[Record] | None:
            return self._with_sandbox(
                lambda sandbox: self._handed_out(sandbox, blocks).probe_all(
                    name, left, self._seconds(self.limits.probe_seconds), instead, watch
                )
            )

        records: list[Record] = []
        while len(records) < len(runs):
            try:
                found = make(runs[len(records) :])
            except ProcessDied as death:
                self._note_death(death, f"A call of {name}")
                raise ProcessDied(death.reason, death.detail, [*records, *death.records]) from None
            if found is None:
                return None
            records += found
            if self.options[2] != "cpu" and lost_the_gpu(records[-1]):
                self._end()
                self.deaths += 1
        return records

    def point(self, name: str) -> str | None:
        """Where an answer goes astray: a hint from the sandbox, which ends if this goes wrong.

        Call it once all marks are made, so that it can cost none.
        """
        if self.sandbox is None:
            return None
        try:
            seconds = self._seconds(_POINT_SECONDS + WAITING * pointing.SECONDS)
            sandbox = self._handed_out(self.sandbox, frozenset(all_blocks()))
            return sandbox.point(name, pointing.SECONDS, seconds)
        except (ProcessDied, SandboxLost):
            self._end()
            return None

    def _handed_out(self, sandbox: Sandbox, blocks: frozenset[str]) -> Sandbox:
        """The sandbox, in which these blocks are at hand. Raises `ProcessDied`."""
        missing = blocks - self.there
        if missing:
            code = pieces(missing, self.there)
            sandbox.hand_out(code, names_by_module(), self._seconds(self.limits.probe_seconds))
            self.there |= missing
        return sandbox

    def _end(self) -> None:
        if self.sandbox is not None:
            self.spent = self.used
            self.sandbox.close()
            self.sandbox = None

    def _with_sandbox(self, ask: Callable[[Sandbox], Reply]) -> Reply:
        """Ask a sandbox, and ask again if the sandbox was lost through no fault of the code in it.

        Raises `ProcessDied`, or `SandboxLost` after the third loss.
        """
        for _ in range(3):
            try:
                return ask(self._alive())
            except SandboxLost:
                self._end()
        raise SandboxLost("the sandbox ended three times in a row without a reason")

    def _execute(self, sandbox: Sandbox, source: str) -> list[Output]:
        return sandbox.execute(source, self._seconds(self.limits.cell_seconds), self.module)

    def _seconds(self, wanted: float) -> float:
        return max(0.0, min(wanted, self.limits.total_seconds - self.used))

    def _alive(self) -> Sandbox:
        """A sandbox that has run all the cells so far. Raises `ProcessDied` at a limit."""
        while self.sandbox is None:
            if self.used >= self.limits.total_seconds:
                text = f"was not run: the submission took {self.limits.total_seconds:g} s in all"
                raise ProcessDied("timeout", text)
            if self.deaths > self.limits.restarts:
                text = f"was not run: the submission ended its process {self.deaths} times"
                raise ProcessDied("crash", text)
            self.sandbox = Sandbox(*self.options)
            self.there = frozenset()
            self._handed_out(self.sandbox, self.blocks)
            for number, source in enumerate(self.done):
                try:
                    self._execute(self.sandbox, source)
                except ProcessDied as death:
                    self._note_death(death, "A cell that had succeeded before")
                    del self.done[number]
                    break
        return self._handed_out(self.sandbox, self.blocks)

    def _note_death(self, death: ProcessDied, what: str) -> None:
        if self.sandbox is not None:
            self._end()
            self.deaths += 1
        self.notes.append(f"{what} {death.detail}.")


def _death_output(death: ProcessDied) -> Output:
    name = {"timeout": "Timeout", "memory": "OutOfMemory", "crash": "ProcessEnded"}[death.reason]
    text = f"this cell {death.detail}"
    return {
        "output_type": "error", "ename": name, "evalue": text, "traceback": [f"{name}: {text}"],
    }  # fmt: skip


def ran_out_of_memory(types: Sequence[str], message: str) -> bool:
    allocator = "can't allocate memory" in message or "not enough memory" in message
    return allocator or not {"MemoryError", "OutOfMemoryError"}.isdisjoint(types)
