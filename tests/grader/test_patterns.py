"""No regular expression of ours takes long on any text: each gets 300 kB of its worst.

The calls are found in the syntax trees, so that a new one is tried by itself; `publishing` and
`bank` are left out, which read what authors write. From a pattern's own parts are made texts that
match up to a repetition, go on in it for long, and fail behind it; and texts that begin to match
again and again.
"""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from re import _constants as kinds
from re import _parser as parser

import pytest

from autograder.student.course import chapters, exercises_of
from autograder.student.engine.ready_made import _compile

PACKAGE = Path(importlib.import_module("autograder").__file__).parent
SIZE, SECONDS = 300_000, 10  # characters; of CPU time: quadratic time takes longer by far
FUNCTIONS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
MADE = {  # patterns that are made of something that is known only when it runs, by their line
    "re.search(pattern, message)": [r"(?<!\d)(?<!\d\.)4\.5(?!\d|\.\d*[1-9])", "padding"],
    "re.split(pattern, inner)": [",", ";", r",\s", r"\s+"],
    're.compile("|".join(yes) or r"(?!)")': None,  # those of the exercises, below
    're.compile("|".join(no) or r"(?!)")': None,
}


@cache
def modules() -> list[tuple[str, list[ast.AST], str]]:
    """The modules that may read a student's text and have patterns: name, nodes, text."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        text = path.read_text(encoding="utf-8")
        if "import re\n" in text and not {"publishing", "bank"} & {*parts}:
            nodes = [*ast.walk(ast.parse(text))]
            found.append((".".join(parts).removesuffix(".__init__"), nodes, text))
    return found


@cache
def methods() -> dict[str, set[str]]:
    """By which methods the patterns of each name are used, anywhere in the package."""
    found: dict[str, set[str]] = {}
    for _, nodes, _ in modules():
        for node in nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                name = getattr(node.value, "id", None) or node.value.attr
                found.setdefault(name, set()).add(node.attr)
    return {name: used & FUNCTIONS for name, used in found.items() if used & FUNCTIONS}


def patterns() -> Iterator[tuple[str, str | bytes, int, str]]:
    """Every pattern: where it is, its text, its flags, and a method by which it is used."""
    for name, nodes, text in modules():
        bound = {}
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                bound[id(node.value)] = getattr(node.targets[0], "id", "")
        for node in nodes:
            called = node.func if isinstance(node, ast.Call) else None
            if not isinstance(called, ast.Attribute) or getattr(called.value, "id", "") != "re":
                continue
            if called.attr not in {"compile", *FUNCTIONS}:
                continue
            line = ast.get_source_segment(text, node) or ""
            used = [called.attr]
            if called.attr == "compile":
                used = sorted(methods().get(bound.get(id(node), ""), FUNCTIONS))
            if line in MADE:
                yield from ((name, made, 0, u) for made in MADE[line] or () for u in used)
                continue
            scope = vars(importlib.import_module(name))
            first = eval(compile(ast.Expression(node.args[0]), name, "eval"), scope)  # noqa: S307
            flags = [k.value for k in node.keywords if k.arg == "flags"]
            flags += node.args[1:] if called.attr == "compile" else []
            flag = sum(int(eval(ast.unparse(f), {"re": re})) for f in flags)  # noqa: S307
            yield from ((name, first, flag, u) for u in used)


def watched() -> Iterator[tuple[str, str, int, str]]:
    """The patterns of operations that exercises forbid."""
    for slug in chapters():
        for exercise in exercises_of(slug):
            for pattern in _compile(exercise.watch_patterns)[1:]:
                yield exercise.name, pattern.pattern, pattern.flags & ~re.UNICODE, "fullmatch"


CASES = [*dict.fromkeys(patterns())]
WATCHED = [*{case[1:]: case for case in watched()}.values()]


# --- the worst texts for a pattern ----------------------------------------------------------------


def sample(part: tuple, branch: int) -> str:
    """A text that a part of a pattern matches; `branch` chooses among alternatives."""
    kind, value = part
    if kind is kinds.LITERAL:
        return chr(value)
    if kind is kinds.NOT_LITERAL:
        return "a" if value != ord("a") else "b"
    if kind is kinds.ANY:
        return "a"
    if kind is kinds.IN:
        return character(value, branch)
    if kind is kinds.BRANCH:
        return text_for(value[1][branch % len(value[1])], branch)
    if kind is kinds.SUBPATTERN:
        return text_for(value[3], branch)
    if kind is kinds.ATOMIC_GROUP:
        return text_for(value, branch)
    if kind in REPEATS:
        return text_for(value[2], branch) * max(1, min(value[0], 200))
    if kind is kinds.ASSERT and value[0] > 0 and branch % 2:  # what is looked for follows
        return text_for(value[1], branch)
    return ""  # a place, a look back, a group once more


REPEATS = (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT)
LETTERS = "a0 _\tA.-:/\n%=\"'`<#é"


def character(items: list, branch: int) -> str:
    """A character of a set."""
    negated = bool(items) and items[0][0] is kinds.NEGATE
    found = [c for c in LETTERS if contains(items, c) != negated]
    found += [chr(v) for k, v in items if k is kinds.LITERAL and not negated]
    found += [chr(v[0]) for k, v in items if k is kinds.RANGE and not negated]
    return found[branch % len(found)] if found else "a"


def contains(items: list, c: str) -> bool:
    tests = {
        kinds.CATEGORY_DIGIT: str.isdigit,
        kinds.CATEGORY_SPACE: str.isspace,
        kinds.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    }
    tests |= {
        kinds.CATEGORY_NOT_DIGIT: lambda c: not c.isdigit(),
        kinds.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
        kinds.CATEGORY_NOT_WORD: lambda c: not (c.isalnum() or c == "_"),
    }
    return any(
        (k is kinds.LITERAL and ord(c) == v)
        or (k is kinds.RANGE and v[0] <= ord(c) <= v[1])
        or (k is kinds.CATEGORY and tests[v](c))
        for k, v in items
    )


def text_for(parts: object, branch: int) -> str:
    return "".join(sample(part, branch) for part in parts)


def pumps(parts: object, branch: int, before: str = "") -> Iterator[tuple[str, str]]:
    """What comes before each repetition of a pattern, and what is repeated in it."""
    for part in parts:
        kind, value = part
        if kind in REPEATS:
            yield before, text_for(value[2], branch)
            yield from pumps(value[2], branch, before)
        elif kind is kinds.SUBPATTERN:
            yield from pumps(value[3], branch, before)
        elif kind is kinds.ATOMIC_GROUP:
            yield from pumps(value, branch, before)
        elif kind is kinds.BRANCH:
            for inner in value[1]:
                yield from pumps(inner, branch, before)
        elif kind in (kinds.ASSERT, kinds.ASSERT_NOT):
            yield from pumps(value[1], branch, before)
        before += sample(part, branch)


def words(parts: object) -> list[str]:
    """The stretches of letters that a pattern names."""
    found, word = [], ""
    for kind, value in parts:
        if kind is kinds.LITERAL:
            word += chr(value)
            continue
        found, word = [*found, word], ""
        for inner in value if isinstance(value, tuple | list) else ():
            if isinstance(inner, parser.SubPattern):
                found += words(inner)
            elif kind is kinds.BRANCH and isinstance(inner, list):
                found += [w for way in inner for w in words(way)]
    return [w for w in dict.fromkeys([*found, word]) if w]


def worst(pattern: str | bytes, flags: int) -> list[str]:
    """Texts of that size, each as a unit, how often, and so on: see `grow`."""
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    parts = parser.parse(text, flags)
    found = set()
    for branch in range(4):
        whole = text_for(parts, branch)
        found |= {("", whole, "", 1), ("", whole[:-1], "", 1)}
        for before, body in pumps(parts, branch):
            for many, end in product((1, 300, SIZE), ("", "\0", "\n")):
                found.add((before, body, end, many))
    listed = words(parts)[:8]
    found |= {("", one, other, -1) for one, other in product(listed, listed)}
    return sorted(t for t in found if t[1])


CHILD = """
import json, re, resource, sys, time
pattern, flags, method, binary, texts = json.load(sys.stdin)
pattern = re.compile(pattern.encode("latin-1") if binary else pattern, flags)
call = getattr(pattern, method)
for before, body, end, many in texts:
    if many < 0:  # the one word again and again, then the other
        text = body * (SIZE // 2 // len(body)) + end * (SIZE // 2 // len(end))
    else:
        unit = before + body * min(many, SIZE // len(body)) + end
        text = (unit * (SIZE // len(unit) + 1))[:SIZE - len(end)] + end
    text = text.encode("utf-8") if binary else text
    print(json.dumps([before, body, end, many]), flush=True)
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + SECONDS, resource.RLIM_INFINITY))
    if method in ("sub", "subn"):
        call(text[:0], text)
    elif method == "finditer":
        list(call(text))
    else:
        call(text)
print("done")
"""


def busy(pattern: str | bytes, flags: int, method: str, seconds: int) -> str | None:
    """The text on which a pattern takes longer than some seconds, if there is one."""
    binary = isinstance(pattern, bytes)
    given = pattern.decode("latin-1") if binary else pattern
    code = CHILD.replace("SECONDS", str(seconds)).replace("SIZE", str(SIZE))
    ran = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([given, flags, method, binary, worst(pattern, flags)]),
        capture_output=True,
        text=True,
        check=False,
    )
    last = (ran.stdout.splitlines() or [ran.stderr])[-1]
    return None if last == "done" else last


@pytest.mark.share(15)
@pytest.mark.parametrize(("where", "pattern", "flags", "method"), [*CASES, *WATCHED])
def test_no_text_keeps_a_pattern_busy(where, pattern, flags, method):
    assert worst(pattern, flags) or not re.search(r"[*+]", str(pattern)), "nothing was tried"
    assert busy(pattern, flags, method, SECONDS) is None, where


@pytest.mark.share(5)
@pytest.mark.parametrize(
    "pattern", [r"same device.*(?:meta.*cpu|cpu.*meta)", r"(?:\w+ ?)*!", r"\s+$", r"<a ([^>]*)>"]
)
def test_a_pattern_that_backtracks_is_found(pattern):
    assert busy(pattern, re.DOTALL, "search", 2) is not None


def test_the_patterns_are_found():
    assert len(CASES) > 50 and all(
        "attention_by_hand" in case[1] or case[1] == "(?!)" for case in WATCHED
    )
    assert any(where.endswith("inert") for where, *_ in CASES)
