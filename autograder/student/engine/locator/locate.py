"""Where a wrong answer leaves the values of right answers.

Every value seen while it ran is given, known (some right answer passes through it), reordered or a
multiple of a known one, or unknown. Tracing a wrong result back through values that are not known,
the first one that is computed from known ones alone is where the answer goes astray.

TRUST BOUNDARY. Runs in the student's own process, or in the sandbox. What comes out is a hint that
may be forged: no mark depends on it, and code that shows it treats it as the student's text.
"""

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from types import UnionType

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import values_wanted
from autograder.student.engine.compare import GRADIENT_FACTOR, compare
from autograder.student.engine.locator.classified_trace import UNKNOWN
from autograder.student.engine.locator.first_divergence import Divergence, Numbers
from autograder.student.engine.locator.instrument import Node, Site, last_name
from autograder.student.engine.locator.known_values import KnownValues, has_dtype
from autograder.student.engine.locator.leaves import leaves_of
from autograder.student.engine.locator.trace import TraceRecorder, span
from autograder.student.engine.runs import Record, Run
from autograder.student.engine.words import describe

__all__ = ["Divergence", "locate", "problem_of"]

VALUES, DTYPE, RAISED, SILENT, CHANGED, EFFECT, CUT = (
    "values", "dtype", "raised", "silent", "changed", "effect", "cut",
)  # fmt: skip

_COMMON = (-1.0, 0.0, 1.0, 2.0)  # numbers that are met everywhere
_OF_RIGHT_NUMBERS = ("multiple", "missing", "unusual", "twice")  # or nearly right ones
_OF_DTYPES = re.compile(r"\bdtype|scalar type|\b(?:Float|Double|Half|Long|Int|Bool)Tensor")
_FROM_A_SHAPE = {  # calls that take no more than the shape of a tensor, so they cut nothing off
    *("zeros_like", "ones_like", "empty_like", "full_like"),
    *("new_zeros", "new_ones", "new_empty", "new_full"),
}


def problem_of(run: Run, record: Record, expected: Record) -> str | None:
    """What is wrong with a run, in one word; None if nothing that could be located."""
    if record.raised is not None:
        return RAISED
    if expected.raised is not None:
        return SILENT
    pairs = [*zip(record.values, values_wanted(run, expected), strict=False)]
    if any(not compare(v, e).passed for v, e in pairs):
        return VALUES
    if record.changed and not expected.changed:
        return CHANGED
    if set(record.side_effects) - set(expected.side_effects):
        return EFFECT
    for name, slope in expected.gradients.items():
        given = record.gradients.get(name)
        if slope is not None and not compare(given, slope, slack=GRADIENT_FACTOR).passed:
            return CUT
    pairs = [*zip(record.values, expected.values, strict=False)]
    if any(_dtypes(v) != _dtypes(e) or _form(v) != _form(e) for v, e in pairs):
        return DTYPE
    return None


def locate(
    recorder: TraceRecorder,
    known: KnownValues,
    run: Run,
    record: Record,
    expected: Record,
    sound: Callable[[Site], bool] = lambda site: False,
) -> Divergence | None:
    """The place at which a traced answer goes astray; None where that is not sure.

    `sound` says of a place with a large number whether that does as well there as an infinite one.
    """
    search = _Search(recorder, known, run, record, expected)
    search.sound = sound
    place = search.place(problem_of(run, record, expected))
    recorder.unsure = search.unsure
    return place


