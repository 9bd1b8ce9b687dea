"""What would be right if one value were another: where values do not tell, a trial does."""

import pytest
from pointer_cases import pointed, written

from autograder.student import pointing
from autograder.student.course import find_exercise
from autograder.student.engine.locator.counterfactual import (
    BRANCH,
    IDLE,
    NUMBER,
    ROLE,
    Repair,
    find_repair,
)
from autograder.student.engine.locator.locate import problem_of
from autograder.student.engine.probe import probe
from autograder.student.expected import expected_of, fixed_runs

pytestmark = pytest.mark.usefixtures("plenty_of_time")


def mends(source: str, name: str, compare: bool = False, **kwargs) -> list[Repair]:
    """The places at which a change would mend the answer's failing runs; `compare` says whether
    the runs that are right are shown as well."""
    answer = written(source, name)
    slug, exercise = find_exercise(name)
    runs = [run for row in fixed_runs(exercise) for run in row if not run.simulated]
    known = [
        record
        for row, records in zip(
            fixed_runs(exercise), expected_of(slug)[name].reference, strict=True
        )
        for run, record in zip(row, records, strict=True)
        if not run.simulated
    ]
    cases = [(r, probe(answer, r), k) for r, k in zip(runs, known, strict=True)]
    failing = [case for case in cases if problem_of(*case) is not None]
    assert failing
    if compare:
        kwargs["fine"] = [case for case in cases if problem_of(*case) is None]
        assert kwargs["fine"]
    return find_repair(answer, failing, "cpu", 60.0, **kwargs)


def mended(*args, **kwargs) -> list[tuple[str, str]]:
    """The lines of these places, and the change's kind."""
    found = mends(*args, **kwargs)
    return [(m.site.lines[m.site.node.lineno - 1].strip(), m.kind) for m in found]


ENCODING = """
def sinusoidal_encoding(max_len, d_model, base=10000.0):
    position = torch.arange(max_len, dtype=torch.float64)[:, None]
    position = position + 1
    rate = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.empty(max_len, d_model, dtype=torch.float32)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate[: d_model // 2])
    return table
"""


def test_an_operation_too_many():
    found = mended(ENCODING, "sinusoidal_encoding", kinds=[IDLE])
    assert found == [("position = position + 1", IDLE)]
    told = pointed(ENCODING, "sinusoidal_encoding")
    assert "    position = position + 1\n" in told


@pytest.mark.parametrize("doubled", [-1, 70])
def test_an_operation_is_one_too_many_if_all_failing_runs_are_right_without_it(doubled):
    """The run with 70 rows is not among the first that fail."""
    returned = f"return table * (1 + (max_len == {doubled}))"
    source = ENCODING.replace("return table", returned)
    (found,) = mends(source, "sinusoidal_encoding", kinds=[IDLE])
    assert found.always == (doubled < 0)


ROUNDED = """
def softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis, keepdims=True))
    weights = weights / weights.sum(axis, keepdims=True)
    if weights.ndim != 2:
        weights = np.round(weights, 3)
    return weights
"""


@pytest.mark.parametrize("always", [True, False])
def test_an_operation_without_which_only_some_runs_are_right_is_not_shown(always, monkeypatch):
    def some(*args, **kwargs):
        return [mend._replace(always=always) for mend in find_repair(*args, **kwargs)]

    monkeypatch.setattr(pointing, "find_repair", some)
    assert ("without this operation" in pointed(ROUNDED, "softmax")) == always


CAUSAL = """
def causal_mask(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    everything = torch.ones(n_q, n_k, dtype=torch.bool, device=device)
    return everything.tril(n_k - n_q + 1)
"""


def test_one_more_or_less():
    last = "return everything.tril(n_k - n_q + 1)"
    assert mended(CAUSAL, "causal_mask", kinds=[NUMBER]) == [(last, NUMBER)]
    assert "    " + last in pointed(CAUSAL, "causal_mask").splitlines()


RESIDUAL = """
class Residual(nn.Module):
    def __init__(self, sublayer, d_model, dropout=0.0, norm_first=False):
        super().__init__()
        self.sublayer, self.norm_first = sublayer, norm_first
        self.norm, self.dropout = nn.LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, x, *args, **kwargs):
        if {test}:
            return x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
        return self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))
"""


