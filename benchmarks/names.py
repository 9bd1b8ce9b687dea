"""How often a known mistake is named although something else is also wrong with the answer.

Each known mistake is composed with a second slip: a result in float64, a result cut down to whole
numbers where the input has them, a generator seeded or a mode left changed, an argument changed in
place, a result detached, another class of exception; and with a second change of the same
reference, where both can be made. What `check` names is counted.

Run: python -m benchmarks.names [--only NAME] [--slips 30] [--pairs 20]. Writes names.json.
"""

import argparse
import functools
import json
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from autograder.bank import Bank, banks
from autograder.bank.change import apply_edits, build, with_code
from autograder.judge.reference import reference
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.deviations import deviations
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.mistakes.match import same_values
from autograder.student.engine.probe import preserve_generators, probe_within
from autograder.student.engine.runs import Exercise
from autograder.student.engine.verdict import WRONG, Verdict, decide
from autograder.student.expected import expected_of, fixed_runs

RESULT = Path(__file__).with_name("names.json")
Answer = Callable[..., Any]


# --- second slips -------------------------------------------------------------------------------


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """A result with every array or tensor in it changed."""
    if isinstance(value, np.ndarray | np.generic | torch.Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(mapped(change, item) for item in value)
    return value


def _is_float(array: Any) -> bool:
    if isinstance(array, torch.Tensor):
        return array.is_floating_point()
    return array.dtype.kind == "f"


def _double(array: Any) -> Any:
    if not _is_float(array):
        return array
    return array.double() if isinstance(array, torch.Tensor) else array.astype(np.float64)


def arrays_in(arguments: Any) -> Iterator[Any]:
    for value in arguments:
        if isinstance(value, np.ndarray | torch.Tensor):
            yield value
        elif isinstance(value, tuple | list):
            yield from arrays_in(value)


def in_float64(call: Callable[[], Any], arguments: list) -> Any:
    return mapped(_double, call())


def whole_numbers(call: Callable[[], Any], arguments: list) -> Any:
    """As if the result were written into an array of an integer argument's dtype."""
    result = call()
    kinds = [a.dtype for a in arrays_in(arguments) if isinstance(a, np.ndarray)]
    if not kinds or any(dtype.kind != "i" for dtype in kinds):
        return result
    with np.errstate(invalid="ignore"):
        return mapped(lambda a: a.astype(kinds[0]) if a.dtype.kind == "f" else a, result)


def state_left(call: Callable[[], Any], arguments: list) -> Any:
    """A module that is passed in changes its mode; without one, a generator is seeded."""
    modules = [a for a in arguments if isinstance(a, torch.nn.Module)]
    for module in modules:
        module.train(not module.training)
    result = call()
    if not modules:
        np.random.seed(0)
        torch.manual_seed(0)
    return result


def argument_changed(call: Callable[[], Any], arguments: list) -> Any:
    result = mapped(lambda a: a.clone() if isinstance(a, torch.Tensor) else a.copy(), call())
    first = next(filter(_is_float, arrays_in(arguments)), None)
    if first is not None:
        with torch.no_grad():
            first *= 2
    return result


def detached(call: Callable[[], Any], arguments: list) -> Any:
    return mapped(lambda a: a.detach() if isinstance(a, torch.Tensor) else a, call())


def another_error(call: Callable[[], Any], arguments: list) -> Any:
    try:
        return call()
    except (ValueError, TypeError) as error:
        raise RuntimeError(str(error)) from None


SLIPS = (in_float64, whole_numbers, state_left, argument_changed, detached, another_error)


def with_slip(answer: Answer, slip: Callable[[Callable[[], Any], list], Any]) -> Answer:
    """The answer with a second slip; for a class, in its `forward`."""
    if isinstance(answer, type):

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            inner = functools.partial(answer.forward, self, *args, **kwargs)
            return slip(inner, [*args, *kwargs.values()])

        return type(answer.__name__, (answer,), {"forward": forward})

    @functools.wraps(answer)
    def slipped(*args: Any, **kwargs: Any) -> Any:
        return slip(functools.partial(answer, *args, **kwargs), [*args, *kwargs.values()])

    return slipped


def both(bank: Bank, one: str, other: str) -> tuple[Answer, set[str]] | None:
    """The reference with the changes of two mistakes; None if they do not fit together.

    With it come the names that fit it: the two, and that of any mistake with the same code.
    """
    first, second = bank.declared.get(one), bank.declared.get(other)
    if first is None or second is None or first.of is not None or second.of is not None:
        return None
    what = f"{one} and {other}"
    try:
        source = bank._source(bank.exercise, what)
        text = apply_edits(apply_edits(source, first.edits, what), second.edits, what)
        before = "\n".join(filter(None, (first.before, second.before)))
        after = "\n".join(filter(None, (first.after, second.after)))
        text = with_code(text, before, after, what)
        names = {**bank.names, **vars(bank.references)}
        same = {name for name in bank.changed if bank._source(name, what) == text}
        return build(f"{one}_with_{other}", "…", text, source, names, what), {one, other} | same
    except (ValueError, KeyError):
        return None


# --- what is named ------------------------------------------------------------------------------


class Scene:
    """An exercise as `check` sees it: its inputs, and what reference and mistakes give on them."""

    def __init__(self, slug: str, exercise: Exercise):
        self.exercise, self.bank = exercise, banks(slug)[exercise.name]
        self.runs, entry = fixed_runs(exercise), expected_of(slug)[exercise.name]
        self.right, self.known = entry.reference, entry.mistakes
        self.seconds: list[float] = []

    def records(self, answer: Answer) -> list:
        with preserve_generators(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [[probe_within(answer, run) for run in row] for row in self.runs]

    def verdict(self, given: list) -> Verdict:
        started = time.process_time()
        verdict = decide(self.exercise, self.runs, given, self.right, lambda: self.known)
        self.seconds.append(time.process_time() - started)
        return verdict

    def alone(self, slip: Callable[..., Any], right: Answer) -> list[str]:
        """The known mistakes, certain or likely, that a slip alone makes of the reference."""
        found = self.verdict(self.records(with_slip(right, slip)))
        return [found.mistake] if found.mistake else [*found.suspected_mistakes]

    def before(self, given: list, verdict: Verdict) -> str | None:
        """The name by the rule that every run has to be equal."""
        for mistake in self.known:
            if equal(self.runs, given, mistake.records):
                theirs = decide(self.exercise, self.runs, mistake.records, self.right)
                pairs = zip(verdict.aspects, theirs.aspects, self.runs, strict=True)
                if all(a.passed == b.passed or any(r.random for r in row) for a, b, row in pairs):
                    return mistake.name
        return None


def outcome(names: Sequence[str], truth: set[str], causes: Mapping[str, str], how: str) -> str:
    """Names are right if they are the true ones, or if their causes are part of the true causes."""
    true = " ".join(causes[name] for name in truth)
    if not names:
        return "unnamed"
    right = all(name in truth or causes[name] in true for name in names)
    return f"{how} {'rightly' if right else 'wrongly'}"


def measured(slug: str, exercise: Exercise, slips: int, pairs: int) -> Iterator[tuple]:
    """For each composition: its kind, the outcomes before and after, its parts, what was named."""
    scene, chance = Scene(slug, exercise), random.Random(exercise.name)
    bank = scene.bank
    names = [mistake.name for mistake in scene.known]
    made = [(name, slip) for name in names for slip in SLIPS]
    chance.shuffle(made)
    couples = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    chance.shuffle(couples)
    taken: Counter[str] = Counter()
    alone = {m.name: m.records for m in scene.known}
    same = {slip: scene.alone(slip, reference(slug, exercise.name)) for slip in SLIPS}
    limit = {"slip": slips, "pair": pairs}
    for kind, one, other in (*(("slip", *x) for x in made), *(("pair", *x) for x in couples)):
        if taken[kind] >= limit[kind]:
            continue
        if kind == "slip":
            parts = one, other.__name__
            answer, truth = with_slip(bank.mistakes[one], other), {one, *same[other]}
        else:
            parts = one, other
            answer, truth = both(bank, one, other) or (None, set())
        if answer is None:
            continue
        given = scene.records(answer)
        singles = [alone[name] for name in (parts if kind == "pair" else parts[:1])]
        flat = zip(sum(given, []), *(sum(map(list, s), []) for s in singles), strict=True)
        if any(_unchanged(rows) for rows in _columns(flat)):
            continue  # the second slip does not show
        verdict = scene.verdict(given)
        if verdict.verdict != WRONG:
            continue
        taken[kind] += 1
        old = scene.before(given, verdict)
        causes = {m.name: m.cause for m in scene.known}
        now = (verdict.mistake,) if verdict.mistake else verdict.suspected_mistakes
        was = outcome([old] if old else [], truth, causes, "named")
        found = outcome(now, truth, causes, "named" if verdict.mistake else "likely")
        tag = parts[1] if kind == "slip" else "pair"
        yield tag, was, found, parts, " + ".join(now), scene.seconds[-1]


def _columns(rows: Iterator[tuple]) -> list[list[tuple]]:
    """Pairs of the composition's records with each part's."""
    listed = [*rows]
    return [[(row[0], row[i]) for row in listed] for i in range(1, len(listed[0]))]


def _unchanged(rows: list[tuple]) -> bool:
    return all(
        same_values(a, b) and deviations(a, b) == deviations(b, a) == frozenset() for a, b in rows
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    asked.add_argument("--only", default="")
    asked.add_argument("--slips", type=int, default=30)
    asked.add_argument("--pairs", type=int, default=20)
    asked.add_argument("--show", action="store_true", help="list what is not named rightly")
    options = asked.parse_args()
    counts: dict[str, Counter[str]] = {}
    slow: list[float] = []
    done: list[str] = []
    sample = {"slips": options.slips, "pairs": options.pairs}
    for slug, exercise in in_turn():
        if options.only not in ("", exercise.name, slug):
            continue
        found = measured(slug, exercise, options.slips, options.pairs)
        for tag, was, now, parts, named, seconds in found:
            for key in (tag, slug, "all"):
                counts.setdefault(key, Counter()).update({f"before: {was}": 1, f"after: {now}": 1})
            slow.append(seconds)
            if options.show and "rightly" not in now:
                print(f"    {now}: {exercise.name}: {parts}: {named}", flush=True)
        done.append(exercise.name)
        told = {key: dict(sorted(value.items())) for key, value in sorted(counts.items())}
        if not options.only:
            stored = {"sample": sample, "exercises": done, "counts": told}
            RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        print(exercise.name, told.get("all", {}), flush=True)
    for key, value in sorted(counts.items()):
        print(f"{key:24}", dict(value))
    if slow:
        slow.sort()
        print(f"seconds for a verdict: median {slow[len(slow) // 2]:.3f}, most {slow[-1]:.3f}")


def in_turn() -> Iterator[tuple[str, Exercise]]:
    """All exercises, one of each chapter after the other, so that a part of them is a sample."""
    columns = [
        [(slug, exercise) for exercise in exercises_of(slug) if exercise.recorded]
        for slug in chapters()
    ]
    for row in zip_longest(*columns):
        yield from filter(None, row)


if __name__ == "__main__":
    main()
