"""`load_gpt2` beside GPT-2 in NumPy, written after OpenAI's `src/model.py`."""

import numpy as np
import pytest
import torch

from attention_by_hand.exercises.language_model.load_gpt2 import checkpoint
from autograder.student.authoring import Draw
from autograder.student.check import verdict_on
from autograder.student.engine.probe import materialise
from solutions.language_model import load_gpt2


def normed(x, g, b):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * g + b


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attended(x, layer, num_heads):
    """Head by head, query by query."""
    d = x.shape[-1]
    packed = x @ layer["attn.c_attn.weight"] + layer["attn.c_attn.bias"]
    q, k, v = packed[:, :d], packed[:, d : 2 * d], packed[:, 2 * d :]
    found, size = np.zeros_like(x), d // num_heads
    for head in range(num_heads):
        own = slice(head * size, (head + 1) * size)
        for i in range(len(x)):
            scores = k[: i + 1, own] @ q[i, own] / np.sqrt(size)
            weights = np.exp(scores - scores.max())
            found[i, own] = weights / weights.sum() @ v[: i + 1, own]
    return found @ layer["attn.c_proj.weight"] + layer["attn.c_proj.bias"]


def logits_of(published, num_layers, num_heads, ids):
    x = published["wte.weight"][ids] + published["wpe.weight"][: len(ids)]
    for i in range(num_layers):
        begin = f"h.{i}."
        layer = {n.removeprefix(begin): p for n, p in published.items() if n.startswith(begin)}
        x = x + attended(normed(x, layer["ln_1.weight"], layer["ln_1.bias"]), layer, num_heads)
        h = normed(x, layer["ln_2.weight"], layer["ln_2.bias"])
        h = gelu(h @ layer["mlp.c_fc.weight"] + layer["mlp.c_fc.bias"])
        x = x + h @ layer["mlp.c_proj.weight"] + layer["mlp.c_proj.bias"]
    x = normed(x, published["ln_f.weight"], published["ln_f.bias"])
    return x @ published["wte.weight"].T


def made(seed, *sizes):
    state = checkpoint(Draw(seed), *sizes, dtype="float64", size=1.0)
    return {name: array.data for name, array in state.items()}, materialise(state, "cpu")


@pytest.mark.parametrize(("d", "num_layers", "num_heads"), [(8, 2, 4), (6, 12, 1), (4, 0, 2)])
def test_the_logits_are_those_of_the_published_code_in_numpy(d, num_layers, num_heads):
    arrays, state = made(b"logits", 11, 9, d, num_layers)
    ids = np.array([[3, 10, 0, 3, 7, 1, 2, 9, 4], [5, 5, 5, 0, 1, 2, 3, 4, 6]])
    found = load_gpt2(state, num_heads)(torch.tensor(ids))
    wanted = [logits_of(arrays, num_layers, num_heads, row) for row in ids]
    np.testing.assert_allclose(found.detach(), wanted, rtol=1e-9, atol=1e-9)


def test_the_names_are_those_of_the_published_checkpoint():
    """Each once in the smallest GPT-2: 12 layers of 12 parameters, two tables, the last norm."""
    arrays, _ = made(b"names", 5, 4, 4, 12)
    parts = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
    layer = [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    wanted = {f"h.{i}.{name}" for i in range(12) for name in layer}
    assert {*arrays} == wanted | {"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias"}
    assert arrays["h.3.attn.c_attn.weight"].shape == (4, 12)
    assert arrays["h.3.mlp.c_fc.weight"].shape == (4, 16)


def test_a_gelu_that_is_replaced_for_all_blocks_is_noticed(monkeypatch):
    gelu = torch.nn.functional.gelu
    monkeypatch.setattr(torch.nn.functional, "gelu", gelu)  # puts it back afterwards

    def replaced_everywhere(state_dict, num_heads):
        torch.nn.functional.gelu = lambda x, approximate="tanh": gelu(x, approximate=approximate)
        return load_gpt2(state_dict, num_heads)

    failed = {a.title for a in verdict_on(replaced_everywhere, "load_gpt2").aspects if not a.passed}
    assert failed == {"GELU in its tanh form"}
