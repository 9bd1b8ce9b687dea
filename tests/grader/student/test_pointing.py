"""`check` points at where an answer goes astray, and is silent where it is not sure."""

import linecache
import re
from typing import Any

import pytest
from pointer_cases import pointed, written

from autograder.bank import banks
from autograder.publishing.path_values import is_current
from autograder.student import pointing
from autograder.student.check import verdict_on
from autograder.student.course import chapters, exercises_of
from autograder.student.engine.locator.instrumented_copy import NoCopy, copy_answer
from autograder.student.engine.locator.trace import Budget
from autograder.student.engine.verdict import CORRECT
from autograder.student.expected.paths import paths_of
from autograder.student.table import table_html, table_text

pytestmark = pytest.mark.usefixtures("plenty_of_time")


ATTENTION = """
def scaled_dot_product_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) {scale}
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
"""
NAME = "scaled_dot_product_attention"


def test_where_the_numbers_leave_those_of_right_answers():
    for scale in ("/ (7 + math.sqrt(query.shape[-1]))", "/ math.sqrt(query.shape[-1] + 1)"):
        scores = f"query @ key.transpose(-2, -1) {scale}"
        assert pointed(ATTENTION.format(scale=scale), NAME).splitlines() == [
            "These are the numbers of a right answer, times some other number:",
            f"    scores = {scores}",
            " " * 13 + "^" * len(scores),
        ]
    cubed = ATTENTION.replace("dim=-1)", "dim=-1) ** 3")
    found = pointed(cubed.format(scale="/ math.sqrt(query.shape[-1])"), NAME)
    assert found.splitlines() == [
        "Your numbers are those of a right answer up to here:",
        "    weights = torch.softmax(scores, dim=-1) ** 3",
        " " * 14 + "^" * len("torch.softmax(scores, dim=-1)"),
        "and leave them with the power.",
    ]


def test_the_line_that_an_exception_comes_from():
    found = pointed(ATTENTION.format(scale=".no_such_thing"), NAME)
    assert found.splitlines()[0] == "The AttributeError comes from here:"
    assert found.splitlines()[1].strip().endswith("key.transpose(-2, -1) .no_such_thing")


def test_where_the_gradient_is_cut():
    found = pointed(
        ATTENTION.format(scale="/ math.sqrt(query.shape[-1])").replace(
            "return weights @ value",
            "value = torch.cat([value[..., :1], value[..., 1:].detach()], -1)\n"
            "    return weights @ value",
        ),
        NAME,
    )
    lines = found.splitlines()
    assert lines[0] == "The gradient is cut off here:"
    assert lines[1][lines[2].index("^") :].startswith("value[..., 1:].detach()")


def test_where_the_dtype_changes():
    found = pointed(
        ATTENTION.format(scale="/ math.sqrt(query.shape[-1])").replace(
            "return weights @ value",
            "weights = weights.double()\n    return weights @ value.double()",
        ),
        NAME,
    )
    assert found.splitlines()[0] == "Here the dtype becomes float64:"
    assert ".double()" in found.splitlines()[1]


CHUNKS = """
def chunked_linear_attention(query, key, value, chunk, state=None):
    if chunk < 1 or query.shape[-2] != key.shape[-2]:
        raise ValueError(f"{{chunk}}, {{query.shape[-2]}}, {{key.shape[-2]}}")
    query, key = nn.functional.elu(query) + 1, nn.functional.elu(key) + 1
    zeros = key.new_zeros({shape}, value.shape[-1]), key.new_zeros({shape})
    S, z = {first}
    outputs = []
    for q, k, v in zip(*(x.split(chunk, dim=-2) for x in (query, key, value))):
        weights = torch.{triangle}(q @ k.mT)
        below = q @ z.unsqueeze(-1) + weights.sum(-1, keepdim=True)
        outputs.append((q @ S + weights @ v) / below)
        S, z = S + k.mT @ v, z + k.sum(-2)
    return torch.cat(outputs, -2), (S, z)
"""
SHAPES = pytest.mark.parametrize("shape", ["*key.shape[:-2], key.shape[-1]", "key.shape[-1]"])


