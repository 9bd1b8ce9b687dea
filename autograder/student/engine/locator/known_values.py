"""What is known about the values that right answers pass through on one run: keys, no values.

TRUST BOUNDARY. Public. A key can be met again, but nothing can be computed from it (see
`signatures`). Of each value it is also known which dtypes it had, whether a gradient could reach
it, and, in a small set of buckets, which operations came next; neither names nor order.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache

from autograder.student.engine.locator.signatures import ValueSignature
from autograder.student.engine.locator.trace import Event

DTYPES = ("float64", "float32", "int64", "bool", "bfloat16", "float16", "int32", "uint8")
BUCKETS = 32
MADE = 256  # buckets of operations and the shapes that they give
_ALIKE = {  # operations of one kind, by the names they have
    "product": "MatMult matmul mm bmm dot einsum tensordot mv inner outer vdot vecdot baddbmm",
    "sum": "Add add Sub sub subtract add_ sub_",
    "factor": "Mult mul multiply mul_ Div div divide true_divide div_",
    "exponential": "exp exp_ softmax log_softmax softmin logsumexp",
    "power": "Pow pow square sqrt rsqrt",
    "total": "sum mean nansum average var std cumsum",
    "order": "transpose permute swapaxes movedim mT T moveaxis",
    "form": "reshape view flatten unflatten squeeze unsqueeze Subscript expand chunk split",
    "fill": "masked_fill masked_fill_ where",
    "look": "max amax min amin argmax isneginf isinf isnan any all Compare eq ne lt le gt ge",
    "sign": "USub neg neg_ negative",
    "ranks": "sort argsort topk",
    "kind": "to float double half type astype type_as asarray",
}


@cache
def _kinds() -> dict[str, str]:
    return {name: kind for kind, names in _ALIKE.items() for name in names.split()}


def kind_of(operation: str) -> str:
    """What operations of its kind are called here."""
    return _kinds().get(operation, operation)


def bucket(operation: str, key: int) -> int:
    """Which of the buckets an operation on a value falls into."""
    digest = hashlib.blake2b(f"{kind_of(operation)} {key}".encode(), digest_size=2).digest()
    return int.from_bytes(digest, "little") % BUCKETS


def made_bucket(operation: str, found: ValueSignature) -> int:
    """One bit for an operation and the shape of its result."""
    digest = hashlib.blake2b(f"{kind_of(operation)} {found.shape}".encode(), digest_size=2).digest()
    return 1 << int.from_bytes(digest, "little") % MADE


@dataclass(frozen=True)
class KeyUse:
    """What is known about one value: dtypes and next operations as sets of bits."""

    dtypes: int = 0
    followed: int = 0
    cut: bool = False  # some right answer has it without a gradient

    def __or__(self, other: "KeyUse") -> "KeyUse":
        both = self.dtypes | other.dtypes, self.followed | other.followed
        return KeyUse(*both, self.cut or other.cut)


@dataclass(frozen=True)
class KnownValues:
    """The values of right answers on one run, by key."""

    same: Mapping[int, KeyUse]
    loose: frozenset[int]
    rays: frozenset[int]
    made: int = 0  # by which operations, into which shapes: a set of bits

    def mark(self, found: ValueSignature) -> KeyUse | None:
        """What is known about a value; None if no right answer has it."""
        marks = [self.same[key] for key in found.all_keys() if key in self.same]
        return marks[0] if marks else None

    def key(self, found: ValueSignature) -> int | None:
        return next((key for key in found.all_keys() if key in self.same), None)

    def with_axes_kept(self, found: ValueSignature) -> bool:
        """Whether right answers have a value without its axes of length 1, and nowhere with one."""
        without = tuple(n for n in found.shape if n != 1)
        if without == found.shape:
            return False
        places = range(len(without) + 1)
        others = ((*without[:i], 1, *without[i:]) for i in places)
        known = (self.mark(replace(found, shape=shape)) for shape in others)
        return self.mark(replace(found, shape=without)) is not None and not any(known)

    def with_axes_joined(self, found: ValueSignature, axes: int) -> bool:
        """Whether right answers have a value in which two neighbouring axes are one, and which
        still has more than so many."""
        shape = found.shape
        pairs = range(len(shape) - 1) if len(shape) - 1 > axes else ()
        joined = ((*shape[:i], shape[i] * shape[i + 1], *shape[i + 2 :]) for i in pairs)
        return any(self.mark(replace(found, shape=form)) is not None for form in joined)

    def is_reordered(self, found: ValueSignature) -> bool:
        return any(key in self.loose for key in found.loose_keys())

    def multiple(self, found: ValueSignature) -> bool:
        return any(key in self.rays for key in found.ray_keys())

    def nearly(self, found: ValueSignature) -> bool:
        """Whether right answers have nearly these numbers, slightly larger or smaller."""
        return any(key in self.same for key in found.keys_of_neighbours())


def known_from(traces: Iterable[list[Event]]) -> KnownValues:
    """What is known once some right answers have been traced on a run."""
    same: dict[int, KeyUse] = {}
    loose, rays, made = set(), set(), 0
    for events in traces:
        marks: dict[int, KeyUse] = {}
        keys: list[int | None] = []
        for event in events:
            found = event.signature
            key = None if found is None else _key_in(found, same)
            keys.append(key)
            if found is None or key is None:
                continue
            if event.sources:
                made |= made_bucket(event.site.operation, found)
            before = marks.get(key, KeyUse(cut=True))
            cut = before.cut and not event.grad  # at no place in this answer
            marks[key] = KeyUse(before.dtypes | _bit(event.dtype), before.followed, cut)
            if not found.plain and math.prod(found.shape) > 1 and not found.even:
                loose.add(found.loose_key)
                rays.add(found.ray_key)
            for came in {k for source in event.sources if (k := keys[source]) is not None}:
                bit = 1 << bucket(event.site.operation, came)
                marks[came] = replace(marks[came], followed=marks[came].followed | bit)
        for key, mark in marks.items():
            same[key] = same[key] | mark if key in same else mark
    return KnownValues(same, frozenset(loose), frozenset(rays), made)


def _key_in(found: ValueSignature, same: Mapping[int, KeyUse]) -> int:
    """The key under which a value is kept already, or else its own."""
    return next((key for key in found.all_keys() if key in same), found.key)


def _bit(dtype: str) -> int:
    return 1 << DTYPES.index(dtype) if dtype in DTYPES else 0


def has_dtype(mark: KeyUse, dtype: str) -> bool:
    return bool(mark.dtypes & _bit(dtype)) or dtype not in DTYPES
