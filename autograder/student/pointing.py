"""Points at the expression where a wrong answer goes astray.

TRUST BOUNDARY. Runs the answer once more where the answer runs: in the student's own process, or in
the sandbox, after it was found to be wrong. What comes out is text that the answer may have forged.
It is a hint: no mark depends on it, and code that shows it escapes it and limits its length. If the
place is not sure, or anything fails, there is no hint.
"""

import ast
import io
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import replace

from autograder.student.authoring.repeated_calls import FURTHER
from autograder.student.course import find_exercise
from autograder.student.engine.arrays import Value
from autograder.student.engine.compare import agrees
from autograder.student.engine.locator.counterfactual import (
    BRANCH,
    IDLE,
    KINDS,
    LOOP,
    NUMBER,
    ROLE,
    Case,
    Repair,
    find_repair,
)
from autograder.student.engine.locator.infinity import does_as_well
from autograder.student.engine.locator.instrument import Node, Site
from autograder.student.engine.locator.instrumented_copy import NoCopy, copy_answer
from autograder.student.engine.locator.known_values import KnownValues
from autograder.student.engine.locator.locate import (  # fmt: skip
    CHANGED,
    CUT,
    DTYPE,
    EFFECT,
    RAISED,
    SILENT,
    VALUES,
    Divergence,
    locate,
    problem_of,
)
from autograder.student.engine.locator.trace import Budget, BudgetExceeded, span
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import APPLY, KEPT, Aspect, Record, Run, Trial, made_once
from autograder.student.engine.state import MEMORY
from autograder.student.engine.verdict import CRASH, WRONG, Verdict, passes
from autograder.student.engine.words import refuses_arguments
from autograder.student.expected import fixed_digest, fixed_runs, reference_of
from autograder.student.expected.fingerprints import same_runs
from autograder.student.expected.paths import paths_of
from autograder.student.table import first_row

SECONDS = 0.9  # of the processor, for all that is done to find a place
TRACING = 0.5  # of these, at most, before other values are tried
TRYING = 0.2  # of these, for what an infinite number in the place of a large one would change
MOST_RUNS = 4  # that are looked at
MOST_SHOWN = 900  # characters
SHOWN_TWICE = ("missing", "made", "twice", EFFECT, *KINDS)  # kinds of which two places are shown
_SURE = (
    "overwritten", "dropped", "loaded", "wrote", "parameter", SILENT, CHANGED, EFFECT, CUT, DTYPE
)  # fmt: skip
_WEAK = ("made", "unusual", "role")
_OF_KEPT = ("given back", "filling", "rewritten", "overwritten", "wrote", CHANGED, EFFECT)
MOST_FURTHER = 3  # runs of other aspects
MOST_MENDED = 2  # lines: of more, none is likelier than another
_WIDE = 88
Rows = Sequence[Sequence[Record]]


def pointer(
    answer: Value,
    verdict: Verdict,
    runs: Sequence[Sequence[Run]],
    records: Rows,
    expected: Rows,
    device: str = "cpu",
) -> str | None:
    """A few lines on where a wrong answer goes astray; None where that is not sure.

    The runs are the fixed ones; the records are the answer's and the reference's.
    """
    if verdict.verdict not in (WRONG, CRASH) or verdict.mistake is not None:
        return None
    try:
        place = place_of(answer, verdict, runs, records, expected, device)
        if place is None or place.kind not in _SURE and verdict.suspected_mistakes:
            return None  # what is suspected says another thing
        if place.kind not in _OF_KEPT and _is_kept(verdict):
            return None
        other = place.aspect not in (aspect.title for aspect in first_row(verdict))
        about = f"For “{place.aspect}”: " if other else ""
        return (about + describe_place(place))[:MOST_SHOWN]
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  (a hint is worth no exception, whoever raised it)
        return None


def _is_kept(verdict: Verdict) -> bool:
    """Whether something is kept between calls: what is made of it later is not to blame."""
    failed = [aspect for aspect in verdict.aspects if not aspect.passed]
    return any(a.kind == KEPT for a in failed) or [a.title for a in failed] == [FURTHER]