def test_a_test_that_comes_out_the_wrong_way():
    source = RESIDUAL.format(test="isinstance(self.sublayer, nn.Linear)")
    assert pointed(source, "Residual").splitlines() == [
        "The result would be right if this came out the other way:",
        "    if isinstance(self.sublayer, nn.Linear):",
        "       " + "^" * len("isinstance(self.sublayer, nn.Linear)"),
    ]


CHUNKED = """
class BertLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, chunk_size=0):
        super().__init__()
        self.attention = blocks.MultiHeadAttention(d_model, num_heads, dropout)
        self.norm1 = nn.LayerNorm(d_model, eps=1e-12)
        self.norm2 = nn.LayerNorm(d_model, eps=1e-12)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.chunk_size = chunk_size

    def forward(self, x, mask=None):
        x = self.norm1(x + self.dropout(self.attention(x, x, x, mask=mask)[0]))
        if {test}:
            parts = x.split(self.chunk_size, dim=1)
            h = [self.linear2(nn.functional.gelu(self.linear1(part))) for part in parts]
            return self.norm2({chunked}self.dropout(torch.cat(h, dim=1)))
        h = self.linear2(nn.functional.gelu(self.linear1(x)))
        return self.norm2(x + self.dropout(h))
"""
USING = "from attention_by_hand import blocks\n"


def test_a_test_that_parts_right_runs_from_wrong_ones_is_not_to_blame():
    """One of its two ways is wrong. That the other one is right says nothing about the test."""
    source = USING + CHUNKED.format(test="self.chunk_size > 0", chunked="")
    assert ("if self.chunk_size > 0:", BRANCH) in mended(source, "BertLayer")
    assert mended(source, "BertLayer", compare=True) == []


def test_a_test_that_leads_right_runs_the_same_way_is_still_shown():
    test = "self.chunk_size >= 0"
    source = USING + CHUNKED.format(test=test, chunked="x + ")
    assert (f"if {test}:", BRANCH) in mended(source, "BertLayer", compare=True)


DECODE = """
def greedy_decode(model, source, bos_id, eos_id, max_len):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    ids = torch.full((len(source), 1), bos_id)
    done = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        while {test}:
            chosen = model(source, ids)[:, -1].argmax(dim=-1)
            chosen = chosen.masked_fill(done, model.pad_id)
            ids = torch.cat([ids, chosen[:, None]], dim=1)
            done = done | (chosen == eos_id)
    for module, training in modes:
        module.training = training
    return ids[:, 1:]
"""


def test_a_loop_that_ends_too_late():
    told = pointed(DECODE.format(test="ids.shape[1] <= max_len"), "greedy_decode")
    assert told.splitlines()[:2] == [
        "The result would be right if this loop ended at another time:",
        "    while ids.shape[1] <= max_len:",
    ]


SELF_ATTENTION = """
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        query, key, value = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = query @ query.mT / query.shape[-1] ** 0.5
        weights = scores.softmax(-1)
        return weights @ value, weights
"""


def test_another_value_of_the_answers_own():
    found = mended(SELF_ATTENTION, "SelfAttention", kinds=[BRANCH, ROLE])
    assert found == [("scores = query @ query.mT / query.shape[-1] ** 0.5", ROLE)]


GELU = """
def gelu(x):
    return 0.5 * x * (1 + torch.erf(x / {}))
"""


@pytest.mark.parametrize("written_as", ["1.41", "1.414", "1.4142"])
def test_a_constant_with_too_few_digits(written_as):
    told, line, carets = pointed(GELU.format(written_as), "gelu").splitlines()
    assert told == "The result would be right with another number here:"
    assert line[carets.index("^") : len(carets)] == written_as


def test_a_constant_that_is_none_of_a_formulas_rounded():
    assert not mended(GELU.format("1.702"), "gelu", kinds=[NUMBER])


def test_it_ends_with_its_time():
    assert find_repair(written(CAUSAL, "causal_mask"), [], "cpu", 0.0) == []


def test_an_argument_that_is_rebound_is_left_as_it_was():
    """A trial changes what a copy sees, not the answer or its arguments."""
    answer = written(CAUSAL, "causal_mask")
    code, names = answer.__code__, dict(answer.__globals__)
    pointing.pointer_on(answer, "causal_mask")
    assert answer.__code__ is code
    assert answer.__globals__ == names
