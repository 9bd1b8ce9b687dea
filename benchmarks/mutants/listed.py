"""The mutants that are still right answers, as `equivalent.toml` lists them, and the score."""

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.mutants.judging import Judged, Outcome
from benchmarks.mutants.making import Mutant

HERE = Path(__file__).parent
EQUIVALENT = HERE / "equivalent.toml"
RESULT = HERE / "result.json"
EVERY = "every "  # and an operator's name: all that it makes of the exercise and that survives

Listed = Mapping[str, str]  # a mutant's name, or `every OPERATOR`, and the reason


def equivalents() -> dict[str, dict[str, str]]:
    """For each exercise, the mutants that are still right answers, each with the reason.

    Raises `ValueError` for one that is listed twice.
    """
    listed: dict[str, dict[str, str]] = {}
    for group in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["right"]:
        for exercise, names in group.items():
            for name in names if exercise != "reason" else ():
                if name in listed.setdefault(exercise, {}):
                    raise ValueError(f"{exercise}: {name} is listed twice")
                listed[exercise][name] = group["reason"]
    return listed


def reason(mutant: Mutant, listed: Listed) -> str | None:
    """Why a mutant is still right; None if it is not listed."""
    return listed.get(mutant.name) or listed.get(EVERY + mutant.operator)


def problems(mutants: Sequence[Mutant], found: Sequence[Judged], listed: Listed) -> Iterator[str]:
    """Where the outcomes of an exercise's mutants disagree with the list of equivalents."""
    pairs = [*zip(mutants, found, strict=True)]
    survived = [m for m, j in pairs if j.outcome is Outcome.SURVIVED]
    for m in survived:
        if not reason(m, listed):
            yield f"keeps full marks ({m.operator}): {m.name}"
    kept = {name for m in survived for name in (m.name, EVERY + m.operator)}
    made = {m.name for m in mutants}
    for name in listed:
        if name not in kept:
            what = "loses marks" if name in made else "is not a mutant"
            yield f"is listed as equivalent, and {what}: {name}"


def counts(mutants: Sequence[Mutant], found: Sequence[Judged], listed: Listed) -> dict[str, int]:
    """How many there are of each kind. One that never runs does not count as made."""
    kinds = Counter(j.outcome for j in found)
    survived = [m for m, j in zip(mutants, found, strict=True) if j.outcome is Outcome.SURVIVED]
    equivalent = sum(reason(m, listed) is not None for m in survived)
    return {
        "made": len(found) - kinds[Outcome.BROKEN],
        "caught": kinds[Outcome.CAUGHT] + kinds[Outcome.ENDLESS],
        "named": sum(j.mistake is not None for j in found),
        "equivalent": equivalent,
        "survived": len(survived) - equivalent,
        "broken": kinds[Outcome.BROKEN],
    }


def row(mutants: Sequence[Mutant], found: Sequence[Judged], listed: Listed) -> dict[str, Any]:
    """An exercise's line of the result: the counts, and the mistakes mutants were taken for."""
    mistakes = Counter(j.mistake for j in found if j.mistake is not None)
    return {
        "digest": digest(mutants),
        **counts(mutants, found, listed),
        "as": dict(sorted(mistakes.items())),
    }


def digest(mutants: Sequence[Mutant]) -> str:
    """A fingerprint of the mutants of an exercise, to notice a score that is not theirs."""
    text = "\0".join(f"{m.operator}\0{m.source}" for m in mutants)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(path: Path = RESULT) -> dict[str, dict[str, Any]]:
    """The stored result, by exercise; empty if there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def write(rows: Mapping[str, Mapping[str, Any]], path: Path = RESULT) -> None:
    """Store the result, a line for each exercise."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