class _Search(Numbers):
    def place(self, problem: str | None) -> Divergence | None:
        if problem == VALUES:
            return self.of_values()
        if problem == RAISED:
            return self.of_an_exception()
        if problem == SILENT:
            return self.of_a_missing_exception()
        if problem in (CHANGED, EFFECT):
            site = self.recorder.culprit
            again = None if site is self.recorder.retouched else self.recorder.retouched
            return Divergence(site, problem, again, self.recorder.effect or "") if site else None
        if problem == CUT:
            return self.of_a_cut()
        return self.of_a_dtype() if problem == DTYPE else None

    def of_values(self) -> Divergence | None:
        kind = self.of_a_kind(tuple | list | str | None)
        if kind is not None:
            return kind
        results = zip(self.record.values, self.expected.values, strict=False)
        if any(
            isinstance(b, dict) and (not isinstance(a, dict) or {*a} != {*b}) for a, b in results
        ):
            return None  # what is missing has no numbers
        wrong = [*self.wrong_results()]
        near = [i for i, wanted in wrong if self.nearly(i, wanted)]
        if wrong and len(near) == len(wrong):
            return self.of_a_dtype()
        leaves = [i for i, _ in wrong if i not in near]
        again = next(filter(self.rewrites_a_result, leaves), None)
        if again is not None:
            return Divergence(self.events[again].site, "given back")
        found = self.astray(leaves) if leaves else None
        overwritten = self.overwritten()
        if overwritten is not None and (found is None or found.site.owner == self.owner):
            return overwritten
        already = None if found else self.already_right(wrong)
        if self.unsure or already is not None:
            return already
        found = self.of_a_test(leaves) or found
        return (
            found
            or self.filled(self.way())
            or self.of_a_role(leaves)
            or self.first_wrong_write(wrong)
        )

    def of_a_kind(self, kinds: type | UnionType) -> Divergence | None:
        """Where something of the wrong kind is returned, such as a tuple instead of a list."""
        for value, wanted in zip(self.record.values, self.expected.values, strict=False):
            either = isinstance(value, kinds) or isinstance(wanted, kinds)
            if type(value) is type(wanted) or not either:
                continue
            told = f"expected {describe(wanted)}, got {describe(value)}"
            found = [site for site, _ in self.recorder.returned if site.owner == self.owner]
            return (
                Divergence(self.statement_before(found[-1]), "kind", None, told) if found else None
            )
        return None

    def statement_before(self, site: Site) -> Site:
        """For a name that is returned: the statement before it that gave the name its value."""
        if not isinstance(site.node, ast.Name):
            return site
        given = [
            other
            for other in self.recorder.sites
            if other.kind == "statement"
            and other.function == site.function
            and other.node.lineno < site.node.lineno
            and isinstance(other.node, ast.Assign)
            and any(getattr(t, "id", None) == site.node.id for t in other.node.targets)
        ]
        return given[-1] if given else site

    def of_a_role(self, leaves: Sequence[int]) -> Divergence | None:
        """Right numbers, but not those that belong in the result."""
        if not leaves:
            return None
        last = self.events[leaves[0]].signature
        for i in sorted(self.ancestors(leaves[0])) if last and last.nan else ():
            if self.gives_nan(i):
                return Divergence(self.events[i].site, "nan")
        for i in sorted(self.ancestors(leaves[0])):
            event = self.events[i]
            computed = event.signature and event.site.kind == "expression"
            if computed and self.strange_sources(i) and not self.harmless(i, leaves[0]):
                return Divergence(event.site, "unusual")
        way = self.ancestors(leaves[0])
        doubts = [i for i in way if self.doubtful(i) and not self.is_repeated(i)]
        doubts += [i for i in way if self.statuses[i] == UNKNOWN and self.telling(i)]
        if doubts or not self.telling(leaves[0]):  # what it depends on may be wrong
            return None
        for site, events in reversed(self.recorder.returned):
            if leaves[0] in events and site.owner == self.owner:
                made, mark = self.events[leaves[0]].site, self.marks[leaves[0]]
                if made.node.lineno != site.node.lineno and mark is not None and mark.followed:
                    return Divergence(made, "missing", site)
                return Divergence(site, "role")
        return None

    # --- exceptions ---

    def of_an_exception(self) -> Divergence | None:
        raised = self.record.raised
        if raised is not None and raised.during == "load":
            site = self.assignment_of(" ".join(raised.message.split("`")[1::2]))
            return Divergence(site, "loaded", None, raised.message) if site else None
        if raised is not None and raised.during == "backward":
            return self.of_a_write()
        if self.recorder.raised is None:
            return None
        expected = self.expected.raised
        if expected is not None and (raised is None or raised.types[0] != expected.types[0]):
            guarded = self.of_a_missing_exception()
            if guarded is not None:
                return guarded
        error, places = self.recorder.raised
        raised = self.record.raised
        if not places or raised is None or type(error).__name__ != raised.types[0]:
            return None
        site = self.site_around(places[-1])
        if site is None:
            return None
        if self.expected.raised is not None:  # right answers got no further, either
            deliberate = isinstance(site.node, ast.Raise | ast.Assert)
            return Divergence(site, RAISED, None, raised.types[0]) if deliberate else None
        inputs = self.recorder.inputs_of(site)
        if isinstance(site.node, ast.Raise):
            return self.of_a_refusal(site, raised.types[0])
        of_dtypes = _OF_DTYPES.search(raised.message)  # which no numbers are to blame for
        astray = self.astray(inputs) if inputs and not of_dtypes else None
        sound = astray and (
            astray.site.passed
            or isinstance(astray.site.node, ast.Subscript)  # a part of what is right
            or _written_out(astray.site)
            or self.is_a_mask(astray.site)  # or another one, which may be as right
        )
        if astray is not None and astray.kind == "order" and not sound:
            return astray
        if astray is not None and astray.kind not in _OF_RIGHT_NUMBERS and not sound:
            return Divergence(astray.site, "before the exception", astray.up_to, raised.types[0])
        overwritten = self.overwritten()
        if overwritten is not None and site.owner == self.owner:
            return overwritten
        return Divergence(site, RAISED, None, raised.types[0])

    def is_a_mask(self, site: Site) -> bool:
        """Whether what a place gives holds zeros and ones alone."""
        found = [event.signature for event in self.events if event.site is site]
        return any(signature is not None and signature.binary for signature in found)

    def of_a_refusal(self, site: Site, raised: str) -> Divergence | None:
        """For a `raise` that right answers do not reach: the test that led to it."""
        for number, outcomes in self.recorder.tests.items():
            test = self.recorder.sites[number]
            if any(span(guard) == span(site.node) for guard in test.guards) and any(outcomes):
                return Divergence(test, "refused", None, raised)
        return self.of_a_test(())

    def of_a_write(self) -> Divergence | None:
        """The one place that writes into a value which the backward pass needs."""
        wrote = [i for i, event in enumerate(self.events) if event.wrote and event.grad]
        if len(wrote) != 1:
            return None
        return Divergence(self.call_around(wrote[0], set()) or self.events[wrote[0]].site, "wrote")

    def site_around(self, place: tuple[int, ...]) -> Site | None:
        """The smallest place in the source that contains a position."""
        around = [
            s for s in self.recorder.sites
            if (s.node.lineno, s.node.col_offset) <= (place[0], place[1])
            and (s.node.end_lineno, s.node.end_col_offset) >= (place[2], place[3])
        ]  # fmt: skip
        order = ("statement", "test", "return", "store")
        return min(around, key=lambda s: (_extent(s.node), s.kind in order), default=None)

    def of_a_missing_exception(self) -> Divergence | None:
        """A test that guards the exception which right answers raise, and that was false."""
        if self.expected.raised is None:
            return None
        wanted, found = self.expected.raised.types[0], []
        for number, outcomes in self.recorder.tests.items():
            site = self.recorder.sites[number]
            if any(outcomes) or not site.guards:
                continue
            names = {n for guard in site.guards for n in _names(guard)}
            if wanted in names and (count := self.named_numbers(number)) is not None:
                found.append((count, site))
        most = max((count for count, _ in found), default=None)
        likeliest = [site for count, site in found if count == most]
        if len(likeliest) == 1:
            return Divergence(likeliest[0], SILENT, None, wanted)
        return None if found else self.of_a_test(()) or self.of_a_constant(wanted)

    def named_numbers(self, test: int) -> tuple[int, int] | None:
        """On how many of the numbers that the expected error names a test depended: the uncommon
        ones, and all of them. None if it depended on numbers, but on none of these."""
        message = self.expected.raised.message if self.expected.raised else ""
        named = {float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", message)}
        seen = (self.events[i] for i in self.recorder.tested.get(test, ()))
        numbers = {e.number for e in seen if not isinstance(e.site.node, ast.Constant)} - {None}
        both = named & numbers
        return (len(both - {*_COMMON}), len(both)) if both or not (named and numbers) else None

    def of_a_constant(self, wanted: str) -> Divergence | None:
        """The only `return` that was reached, if it returns a constant."""
        found = [site for site, _ in self.recorder.returned if site.owner == self.owner]
        if len(found) != 1:
            return None
        return Divergence(found[0], "returned", None, wanted) if _written_out(found[0]) else None

    # --- gradients and dtypes ---

    def of_a_cut(self) -> Divergence | None:
        if any(np.isnan(slope.data).any() for slope in self.record.gradients.values() if slope):
            return None  # it gets through, and something on the way is 0/0
        for name, slope in self.expected.gradients.items():
            if name.startswith("parameter ") and slope is not None:
                site = self.assignment_of(name.removeprefix("parameter "))
                if name not in self.record.gradients and site is not None:
                    return Divergence(site, "parameter", None, name.removeprefix("parameter "))
        for i in self.way():
            event, mark = self.events[i], self.marks[i]
            lost = not event.grad and any(self.events[j].grad for j in event.sources)
            whole = event.signature is not None and not event.signature.plain
            made = isinstance(event.site.node, ast.Call) and last_name(event.site.node.func)
            if lost and whole and not (mark and mark.cut) and made not in _FROM_A_SHAPE:
                return Divergence(event.site, CUT)
        return None

    def of_a_dtype(self) -> Divergence | None:
        kind = self.of_a_kind(int | float | tuple | list)
        if kind is not None:
            return kind
        way = self.way()
        for i in way:
            event, mark = self.events[i], self.marks[i]
            if event.sources and mark is not None and not has_dtype(mark, event.dtype):
                return Divergence(event.site, DTYPE, None, event.dtype)
        for result in self.results():
            i, last = result, self.events[result].dtype
            while more := [j for j in self.events[i].sources if self.events[j].dtype == last]:
                i = more[0]
            if self.events[i].sources:
                return Divergence(self.events[i].site, DTYPE, None, last)
        return None


def _dtypes(value: Value) -> list[str]:
    return [str(getattr(leaf, "dtype", type(leaf).__name__)) for leaf in leaves_of(value)]


def _form(value: Value) -> tuple | None:
    """The structure of lists and tuples in a value."""
    return (type(value), *map(_form, value)) if isinstance(value, tuple | list) else None


def _extent(node: Node) -> tuple[int, int]:
    lines = node.end_lineno - node.lineno
    return lines, node.end_col_offset - node.col_offset if not lines else node.end_col_offset


def _written_out(site: Site) -> bool:
    """Whether an expression on one line is a constant: `0`, `-1`, `None`, `float("inf")`."""
    node = site.node
    line = site.lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset]
    try:
        parts = [*ast.walk(ast.parse(line.decode(), mode="eval"))]
    except (SyntaxError, ValueError):
        return False
    names = [part.id for part in parts if isinstance(part, ast.Name)]
    simple = (ast.Expression, ast.Constant, ast.UnaryOp, ast.USub, ast.Call, ast.Name, ast.Load)
    return all(isinstance(p, simple) for p in parts) and names in ([], ["float"], ["int"])


def _names(node: Node) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
