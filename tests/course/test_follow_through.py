"""One wrong answer costs once: who calls it is judged with the course's own in its place."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

from attention_by_hand import blocks
from autograder.judge.dependent_answers import _used_by
from autograder.judge.verdicts import Cell, judge_cells
from autograder.notebook.names import names_in
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.verdict import CORRECT, CRASH

ROOT = Path(__file__).resolve().parents[2]


def called(slug: str, name: str) -> set[str]:
    """The other exercises of the chapter that a reference names."""
    tree = ast.parse((ROOT / "solutions" / f"{slug}.py").read_text(encoding="utf-8"))
    node = next(n for n in tree.body if getattr(n, "name", None) == name)
    names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return names & {exercise.name for exercise in exercises_of(slug)} - {name}


CALLS = {
    slug: {e.name: found for e in exercises_of(slug) if (found := called(slug, e.name))}
    for slug in chapters()
}


def head(slug: str) -> str:
    """The imports of a chapter's references."""
    tree = ast.parse((ROOT / "solutions" / f"{slug}.py").read_text(encoding="utf-8"))
    found = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "from __future__ import annotations\n" + "\n".join(map(ast.unparse, found))


def source(slug: str, name: str) -> str:
    return inspect.getsource(getattr(import_module(f"solutions.{slug}"), name))


def judged(slug: str, asked: list[str], *cells: str) -> dict:
    seeds = {name: b"seed" + name.encode() for name in asked}
    made = [Cell(cell) for cell in (head(slug), *cells)]
    return judge_cells(made, [find_exercise(name) for name in asked], seeds).verdicts


@pytest.mark.share(6)
@pytest.mark.parametrize("slug", [slug for slug in CALLS if CALLS[slug]])
def test_what_a_reference_calls_has_a_block_that_does_the_same(slug):
    """Every exercise that a reference calls is broken; the callers are the references."""
    helpers = set().union(*CALLS[slug].values())
    assert {name for name in helpers if not hasattr(blocks, name)} == set()
    broken = [f"def {name}(*_, **__):\n    raise RuntimeError('broken')" for name in helpers]
    right = [name for name in CALLS[slug] if name not in helpers]
    callers = [source(slug, name) for name in right]
    verdicts = judged(slug, [*helpers, *right], *broken, *callers)
    assert {name: verdicts[name].verdict for name in helpers} == dict.fromkeys(helpers, CRASH)
    assert {n: (verdicts[n].verdict, verdicts[n].score) for n in right} == {
        name: (CORRECT, find_exercise(name)[1].points) for name in right
    }
    for name in right:
        assert "Judged with the course's own" in verdicts[name].remark
        assert all(other in verdicts[name].remark for other in CALLS[slug][name] & helpers)


def test_a_syntax_error_costs_its_own_exercise_alone():
    slug, broken = (
        "attention_scoring",
        "def scaled_dot_product_attention(query, key, value:\n  pass",
    )
    verdicts = judged(
        slug,
        ["scaled_dot_product_attention", "SelfAttention"],
        broken,
        source(slug, "SelfAttention"),
    )
    assert verdicts["scaled_dot_product_attention"].score == 0
    assert verdicts["SelfAttention"].verdict == CORRECT


def test_it_works_through_helpers_and_aliases():
    slug = "multi_head"
    wrong = "def split_heads(x, num_heads):\n    return x.reshape(len(x), num_heads, -1, 1)"
    through = "cut = split_heads\ndef by_head(x, h):\n    return cut(x, num_heads=h)"
    own = source(slug, "MultiHeadAttention").replace("split_heads(", "by_head(")
    asked = ["split_heads", "multi_head_numpy", "MultiHeadAttention"]
    verdicts = judged(slug, asked, wrong, source(slug, "multi_head_numpy"), through, own)
    assert verdicts["split_heads"].score < 3
    assert verdicts["MultiHeadAttention"].verdict == CORRECT
    assert "split_heads" in verdicts["MultiHeadAttention"].remark
    assert "numpy" not in verdicts["MultiHeadAttention"].remark  # that one is right


def test_a_caller_that_is_wrong_itself_gains_only_what_it_earns():
    slug = "masking"
    wrong = "def masked_softmax(scores, mask=None):\n    return scores * 0"
    own = source(slug, "masked_attention").replace("math.sqrt(query.shape[-1])", "query.shape[-1]")
    verdicts = judged(slug, ["masked_softmax", "masked_attention"], wrong, own)
    found = verdicts["masked_attention"]
    assert 0 < found.score < found.points and found.mistake == "scaled_by_d_k"


def test_the_block_itself_is_no_answer_even_where_it_stands_in():
    """What stands in may run; the block of the exercise itself is not there."""
    slug = "masking"
    wrong = "def masked_softmax(scores, mask=None):\n    return scores * 0"
    own = "from attention_by_hand.blocks import masked_attention as ready\n" + (
        "def masked_attention(query, key, value, mask=None):\n"
        "    masked_softmax\n"
        "    return ready(query, key, value, mask)"
    )
    verdicts = judged(slug, ["masked_softmax", "masked_attention"], wrong, own)
    assert (verdicts["masked_attention"].verdict, verdicts["masked_attention"].score) == (CRASH, 0)
    assert "blocks.masked_attention is a right answer" in verdicts["masked_attention"].note


def test_what_an_answer_builds_on_is_read_from_the_cells():
    cells = [
        "def softmax(x): ...\ndef other(): ...",
        "def helper(x):\n    return softmax(x)",
        "def answer(x):\n    return helper(x)",
        "def unrelated(x):\n    return gaussian_scores(x)",
    ]
    read = [names_in(cell) for cell in cells]
    assert _used_by("answer", read) >= {"helper", "softmax"}
    assert "gaussian_scores" not in _used_by("answer", read)
    assert _used_by("helper", [names_in("def helper():\n    return globals()")]) is None