@SHAPES
def test_zeros_that_broadcast_to_those_of_right_answers_are_not_to_blame(shape):
    begun, name = "zeros if state is None else state", "chunked_linear_attention"
    right = CHUNKS.format(shape=shape, first=begun, triangle="tril")
    assert verdict_on(written(right, name), name).verdict == CORRECT
    found = pointed(CHUNKS.format(shape=shape, first=begun, triangle="triu"), name)
    assert "new_zeros" not in found
    assert found.splitlines()[-1] == "and leave them with the call of `triu`."


@SHAPES
def test_zeros_where_right_answers_have_other_numbers_are_to_blame(shape):
    wrong = CHUNKS.format(shape=shape, first="zeros", triangle="tril")  # the state is left out
    found = pointed(wrong, "chunked_linear_attention")
    assert found.startswith("No right answer has these zeros")  # of the row that is told first
    assert "new_zeros" in found.splitlines()[1]


# --- silence --------------------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize("slug", chapters())
def test_nothing_is_run_on_a_right_answer(slug, monkeypatch):
    """One of each chapter: that all right answers are taken for right is seen in the matrix."""

    def never(*_: Any) -> None:
        raise AssertionError("a right answer was looked at")

    monkeypatch.setattr(pointing, "place_of", never)
    exercise = exercises_of(slug)[-1].name
    answer, *_ = banks(slug)[exercise].rights.values()
    verdict = verdict_on(answer, exercise, pointing=True)
    assert (verdict.verdict, verdict.pointer) == (CORRECT, None)


def test_a_known_mistake_needs_no_pointer():
    mistake = banks("kernel_regression")["softmax"].mistakes["exp_forgotten"]
    verdict = verdict_on(mistake, "softmax", pointing=True)
    assert (verdict.mistake, verdict.pointer) == ("exp_forgotten", None)


WRONG = ATTENTION.format(scale="/ (7 + math.sqrt(query.shape[-1]))")


def test_a_source_that_is_not_the_answers_gives_none():
    answer = written(WRONG, NAME)
    file = answer.__code__.co_filename
    lied = linecache.cache[file][2][:]
    lied[-2] = lied[-2].replace("dim=-1", "dim=-2")
    linecache.cache[file] = (1, None, lied, file)
    with pytest.raises(NoCopy):
        copy_answer(answer, Budget(1.0))
    assert verdict_on(answer, NAME, pointing=True).pointer is None


HOSTILE = {
    "no source": lambda: eval("lambda *a, **k: 3"),
    "a builtin": lambda: print,
    "a class of nothing": lambda: type("Empty", (), {}),
    "an endless loop when watched": lambda: written(
        "def scaled_dot_product_attention(query, key, value):\n"
        "    while '__tap__' in globals():\n        query = query + 1\n"
        "    return value, value\n", NAME),
    "an endless loop that catches all": lambda: written(
        "def scaled_dot_product_attention(query, key, value):\n"
        "    for _ in range(10**9 if '__tap__' in globals() else 1):\n"
        "        query = query + 1\n    return value, value\n", NAME),
    "recursion": lambda: written(
        "def scaled_dot_product_attention(query, key, value):\n"
        "    if '__tap__' in globals():\n"
        "        return scaled_dot_product_attention(query, key, value)\n"
        "    return value, value\n", NAME),
    "huge values": lambda: written(
        "def scaled_dot_product_attention(query, key, value):\n"
        "    big = [torch.ones(1 << 22) for _ in range(3)]\n"
        "    return big[0][:1], value\n", NAME),
    "it ends the process": lambda: written(
        "def scaled_dot_product_attention(query, key, value):\n"
        "    if '__tap__' in globals():\n        raise SystemExit\n"
        "    return value, value\n", NAME),
    "it behaves when watched": lambda: written(
        "def scaled_dot_product_attention(query, key, value):\n"
        "    if '__tap__' in globals():\n        return value, query\n"
        "    return value, value\n", NAME),
}  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_answers_bring_nothing_down(answer, monkeypatch):
    monkeypatch.setattr(pointing, "SECONDS", 0.3)
    verdict = verdict_on(answer(), NAME, pointing=True)
    assert verdict.verdict != CORRECT
    assert verdict.pointer is None or len(verdict.pointer) <= pointing.MOST_SHOWN


