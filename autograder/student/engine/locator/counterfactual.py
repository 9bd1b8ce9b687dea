"""What if one value had been different? Finds a place at which a single change makes a run right.

Where values are too few to show where they come from (tokens, one number, the end of a loop), the
run is made again with another value at one place: a test that comes out the other way, a loop that
ends sooner or later, an operation that is left out, one more or one less, another of the answer's
own values. If the result is then right, the mistake is there, or at a place that undoes it.

TRUST BOUNDARY. As in `trace`: runs a copy of the answer, in the student's own process or in the
sandbox. What comes out is a hint that the answer may have forged.
"""

import ast
import io
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from autograder.student.engine.arrays import Value, as_array
from autograder.student.engine.locator.instrument import Node, Site
from autograder.student.engine.locator.instrumented_copy import copy_answer
from autograder.student.engine.locator.locate import problem_of
from autograder.student.engine.locator.trace import Budget, BudgetExceeded, TraceRecorder, span
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import Record, Run

MOST_TRIALS = 150
MOST_CASES = 3  # runs that are looked at
SEARCHING = 0.7  # of the time; what is left is for a second run
LONGER = 5.0  # times as long as the unchanged run: how long a trial may take
Case = tuple[Run, Record, Record]
BRANCH, LOOP, IDLE, NUMBER, ROLE = "branch", "loop", "left out", "number", "exchanged"
KINDS = (BRANCH, IDLE, NUMBER, LOOP, ROLE)
_VALUES = {NUMBER: ("name", "attribute", "expression"), ROLE: ("name", "attribute")}
_MOST_SEEN = 12  # values of a place that are kept
_MOST_OTHERS = 6  # values that are tried in place of one
_LONGER = 6  # rounds more that a loop may run for
_OF_FORMULAS = (
    *(x for n in (2, 3, math.pi, 2 * math.pi) for x in (math.sqrt(n), 1 / math.sqrt(n))),
    *(math.pi, 2 * math.pi, 1 / math.pi, math.sqrt(2 / math.pi), math.sqrt(math.pi / 2)),
    *(math.e, 1 / math.e, math.log(2), 1 / math.log(2), math.log(10), 1 / 3, 2 / 3, 1 / 6),
)
_LARGE = 10_000  # beyond it, no larger number is tried: nothing stops 2**k once it has begun


@dataclass
class ValueWatch:
    """Notes which values pass each place: see `TraceRecorder.change`."""

    budget: Budget
    seen: dict[int, list[Value]] = field(default_factory=dict)

    def __call__(self, number: int, value: Value) -> Value:
        self.budget.check()
        values = self.seen.setdefault(number, [])
        if len(values) < _MOST_SEEN:
            values.append(value)
        return value


@dataclass
class Change:
    """Replaces the value that passes a place by another one."""

    number: int
    kind: str
    how: Callable[[int, Value], Value]  # from how many came before, and the value
    budget: Budget
    count: int = 0

    def __call__(self, number: int, value: Value) -> Value:
        self.budget.check()
        if number != self.number:
            return value
        self.count += 1
        return self.how(self.count - 1, value)


class LoopLimit(Change):
    """Ends a loop after so many rounds, each time that it is run."""

    def __init__(self, number: int, rounds: int, budget: Budget):
        super().__init__(number, LOOP, lambda count, value: count < rounds, budget)

    def __call__(self, number: int, value: Value) -> Value:
        made = super().__call__(number, value)
        if number == self.number and not made:
            self.count = 0
        return made


class Skip(Change):
    """Leaves an operation out: one of the values that go in comes out."""

    def __init__(self, number: int, child: int, budget: Budget):
        super().__init__(number, IDLE, lambda count, value: value, budget)
        self.child, self.given = child, None

    def __call__(self, number: int, value: Value) -> Value:
        self.budget.check()
        if number == self.child:
            self.given = value
        return self.given if number == self.number else value


class Repair(NamedTuple):
    """A place at which a change makes failing runs right: `always`, if it does so in every one."""

    site: Site
    kind: str
    always: bool


