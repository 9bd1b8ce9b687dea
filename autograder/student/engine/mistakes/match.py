"""Which known mistakes a wrong answer looks like, even if a second slip hides them.

An answer is compared with each known mistake run by run, its values separately from its deviations:
dtypes, arguments changed in place, global state, gradients that are cut, the class of an exception.
A name is certain if all values agree; it is likely if they agree on most of the runs that tell the
mistake from a right answer, and nothing contradicts it.

TRUST BOUNDARY. When grading, this runs in the judge's process, where no student's code ever runs.
The records come from outside and are only data; every function here takes them as hostile.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations

from autograder.student.engine.arrays import Value
from autograder.student.engine.compare import GRADIENT_FACTOR, TOLERANCE, agrees, as_if_rounded
from autograder.student.engine.deviations import Deviation, deviations, stopped_by_autograd
from autograder.student.engine.mistakes.numbers import says_much
from autograder.student.engine.runs import RaisedException, Record, Run
from autograder.student.engine.values import Array

_NAME = re.compile(r"`[^`]*`")
_ENOUGH = 0.8  # the share of the telling runs on which a likely mistake has to agree
_STRAYS = 0.4  # the share of all runs that may be like neither the mistake nor a right answer
_FINEST_FIRST = (*TOLERANCE,)

Flat = Sequence[Record]
Failed = Callable[[Sequence[Sequence[Record]]], frozenset[int]]


@dataclass(frozen=True)
class Mistake:
    """A known wrong answer: its name, its cause for the student, its records on the same runs."""

    name: str
    cause: str
    records: Sequence[Sequence[Record]]


@dataclass(frozen=True)
class MistakeMatch:
    """The mistakes that an answer looks like, one or two; `other_problems` are what else is
    wrong with it.

    `certain` says that nothing else would give the same values.
    """

    mistakes: tuple[Mistake, ...]
    certain: bool
    other_problems: frozenset[Deviation] = frozenset()


def match_mistakes(
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    expected: Sequence[Sequence[Record]],
    mistakes: Iterable[Mistake],
    failed: Failed,
    search_depth: int,
) -> MistakeMatch | None:
    """The mistakes that a wrong answer looks like; None if it looks like none, or like too many.

    `failed` gives the numbers of the aspects that some records fail. `search_depth` is how many
    failing rows are looked at first: a mistake unlike the answer in all of them is out.
    """
    mistakes = [*mistakes]
    if not mistakes:
        return None
    scene = _Scene(runs, records, expected, failed(records), search_depth)
    seen = [_Suspect(scene, mistake) for mistake in mistakes]
    found = [suspect for suspect in seen if suspect.fits_everywhere]
    if found:  # aspects tell more than values within tolerances: whether a 0 is exactly 0, say
        rank = {s.mistake.name: len(scene.failed ^ failed(s.mistake.records)) for s in found}
        return scene.match(min(found, key=lambda s: (s.lacks_a_dtype, rank[s.mistake.name])))
    return (
        _of_deviations(scene, seen, failed)
        or _two(scene, seen)
        or _likely(scene, seen, failed)
        or _not_compared(scene, seen, failed)
    )


class _Scene:
    """A wrong answer's records beside the reference's, run by run, without random runs."""

    def __init__(
        self,
        runs: Sequence[Sequence[Run]],
        records: Sequence[Sequence[Record]],
        expected: Sequence[Sequence[Record]],
        failed: frozenset[int],
        search_depth: int,
    ):
        self.failed, self.search_depth = failed, search_depth
        self.by_row = runs, records, expected
        self.places = [
            (i, j) for i, row in enumerate(runs) for j, run in enumerate(row) if not run.random
        ]
        self.mine = self.flat(records)
        self.right = self.flat(expected)
        pairs = [*zip(self.mine, self.right, strict=True)]
        # Where autograd refused to go on, only what `side_effects` says is known.
        self.known = [
            n
            for n, (a, b) in enumerate(pairs)
            if b.raised is not None or not stopped_by_autograd(a)
        ]
        self.failing = [n for n in self.known if not same_values(*pairs[n])]
        # Where a property is judged, or within other tolerances, other numbers may well pass.
        self.excused = frozenset(n for n in self.failing if self.places[n][0] not in failed)
        self.deviations = frozenset().union(*(deviations(*pair) for pair in pairs))
        self.dtypes = self.dtypes_of(records)

    def match(self, *found: "_Suspect", certain: bool = True) -> MistakeMatch:
        """The match with these mistakes; not certain if, on some run, one has a dtype that the
        answer does not have there."""
        theirs = frozenset[Deviation]().union(*(suspect.deviations for suspect in found))
        other_problems = self.deviations - theirs
        for mine, *others in zip(self.dtypes, *(s.dtypes for s in found), strict=True):
            for deviation in mine.difference(*others):
                other_problems |= {("dtypes", deviation[1]) if deviation in theirs else deviation}
        sure = certain and not any(suspect.lacks_a_dtype for suspect in found)
        return MistakeMatch(tuple(suspect.mistake for suspect in found), sure, other_problems)

    def dtypes_of(self, rows: Sequence[Sequence[Record]]) -> list[frozenset[Deviation]]:
        """On each run, including random ones, the dtypes that the reference does not have."""
        pairs = zip(chain(*rows), chain(*self.by_row[2]), strict=True)
        return [frozenset(s for s in deviations(*pair) if s[0] == "dtype") for pair in pairs]

    def flat(self, rows: Sequence[Sequence[Record]]) -> Flat:
        return [rows[i][j] for i, j in self.places]

    @cached_property
    def first_looks(self) -> list[int]:
        """The first failing run of each of the first rows that fail."""
        firsts: dict[int, int] = {}
        for n in self.failing:
            firsts.setdefault(self.places[n][0], n)
        return [*firsts.values()][: self.search_depth]


class _Suspect:
    """A known mistake, and the runs on which the answer does the same."""

    def __init__(self, scene: _Scene, mistake: Mistake):
        self.scene, self.mistake = scene, mistake

    def record(self, n: int) -> Record:
        i, j = self.scene.places[n]
        return self.mistake.records[i][j]

    def like_mine(self, n: int) -> bool:
        return same_values(self.scene.mine[n], self.record(n), self.scene.right[n])

    @cached_property
    def possible(self) -> bool:
        looks = self.scene.first_looks
        return not looks or any(map(self.like_mine, looks))

    @cached_property
    def hits(self) -> frozenset[int]:
        """The failing runs on which the answer does the same as the mistake."""
        failing = self.scene.failing if self.possible else ()
        return frozenset(n for n in failing if self.like_mine(n))

    @cached_property
    def explains_the_first(self) -> bool:
        """Whether it does the same on a run of the first aspect that fails, of which it is told."""
        first = min(self.scene.failed, default=-1)
        runs = [n for n in self.scene.failing if self.scene.places[n][0] == first]
        return not runs or any(n in self.hits for n in runs)

    @cached_property
    def telling(self) -> frozenset[int]:
        """The runs on which the mistake differs from a right answer."""
        right = self.scene.right
        return frozenset(n for n in self.scene.known if not same_values(self.record(n), right[n]))

    @cached_property
    def is_beside(self) -> bool:
        """Whether all its values are right, and only its deviations are not."""
        right = self.scene.right
        same = all(same_values(self.record(n), right[n]) for n in self.scene.known)
        return same and bool(self.deviations)

    def deviations_of(self, n: int) -> frozenset[Deviation]:
        return deviations(self.record(n), self.scene.right[n])

    @cached_property
    def deviations(self) -> frozenset[Deviation]:
        """Its deviations; where autograd stopped the answer, only if it was stopped, too."""
        stopped = (n for n in range(len(self.scene.mine)) if stopped_by_autograd(self.record(n)))
        return frozenset().union(*map(self.deviations_of, {*self.scene.known, *stopped}))

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind for kind, _ in self.deviations)

    @cached_property
    def cuts_alike(self) -> bool:
        """Whether it cuts no gradient, or in every run those that the answer cuts."""
        return "gradient" not in self.kinds or self.cuts_alike_at(self.scene.places)

    def cuts_alike_at(self, places: Iterable[tuple[int, int]]) -> bool:
        """Whether it cuts the gradients that the answer cuts in these runs, which may be random."""
        _, mine, right = self.scene.by_row
        trios = [(mine[i][j], self.mistake.records[i][j], right[i][j]) for i, j in places]
        other = (kind for a, b, c in trios for kind, _ in deviations(a, c) ^ deviations(b, c))
        return "gradient" not in other

    @cached_property
    def dtypes(self) -> list[frozenset[Deviation]]:
        return self.scene.dtypes_of(self.mistake.records)

    @cached_property
    def lacks_a_dtype(self) -> bool:
        """Whether the answer keeps a dtype on some run on which the mistake does not."""
        _, mine, _ = self.scene.by_row
        rows = zip(chain(*mine), self.dtypes, self.scene.dtypes, strict=True)
        return any(theirs - ours for record, theirs, ours in rows if record.raised is None)

    @cached_property
    def strangeness(self) -> int:
        """The number of runs on which the answer's deviations of such kinds are not its own."""
        mine = (deviations(*pair) for pair in zip(self.scene.mine, self.scene.right, strict=True))
        told = [frozenset(d for d in found if d[0] in self.kinds) for found in mine]
        return sum(found != self.deviations_of(n) for n, found in enumerate(told))

    @cached_property
    def fits_everywhere(self) -> bool:
        """Whether all values agree, and the answer has all deviations that the mistake has.

        Where the answer passes with other numbers, the mistake may have those of a right answer.
        """
        excused, others = self.scene.excused, frozenset(self.scene.failing) - self.hits
        if not self.possible or self.hits <= excused or not others <= excused:
            return False
        return self.telling == self.hits and self.deviations <= self.scene.deviations

    @cached_property
    def strong(self) -> frozenset[int]:
        """The hits that are unlikely by chance: different numbers, and no exception."""
        right = self.scene.right
        return frozenset(n for n in self.hits if says_much(self.record(n), right[n]))


