"""Chapter 9's induction heads: the texts, the measures, and what the page says of the trainings."""

import json
import math
import random

import pytest
import torch

from benchmarks import induction
from benchmarks.second import repeated_tokens

STORED = json.loads(induction.RESULT.read_text(encoding="utf-8"))
TWO = [run for run in STORED["runs"] if run["model"] == "two layers"]
ONE = [run for run in STORED["runs"] if run["model"] == "one layer"]
PAGE = (induction.RESULT.parents[1] / "book" / "09_language_model.md").read_text(encoding="utf-8")


def test_a_training_text_repeats_its_beginning_and_what_followed_is_beyond_the_table():
    periods = set()
    for text in induction.repeating(400, torch.Generator().manual_seed(5)).tolist():
        period = next(n for n in range(1, len(text)) if text[n:] == text[:-n])
        periods.add(period)
        assert len(text) == 48 and period - 1 >= induction.FAR
    assert periods == set(range(9, 25))


def test_what_followed_is_the_place_after_the_only_earlier_like():
    ids = torch.tensor([[7, 8, 9, 7, 8, 7, 9], [1, 2, 3, 4, 5, 6, 0]])
    assert induction.followed(ids).tolist() == [[0, 0, 0, 1, 2, 0, 3], [0] * 7]


def test_losses_shares_and_cuts_are_those_that_other_code_finds():
    torch.manual_seed(3)
    model = induction.Model(**induction.TWO)
    for layer in model.layers:
        layer.o.weight.data *= 10  # so that it matters what they add
    p, texts = dict(model.named_parameters()), induction.twice(induction.HALF)
    loss, *shares = repeated_tokens.told(p, texts.tolist())
    assert induction.loss(model, texts) == pytest.approx(loss, abs=1e-4)
    for found, named in zip(induction.looks(model), shares, strict=True):
        assert found.flatten().tolist() == pytest.approx([*named.values()], abs=1e-4)
    for cut, blind in ((((1, 0), (1, 3), (0, 2)), None), ((), 1), ((), 2)):
        without = repeated_tokens.told(p, texts.tolist(), cut, blind)[0]
        assert induction.loss(model, texts, cut, blind) == pytest.approx(without, abs=2e-5)
        assert without != pytest.approx(loss, abs=2e-4)


def test_three_seeds_each_as_long_and_one_layer_has_more_parameters():
    assert STORED["made"]["sizes"] == {"two layers": induction.TWO, "one layer": induction.ONE}
    assert STORED["made"]["steps"] == induction.STEPS
    assert [run["seed"] for run in TWO] == [run["seed"] for run in ONE] == [0, 1, 2]
    for run in STORED["runs"]:
        model = induction.Model(**STORED["made"]["sizes"][run["model"]])
        assert run["parameters"] == sum(p.numel() for p in model.parameters())
        assert len(run["curve"]) == induction.STEPS // induction.EVERY + 1
    assert ONE[0]["parameters"] > TWO[0]["parameters"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_loss_falls_more_than_half_its_way_in_a_fifth_of_the_steps_from_above_one_layer_s(seed):
    losses, fifth = TWO[seed]["curve"], induction.STEPS // induction.EVERY // 5
    falls = [before - after for before, after in zip(losses, losses[fifth:], strict=False)]
    assert max(falls) > (losses[0] - losses[-1]) / 2
    assert losses[falls.index(max(falls))] > min(ONE[seed]["curve"])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_every_seed_the_heads_form_in_the_second_layer_and_copying_needs_them(seed):
    two, one = TWO[seed], ONE[seed]
    guessing = math.log(induction.TOKENS)
    assert two["loss"] < guessing / 4 and one["loss"] > guessing / 2
    heads = two["induction heads"]
    assert heads and {layer for layer, _ in heads} == {1} and not one["induction heads"]
    for layer, row in enumerate(two["to what followed"]):
        for head, share in enumerate(row):
            assert (share > 1 / 2) == ([layer, head] in heads)
    assert two["without them"] > guessing > one["loss"]
    assert two["first layer blind to one back"] > guessing
    assert two["first layer blind to two back"] < guessing / 2
    assert two["copied"] < guessing / 4
    assert two["copied, blind to what followed"] > guessing
    assert two["copied, blind to one further"] == pytest.approx(two["copied"], abs=0.001)


@torch.no_grad()
def test_hidden_from_the_last_layer_is_what_one_place_adds_and_no_more():
    torch.manual_seed(3)
    model, given = induction.Model(**induction.TWO), []
    for layer in model.layers:
        layer.o.weight.data *= 10  # so that it matters what they add
    last, ids = model.layers[1], induction.twice(induction.HALF)
    for part in (last, model.norms[2]):
        part.register_forward_pre_hook(lambda _, got: given.append(got[0]))
    weights, (h, x, *_) = model(ids)[1][1], given
    values, nats = last.v(h), []
    for b, row in enumerate(ids.tolist()):
        for i in range(induction.HALF, len(row) - 1):
            if row[:i].count(row[i]) == 1:
                j = row.index(row[i]) + 1
                taken = weights[b, :, i, j].repeat_interleave(16) * values[b, j]
                logits = model.out(model.norms[2](x[b, i] - last.o(taken)))
                nats.append(-logits.log_softmax(-1)[row[i + 1]].item())
    assert induction.copied(model, 0) == pytest.approx(sum(nats) / len(nats), abs=1e-5)
    assert induction.copied(model) != pytest.approx(sum(nats) / len(nats), abs=1e-4)


def test_the_page_says_what_the_copied_token_costs():
    for name, least, most in (
        ("copied", "0.19", "0.24"),
        ("copied, blind to what followed", "4.41", "4.44"),
    ):
        costs = [run[name] for run in TWO]
        assert (f"{min(costs):.2f}", f"{max(costs):.2f}") == (least, most)
        assert f"{least} to {most}" in PAGE


def test_the_page_says_how_many_of_the_four_heads_they_are():
    assert sorted(len(run["induction heads"]) for run in TWO) == [3, 4, 4]
    assert "with one seed three of its four heads, with two all four" in PAGE


def test_the_page_says_which_heads_of_the_first_layer_are_missed():
    assert "With seed 0 a single head of the first layer carries it" in PAGE
    guessing = math.log(induction.TOKENS)
    first, *others = TWO
    back, cut = first["to the one before"][0], first["one head cut"][0]
    assert cut[back.index(max(back))] > guessing and sum(loss > guessing / 4 for loss in cut) == 1
    assert "two heads look one back, and neither is missed much" in PAGE
    for run in others:
        assert sum(share > 1 / 4 for share in run["to the one before"][0]) == 2
        assert max(run["one head cut"][0]) < guessing / 4


def test_the_picture_is_of_weights_and_its_head_looks_at_what_followed():
    weights = torch.tensor(STORED["shown"]["weights"])
    assert torch.allclose(weights.sum(1), torch.ones(2 * induction.HALF), atol=5e-3)
    places = induction.followed(induction.twice(induction.HALF)[:1])[0]
    second = (places > 0) & (torch.arange(len(places)) >= induction.HALF)
    assert weights[second, places[second]].mean() > 1 / 2
    assert STORED["shown"]["head"] in TWO[0]["induction heads"]


def test_the_other_code_s_texts_repeat_too():
    assert repeated_tokens.repeated(random.Random(1), 7, 3)[3:6] == (
        repeated_tokens.repeated(random.Random(1), 3, 3)
    )