def find_repair(
    answer: Value,
    cases: Sequence[Case],
    device: str,
    seconds: float,
    kinds: Sequence[str] = KINDS,
    fine: Sequence[Case] = (),
    further: Sequence[Case] = (),
) -> list[Repair]:
    """The places at which some change of these kinds makes a failing run right, and one more.

    The cases are failing runs, with their records and what is expected; `further` are failing runs
    of other aspects, `fine` some that are right. Each line is listed once. A change, of another
    kind than a number, that mends no further run is not listed: it hides what is wrong. A test that
    sends all failing runs one way and all right ones the other is not listed: what is wrong is on
    that way, not in the test. Nor is one that right runs could pass either way, if there is
    anything else and no run fails by an exception. Raises `NoCopy`.
    """
    copy, recorder = copy_answer(answer, Budget(seconds))
    mended = _ChangedRuns(copy, recorder, device, Budget(SEARCHING * seconds))
    found: dict[tuple[int, str], Change] = {}
    others = cases[MOST_CASES:]
    with suppress(BudgetExceeded):
        cases = mended.in_order(cases)
        for change in mended.repairs(cases[0], kinds) if cases else ():
            found.setdefault((change.number, change.kind), change)
    mended.budget = Budget((1 - SEARCHING) * seconds)
    kept: dict[int, Repair] = {}
    untold: list[Change] = []
    with suppress(BudgetExceeded):
        tests = [change.number for change in found.values() if change.kind == BRANCH]
        parting = mended.parting(tests, cases, fine) if tests else set()
        parted = {recorder.sites[number].node.lineno for number in parting}
        for change in found.values():
            if recorder.sites[change.number].node.lineno in parted:
                continue
            site = recorder.sites[change.number]
            if site.node.lineno in kept:
                continue
            again = [mended.can_be(case, change) for case in cases[1:]]
            enough = all if change.kind == NUMBER else any  # a number may be right by chance
            hides = change.kind != NUMBER and further and not mended.any_of(further, change)
            mends = not hides and (len(cases) == 1 or enough(again))
            if mends and not (change.kind == IDLE and mended.spoils(fine, change)):
                always = all(again) and not others
                kept[site.node.lineno] = Repair(site, change.kind, always)
                if all(again) and others:
                    untold.append(change)
        for change in untold:
            if all(mended.can_be(case, change) for case in others):
                line = recorder.sites[change.number].node.lineno
                kept[line] = kept[line]._replace(always=True)
    listed = [*kept.values()]
    with suppress(BudgetExceeded):
        asked = len(listed) > 1 and all(record.raised is None for _, record, _ in cases)
        tests = [c for c in found.values() if c.kind == BRANCH] if asked else []
        idle = {recorder.sites[n].node.lineno for n in mended.passed_either_way(tests, fine)}
        listed = [m for m in listed if m.kind != BRANCH or m.site.node.lineno not in idle] or listed
    return listed