def _of_deviations(
    scene: _Scene, suspects: Sequence[_Suspect], failed: Failed
) -> MistakeMatch | None:
    """Mistakes that show in the deviations alone: one, or two that together explain all deviations.

    The answer must fail where they fail, and have exactly their deviations of the same kinds; of
    gradients, the same must be cut in each run: two causes of one kind deny each other.
    """
    if {*scene.failing} - scene.excused or not scene.deviations:
        return None
    found = (s for s in suspects if s.is_beside and s.cuts_alike)
    found = (s for s in found if failed(s.mistake.records) <= scene.failed)
    beside = sorted(found, key=lambda s: s.strangeness)
    for one, other in combinations(beside, 2):
        if one.deviations | other.deviations == scene.deviations and not one.kinds & other.kinds:
            return scene.match(one, other)
    for one in beside:
        if one.deviations == {d for d in scene.deviations if d[0] in one.kinds}:
            return scene.match(one)
    return None


def _likely(scene: _Scene, suspects: Sequence[_Suspect], failed: Failed) -> MistakeMatch | None:
    """The mistake that most of the failing runs agree with, if nothing speaks against it."""
    failing = frozenset(scene.failing)
    most = _STRAYS * len(scene.places)
    found = [s for s in suspects if len(failing - s.hits) <= most and _is_likely(scene, s)]
    rows = {s.mistake.name: failed(s.mistake.records) for s in found}
    found = [s for s in found if rows[s.mistake.name] <= scene.failed and s.explains_the_first]
    if not found:
        return None

    def oddity(suspect: _Suspect) -> tuple[int, int]:
        return len(failing - suspect.hits), len(scene.failed ^ rows[suspect.mistake.name])

    best = min(found, key=oddity)
    rivals = [s for s in found if oddity(s)[0] == oddity(best)[0]]
    if any(s.hits != best.hits for s in rivals):
        return None  # several explain equally much, each something different
    return scene.match(best, certain=False)


