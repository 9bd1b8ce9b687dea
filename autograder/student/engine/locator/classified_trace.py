"""The values that an answer passed through, each compared with those of right answers.

TRUST BOUNDARY. As in `locate`.
"""

import ast
import math
import re
from collections.abc import Sequence

from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import values_wanted
from autograder.student.engine.locator.instrument import Site
from autograder.student.engine.locator.known_values import KeyUse, KnownValues, bucket, kind_of
from autograder.student.engine.locator.leaves import leaves_of
from autograder.student.engine.locator.operations import (
    DIVIDING,
    IDLE,
    NEGATED,
    OF_ITS_FORM,
    OF_ONE_NUMBER,
    ORDERLY,
    SELECTING,
    complement,
    given_by,
    is_summing,
)
from autograder.student.engine.locator.signatures import ValueSignature, merely_reshaped, signature
from autograder.student.engine.locator.trace import Event, TraceRecorder, span
from autograder.student.engine.runs import Record, Run

GIVEN, KNOWN, REORDERED, MULTIPLE, UNKNOWN = "given", "known", "reordered", "multiple", "unknown"
SETTLED = (GIVEN, KNOWN)
_OVERFLOWING = 80.0  # beyond about this, exp is infinite in float32
_ROUNDING = 2e-7  # of what a number was computed from: as much as float32 may be off by


