"""The mutants that are still right answers, as `equivalent.toml` lists them, and the score."""

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.mutants.judging import Judged, Outcome
from benchmarks.mutants.making import Mutant

HERE = Path(__file__).parent
EQUIVALENT = HERE / "equivalent.toml"
RESULT = HERE / "result.json"


def equivalents(path: Path = EQUIVALENT) -> dict[str, dict[str, str]]:
    """For each exercise, the mutants that are still right, and why.

    Raises `ValueError` for a mutant that is listed twice, or without a reason.
    """
    listed: dict[str, dict[str, str]] = {}
    for exercise, reasons in tomllib.loads(path.read_text(encoding="utf-8")).items():
        found = listed.setdefault(exercise, {})
        for reason, names in reasons.items():
            for name in names:
                if name in found or not reason.strip():
                    raise ValueError(f"{exercise}: {name} is listed twice, or without a reason")
                found[name] = reason
    return listed


def problems(
    exercise: str, mutants: Sequence[Mutant], found: Sequence[Judged], listed: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong between the outcomes of an exercise's mutants and the list of equivalents."""
    survived = {m.name for m, j in zip(mutants, found, strict=True) if j.outcome is SURVIVED}
    for m in mutants:
        if m.name in survived and m.name not in listed:
            yield f"{exercise}: keeps full marks ({m.operator}): {m.name}"
        elif m.name in listed and m.name not in survived:
            yield f"{exercise}: listed as equivalent, and loses marks: {m.name}"
    made = {m.name for m in mutants}
    for name in listed:
        if name not in made:
            yield f"{exercise}: listed as equivalent, and is no mutant: {name}"


SURVIVED = Outcome.SURVIVED


def counts(
    mutants: Sequence[Mutant], found: Sequence[Judged], listed: Mapping[str, str]
) -> dict[str, int]:
    """How many there are of each kind; those that never run do not count as made."""
    kinds = Counter(j.outcome for j in found)
    equivalent = sum(
        j.outcome is SURVIVED and m.name in listed for m, j in zip(mutants, found, strict=True)
    )
    return {
        "made": len(found) - kinds[Outcome.BROKEN],
        "caught": kinds[Outcome.CAUGHT] + kinds[Outcome.ENDLESS],
        "named": sum(j.mistake is not None for j in found),
        "equivalent": equivalent,
        "survived": kinds[SURVIVED] - equivalent,
        "broken": kinds[Outcome.BROKEN],
    }


def digest(mutants: Sequence[Mutant]) -> str:
    """A fingerprint of the mutants of an exercise, to notice a score that is not theirs."""
    text = "\0".join(f"{m.operator}\0{m.source}" for m in mutants)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write(rows: Mapping[str, Mapping], path: Path = RESULT) -> None:
    """Store the result, a line an exercise."""
    lines = (f"{json.dumps(n)}: {json.dumps(row, ensure_ascii=False)}" for n, row in rows.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
