"""Chapter 3's experiment with heads: its controls change what they say and nothing else."""

import importlib.util
import json
import re
import sys
from pathlib import Path
from statistics import mean

import pytest
import torch

PATH = Path(__file__).resolve().parents[1] / "benchmarks" / "heads.py"
spec = importlib.util.spec_from_file_location("heads", PATH)
heads = importlib.util.module_from_spec(spec)
sys.modules["heads"] = heads
spec.loader.exec_module(heads)


@pytest.fixture(scope="module")
def page():
    return heads.page_definitions()


@pytest.fixture
def sequences():
    torch.manual_seed(1)
    return torch.randn(3, 5, 32)


def of_right_parameters(kind, num_heads):
    """An attention of this kind and a right one, with equal parameters where both have them."""
    torch.manual_seed(2)
    other, right = kind(32, num_heads), heads.MultiHeadAttention(32, num_heads)
    other.load_state_dict(right.state_dict(), strict=False)
    return other, right


def test_equal_value_matrices_for_all_places_are_the_right_module(page, sequences):
    control, right = of_right_parameters(page["ValuesPerPlace"], 4)
    for own in control.W_v.own:
        own.load_state_dict(right.W_v.state_dict())
    query = sequences[:, 2:3]
    torch.testing.assert_close(
        control(query, sequences, sequences), right(query, sequences, sequences)
    )
    with torch.no_grad():
        control.W_v.own[3].weight.add_(1.0)
    assert not torch.allclose(
        control(query, sequences, sequences)[0], right(query, sequences, sequences)[0]
    )


def test_even_weights_are_a_fifth_before_and_after_training(page, sequences):
    _, kind = heads.models(page)["1 head, W_v for each place, even weights"]
    guesser = page["trained"](1, 0, 2, kind=kind)
    weights = guesser.attention(sequences[:, 2:3], sequences, sequences)[1]
    assert torch.equal(weights, torch.full((3, 1, 1, 5), 0.2))


def test_blind_weights_are_learnt_and_the_same_for_all_letters(page):
    windows = page["kept_back"][:50]
    for kind, same in ((page["Blind"], True), (heads.MultiHeadAttention, False)):
        weights = page["trained"](4, 0, 2, kind=kind)(windows)[1]
        assert torch.allclose(weights, weights[:1].expand_as(weights), atol=1e-6) == same
        assert weights[0].unique().numel() > 1


def test_a_scrambled_head_of_four_sees_two_places_at_most(page, sequences):
    scrambled, right = of_right_parameters(page["Scrambled"], 4)
    for attention, most in ((scrambled, 2), (right, 5)):
        attention.W_o.weight.data.copy_(torch.eye(32))  # so that head h fills features 8h to 8h + 7
        before = attention(sequences[:, 2:3], sequences, sequences)[0]
        moved = []
        for place in range(5):
            other = sequences.clone()
            other[:, place] += 1.0
            after = attention(sequences[:, 2:3], other, other)[0]
            moved.append((after - before).abs().amax((0, 1)).reshape(4, 8).amax(1) > 1e-6)
        assert torch.stack(moved).sum(0).tolist() == [most] * 4


def test_the_stored_result_is_of_every_model_and_of_three_seeds(page):
    stored = json.loads(heads.RESULT.read_text(encoding="utf-8"))
    assert stored["made"]["seeds"] == list(heads.SEEDS) == [0, 1, 2]
    assert list(stored["runs"]) == list(heads.models(page))
    for shares in stored["runs"].values():
        assert list(shares) == ["300", "1500"]
        assert all(len(found) == 3 for found in shares.values())


def test_the_page_quotes_the_longer_runs():
    runs = json.loads(heads.RESULT.read_text(encoding="utf-8"))["runs"]
    text = heads.PAGE.read_text(encoding="utf-8")
    (told,) = re.findall(r"After five times as many steps, .*", text)
    quoted = [
        *("1 head", "32 heads", "1 head, W_v for each place"),
        *("1 head, W_v for each place, even weights", "32 heads, blind"),
    ]
    assert re.findall(r"\d+%", told) == [f"{mean(runs[name]['1500']):.0%}" for name in quoted]


def test_the_page_tells_how_the_scrambled_module_fares():
    runs = json.loads(heads.RESULT.read_text(encoding="utf-8"))["runs"]
    ahead = {
        (H, steps): [
            a - b
            for a, b in zip(
                runs[f"{H} heads, scrambled"][steps], runs[f"{H} heads"][steps], strict=True
            )
        ]
        for H in (4, 8)
        for steps in ("300", "1500")
    }
    text = heads.PAGE.read_text(encoding="utf-8")
    assert "in each of the three runs" in text and min(ahead[4, "300"]) > 0
    assert "still ahead with four heads" in text and mean(ahead[4, "1500"]) > 0
    assert "a little worse" in text and 0 > mean(ahead[8, "300"]) > -0.03
    assert f"{-100 * mean(ahead[8, '1500']):.0f} points behind with eight" in text
