"""The judgement on a submission: its verdicts and whatever else is worth knowing, kept as JSON.

The JSON is what the gradebook keeps (`tables`); marks, comments, report and feedback are all made
from it, and nothing is read back from a notebook.

TRUST BOUNDARY. A judgement is made by trusted code alone, and no student's process sees one. Its
messages and notes may quote what students wrote: code that shows them must make them inert.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from autograder.sandbox.outputs import Output
from autograder.student.engine.verdict import AspectVerdict, Verdict

GRADED, UNUSABLE, FAILED = "graded", "unusable", "failed"


@dataclass(frozen=True)
class Judgement:
    """Verdicts by exercise. `status` is graded, or unusable for a `reason`: a clear zero.

    `outputs`, by the number of the code cell, are for the notebook; they are not kept.
    """

    status: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    seconds: float = 0.0
    reason: str | None = None
    notes: tuple[str, ...] = ()
    outputs: Mapping[int, list[Output]] = field(default_factory=dict)

    def to_json(self) -> str:
        """The judgement as JSON in ASCII that every parser and every database accepts."""
        tree = asdict(replace(self, outputs={}))
        del tree["outputs"]
        return json.dumps(_stored(tree), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Judgement":
        """The judgement that `to_json` has written. Raises `ValueError` for another form."""
        try:
            tree = json.loads(text)
            verdicts = {name: _verdict(verdict) for name, verdict in tree["verdicts"].items()}
            return cls(**tree | {"verdicts": verdicts, "notes": tuple(tree["notes"])})
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not a judgement of this version ({error})") from None


def _stored(value: object) -> object:
    """A tree in JSON's form; a number that is not finite becomes its name."""
    if isinstance(value, Mapping):
        return {str(key): _stored(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_stored(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _verdict(tree: Mapping[str, Any]) -> Verdict:
    aspects = tuple(AspectVerdict(**_with_numbers(aspect)) for aspect in tree["aspects"])
    pairs = tuple((name, place) for name, place in tree["forbidden_operations"])
    names = tuple(tree["suspected_mistakes"])
    lists = {"aspects": aspects, "forbidden_operations": pairs, "suspected_mistakes": names}
    return Verdict(**{**tree, **lists})


def _with_numbers(aspect: Mapping[str, Any]) -> dict[str, Any]:
    measured = {name: aspect[name] for name in ("error", "tolerance")}
    return {**aspect, **{k: v if v is None else float(v) for k, v in measured.items()}}


def finite(value: Any) -> Any:
    """A tree for scripts to read, with null in place of numbers that are not finite."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