@dataclass
class _ChangedRuns:
    """Makes runs on a copy in which something is changed."""

    copy: Callable
    recorder: TraceRecorder
    device: str
    budget: Budget

    def in_order(self, cases: Sequence[Case]) -> list[Case]:
        """Some of the cases in which the copy does the same as the answer, the shortest first."""
        found = []
        for run, record, expected in cases[:MOST_CASES]:
            start = time.process_time()
            same = equal([[run]], [[record]], [[self.make_run(run, ValueWatch(self.budget))]])
            if same:
                found.append((time.process_time() - start, (run, record, expected)))
        return [case for _, case in sorted(found, key=lambda pair: pair[0])]

    def parting(
        self, tests: Sequence[int], cases: Sequence[Case], fine: Sequence[Case]
    ) -> set[int]:
        """The tests that come out one way in failing runs, and the other way in all right ones."""
        failing, right = (self._outcomes(some) for some in (cases, fine[:MOST_CASES]))
        return {n for n in tests if right.get(n) and not right[n] & failing.get(n, set())}

    def passed_either_way(self, tests: Sequence[Change], fine: Sequence[Case]) -> Iterator[int]:
        """The tests of which some right run stays right if they come out the other way."""
        for test in tests:
            for run, _, expected in fine[:MOST_CASES]:
                turned = Change(test.number, BRANCH, lambda count, value: not value, self.budget)
                record = self.make_run(run, turned)
                if turned.count and problem_of(run, record, expected) is None:
                    yield test.number
                    break

    def _outcomes(self, cases: Sequence[Case]) -> dict[int, set[bool]]:
        found: dict[int, set[bool]] = {}
        for run, _, _ in cases:
            watch = ValueWatch(self.budget)
            self.make_run(run, watch)
            for number, seen in watch.seen.items():
                if self.recorder.sites[number].kind == "test" or isinstance(seen[0], bool):
                    found.setdefault(number, set()).update(map(bool, seen))
        return found

    def repairs(
        self, case: Case, kinds: Sequence[str], number: int | None = None
    ) -> Iterator[Change]:
        """The changes, at one place or at any, that make a run right."""
        run, _, expected = case
        watch, start = ValueWatch(self.budget), time.process_time()
        self.make_run(run, watch)
        limit = LONGER * (time.process_time() - start) + 0.01
        every = (c for c in changes(self.recorder, watch) if c.kind in kinds)
        wanted = (c for c in every if number is None or c.number == number)
        for change in islice(wanted, MOST_TRIALS):
            change.budget = Budget(limit)  # a change may well make a loop endless
            record = self.make_run(run, change)
            if not change.budget.is_used_up() and problem_of(run, record, expected) is None:
                yield change

    def any_of(self, cases: Sequence[Case], change: Change) -> bool:
        return any(self.can_be(case, change) for case in cases)

    def spoils(self, cases: Sequence[Case], change: Change) -> bool:
        """Whether leaving an operation out makes a right run wrong, as far as there is time."""
        with suppress(BudgetExceeded):
            for case in cases:
                if self.breaks(case, change):
                    return True
        return False

    def breaks(self, case: Case, change: Change) -> bool:
        run, _, expected = case
        assert isinstance(change, Skip)
        left_out = Skip(change.number, change.child, self.budget)
        return problem_of(run, self.make_run(run, left_out), expected) is not None

    def can_be(self, case: Case, change: Change) -> bool:
        """Whether such a change, at that place, makes a run right."""
        return next(self.repairs(case, [change.kind], change.number), None) is not None

    def make_run(self, run: Run, change: Callable[[int, Value], Value]) -> Record:
        self.recorder.change = change
        try:
            with redirect_stdout(io.StringIO()):
                record = probe(self.copy, run, self.device)
        finally:
            self.recorder.change = None
        self.budget.check()
        return record


def changes(recorder: TraceRecorder, watch: ValueWatch) -> Iterator[Change]:
    """What may be tried, the most telling first."""
    budget = watch.budget
    sites = [(n, recorder.sites[n], seen) for n, seen in sorted(watch.seen.items())]
    loops = [site.node for _, site, _ in sites if site.loop]
    tests = [(n, site, [*map(bool, seen)]) for n, site, seen in sites if site.kind == "test"]
    tests += [
        (n, site, [v for v in seen if isinstance(v, bool)])
        for n, site, seen in sites
        if site.kind != "test" and isinstance(seen[0], bool) and not _is_part(site, loops)
    ]
    made = [site.node for _, site, _ in sites if isinstance(site.node, ast.ListComp | ast.SetComp)]
    for number, site, outcomes in tests:
        chosen = _is_part(site, made)  # any one item more, or less, would mend much
        for how in _other_outcomes(outcomes[:1] if chosen else outcomes) if not site.loop else ():
            yield Change(number, LOOP if site.ends else BRANCH, how, budget)
    for number, site, seen in sites:
        if site.kind == "expression" and site.owner == recorder.owner:
            for child in site.children:
                inner = watch.seen.get(child)
                if inner and _may_replace(inner[-1], seen[-1]) and inner[-1] is not seen[-1]:
                    yield Skip(number, child, budget)
    for number, site, outcomes in tests:
        for rounds in _other_ends(outcomes) if site.loop else ():
            yield LoopLimit(number, rounds, budget)
    for kind, wanted in ((NUMBER, _is_number), (ROLE, _is_thing)):
        named = [(n, s, v) for n, s, v in sites if s.kind in _VALUES[kind]]
        pool = _pool(named if kind == NUMBER else [*named, *_named_values(recorder, sites)], wanted)
        for number, site, seen in named:
            theirs = kind == NUMBER and site.passed  # what the caller gives is right
            if wanted(seen[0]) and site.owner == recorder.owner and not theirs:
                for how in _others(site, seen[0], pool):
                    yield Change(number, kind, how, budget)