def _not_compared(
    scene: _Scene, suspects: Sequence[_Suspect], failed: Failed
) -> MistakeMatch | None:
    """The one mistake that shows only where values are not compared, with deviations, too.

    These are aspects judged by random draws, and those on a simulated device.
    """
    runs, records, expected = scene.by_row
    there = frozenset(i for i, row in enumerate(runs) if any(run.random for run in row))
    mine = scene.failed & there
    if {*scene.failing} - scene.excused or not scene.deviations or not mine:
        return None
    silent = (s for s in suspects if not s.telling and not s.deviations and not s.lacks_a_dtype)
    found = [s for s in silent if failed(s.mistake.records) == mine]
    if any(kind == "gradient" for kind, _ in scene.deviations):  # others may fail without it
        at_random = [(i, j) for i in there for j in range(len(runs[i]))]
        found = [s for s in found if s.cuts_alike_at(at_random)]
    if len(found) > 1:  # a simulated device says in its own words what it refuses
        places = [(i, j) for i in mine for j, run in enumerate(runs[i]) if run.simulated]
        found = [
            s
            for s in found
            if all(
                same_values(records[i][j], s.mistake.records[i][j], expected[i][j])
                for i, j in places
            )
        ]
    return scene.match(found[0], certain=False) if len(found) == 1 else None


