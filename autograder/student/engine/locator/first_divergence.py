"""Where wrong numbers come from.

TRUST BOUNDARY. As in `locate`.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from autograder.student.engine.arrays import Value
from autograder.student.engine.compare import compare
from autograder.student.engine.locator.classified_trace import (  # fmt: skip
    GIVEN,
    KNOWN,
    MULTIPLE,
    REORDERED,
    SETTLED,
    UNKNOWN,
    ClassifiedTrace,
)
from autograder.student.engine.locator.instrument import Site, last_name
from autograder.student.engine.locator.known_values import kind_of, made_bucket
from autograder.student.engine.locator.leaves import pairs_of
from autograder.student.engine.locator.operations import GROWING, MULTIPLYING, call_of_self
from autograder.student.engine.locator.signatures import merely_reshaped, reordered, signature
from autograder.student.engine.locator.trace import span


@dataclass(frozen=True)
class Divergence:
    """A place in the student's source and what happens there.

    `up_to` is the last place where all was right; `detail` depends on the `kind`; `aspect` is the
    title of the one whose run it was found in.
    """

    site: Site
    kind: str
    up_to: Site | None = None
    detail: str = ""
    aspect: str = ""


class Numbers(ClassifiedTrace):
    """Looks for the place at which numbers went wrong. `unsure` says that there is such a place,
    but that it might be any of several; `sound` tells a place at which a large number is as good as
    an infinite one."""

    unsure = False
    sound: Callable[[Site], bool] = staticmethod(lambda site: False)

    def wrong_results(self) -> Iterator[tuple[int, Value]]:
        """The events of the wrong parts of the first step that is wrong, with what is expected."""
        for value, expected in zip(self.record.values, self.wanted, strict=False):
            if compare(value, expected).passed:
                continue
            for one, other in pairs_of(value, expected):
                if other is None or not compare(one, other).passed:
                    event = self.event_of(one)
                    if event is not None:
                        yield event, other
            return

    def nearly(self, i: int, wanted: Value) -> bool:
        """Whether a result is right except for its last digits."""
        ours, theirs = self.events[i].signature, signature(wanted)
        return ours is not None and theirs is not None and ours.same(theirs)

    def astray(self, leaves: Sequence[int]) -> Divergence | None:
        """Where the values that lead to some events cease to be known ones."""
        whole = {i for i in leaves if self.statuses[i] not in SETTLED}
        numbers = (i for i in leaves if self.events[i].signature is None)
        whole |= {i for i in numbers if self.statuses[i] == GIVEN}
        if not whole:
            return None
        turned = self.first_of(whole)
        event, call = self.events[turned], self.call_around(turned, whole)
        if event.site.kind == "name":  # nothing is computed there
            return None
        doubts = self.is_collected, self.nearly_right, self.numbers_pairs, self.of_one_row
        doubts += self.in_place, self.does_well_elsewhere, self.of_a_selection, self.marks_labels
        self.unsure = any(doubt(turned) for doubt in doubts)
        if self.unsure:
            return None
        filled = self.filled(sorted(self.ancestors(turned)), unusual=True)
        filled = filled or self.filled([*event.sources, turned])
        if filled is not None:
            return filled
        self.unsure = self.unsure or self.anyones(turned)
        if self.unsure:
            return None
        if (loop := self.loop_variable(turned)) is not None:
            return Divergence(loop, "made", event.site)
        if call is not None:
            return Divergence(call, "astray", self.right_before(turned), event.site.owner)
        looks = self.unused_statement, self.one_array_many_times, self.zeros, self.computed_twice
        found = next(filter(None, (look(turned) for look in looks)), None)
        if found is not None:
            return found
        missing = self.missing_before(turned)
        if missing is not None:
            if (idle := self.part_that_is_idle(turned)) is not None:
                return idle
            here = [k for k in range(turned) if self.events[k].site is missing]
            detail = "idle" if here and self.idle(here[-1]) else "left"
            return Divergence(missing, "missing", event.site, "" if self.odd(turned) else detail)
        made = self.made_in_init(turned) or self.drawn_in_init(turned)
        if made is not None:
            return Divergence(made, "made", event.site)
        same = self.same_on_both_sides(turned)
        if same is not None:
            return same
        role = self.unusual_before(turned)
        if role is not None:
            nan = self.gives_nan(turned)
            return Divergence(event.site, "nan") if nan else Divergence(role, "unusual")
        if not self.known.same:  # a run that draws random numbers: right answers may have others
            self.unsure = True
            return None
        up_to = self.right_before(turned)
        if self.statuses[turned] == REORDERED:
            strange = self.strange_sources(turned)
            if strange and self.events[strange[0]].site.kind == "name":
                return Divergence(event.site, "unusual")
            shape = event.signature and event.signature.shape
            return Divergence(event.site, "order", up_to, str(shape))
        if self.odd(turned):
            found = self.multiple(turned)
            return None if self.unsure else found
        filling = event.site.kind == "store" and self.is_repeated(turned)
        return Divergence(event.site, "filling" if filling else "astray", up_to)

    def first_of(self, whole: set[int]) -> int:
        """The first of the wrong values that some others come from."""
        while True:
            turned = min(self.trace_back(set(whole), (UNKNOWN,)))
            while more := [j for j in self.events[turned].sources if self.turned_at(j, turned)]:
                turned = more[0]
            sources = self.events[turned].sources
            whole = {j for j in sources if self.statuses[j] == UNKNOWN and self.events[j].signature}
            if self.statuses[turned] != MULTIPLE or not whole:
                return turned  # or else what it is a multiple by is wrong

    def turned_at(self, j: int, i: int) -> bool:
        """Whether what an event is made of is already in another order, or a multiple: for a sum of
        all its numbers, their order is as right as any."""
        found = self.events[i].signature
        whole = kind_of(self.events[i].site.operation) == "total" and not (found and found.shape)
        return self.odd(j) and not (whole and self.statuses[j] == REORDERED)

    def multiple(self, i: int) -> Divergence:
        """For a multiple of right numbers: it may be made of others than right answers make it."""
        for site in (self.events[j].site for j in self.strange_sources(i)):
            if site.kind == "expression":
                return Divergence(site, "missing")
        site = self.events[i].site
        by_chance = isinstance(site.node, ast.Call) and site.operation not in MULTIPLYING
        return Divergence(site, "astray" if by_chance else "multiple", self.right_before(i))

    def already_right(self, wrong: Sequence[Value]) -> Divergence | None:
        """For a result that was right before: what was done with it after that."""
        for i, expected in wrong:
            wanted, way = signature(expected), self.ancestors(i)
            found, site = self.events[i].signature, self.events[i].site
            before = any(self.is_(j, wanted) for j in self.events[i].sources) if wanted else False
            if before and site.owner == self.owner and found and merely_reshaped(found, wanted):
                return Divergence(site, "already")
            other = wanted and found and found.shape != wanted.shape and found.shape
            made = self.events[i].sources and site.owner == self.owner
            same = (merely_reshaped, reordered) if other and made else ()
            if found and wanted and any(same_numbers(found, wanted) for same_numbers in same):
                return Divergence(site, "order", None, str(other))
            if wanted is None or wanted.even or not wanted.rich or self.statuses[i] in SETTLED:
                continue
            right = [j for j in way - {i} if self.events[j].sources and self.is_(j, wanted)]
            after = [k for k in sorted(way) if right and max(right) in self.events[k].sources]
            last = self.events[after[-1]].site if after else None
            if last is not None and last.owner == self.owner:
                return Divergence(last, "already", self.events[max(right)].site)
        return None

    def is_(self, i: int, wanted: Value) -> bool:
        """Whether an event has the numbers of a signature."""
        found = self.events[i].signature
        return found is not None and found.same(wanted)

    def unused_statement(self, before: int) -> Divergence | None:
        """A statement on the way that computes something and does nothing with it."""
        used = {j for event in self.events for j in event.sources}
        for i in range(before):
            event = self.events[i]
            if i in used or event.wrote or event.signature is None or not event.sources:
                continue
            statement = self.recorder.sites[event.statement].node if event.statement >= 0 else None
            if event.site.owner != self.owner or not isinstance(statement, ast.Expr):
                continue
            if span(statement.value) == span(event.site.node):
                return Divergence(event.site, "dropped")
        return None

    def one_array_many_times(self, i: int) -> Divergence | None:
        """For a list that holds one array several times: where that is written to."""
        for j in self.events[i].sources:
            event = self.events[j]
            if j in self.recorder.repeated and event.wrote and event.site.owner == self.owner:
                return Divergence(event.site, "rewritten", self.events[i].site)
        return None

    def zeros(self, i: int) -> Divergence | None:
        """Zeros that no right answer has, if adding what is made of them changed nothing."""
        for j in sorted(self.ancestors(i)):
            known = self.events[j].signature
            if known is None or self.statuses[j] != KNOWN or not self.idle(j):
                continue
            for k in self.events[j].sources:
                found = self.events[k].signature
                if self.statuses[k] != UNKNOWN or found is None or found.scale or found.plain:
                    continue
                spread = replace(found, shape=known.shape)
                if self.known.mark(spread) is not None:
                    continue  # right answers have these zeros, with the axes that broadcasting adds
                for n in sorted(self.ancestors(k) - {k}):
                    site = self.events[n].site
                    if self.marks[n] is None and "zeros" in site.operation:
                        return Divergence(site, "zeros", self.events[j].site)
        return None

    def part_that_is_idle(self, i: int) -> Divergence | None:
        """A call of a module's part, such as its dropout, that returns what goes in."""
        sources = set(self.events[i].sources)
        for site, found in self.recorder.calls:
            if call_of_self(site) and not sources.isdisjoint(found):
                made = self.assignment_of(last_name(site.node.func))
                same = self.events[found[0]].site is not site or self.idle(found[0], arrays=1)
                if same and made is not None and self.recorder.training:
                    return Divergence(made, "made", site)
        return None

    def loop_variable(self, i: int) -> Site | None:
        """For a call, with the right numbers, of a loop's variable: the loop."""
        event = self.events[i]
        call = event.site.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        if any(self.unusual(j, i) or self.statuses[j] not in SETTLED for j in event.sources):
            return None
        for site in self.recorder.sites:
            if call.func.id in site.targets and site.function == event.site.function:
                return site
        return None

    def doubtful(self, i: int) -> bool:
        """Whether an array that did not change another one may itself be wrong."""
        return self.idle(i) and any(self.statuses[j] != KNOWN for j in self.arrays(i))

    def of_a_test(self, leaves: Sequence[int]) -> Divergence | None:
        """If the result is a number, or missing: the first wrong numbers that a test saw."""
        if any(self.events[i].signature is not None for i in leaves):
            return None
        tested = {i for found in self.recorder.tested.values() for i in found}
        tested |= {j for i in tested for j in self.events[i].sources}
        seen = sorted(i for i in tested if self.statuses[i] == UNKNOWN and self.events[i].signature)
        if not seen:
            return None
        turned = min(self.trace_back(set(seen), (UNKNOWN,)))
        before = (i for i in range(turned) if self.events[i].site is self.events[turned].site)
        if any(self.statuses[i] in SETTLED for i in before):
            return None  # a loop that goes on for too long reaches numbers that nobody has
        return self.astray(seen)

    def first_wrong_write(self, wrong: Sequence[Value]) -> Divergence | None:
        """If no result can be compared: the first wrong numbers that were written anywhere."""
        for i, event in enumerate(self.events):
            if not wrong and event.wrote and self.statuses[i] not in SETTLED:
                return Divergence(event.site, "astray")
        return None

    def made_in_init(self, i: int) -> Site | None:
        """For a call of a module's part with right numbers: the statement that made the part."""
        event = self.events[i]
        call = event.site.node
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        if not call_of_self(event.site):
            return None
        if any(self.unusual(j, i) or self.statuses[j] not in SETTLED for j in event.sources):
            return None
        site = self.assignment_of(call.func.attr)
        if site is None or not isinstance(site.node.value, ast.Call):
            return None
        line = site.lines[site.node.lineno - 1]
        loaded = not self.recorder.new and re.search(r"\b(Linear|Embedding)\(", line)
        return None if loaded else site  # or else all of it is right, as its parameters are

    def drawn_in_init(self, i: int) -> Site | None:
        """For new parameters with numbers that no right answer has: where they are made."""
        for j in self.events[i].sources if self.recorder.new else ():
            site = self.events[j].site
            if self.statuses[j] == GIVEN and site.kind == "attribute" and self.telling(j):
                return self.assignment_of(site.node.attr)
        return None

    def anyones(self, i: int) -> bool:
        """Whether a function that is an argument, or that a loop supplies, is called with values
        that are right: then it is not clear whether one of them is wrong here, or the function."""
        event = self.events[i]
        call = event.site.node
        if not event.site.given or not isinstance(call, ast.Call):
            return False
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        of_a_loop = any(name in site.targets for site in self.recorder.sites)
        if of_a_loop and len(call.args) + len(call.keywords) < 2:
            return False
        settled = all(self.statuses[j] in SETTLED for j in event.sources)
        return settled and not self.strange_sources(i)

    def missing_before(self, i: int) -> Site | None:
        """The known value with which right answers do something else before they do this."""
        found, operation = self.events[i].signature, self.events[i].site.operation
        if found is None or not self.known.made & made_bucket(operation, found):
            return None
        at = i
        while strange := self.strange_sources(at):
            at = strange[0]
        if at == i:
            return None
        named_by_then = [s for when, s in self.recorder.aliases.get(at, ()) if when <= i]
        if named_by_then:
            return named_by_then[-1]
        site = self.events[at].site
        return site if site.kind in ("expression", "store") else None

    def same_on_both_sides(self, i: int) -> Divergence | None:
        """For an operation on an array and itself: the `a = b` that made them the same."""
        site, sources = self.events[i].site, self.events[i].sources
        if not isinstance(site.node, ast.BinOp) or len(sources) != 1 or not self.telling(*sources):
            return None
        named_by_then = [s for when, s in self.recorder.aliases.get(sources[0], ()) if when <= i]
        return Divergence(named_by_then[-1], "itself", site) if named_by_then else None

    def computed_twice(self, i: int) -> Divergence | None:
        """For numbers computed twice, which no right answer uses like this: the second place."""
        at = next(iter(self.strange_sources(i)), -1)
        found = None
        while at >= 0:
            twin = self.twin(at)
            found = Divergence(self.events[at].site, "twice", twin) if twin is not None else found
            if twin is None and len(self.arrays(at)) > 1:
                break  # one of these, met before, is right where it goes in
            at = next((j for j in self.events[at].sources if self.twin(j) is not None), -1)
        return found

    def twin(self, i: int) -> Site | None:
        """An earlier line of the answer that computed the same numbers; None if there is none."""
        site, found = self.events[i].site, self.events[i].signature
        if found is None or found.plain or found.even or site.kind != "expression":
            return None
        # What is made of its twin was only left as it was.
        earlier = {*range(i)} - self.ancestors(i)
        for other in (self.events[j] for j in sorted(earlier)) if site.owner == self.owner else ():
            ours = other.site.kind == site.kind and other.site.owner == self.owner
            apart = other.site.node.lineno != site.node.lineno
            if ours and apart and other.signature and other.signature.same(found):
                return other.site
        return None

    def overwritten(self) -> Divergence | None:
        """An assignment to an argument that had not been read."""
        return next((Divergence(s, "overwritten") for s in self.recorder.overwriting), None)

    def filled(self, way: Sequence[int], unusual: bool = False) -> Divergence | None:
        """Where a large number is used in place of an infinite one."""
        for i in way:
            found, sources = self.events[i].signature, self.events[i].sources
            site = self.events[i].site
            made = site.function == "__init__"  # by torch.empty, perhaps
            grown = site.operation in GROWING  # not put there
            if found is None or not found.filled or not sources or made or grown:
                continue
            if not unusual or any(self.unusual(j, i) for j in sources):
                if not self.sound(site):
                    return Divergence(site, "filled")
                self.unsure = True
        return None