class ClassifiedTrace:
    """The events of a traced run, with the status of each."""

    def __init__(
        self,
        recorder: TraceRecorder,
        known: KnownValues,
        run: Run,
        record: Record,
        expected: Record,
    ):
        self.recorder, self.known = recorder, known
        self.record, self.expected = record, expected
        self.wanted = values_wanted(run, expected)
        self.events: Sequence[Event] = recorder.events
        self.marks: list[KeyUse | None] = []
        self.statuses: list[str] = []
        self.owner = recorder.owner
        for event in self.events:
            recorder.budget.check()
            found = event.signature
            self.marks.append(None if found is None else known.mark(found))
            self.statuses.append(self.status(event, self.marks[-1]))

    def status(self, event: Event, mark: KeyUse | None) -> str:
        found = event.signature
        arrays = [i for i in event.sources if self.events[i].signature is not None]
        by_chance = self.recorder.training and found and found.even and not found.plain
        if mark is not None and not (
            by_chance and any(self.statuses[i] == UNKNOWN for i in arrays)
        ):
            return KNOWN
        if found and found.even and event.site.operation in OF_ONE_NUMBER:
            arrays = []
        settled = all(self.statuses[i] in SETTLED for i in (arrays if found else event.sources))
        if found is None:  # one of Python's numbers
            return GIVEN if settled else UNKNOWN
        if not event.sources and event.site.kind in ("name", "attribute"):
            return GIVEN  # an argument, a parameter, a constant
        if (event.site.kind == "item" and settled) or (found.even and not arrays):
            return GIVEN
        if settled and arrays:
            if self.is_selection(event, found, arrays) or event.site.operation in SELECTING:
                return GIVEN
            told = self.events[arrays[0]].signature
            compared = event.site.operation == "Compare" and len(arrays) == 1 and not found.even
            if found.binary and (
                event.site.operation in NEGATED
                or compared
                and told is not None
                and told.binary
                or self.known.mark(complement(found))
            ):
                return GIVEN  # it says the same
        if 0 < found.scale < _ROUNDING * max((self.scale(i) for i in arrays), default=0.0):
            return GIVEN  # what is left of numbers that cancel: it differs in right answers, too
        if len(arrays) == 1 and merely_reshaped(found, self.events[arrays[0]].signature):
            before = self.statuses[arrays[0]]
            if before == KNOWN or not found.even:
                return before
        if found.binary:
            return UNKNOWN  # tables of zeros and ones are often equal by chance
        if self.known.is_reordered(found):
            axes = max((len(s.shape) for i in arrays if (s := self.events[i].signature)), default=0)
            known = self.known.with_axes_kept(found) or self.known.with_axes_joined(found, axes)
            return KNOWN if known else REORDERED
        if self.known.multiple(found) and not self.known.nearly(found):
            return GIVEN if self.is_counted(event) else MULTIPLE
        return GIVEN if self.is_scaled_by_row(event) else UNKNOWN

    def is_scaled_by_row(self, event: Event) -> bool:
        """Whether it is exp of right scores, or the sum of its rows, which differ from a right
        answer's by a factor in each row alone: of the largest score, subtracted there."""
        arrays = [i for i in event.sources if self.events[i].signature is not None]
        if len(arrays) != 1 or event.signature is None:
            return False
        before, kind = self.events[arrays[0]], kind_of(event.site.operation)
        if event.site.operation in ("exp", "exp_"):
            return self.statuses[arrays[0]] == KNOWN and self.scale(arrays[0]) < _OVERFLOWING
        whole = before.signature.shape if before.signature else ()
        rows = event.signature.shape in (whole[:-1], (*whole[:-1], 1))
        return kind == "total" and rows and self.is_scaled_by_row(before)

    def is_counted(self, event: Event) -> bool:
        """Whether it holds whole numbers, such as positions, which are counted in any unit."""
        arrays = [self.events[i] for i in event.sources if self.events[i].signature is not None]
        kept = len(arrays) == 1 and kind_of(event.site.operation) in ("factor", "form", "kind")
        return self.is_counted(arrays[0]) if kept else event.site.operation == "arange"

    def is_selection(self, event: Event, found: ValueSignature, arrays: Sequence[int]) -> bool:
        """Whether some numbers of an array are picked out by another array, as any answer may."""
        shapes = [s.shape for i in arrays if (s := self.events[i].signature)]
        picks = isinstance(event.site.node, ast.Subscript) and len(shapes) > 1
        return picks and not found.plain and math.prod(found.shape) < max(map(math.prod, shapes))

    def arrays(self, i: int) -> list[int]:
        """Of what an event was computed from, the arrays."""
        return [j for j in self.events[i].sources if self.events[j].signature is not None]

    def scale(self, i: int) -> float:
        found = self.events[i].signature
        return found.scale if found is not None else 0.0

    # --- what led to what ---

    def results(self) -> list[int]:
        leaves = [self.event_of(v) for value in self.record.values for v in leaves_of(value)]
        return [i for i in leaves if i is not None]

    def event_of(self, value: Value) -> int | None:
        """The last event of a value that was returned."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            every = range(len(self.events) - 1, -1, -1)
            return next((i for i in every if self.events[i].number == value), None)
        found = signature(value)
        if found is None:
            return None
        returned = [i for _, events in self.recorder.returned for i in events]
        for i in [*reversed(returned), *range(len(self.events) - 1, -1, -1)]:
            seen = self.events[i].signature
            if seen is not None and seen.same(found):
                return i
        return None

    def way(self) -> list[int]:
        """The events that lead to the results, in chronological order."""
        whole = set[int]()
        for i in self.results():
            whole |= self.ancestors(i)
        return sorted(whole)

    def ancestors(self, i: int) -> set[int]:
        """An event with all that it was computed from."""
        return self.trace_back({i}, (GIVEN, KNOWN, REORDERED, MULTIPLE, UNKNOWN))

    def trace_back(self, wrong: set[int], through: tuple[str, ...]) -> set[int]:
        """The events, and those they were computed from, back through events of these statuses."""
        for i in range(len(self.events) - 1, -1, -1):
            if i in wrong:
                wrong |= {j for j in self.events[i].sources if self.statuses[j] in through}
        return wrong

    # --- what stands out ---

    def odd(self, i: int) -> bool:
        return self.statuses[i] in (REORDERED, MULTIPLE)

    def unusual(self, j: int, i: int) -> bool:
        """Whether no right answer does with a known value what is done with it here."""
        mark, found = self.marks[j], self.events[j].signature
        if mark is None or found is None or not mark.followed:
            return False
        operation = self.events[i].site.operation
        if operation in (*OF_ITS_FORM, *IDLE) or kind_of(operation) == "sign":
            return False
        key = self.known.key(found)
        assert key is not None  # it has a mark
        return not mark.followed >> bucket(self.events[i].site.operation, key) & 1

    def strange_sources(self, i: int) -> list[int]:
        """What an event is made of, where right answers do not use such numbers like this."""
        return [j for j in self.events[i].sources if self.unusual(j, i) and self.telling(j)]

    def telling(self, i: int) -> bool:
        """Whether a value is an array of floats; tokens, masks and the like take too few values."""
        found = self.events[i].signature
        return found is not None and not found.plain and not found.binary

    def harmless(self, j: int, end: int) -> bool:
        """Whether what is made of an event on the way to another are right answers' numbers, with
        which it goes on as right answers do: where a line leaves an array as it was, say."""
        way = self.ancestors(end)
        after = [k for k in way if j in self.events[k].sources]
        if self.statuses[j] != KNOWN:
            return bool(after) and all(
                self.statuses[k] == KNOWN and self.harmless(k, end) for k in after
            )
        return bool(after) and not any(self.unusual(j, k) for k in after)

    def unusual_before(self, i: int) -> Site | None:
        """Where two right arrays met in an operation that right answers do not apply to them."""
        arrays = self.arrays(i)
        if len(arrays) < 2 or any(self.unusual(j, i) for j in arrays):
            return None
        for j in sorted(j for j in self.ancestors(i) - {i} if len(self.arrays(j)) > 1):
            event = self.events[j]
            if event.signature is None or event.site.kind not in ("expression", "item"):
                continue
            if self.statuses[j] == KNOWN and self.strange_sources(j) and not self.harmless(j, i):
                return event.site if event.site.owner == self.owner else None
        return None

    def numbers_pairs(self, i: int) -> bool:
        """Whether whole numbers are taken apart by division, as where one number stands for a row
        and a column: no other answer need have them."""
        found = self.events[i].signature
        by = [i, *(k for k, event in enumerate(self.events) if i in event.sources)]
        divided = any(self.events[k].site.operation in DIVIDING for k in by)
        return found is not None and found.plain and divided

    def of_one_row(self, i: int) -> bool:
        """Whether a loop computes it of the inputs alone: where it goes row by row, it has numbers
        that answers without this loop have not."""
        arrays = self.arrays(i)
        cut = kind_of(self.events[i].site.operation) == "form"
        given = all(self.statuses[j] == GIVEN or not cut and self.is_read(j) for j in arrays)
        looped = self.in_a_loop(i) or self.is_comprehended(i)
        return bool(arrays) and given and self.is_repeated(i) and looped

    def is_read(self, i: int) -> bool:
        """Whether an array is an input, or a part of one."""
        site = self.events[i].site
        part = kind_of(site.operation) in ("form", "order") and self.events[i].sources
        read = site.kind in ("name", "attribute", "item") or part
        return bool(read) and all(map(self.is_read, self.arrays(i)))

    def gives_nan(self, i: int) -> bool:
        """Whether there is a NaN in it, and none in what it was computed from."""
        found = (self.events[j].signature for j in (i, *self.events[i].sources))
        first, *others = [s is not None and s.nan for s in found]
        return first and not any(others)

    def is_repeated(self, i: int) -> bool:
        """Whether a place was reached more than once, as in a loop."""
        here = (event for event in self.events if event.site is self.events[i].site)
        return len(list(here)) > 1

    def is_collected(self, i: int) -> bool:
        """Whether a loop collects it, tokens or a sum, or a call makes a number of a known array:
        perhaps only the loop's end is wrong, or the number is known by chance."""
        event = self.events[i]
        if event.dtype.startswith("int"):
            tokens = [j for j in self.arrays(i) if self.events[j].dtype.startswith("int")]
            return any(map(self.is_repeated, (i, *event.sources))) or any(
                map(self.in_a_loop, tokens)
            )
        if event.signature is not None:
            return False
        if event.site.operation in ("item", "float", "int") and self.arrays(i):
            return True  # it computes nothing
        summed = {site.node.target.id for site in self.recorder.sites if is_summing(site.node)}
        names = (self.events[j].site.node for j in self.ancestors(i))
        return any(getattr(node, "id", None) in summed for node in names)

    def rewrites_a_result(self, i: int) -> bool:
        """Whether an array was written to that an earlier call had returned."""
        event, returned = (
            self.events[i],
            {j for _, events in self.recorder.returned for j in events},
        )
        return event.wrote and event.site.owner == self.owner and event.sources[0] in returned

    def of_a_selection(self, i: int) -> bool:
        """Whether it is computed of numbers that an array picks out of another: others may be the
        right ones."""
        for j in self.arrays(i):
            found, picked = self.events[j].signature, self.arrays(j)
            if found and self.marks[j] is None and self.is_selection(self.events[j], found, picked):
                return True
        return False

    def marks_labels(self, i: int) -> bool:
        """Whether it puts whole numbers in the place of others, as any may mark labels."""
        found = self.events[i].signature
        whole = found is not None and found.plain and not found.binary
        return whole and kind_of(self.events[i].site.operation) == "fill"

    def in_place(self, i: int) -> bool:
        """Whether right answers have these numbers in another order, and nothing is done here that
        changes it: an order is as right before as after this."""
        arrays, event = self.arrays(i), self.events[i]
        kept = len(arrays) == 1 and kind_of(event.site.operation) in ORDERLY
        return self.statuses[i] == REORDERED and kept and self.statuses[arrays[0]] == KNOWN

    def does_well_elsewhere(self, i: int) -> bool:
        """Whether a place, when its function was called at another time, led to a right answer's
        numbers by way of others than theirs: an answer may be written in another way."""
        here = self.events[i].site
        others = {j for j, event in enumerate(self.events) if event.site is here} - {i}
        others = {j for j in others if self.statuses[j] == UNKNOWN and not self.in_a_loop(i)}
        for k in range(min(others, default=0), len(self.events) if others else 0):
            if not others.isdisjoint(self.events[k].sources):
                if self.statuses[k] == KNOWN and self.telling(k):
                    return True
                if self.statuses[k] == UNKNOWN:
                    others.add(k)
        return False

    def nearly_right(self, i: int) -> bool:
        """Whether an array is nearly one that is expected, or that right answers pass through: it
        may have been off before that."""
        ours = self.events[i].signature
        if ours and ours.shape and not ours.plain and self.known.nearly(ours):
            return True
        wanted = (signature(leaf) for value in self.wanted for leaf in leaves_of(value))
        return bool(ours and ours.shape and any(w is not None and ours.is_near(w) for w in wanted))

    def in_a_loop(self, i: int) -> bool:
        """Whether a place stands in the body of a loop, however often it was reached."""
        here = self.events[i].site
        return any(
            isinstance(site.node, ast.For | ast.While)
            and site.owner == here.owner
            and site.node.lineno < here.node.lineno <= site.node.end_lineno
            for site in self.recorder.sites
        )

    def is_comprehended(self, i: int) -> bool:
        """Whether a place stands in a comprehension."""
        here = self.events[i].site
        first, last = span(here.node)[:2], span(here.node)[2:]
        return any(
            isinstance(site.node, ast.ListComp | ast.GeneratorExp)
            and site.owner == here.owner
            and span(site.node)[:2] < first
            and last < span(site.node)[2:]
            for site in self.recorder.sites
        )

    def idle(self, i: int, arrays: int = 2) -> bool:
        """Whether something was done with so many arrays, and one of them came out unchanged."""
        event = self.events[i]
        found = [self.events[j].signature for j in event.sources]
        given = [s for s in found if s is not None]
        same = (event.signature and event.signature.same(s) for s in given)
        return len(given) >= arrays and any(same)

    def right_before(self, i: int) -> Site | None:
        """The last of the known expressions that a value was computed from."""
        computed = [
            self.events[j].site
            for j in self.events[i].sources
            if self.statuses[j] == KNOWN and self.events[j].site.kind == "expression"
        ]
        return computed[-1] if computed else None

    def call_around(self, i: int, whole: set[int]) -> Site | None:
        """For an event in a function that the answer calls: the call, in the answer's own text."""
        if self.events[i].site.owner == self.owner:
            return None
        after = {i}
        for j in range(i + 1, len(self.events)):
            if not after.isdisjoint(self.events[j].sources):
                after.add(j)
        for site, found in self.recorder.calls:
            if site.owner == self.owner and not after.isdisjoint(found):
                return site
        return None

    def assignment_of(self, text: str) -> Site | None:
        """The statement that gives a module the part named first in a text."""
        words = [w for word in re.findall(r"[A-Za-z_][\w.]*", text) for w in word.split(".")]
        for word in words:
            for site in reversed(self.recorder.sites):  # the last one counts
                node = site.node
                if (
                    site.kind == "statement"
                    and site.function == "__init__"
                    and (site.owner == self.owner and word in given_by(node))
                ):
                    return site
        return None