def _is_likely(scene: _Scene, suspect: _Suspect) -> bool:
    """Whether the answer agrees with a mistake on enough of the runs that tell it from a right one,
    and is right on none of them."""
    telling = suspect.telling if suspect.strong else frozenset()
    shown = telling <= frozenset(scene.failing) and suspect.deviations <= scene.deviations
    if not telling or not shown:
        return False
    enough = len(suspect.hits & telling) >= max(1, _ENOUGH * len(telling))
    return enough and len(suspect.strong) >= min(2, len(telling))


def _two(scene: _Scene, suspects: Sequence[_Suspect]) -> MistakeMatch | None:
    """Two mistakes that show in different runs, and together in exactly those that fail.

    Where both should show, numbers that one of them gives alone speak against the other.
    """
    failing = frozenset(scene.failing)
    parts = [s for s in suspects if s.strong and s.telling <= failing]
    parts = [s for s in parts if s.deviations <= scene.deviations]
    found = []
    for one, other in combinations(parts, 2):
        alone, there = one.telling - other.telling, other.telling - one.telling
        shown = alone <= one.hits and there <= other.hits
        proof = alone & one.strong and there & other.strong
        both = one.telling & other.telling
        hidden = both & (one.strong ^ other.strong)
        if shown and proof and not hidden and one.telling | other.telling == failing:
            found.append((len(both), one, other))
    fewest = min((shared for shared, *_ in found), default=0)
    best = [pair for shared, *pair in found if shared == fewest]
    return scene.match(*best[0], certain=False) if len(best) == 1 else None


# --- one record beside another ------------------------------------------------------------------


def same_values(a: Record, b: Record, right: Record | None = None) -> bool:
    """Whether two records hold the same values, whatever else they hold.

    A gradient that only one of them has does not count here; nor does the class of an exception if
    the reference raises one, too. Without `right`, `b` is the reference.
    """
    if a.raised is not None and b.raised is not None:
        return (right or b).raised is not None or same_failure(a.raised, b.raised)
    if a.raised is not None or b.raised is not None or len(a.values) != len(b.values):
        return False
    if not all(agrees(x, _as_rough_as(x, y)) for x, y in zip(a.values, b.values, strict=True)):
        return False
    both = [
        (a.gradients[name], slope)
        for name, slope in b.gradients.items()
        if slope is not None and a.gradients.get(name) is not None
    ]
    return all(agrees(x, _as_rough_as(x, y), slack=GRADIENT_FACTOR) for x, y in both)


def same_failure(one: RaisedException, other: RaisedException) -> bool:
    """Whether two exceptions are alike; where parameters do not fit, apart from the answer's own
    names for them."""
    if (one.types[0], one.during) != (other.types[0], other.during):
        return False
    return one.during != "load" or _mismatch(one.message) == _mismatch(other.message)


def _mismatch(message: str) -> list[str]:
    parts = message.split("; ")
    own = ("your ", "expected no ")
    return [_NAME.sub("", part) if part.startswith(own) else part for part in parts]


def _as_rough_as(value: Value, known: Value) -> Value:
    """The known value, to be compared as roughly as the value's own dtype demands."""
    if isinstance(value, Array) and isinstance(known, Array):
        rough = [d for d in _FINEST_FIRST if d in (value.dtype, known.dtype)]
        return replace(known, dtype=rough[-1]) if len(rough) == 2 else known
    both = isinstance(value, tuple | list) and isinstance(known, tuple | list)
    if both and len(value) == len(known):
        return type(known)(_as_rough_as(x, y) for x, y in zip(value, known, strict=True))
    return as_if_rounded(known)