def _other_outcomes(outcomes: list[bool]) -> Iterator[Callable]:
    """A test that comes out the other way: always, or once."""
    yield lambda count, value: not value
    if len(outcomes) > 1:
        for turn in range(len(outcomes)):
            yield lambda count, value, turn=turn: bool(value) != (count == turn)


def _other_ends(outcomes: list[bool]) -> list[int]:
    """Other numbers of rounds for a loop, the nearest first."""
    rounds = outcomes.index(False) if False in outcomes else len(outcomes)
    return sorted({*range(rounds + _LONGER)} - {rounds}, key=lambda other: abs(other - rounds))


def _others(site: Site, value: Value, pool: list[Value]) -> Iterator[Callable]:
    """Other values for a place."""
    if isinstance(value, int):
        yield lambda count, value: value + 1
        yield lambda count, value: value - 1
    if isinstance(site.node, ast.Constant) and isinstance(value, float):
        for meant in _rounded_to(value):
            yield lambda count, value, meant=meant: meant
    if _is_number(value):
        # Of a 1, it would be 0, with which a run may need nothing else: as temperature, say.
        if site.kind == "name" and isinstance(value, float) and value not in (0, 1):
            yield lambda count, value: 1 - value
        pool = [] if site.kind == "expression" else pool
        most = max(_LARGE, abs(value))
        others = [v for v in pool if v != value and type(v) is type(value) and abs(v) <= most]
    else:
        others = [v for v in pool if v is not value and _may_replace(v, value)]
    for other in others[:_MOST_OTHERS]:
        yield lambda count, value, other=other: other


def _rounded_to(written: float) -> Iterator[float]:
    """The numbers of formulas of which a written one has only the first digits: √2 of 1.41."""
    decimals = len(repr(written).partition(".")[2])
    return (n for n in _OF_FORMULAS if written != n and abs(written - n) < 10.0**-decimals)


Seen = tuple[int, Site, list[Value]]


def _is_part(site: Site, nodes: list[Node]) -> bool:
    """Whether a place is a part of one of these nodes."""
    first, last = (site.node.lineno, site.node.col_offset), span(site.node)[2:]
    return any((n.lineno, n.col_offset) <= first and last <= span(n)[2:] for n in nodes)


def _named_values(recorder: TraceRecorder, sites: list[Seen]) -> list[Seen]:
    """The values that get a name, read or not: a wrong name leaves the right one unread."""
    nodes = (s.node for s in recorder.sites if s.kind == "statement")
    values = [node.value for node in nodes if isinstance(node, ast.Assign)]
    values += [part for value in values if isinstance(value, ast.Tuple) for part in value.elts]
    spans = set(map(span, values))
    return [seen for seen in sites if seen[1].kind == "expression" and span(seen[1].node) in spans]


def _pool(named: list[Seen], wanted: Callable[[Value], bool]) -> list[Value]:
    """The values that have names, each once."""
    pool: list[Value] = []
    for _, site, seen in named:
        value = seen[0]
        computed = wanted is _is_number and site.kind == "expression"
        if computed or not wanted(value) or value is None or isinstance(site.node, ast.Constant):
            continue
        if not any(value is v or (wanted is _is_number and value == v) for v in pool):
            pool.append(value)
    return pool


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_thing(value: Value) -> bool:
    """Whether it is an array, a tensor, a module, or None in place of one."""
    return value is None or hasattr(value, "named_parameters") or as_array(value) is not None


def _may_replace(one: Value, other: Value) -> bool:
    """Whether a value may replace another."""
    if other is None or one is None:
        return as_array(one if other is None else other) is not None
    if type(one) is not type(other) or isinstance(one, bool | str):
        return False
    if _is_number(one):
        return one != other
    ours, theirs = as_array(one), as_array(other)
    if ours is None or theirs is None:
        return hasattr(one, "named_parameters")
    return ours.data.shape == theirs.data.shape and ours.dtype == theirs.dtype