def place_of(
    answer: Value,
    verdict: Verdict,
    runs: Sequence[Sequence[Run]],
    records: Rows,
    expected: Rows,
    device: str = "cpu",
) -> Divergence | None:
    """The place at which a wrong answer goes astray; None where that is not sure."""
    slug, exercise = find_exercise(verdict.exercise.partition(".")[0])  # or a step of it
    paths = paths_of(slug).get(exercise.name)
    if paths is None or not same_runs(paths.digest, fixed_digest(exercise)):
        return None
    known = {a.title: (a, row) for a, row in zip(exercise.aspects, paths.runs, strict=True)}
    rows = zip(verdict.aspects, runs, records, expected, strict=True)
    tried = [
        (known[aspect.title][0], case)
        for aspect, *columns in rows
        if not aspect.passed and aspect.judged
        for case in zip(*columns, known[aspect.title][1], strict=True)
        if not case[0].simulated  # the aspect itself names the line
        and (not case[0].random or case[1].raised)  # no numbers to compare with
        and problem_of(*case[:3]) is not None
        and _of_the_calls(known[aspect.title][0], *case[:3])
    ]
    raised = [case[1].raised for _, case in tried if case[1].raised]
    if any(refuses_arguments(one) and "keyword" not in one.message for one in raised):
        # In other calls, the answer takes one argument for another.
        tried = [(aspect, case) for aspect, case in tried if not case[1].raised]
    fine = [
        case
        for aspect, *columns in zip(verdict.aspects, runs, records, expected, strict=True)
        if aspect.passed and aspect.judged
        for case in zip(*columns, strict=True)
        if not case[0].simulated and not case[0].random and problem_of(*case) is None
    ]
    cases = [(a.title, case) for a, case in tried if not passes(a, Trial(*case[:3]))]
    cases = cases or [(aspect.title, case) for aspect, case in tried]
    start = time.process_time()
    found = (place for place in _places(answer, cases, fine, device) if place is not None)
    place = None
    with suppress(BudgetExceeded):
        place = next(found, None)
        if place is not None and place.kind == "multiple":  # by one number in every run?
            place = next((p for p in found if _elsewise(p, place)), place)
    if place is not None and place.kind in _SURE or not cases:
        return place
    try:
        left = SECONDS - (time.process_time() - start)
        of_one = [case for case in cases if case[0] == cases[0][0]]
        alone = len(of_one) > 1 or len(cases) == 1
        failing = [case[:3] for _, case in (of_one if alone else cases)]
        further = {title: case[:3] for title, case in reversed(cases) if title != cases[0][0]}
        some = [*reversed(further.values())][:MOST_FURTHER] if alone and len(further) > 1 else ()
        mended = find_repair(answer, failing, device, max(0.0, left), fine=fine, further=some)
    except Exception:  # noqa: BLE001  (what is known without it stays)
        return place
    mended = [mend for mend in mended if mend.always or (alone and mend.kind != IDLE)]
    return _surest(place, mended, cases[0][0])


def _of_the_calls(aspect: Aspect, run: Run, record: Record, expected: Record) -> bool:
    """Whether what a run's calls give is right, or is what it fails by: not where numbers that may
    be others are seen, and a module is left as it was not."""
    looks = any(step.method == APPLY for step in run.steps)
    if not looks or run.gradients or problem_of(run, record, expected) != VALUES:
        return True
    trios = [*zip(run.steps, record.values, expected.values, strict=True)]
    if all(agrees(given, right) for step, given, right in trios if step.is_call):
        return True
    values = tuple(right if step.is_call else given for step, given, right in trios)
    return passes(aspect, Trial(run, replace(record, values=values), expected))


def _elsewise(one: Divergence, other: Divergence) -> bool:
    """Whether two runs show one place, but not the same of it."""
    return span(one.site.node) == span(other.site.node) and one.kind != other.kind


def shown_at(place: Divergence) -> list[Site]:
    """The places in the source that are shown."""
    if place.up_to is not None and place.kind in SHOWN_TWICE:
        return [place.site, place.up_to]
    return [place.site]


def _surest(place: Divergence | None, mended: Sequence[Repair], aspect: str) -> Divergence | None:
    """Of a place found by its values, and those at which a change would mend a run, the surest."""
    if len(mended) > MOST_MENDED:  # then what is one operation too many is the likeliest
        mended = [mend for mend in mended if mend.kind == IDLE]
    lines = {mend.site.node.lineno for mend in mended}
    shown = {site.node.lineno for site in shown_at(place)} if place is not None else set()
    if not mended or len(mended) > MOST_MENDED:
        return place
    first, *others = sorted(mended, key=lambda mend: KINDS.index(mend.kind))
    certain = first.always and first.kind == NUMBER  # which tells more than the operation
    if lines <= shown and not (place and place.kind == "astray" and certain):
        return place
    others = [mend for mend in others if mend.kind != ROLE or first.kind == ROLE]
    sure = first.always and first.kind not in (LOOP, ROLE)
    if place is not None and place.kind not in _WEAK and not sure:
        return place
    whose = "The result" if first.always else "More results"
    return Divergence(first.site, first.kind, others[0].site if others else None, whose, aspect)


