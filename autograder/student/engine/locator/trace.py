"""Runs a copy of an answer in which every value is seen, and notes what was computed from what.

TRUST BOUNDARY. Runs in the student's own process, or in the sandbox, after an answer was found to
be wrong. A copy of its source is run; the source may not be that of the answer, and may do anything
that the answer may. What is noted here may be forged, and nothing that comes of it is trusted.
"""

import ast
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from autograder.student.engine.arrays import Value, as_array
from autograder.student.engine.locator.instrument import AT, ITEMS, RAISED, TAP, Node, Site
from autograder.student.engine.locator.signatures import ValueSignature, signature
from autograder.student.engine.state import MODES, GlobalState

MOST_EVENTS = 3000
WAITING = 3.0  # the clock may take so many times the CPU time, not counting the time in line
MOST_BYTES = 64 << 20  # of the values that a trace keeps alive
_ITEMS_SEEN = 256  # of a tuple or a list
_UNINITIALISED = ("empty", "empty_like", "new_empty", "empty_strided")
_LAST = 64  # events of one place that are passed on


class BudgetExceeded(BaseException):
    """The time or the memory for looking is used up."""


class Budget:
    """The time for looking: CPU time and, for an answer that waits, time by the clock."""

    def __init__(self, seconds: float):
        self.ends = time.process_time() + seconds
        self.latest = time.perf_counter() + WAITING * seconds
        self.in_line = _in_line()

    def is_used_up(self) -> bool:
        if time.process_time() > self.ends:
            return True
        waited = time.perf_counter() - self.latest
        return waited > 0 and waited > _in_line() - self.in_line

    def check(self) -> None:
        """Raises `BudgetExceeded` if nothing is left."""
        if self.is_used_up():
            raise BudgetExceeded


def _in_line() -> float:
    """For how many seconds this thread has been ready to run while others had the processor; 0
    if the system does not say."""
    try:
        with open(
            f"/proc/self/task/{threading.get_native_id()}/schedstat", encoding="ascii"
        ) as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


@dataclass
class Event:
    """A value that was seen: where, what it was computed from, whether it was written to.

    `number` is set for Python's numbers, `signature` for arrays and tensors.
    """

    site: Site
    signature: ValueSignature | None
    number: float | None
    dtype: str
    grad: bool
    sources: list[int]
    wrote: bool
    statement: int
    again: bool = False  # seen before, at another place: its first source


