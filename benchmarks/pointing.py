"""How well `check` points at a mistake: the bank's own mistakes, as if none were known.

Run: python -m benchmarks.pointing [SLUG …] [--verbose]. Renews these chapters, or all, in
`pointing.json`.

What is known of right answers comes from the reference and the bank's right answers alone, so a
mistake need not be taken out of anything but the list of names. Where the text of a right answer
was changed is known, so whether a pointer is right is not a matter of opinion. It is

* right, if a line that it shows was changed; where lines are gone, those beside the gap count;
* right, too, if all that fails is that the answer leaves its inputs' device, and the aspect's own
  message shows a changed line: that message is a pointer itself;
* near, if it is on the line before or after;
* wrong otherwise; nothing, if there is no pointer.

A mistake made by changing a function that is itself wrong is left out.
"""

import contextlib
import difflib
import io
import json
import statistics
import sys
import time
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from autograder.bank import Bank, banks
from autograder.bank.change import plain_source, with_code
from autograder.judge.reference import expected as expected_records
from autograder.student import course, pointing
from autograder.student.check import verdict_on
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.locator import trace
from autograder.student.engine.locator.locate import Divergence
from autograder.student.engine.probe import preserve_generators, probe_within
from autograder.student.engine.runs import Exercise
from autograder.student.engine.verdict import CORRECT, Verdict, decide
from autograder.student.expected import fixed_runs
from autograder.student.pointing import describe_place

RESULT = Path(__file__).with_suffix(".json")
OUTCOMES = ("right", "near", "wrong", "nothing")


@cache
def is_right(answer: Any, exercise: str) -> bool:
    """Whether an answer earns full marks."""
    with contextlib.redirect_stdout(io.StringIO()):
        return verdict_on(answer, exercise).verdict == CORRECT


def base_of(bank: Bank, name: str) -> str | None:
    """The text of the right answer that a mistake was made from; None if it was a wrong one."""
    base = name
    while base in bank.declared:
        base = bank.declared[base].of or bank.exercise
    for scope in (bank.names, vars(bank.references)):
        if base in scope:
            known = scope[base] is getattr(bank.references, bank.exercise)
            right = known or is_right(scope[base], bank.exercise)
            return plain_source(scope[base]) if right else None
    return None


def changed_lines(before: str, after: str) -> set[int]:
    """The numbers of the lines of a text that are new, and of those beside a gap."""
    lines = set[int]()
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if tag in ("replace", "insert"):
            lines |= set(range(start + 1, end + 1))
        elif tag == "delete":
            lines |= {start, start + 1}
    empty = {n for n in lines for line in after.splitlines()[n - 1 : n] if not line.strip()}
    return lines | {n + d for n in empty for d in (-1, 1)}


def outcome(place: Divergence | None, text: str, changed: set[int]) -> str:
    """Whether a place is right."""
    if place is None:
        return "nothing"
    body = text.splitlines()[1:]
    shown = set[int]()
    for site in pointing.shown_at(place):
        if [line.rstrip("\n") for line in site.lines[1:]] == body:
            shown |= set(range(site.node.lineno, site.node.end_lineno + 1))
    if shown & changed:
        return "right"
    return "near" if {n + d for n in shown for d in (-1, 1)} & changed else "wrong"


def shown_by_the_aspect(verdict: Verdict, text: str, changed: set[int]) -> bool:
    """Whether the message of the one aspect that fails shows a changed line."""
    failed = [aspect for aspect in verdict.aspects if not aspect.passed]
    lines = (line.strip() for n, line in enumerate(text.splitlines(), 1) if n in changed)
    told = "".join((failed[0].message or "").split()) if len(failed) == 1 else ""
    return any(line and f"({''.join(line.split())})" in told for line in lines)


def of_exercise(slug: str, exercise: Exercise, verbose: bool) -> tuple[Counter, list[float], list]:
    """Outcomes, seconds that pointing took, and the share of the check that this was."""
    bank, runs = banks(slug)[exercise.name], fixed_runs(exercise)
    expected = expected_records(slug, exercise.name, runs)
    found, seconds, shares = Counter(), [], []
    for name, answer in bank.mistakes.items():
        base = base_of(bank, name) if name in bank.changed else None
        if base is None:
            found["left out"] += 1
            continue
        start = time.process_time()
        records = [[probe_within(answer, run) for run in row] for row in runs]
        verdict = decide(exercise, runs, records, expected)
        middle = time.process_time()
        place = pointing.place_of(answer, verdict, runs, records, expected)
        end = time.process_time()
        seconds.append(end - middle)
        shares.append((end - middle) / (end - start))
        text = with_code(*bank.changed[name], name)
        changed = changed_lines(base, text)
        result = outcome(place, text, changed)
        if place is None and shown_by_the_aspect(verdict, text, changed):
            result = "right"
        found[result] += 1
        if verbose and result != "right":
            print(f"--- {exercise.name} {name}: {result} {seconds[-1]:.2f} s, {sorted(changed)}")
            print(
                f"{place.kind}, line {place.site.node.lineno}\n{describe_place(place)}"
                if place
                else "-"
            )
            lines = text.splitlines()
            print(
                *(f"      {n} {lines[n - 1]}" for n in sorted(changed) if 0 < n <= len(lines)),
                sep="\n",
            )
    return found, seconds, shares


def main() -> None:
    warnings.simplefilter("ignore")
    trace.WAITING = 1000.0  # only CPU time counts, so that a busy machine finds as much
    asked = [a for a in sys.argv[1:] if not a.startswith("-")]
    verbose, result = "--verbose" in sys.argv, json.loads(RESULT.read_text(encoding="utf-8"))
    for slug in asked or chapters():
        total, seconds, shares = Counter(), [], []
        for exercise in (e for e in exercises_of(slug) if e.recorded):
            with preserve_generators(), np.errstate(all="ignore"):
                found, spent, parts = of_exercise(slug, exercise, verbose)
            print(f"{exercise.name:30}", dict(found), flush=True)
            total, seconds, shares = total + found, seconds + spent, shares + parts
        files = course.folder(f"expected/{slug}").glob("*.paths")
        result[slug] = {
            **{name: total[name] for name in (*OUTCOMES, "left out")},
            "milliseconds, median": round(1000 * statistics.median(seconds)),
            "milliseconds, most": round(1000 * max(seconds)),
            "share of a check, median": round(statistics.median(shares), 2),
            "bytes": sum(file.stat().st_size for file in files),
        }
        print(slug, result[slug], flush=True)
        RESULT.write_text(json.dumps(told_of(result), indent=1) + "\n", encoding="utf-8")
    print(told_of(result)["all"])


def told_of(result: dict[str, dict]) -> dict[str, dict]:
    """The results by chapter, in their order, and the sums."""
    ordered = {slug: result[slug] for slug in chapters() if slug in result}
    counted = (*OUTCOMES, "left out", "bytes")
    return ordered | {"all": {n: sum(part[n] for part in ordered.values()) for n in counted}}


if __name__ == "__main__":
    main()
