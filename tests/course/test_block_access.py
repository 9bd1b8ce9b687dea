"""Nobody else's answer earns marks: no block is there that would answer what is judged.

Every exercise with a block is answered by calling that block, found in many ways, and by calling
itself, in the hope of being helped; each pair of them by calling each other.
"""

from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np
import pytest

from attention_by_hand import blocks
from autograder.judge.block_code import (
    blocks_before,
    blocks_for,
    blocks_in,
    names_by_module,
    order,
    pieces,
)
from autograder.judge.verdicts import Cell, judge_cells
from autograder.sandbox.host import Sandbox
from autograder.student.authoring import Draw, call
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.values import Recipe

WITH_BLOCK = {
    slug: [e.name for e in exercises_of(slug) if hasattr(blocks, e.name)] for slug in chapters()
}
CHAPTERS = [slug for slug in chapters() if WITH_BLOCK[slug]]
ITSELF = "globals()['{}']"
LOOKED_UP = {
    "in the module": "getattr(sys.modules['attention_by_hand.blocks'], '{}')",
    "by an import": "__import__('attention_by_hand.blocks', fromlist=['']).{}",
    "in the module's dictionary": "vars(sys.modules['attention_by_hand.blocks'])['{}']",
    "among all objects": "next(thing for thing in gc.get_objects() if is_of_blocks(thing, '{}'))",
    "in frames": "next(names['{0}'] for names in names_above() if names.get('{0}') not in OWN)",
    "in loaded files": "runpy.run_path(sys.modules['attention_by_hand.blocks'].__file__)['{}']",
}
HELPERS = Cell(
    """import gc, runpy, sys
OWN = [None]
def is_of_blocks(thing, name):
    of_blocks = str(getattr(thing, "__module__", "")).startswith("attention_by_hand.blocks")
    return of_blocks and getattr(thing, "__qualname__", "") == name
def names_above():
    frame = sys._getframe(1)
    while frame is not None:
        yield from (frame.f_locals, frame.f_globals)
        frame = frame.f_back"""
)


def answer(name: str, called: str) -> Cell:
    """An answer that passes its arguments on."""
    if isinstance(getattr(blocks, name), type):
        head = f"class {name}:\n    def __new__(cls, *arguments, **named):\n        "
    else:
        head = f"def {name}(*arguments, **named):\n    "
    return Cell(f"{head}return {called}(*arguments, **named)\nOWN.append({name})")


def scores(cells: list[Cell], names: list[str]) -> dict[str, float]:
    asked = [find_exercise(name) for name in names]
    verdicts = judge_cells(cells, asked, {name: b"seed" + name.encode() for name in names}).verdicts
    return {name: verdict.score for name, verdict in verdicts.items()}


@pytest.mark.share(12)
@pytest.mark.parametrize("slug", CHAPTERS)
def test_an_answer_that_calls_itself_earns_nothing(slug):
    names = WITH_BLOCK[slug]
    cells = [HELPERS, *(answer(name, ITSELF.format(name)) for name in names)]
    assert scores(cells, names) == dict.fromkeys(names, 0.0)


ROADS = [
    pytest.param(slug, road, marks=pytest.mark.nightly if (chapter + way) % 3 else ())
    for chapter, slug in enumerate(CHAPTERS)
    for way, road in enumerate(LOOKED_UP)
]


@pytest.mark.share(10)
@pytest.mark.parametrize(("slug", "road"), ROADS)
def test_a_block_is_found_on_no_road_while_its_exercise_is_judged(slug, road):
    names = WITH_BLOCK[slug]
    cells = [HELPERS, *(answer(name, LOOKED_UP[road].format(name)) for name in names)]
    assert scores(cells, names) == dict.fromkeys(names, 0.0)


@pytest.mark.parametrize(
    "written",  # by night also so that no call is seen in the source, as above
    [
        pytest.param("{}", marks=pytest.mark.share(0)),
        pytest.param(ITSELF, marks=pytest.mark.share(0, rest="nightly")),
    ],
)
@pytest.mark.share(3, rest="nightly")
@pytest.mark.parametrize("slug", [slug for slug in CHAPTERS if len(WITH_BLOCK[slug]) > 1])
def test_two_answers_that_call_each_other_earn_nothing(slug, written):
    for pairs in rounds(WITH_BLOCK[slug]):
        calls = {one: other for pair in pairs for one, other in (pair, pair[::-1])}
        cells = [HELPERS, *(answer(one, written.format(other)) for one, other in calls.items())]
        assert scores(cells, [*calls]) == dict.fromkeys(calls, 0.0)


def rounds(names: list[str]) -> Iterator[list[tuple[str, str]]]:
    """Every pair once, in rounds in which each name occurs at most once: a round robin."""
    first, *others = [*names, *[""] * (len(names) % 2)]
    for turn in range(len(others)):
        circle = [first, *others[turn:], *others[:turn]]
        half = len(circle) // 2
        pairs = zip(circle[:half], circle[: half - 1 : -1], strict=True)
        yield [pair for pair in pairs if all(pair)]


@pytest.mark.parametrize("count", range(2, 9))
def test_rounds_hold_every_pair_once(count):
    names = [*map(str, range(count))]
    found = [frozenset(pair) for pairs in rounds(names) for pair in pairs]
    assert len(found) == len({*found}) and {*found} == {*map(frozenset, combinations(names, 2))}
    assert all(len({*chain(*pairs)}) == 2 * len(pairs) for pairs in rounds(names))