@dataclass
class TraceRecorder:
    """What the taps call while `on`. `effect` names the global state, or the arguments' memory,
    whose change is looked for after every statement."""

    sites: Sequence[Site] = ()
    budget: Budget = field(default_factory=lambda: Budget(1.0))
    effect: str | None = None
    training: bool = False  # the mode of the module
    new: bool = False  # whether its parameters are those that it was made with
    on: bool = False
    change: Callable[[int, Value], Value] | None = None  # while off: what a tap returns (`whatif`)
    events: list[Event] = field(default_factory=list)
    returned: list[tuple[Site, list[int]]] = field(default_factory=list)
    tests: dict[int, list[bool]] = field(default_factory=dict)
    tested: dict[int, list[int]] = field(default_factory=dict)  # the events that a test depended on
    raised: tuple[BaseException, list[tuple[int, ...]]] | None = None
    overwriting: list[Site] = field(default_factory=list)  # see `copies`
    owner: str = ""  # the answer's name in its own source
    unsure: bool = False  # whether the place might be any of several
    culprit: Site | None = None  # the statement after which the effect was there
    retouched: Site | None = None  # the last one that changed a mode after that

    def start(self) -> None:
        self.made_by: dict[int, int] = {}  # events by identity of the value
        self.kept: list[Value] = []  # so that no other value gets their identity
        self.room = MOST_BYTES
        self.last: dict[int, list[int]] = {}  # events by site, until they are used
        self.touched: dict[int, int] = {}  # the last statement that read an event
        self.calls: list[tuple[Site, list[int]]] = []
        self.aliases: dict[int, list[tuple[int, Site]]] = {}  # each `a = b` that named an event
        self.repeated: set[int] = set()  # events that stand in one list more than once
        self.watched: set[int] = set()
        self.statement = -1
        self.state: GlobalState | None = None
        self.modes: list[Value] = []
        self.on = True

    @property
    def names(self) -> dict[str, Callable]:
        """The names that instrumented code needs."""
        return {TAP: self.tap, ITEMS: self.items, AT: self.arrive, RAISED: self.note_exception}

    # --- what the taps call ---

    def arrive(self, number: int) -> None:
        if not self.on:
            return
        self.budget.check()
        if self.effect and self.state is None:
            self.state = GlobalState()
        self.look_for_the_effect()
        self.statement = number

    def tap(self, number: int, value: Value) -> Value:
        if self.on:
            site = self.sites[number]
            self.budget.check()
            if site.kind == "test":
                self.tests.setdefault(number, []).append(bool(value))
                self.tested.setdefault(number, []).extend(self.inputs_of(site))
                return value
            if site.kind == "expression" and site.operation in _UNINITIALISED:
                _clear(value)
            found = self.see(site, value, self.inputs_of(site))
            if isinstance(value, list) and len({*found}) < len(found) == len(value):
                self.repeated |= {event for event in found if found.count(event) > 1}
            if self.state is not None and site.kind == "name" and site.function != "__init__":
                self.watch(value, found)
            self.follow(site, found)
            self.last[number] = [*self.last.get(number, [])[1 - _LAST :], *found][-_LAST:]
            if site.kind == "return":
                self.returned.append((site, found))
        elif self.change is not None:
            return self.change(number, value)
        return value

    def watch(self, value: Value, found: list[int]) -> None:
        """Watch the memory of an argument, and the modes of a module."""
        if id(value) not in self.watched and not any(self.events[i].sources for i in found):
            self.watched.add(id(value))
            self.kept.append(value)
            if self.state is not None:
                self.state.watch(value)

    def follow(self, site: Site, found: list[int]) -> None:
        """Note what becomes of values: which calls return them, which names they get."""
        if isinstance(site.node, ast.Call):
            self.calls.append((site, found))
        for event in found:
            self.touched[event] = self.statement
        if site.kind == "name" and self.statement >= 0:
            statement = self.sites[self.statement].node
            if isinstance(statement, ast.Assign) and span(statement.value) == span(site.node):
                for event in found:
                    self.aliases.setdefault(event, []).append((len(self.events), site))

    def items(self, number: int, values: Value) -> Value:
        sources = self.inputs_of(self.sites[number]) if self.on else []
        for item in values:
            if self.on:
                self.see(self.sites[number], item, sources)
            yield item

    def note_exception(self, error: BaseException) -> None:
        """An exception leaves a function: note the places in the code that it passed."""
        if (
            self.on
            and not isinstance(error, BudgetExceeded)
            and (self.raised is None or self.raised[0] is not error)
        ):
            self.look_for_the_effect()
            self.raised = (error, _places(error))

    # --- what is noted ---

    def look_for_the_effect(self) -> None:
        if self.state is None or self.statement < 0:
            return
        modes = self.state.modes_now() if self.effect == MODES else []
        if self.effect not in self.state.differences():
            self.culprit = None  # it only lasted for a while, as in `with torch.no_grad()`
        elif self.culprit is None:
            self.culprit, self.retouched = self.sites[self.statement], None
        elif modes != self.modes:
            self.retouched = self.sites[self.statement]
        self.modes = modes

    def inputs_of(self, site: Site) -> list[int]:
        """The events that went into a place, each once."""
        found: dict[int, None] = {}
        for child in site.children:
            events = self.last.pop(child, None) or self.inputs_of(self.sites[child])
            found.update(dict.fromkeys(events))
        return list(found)

    def see(self, site: Site, value: Value, sources: list[int]) -> list[int]:
        """The events that a value stands for: the one that made it, or a new one."""
        if isinstance(value, tuple | list) and len(value) <= _ITEMS_SEEN:
            return [e for item in value for e in self.see(site, item, sources)] or sources
        if isinstance(value, bool):
            return sources
        if isinstance(value, int | float):
            return self.see_number(site, value, sources)
        found = signature(value)
        if found is None:
            return sources
        before = self.made_by.get(id(value))
        if before is not None:
            seen = self.events[before].signature
            if seen is not None and seen.same(found):
                return [before]
            sources = [before, *(s for s in sources if s != before)]
            if site.kind in ("name", "attribute") and before in self.touched:
                number = self.touched[before]  # a call there wrote into it
                site = self.sites[number] if number >= 0 else site
        elif not sources and site.kind in ("name", "attribute"):
            sources = self.equal_one(found)
            if sources:
                self.made_by[id(value)] = sources[0]
                self.keep(value)
                return sources
        self.keep(value)
        dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
        grad = bool(getattr(value, "requires_grad", False))
        return self.add(
            value, Event(site, found, None, dtype, grad, sources, before is not None, 0)
        )

    def see_number(self, site: Site, value: float, sources: list[int]) -> list[int]:
        if not (isinstance(value, int) or math.isfinite(value)) or abs(value) > 1e300:
            return sources
        before = self.made_by.get(id(value)) if isinstance(value, float) else None
        if before is not None and self.events[before].number == value:
            return [before]
        if site.kind in ("item", "return", "store"):
            return sources
        if isinstance(value, float):
            self.keep(value)
        name = type(value).__name__
        event = Event(site, None, float(value), name, False, sources, False, 0)
        return self.add(value if isinstance(value, float) else None, event)

    def equal_one(self, found: ValueSignature) -> list[int]:
        """An event of equal numbers: a buffer that was cast or loaded is another object."""
        for i in range(len(self.events) - 1, max(-1, len(self.events) - 200), -1):
            seen = self.events[i].signature
            if seen is not None and not seen.even and seen.same(found):
                return [i]
        return []

    def keep(self, value: Value) -> None:
        array = as_array(value)
        self.room -= array.data.nbytes if array is not None else 64
        if self.room < 0 or len(self.events) >= MOST_EVENTS:
            raise BudgetExceeded
        self.kept.append(value)

    def add(self, value: Value, event: Event) -> list[int]:
        if len(self.events) >= MOST_EVENTS:
            raise BudgetExceeded
        event.statement = self.statement
        self.events.append(event)
        if value is not None:
            self.made_by[id(value)] = len(self.events) - 1
        return [len(self.events) - 1]


def _clear(value: Value) -> None:
    """Zero memory that nothing was written to, so that every run sees the same."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        value[...] = 0
    elif as_array(value) is not None and hasattr(value, "detach"):
        value.detach().zero_()


def span(node: Node) -> tuple[int, ...]:
    """Where in the source a node begins and ends."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _places(error: BaseException) -> list[tuple[int, ...]]:
    """Where in the instrumented code an exception passed: (lines and columns), innermost last."""
    places: list[tuple[int, ...]] = []
    trace = error.__traceback__
    while trace is not None and len(places) < 100:
        code, index = trace.tb_frame.f_code, trace.tb_lasti // 2
        if code.co_filename.startswith(MARK):
            for number, place in enumerate(code.co_positions()):
                if number == index and None not in place:
                    line, end_line, column, end_column = (at or 0 for at in place)
                    places.append((line, column, end_line, end_column))
                    break
        trace = trace.tb_next
    return places


MARK = "<seen while it runs: "  # how the file of instrumented code begins