def pointer_on(answer: Value, name: str, device: str = "cpu") -> str | None:
    """The same where neither verdict nor records are at hand: in the sandbox.

    Raises `KeyError` for an unknown name.
    """
    from autograder.student.engine.records import on_device
    from autograder.student.engine.verdict import decide

    slug, exercise = find_exercise(name)
    if not exercise.recorded:  # its answer is an input, which nothing leads astray
        return None
    runs, reference = fixed_runs(exercise), reference_of(slug, name)
    records = made_once(runs, lambda run: probe(answer, run, device))
    expected = [[on_device(record, device) for record in row] for row in reference]
    verdict = decide(exercise, runs, records, expected, make=lambda run: probe(answer, run, device))
    return pointer(answer, verdict, runs, records, expected, device)


def _places(
    answer: Value,
    cases: Sequence[tuple[str, tuple[Run, Record, Record, KnownValues]]],
    fine: Sequence[Case],
    device: str,
) -> Iterator[Divergence | None]:
    budget, unsure = Budget(TRACING * SECONDS), False
    for aspect, (run, record, expected, known) in cases[:MOST_RUNS]:
        problem = problem_of(run, record, expected)
        try:
            copy, recorder = copy_answer(answer, budget)
        except NoCopy:
            return
        recorder.effect, recorder.training = _effect(problem, record, expected), run.training
        recorder.new = run.init is not None and run.state is None
        recorder.start()
        with redirect_stdout(io.StringIO()):  # it has printed this before
            seen = probe(copy, run, device)
        recorder.on = False
        if equal([[run]], [[record]], [[seen]]):  # or else the copy is not the answer
            failing = run, record, expected

            def sound(site: Site, failing: Case = failing) -> bool:
                return does_as_well(answer, site, failing, fine, device, TRYING * SECONDS)

            place = locate(recorder, known, *failing, sound)
            unsure = unsure or recorder.unsure
            weak = unsure and place is not None and place.kind in _WEAK
            yield replace(place, aspect=aspect) if place is not None and not weak else None


def _effect(problem: str | None, record: Record, expected: Record) -> str | None:
    if problem == CHANGED:
        return MEMORY
    new = sorted(set(record.side_effects) - set(expected.side_effects))
    return new[0] if problem == EFFECT and new else None


# --- words ----------------------------------------------------------------------------------------

_SAID = {
    "order": "These are the right numbers in another order or shape, {detail}:",
    "multiple": "These are the numbers of a right answer, times some other number:",
    "role": "These numbers occur in a right answer, but they are not what it returns here:",
    "unusual": "A right answer has the numbers that go in here, but it does something else:",
    "dropped": "What this gives is not used: it makes a new array and leaves the old one alone:",
    "nan": "Here numbers turn into NaN:",
    "filled": "Here a large number takes the place of infinity:",
    "overwritten": "An argument is overwritten here before anything has read it:",
    "before the exception": "The {detail} follows from numbers that are no right answer's:",
    "loaded": "The parameters do not fit what is made here:",
    "rewritten": "This writes into one array again and again, and the list holds it many times:",
    "given back": "This writes into an array that an earlier call has returned:",
    "filling": "What is filled in here does not come to be a right answer's numbers:",
    "zeros": "No right answer has these zeros, and what is made of them changes nothing:",
    "twice": "These numbers have been computed before, and right answers use others here:",
    "itself": "By this, two names stand for one array, which then meets itself:",
    "already": "The result was right before this:",
    "kind": "What is returned is made here; {detail}:",
    "returned": "A {detail} is expected, but this is returned:",
    "refused": "This test held, and led to the {detail}:",
    "parameter": "No gradient reaches `{detail}`, which is made here:",
    "wrote": "This writes into a value that the backward pass still needs:",
    RAISED: "The {detail} comes from here:",
    SILENT: "A {detail} is expected, but this test did not hold:",
    CHANGED: "After this, an argument of the caller's has other numbers:",
    EFFECT: "After this, {detail} is another, and stays so:",
    CUT: "The gradient is cut off here:",
    DTYPE: "Here the dtype becomes {detail}:",
    BRANCH: "{detail} would be right if this came out the other way:",
    LOOP: "{detail} would be right if this loop ended at another time:",
    IDLE: "{detail} would be right without this operation:",
    NUMBER: "{detail} would be right with another number here:",
    ROLE: "{detail} would be right with another of your values here:",
}
_GOES_ON = {
    "": "Here your numbers are those of a right answer:",
    "idle": "Here numbers of a right answer come out as they went in:",
}
_OPERATIONS = {
    ast.Add: "addition", ast.Sub: "subtraction", ast.Mult: "multiplication", ast.Div: "division",
    ast.MatMult: "matrix product", ast.Pow: "power", ast.FloorDiv: "division", ast.Mod: "remainder",
    ast.USub: "change of sign", ast.Invert: "negation",
}  # fmt: skip