def test_a_block_holds_no_later_exercise():
    for name in order().keys() & set(dir(blocks)):
        assert max(map(order().get, blocks_in(frozenset({name})))) == order()[name], name


@pytest.mark.share(4)
@pytest.mark.parametrize("slug", chapters())
def test_what_an_exercise_hands_out_stands_before_it_and_is_there(slug):
    """The blocks among its arguments, those that it names, and those of earlier chapters."""
    for exercise in exercises_of(slug):
        there = blocks_for(slug, exercise)
        assert all(order()[n] < order()[exercise.name] for n in blocks_in(there)), exercise.name
        runs = [run for row in exercise.runs(b"any seed") for run in row]
        handed = {name for run in runs for name in blocks_among(vars(run))}
        assert handed <= there, exercise.name


def blocks_among(value: object) -> set[str]:
    """The blocks in a description of arguments."""
    if isinstance(value, Recipe):
        module, _, name = value.name.partition(":")
        own = {name} if module == "attention_by_hand.blocks" else set()
        return own | blocks_among([value.args, value.kwargs, value.state])
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(parts, str | bytes) or not hasattr(parts, "__iter__"):
        parts = vars(value).values() if hasattr(value, "__dict__") else ()
    return set().union(*map(blocks_among, parts)) if not hasattr(value, "dtype") else set()


LOOK = """import gc, os, autograder
from types import FunctionType
found = {thing.__qualname__.partition(".")[0] for thing in gc.get_objects()
         if isinstance(thing, (type, FunctionType))
         and str(thing.__module__).startswith("attention_by_hand.blocks")}
folder = os.path.dirname(autograder.__file__)
files = [os.path.join(folder, *path) for path in (("blocks",), ("exercises", "bugs.py"))]
print(sorted(found), [path for path in files if os.path.exists(path)])"""


@pytest.mark.share(8)
@pytest.mark.parametrize("slug", chapters())
def test_a_process_holds_the_blocks_before_its_chapter_and_no_file_of_others(slug):
    with Sandbox() as sandbox:
        sandbox.hand_out(pieces(blocks_before(slug)), names_by_module(), 20)
        (told,) = sandbox.execute(LOOK)
    first = order()[exercises_of(slug)[0].name]
    found, _, files = told["text"].strip().partition("] [")
    held = {name for name in order() if f"'{name}'" in found}
    assert files == "]"
    assert held == {n for n in blocks_before(slug) if n in order()}
    assert all(order()[name] < first for name in held)


def test_what_an_exercise_was_handed_is_gone_when_its_own_is_judged_later():
    """The check of a later exercise stands before that of the one whose block it may call."""
    keeps = """import numpy as np
from attention_by_hand import blocks
KEPT = []
def nadaraya_watson(query, key, value, w=1.0):
    KEPT.append(blocks.softmax)
    weights = blocks.softmax(-0.5 * ((query[:, None] - key) * w) ** 2)
    return weights @ value, weights
def softmax(scores, axis=-1):
    return (KEPT[-1] if KEPT else blocks.softmax)(scores, axis)"""
    names = ["nadaraya_watson", "softmax"]
    cells = [Cell(keeps), *(Cell("", check=name) for name in names)]
    found = scores(cells, names)
    assert found["nadaraya_watson"] > 0 == found["softmax"]


def test_a_file_with_answers_to_two_chapters_is_judged_as_one_of_each():
    """The block of one answer is what the other is built with."""
    text = """import torch
from attention_by_hand.blocks import MultiHeadAttention
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} features, {num_heads} heads")
    return x.unflatten(-1, (num_heads, -1)).transpose(-2, -3)
def causal_mask(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    return torch.ones(n_q, n_k, dtype=torch.bool, device=device).tril(n_k - n_q)"""
    names = ["split_heads", "causal_mask"]
    points = {name: find_exercise(name)[1].points for name in names}
    assert scores([Cell(text)], names) == points


USES = """import types
import torch
from attention_by_hand import blocks
def called(x):
    return blocks.fused_attention(x, x, x)
def run_by_its_code(x):
    fused = blocks.fused_attention
    return types.FunctionType(fused.__code__, fused.__globals__, None, fused.__defaults__)(x, x, x)
def in_a_thread(x):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(blocks.fused_attention, x, x, x).result()
def only_built(x):
    return blocks.EncoderLayer(8, 2, 8) and x
def left_alone(x):
    return x * (1 + torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack())"""


def test_a_block_is_seen_in_a_sandbox_though_torch_has_no_hooks():
    used = ["called", "run_by_its_code", "in_a_thread"]
    argument = Draw(b"seed").tensor(2, 3, 8)
    watch = ["attention_by_hand.blocks.*"]
    with Sandbox() as sandbox:
        sandbox.hand_out(pieces(blocks_before("captioning")), names_by_module(), 20)
        assert not sandbox.execute(USES)
        made = {
            name: (sandbox.probe_all(name, [call(argument)], watch=watch) or [])[0]
            for name in [*used, "only_built", "left_alone"]
        }
    assert [name for name, record in made.items() if record.operations] == used
    assert {*made["called"].operations} == {"attention_by_hand.blocks.fused_attention"}
    assert np.array_equal(made["left_alone"].values[0].data, argument.data)