def test_the_answer_itself_is_left_as_it_was():
    answer = written(WRONG, NAME)
    code, names = answer.__code__, dict(answer.__globals__)
    assert verdict_on(answer, NAME, pointing=True).pointer
    assert answer.__code__ is code
    assert answer.__globals__ == names


def test_no_time_no_pointer(monkeypatch):
    monkeypatch.setattr(pointing, "SECONDS", 0.0)
    assert pointed(WRONG, NAME) == ""


# --- what is shown --------------------------------------------------------------------------------


def test_a_pointer_is_escaped_and_keeps_its_columns():
    source = WRONG.replace("torch.softmax(", "torch.softmax('<b>&' and ")
    verdict = verdict_on(written(source, NAME), NAME, pointing=True)
    forged = "<script>x</script>\n    a <b> = `c`\n          ^"
    for told in (verdict.pointer, forged):
        html = table_html(pointing_verdict(verdict, told))
        assert "<b>" not in html.replace("<b role", "")
        assert "<script" not in html
    text = table_text(pointing_verdict(verdict, forged)).splitlines()
    assert "          a <b> = `c`" in text  # deeper than any line of ours, and all alike
    assert "                ^" in text


def pointing_verdict(verdict: Any, told: str) -> Any:
    from dataclasses import replace

    return replace(verdict, pointer=told)


def test_the_paths_tell_neither_names_nor_values():
    import lzma

    from autograder.student import course
    from autograder.student.engine.values import decode
    from autograder.student.expected import paths as store

    folder, whole = course.folder("expected"), 0
    for slug in chapters():
        names = [e.name for e in exercises_of(slug) if e.recorded]
        assert sorted(names) == sorted(f.stem for f in (folder / slug).glob("*.paths"))
        for name in names:
            data = (folder / slug / f"{name}.paths").read_bytes()
            whole += len(data)
            entry = decode(lzma.decompress(data))
            texts = {key for key, value in entry.items() if isinstance(value, str)}
            assert texts == {"digest", "made_of"}
            assert re.fullmatch(r"[0-9a-f]{64}", entry["made_of"])
            assert re.fullmatch(r"[0-9a-f]{64}( -?\d\.\d{7})+", entry["digest"])  # of inputs
            arrays = {k: v.data for k, v in entry.items() if k not in {*texts, "rows"}}
            assert {a.dtype.kind for a in arrays.values()} == {"u"}
            assert store.dump(store.parse(data)) == data
    assert whole < 17_000 * sum(1 for _ in folder.glob("*/*.paths"))


@pytest.mark.share(4)
@pytest.mark.parametrize("slug", chapters())
def test_the_paths_are_made_of_the_right_answers_that_the_bank_has(slug):
    old = paths_of(slug)
    exercises = [exercise for exercise in exercises_of(slug) if exercise.recorded]
    assert exercises
    assert [e.name for e in exercises if not is_current(old, slug, e)] == []


def test_a_temperature_that_leaves_one_token_is_not_the_number_that_is_wrong():
    source = """
        def generate(
            model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None
        ):
            modes = {m: m.training for m in model.modules()}
            model.eval()
            with torch.no_grad():
                for _ in range(max_new_tokens):
                    logits = model(ids[:, -model.context_size :])[:, -1]
                    first = next_token_probabilities(logits, temperature, None, top_p)
                    p = next_token_probabilities(first.log(), 1.0, top_k)
                    ids = torch.cat([ids, torch.multinomial(p, 1, generator=generator)], 1)
            for module, mode in modes.items():
                module.training = mode
            return ids
        """
    more = "from attention_by_hand.blocks import next_token_probabilities\n"
    assert "1.0" not in pointed(source, "generate", more)


def test_what_is_kept_is_not_looked_for_where_it_is_used():
    source = """
        class GRUCell(nn.GRUCell):
            def forward(self, x, h):
                if not hasattr(self, "kept") or self.kept.shape[0] != len(x):
                    self.kept = x @ self.weight_ih.T
                x_r, x_z, x_n = (self.kept + self.bias_ih).chunk(3, -1)
                h_r, h_z, h_n = (h @ self.weight_hh.T + self.bias_hh).chunk(3, -1)
                r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
                return (1 - z) * torch.tanh(x_n + r * h_n) + z * h
        """
    assert pointed(source, "GRUCell") == ""