def describe_place(place: Divergence) -> str:
    """A place in words: indented lines are code."""
    node, up_to = place.site.node, place.up_to
    inside = up_to is not None and _inside(node, up_to.node)
    if place.kind == "missing" and up_to is not None and inside and place.detail == "left":
        return _up_to(place.site, up_to)
    if place.kind == "missing":
        lines = [_GOES_ON.get(place.detail, _GOES_ON[""]), *snippet(place.site)]
        if up_to is not None and up_to.node.lineno != node.lineno:
            lines += ["but a right answer does something else with them before this:"]
            return "\n".join([*lines, *snippet(up_to)])
        return "\n".join([*lines, "but a right answer does something else with them next."])
    if place.kind == "astray":
        doing = operation(node)
        if up_to is not None and _inside(up_to.node, node):
            return _up_to(up_to, place.site)
        return "\n".join(
            [f"Your numbers leave those of a right answer with the {doing}:", *snippet(place.site)]
        )
    if place.kind == "made" and up_to is not None:
        lines = ["These are no right answer's numbers, though those that go in are:"]
        return "\n".join(
            [*lines, *snippet(up_to), "Look at what is called, too:", *snippet(place.site)]
        )
    said = _SAID[place.kind].format(detail=place.detail[:80])
    lines = [said, *snippet(place.site)]
    if up_to is not None and place.kind == "twice":
        lines += ["They are those of this line:", *snippet(up_to)]
    if up_to is not None and place.kind == EFFECT:
        lines += ["and this does not put all of it back:", *snippet(up_to)]
    if up_to is not None and place.kind in KINDS:
        lines += ["Or else if something were changed here:", *snippet(up_to)]
    return "\n".join(lines)


def _up_to(right: Site, then: Site) -> str:
    lines = ["Your numbers are those of a right answer up to here:", *snippet(right)]
    return "\n".join([*lines, f"and leave them with the {operation(then.node)}."])


def operation(node: Node) -> str:
    """What an expression does last, in a word or two."""
    if isinstance(node, ast.Call):
        from autograder.student.engine.locator.instrument import last_name

        if not isinstance(node.func, ast.Name | ast.Attribute):
            return "call"
        return f"call of `{last_name(node.func)[:40]}`"
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.AugAssign):
        return _OPERATIONS.get(type(node.op), "operation")
    if isinstance(node, ast.Attribute):
        return f"attribute `{node.attr[:40]}`"
    words = {ast.Subscript: "indexing", ast.Compare: "comparison", ast.Assign: "assignment"}
    return words.get(type(node), "expression")


def _inside(inner: Node, outer: Node) -> bool:
    """Whether a place is a part of another that begins on the same line, and ends before it."""
    return inner.lineno == outer.lineno == inner.end_lineno and (
        outer.col_offset <= inner.col_offset
        and (inner.end_lineno, inner.end_col_offset) < (outer.end_lineno, outer.end_col_offset)
    )


def snippet(site: Site) -> list[str]:
    """A line of the source, and carets under a place in it."""
    node = site.node
    raw = site.lines[node.lineno - 1].rstrip("\n").encode()
    last = node.end_col_offset if node.end_lineno == node.lineno else len(raw)
    start, end = len(raw[: node.col_offset].decode()), len(raw[:last].decode())
    line = raw.decode()
    indent = len(line) - len(line.lstrip())
    cut = max(indent, min(start - 8, end - _WIDE)) if end - indent > _WIDE else indent
    shown = line[cut : cut + _WIDE].replace("\t", " ")
    if cut > indent:
        shown = "…" + shown[1:]
    if cut + _WIDE < len(line):
        shown = shown[:-1] + "…"
    carets = " " * (start - cut) + "^" * max(1, min(end, cut + _WIDE) - start)
    return [f"    {shown.rstrip()}", f"    {carets}"]
