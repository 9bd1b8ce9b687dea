"""Chapter 3's experiment with heads: its controls change what they say and nothing else."""

import ast
import json
import math
import platform
import re
from itertools import pairwise
from statistics import mean, stdev

import pytest
import torch

from benchmarks import heads
from benchmarks.second import letters_by_heart


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


@pytest.mark.parametrize("part", [0, 3, 9])
def test_no_context_that_is_kept_back_was_in_training(page, part):
    learnt, kept = (
        {tuple(window) for window in windows[:, [0, 1, 3, 4]].tolist()}
        for windows in page["split"](part)
    )
    assert kept and not learnt & kept
    assert len(learnt | kept) == len(page["contexts"])


def test_each_window_is_kept_back_once(page):
    kept = sum(len(page["split"](part)[1]) for part in range(10))
    assert kept == len(page["windows"]) == sum(map(len, page["split"](4)))


def test_counts_are_those_of_a_plain_loop():
    torch.manual_seed(5)
    learnt, asked = torch.randint(3, (200, 5)), torch.randint(3, (20, 5))

    def count(window, places):
        alike = [w for w in learnt if all(w[j] == window[j] for j in places)]
        return [sum(int(w[2] == letter) for w in alike) for letter in range(27)]

    for places in ((), (1,), (1, 3), (0, 1, 3)):
        found = heads.counted(learnt, asked, places)
        assert found.tolist() == [count(window, places) for window in asked]
    for window, found in zip(asked, heads.smoothed(learnt, asked), strict=True):
        known = [c / 200 for c in count(window, ())]
        for tables in ([(1,), (3,)], [(1, 3)], [(0, 1, 3), (1, 3, 4)]):
            each = [[(c + 2 * k) / (sum(row) + 2) for c, k in zip(row, known, strict=True)]
                    for row in (count(window, places) for places in tables)]  # fmt: skip
            known = [mean(column) for column in zip(*each, strict=True)]
        assert found.tolist() == pytest.approx(known, abs=1e-6)
        assert sum(known) == pytest.approx(1)


STORED = json.loads(heads.RESULT.read_text(encoding="utf-8"))
RUNS, TEXT = STORED["runs"], heads.PAGE.read_text(encoding="utf-8")
STUDENT = {5: 2.776, 10: 2.262}  # the 97.5% quantile of Student's t for so many runs


def told(shares):
    """Mean and half of the 95% interval, in percent, as the page rounds them."""
    half = STUDENT[len(shares)] * stdev(shares) / math.sqrt(len(shares))
    return round(100 * mean(shares), 1) + 0.0, round(100 * half, 1)


def ahead(one, other, steps, windows="kept back"):
    """By how much one model is ahead of another, seed by seed."""
    pairs = zip(RUNS[one][steps][windows], RUNS[other][steps][windows], strict=True)
    return [a - b for a, b in pairs]


def table(name):
    (found,) = re.findall(rf"^{name} = (\{{.*?^\}})", TEXT, re.M | re.S)
    return ast.literal_eval(found)


def test_the_stored_result_is_of_every_model_and_of_all_seeds(page):
    seeds = {str(steps): list(seeds) for steps, seeds in heads.SEEDS.items()}
    assert STORED["made"]["seeds"] == seeds
    assert list(RUNS) == list(heads.models(page))
    for runs in RUNS.values():
        for steps, shares in runs.items():
            assert {len(each) for each in shares.values()} == {len(seeds[steps])}


def test_what_is_stored_of_counting_is_what_counting_gives(page):
    learnt, asked = page["split"](0)
    right = (heads.smoothed(learnt, asked).argmax(1) == asked[:, 2]).float().mean().item()
    same = STORED["made"]["python"] == platform.python_version()  # another's text is another
    told = pytest.approx(right, abs=0.002 if same else 0.1)
    assert STORED["counted"]["one to three neighbours"][0] == told


def test_the_page_tells_the_stored_means_and_intervals():
    assert table("measured") == {
        name: (
            *told(shares["300"]["kept back"]),
            *told(shares["1500"]["kept back"]),
            *told(shares["1500"]["learnt"]),
        )
        for name, shares in RUNS.items()
    }
    assert table("counted") == {
        way: round(100 * mean(STORED["counted"][way]), 1) for way in table("counted")
    }
    few = STORED["on few windows"]
    gaps = [mean(few[name]["learnt"]) - mean(few[name]["kept back"]) for name in few]
    one, eight, most = (f"{100 * gap:.1f}" for gap in gaps)
    assert f"from {one} points with one head to {eight} with eight and {most} with 32" in TEXT
    assert table("on_few") == {
        name: (*told(shares["learnt"]), *told(shares["kept back"])) for name, shares in few.items()
    }


def test_the_page_tells_how_good_a_guide_each_measure_was():
    for found in STORED["guides"].values():
        low, high = (f"{end:.2f}".replace("-", "−") for end in (min(found), max(found)))
        assert f"{mean(found):.2f} (from {low} to {high})" in TEXT


def test_the_page_has_a_table_of_all_means_but_the_scrambled_ones():
    rows = re.findall(rf"^\|{' ([^|]+) [|]' * 4}$", TEXT.replace("`", ""), re.M)
    shown = {model: cells for model, *cells in rows if "±" in cells[0]}
    assert shown == {
        name: [
            "{} ± {}".format(*told(shares))
            for shares in (found["300"]["kept back"], *found["1500"].values())
        ]
        for name, found in RUNS.items()
        if "scrambled" not in name
    }


def test_the_page_tells_differences_with_their_intervals():
    rows = re.findall(rf"^\|{' ([^|]+) [|]' * 4}$", TEXT.replace("−", "-").replace("`", ""), re.M)
    quoted = {(model, other): cells for model, other, *cells in rows if other in RUNS}
    assert len(quoted) == 10
    for pair, cells in quoted.items():
        for steps, cell in zip(("300", "1500"), cells, strict=True):
            assert cell == "{} ± {}".format(*told(ahead(*pair, steps)))


PER_PLACE, BLIND, FED = (
    "1 head, W_v for each place", "32 heads, blind", "1 head, then feed-forward",
)  # fmt: skip


def test_the_points_that_the_page_tells_in_words_are_those_stored():
    closed, whole, fed = (mean(ahead(name, "1 head", "1500"))
                          for name in (PER_PLACE, "32 heads", FED))  # fmt: skip
    assert f"closes {100 * closed:.0f} of the {100 * whole:.0f} points" in TEXT
    unseen = mean(ahead("32 heads", BLIND, "1500"))
    assert f"and {100 * unseen:.0f} points worse than 32 heads that see the letters" in TEXT
    assert f"one head gains {100 * fed:.0f} points. " in TEXT
    ahead_of_fed = mean(ahead("32 heads, then feed-forward", FED, "1500"))
    many = "{} ± {}".format(*told(ahead("32 heads", "8 heads", "1500")))
    splits, *other = re.search(
        r"all (\d+) by ([\d.]+) ± ([\d.]+);", letters_by_heart.__doc__
    ).groups()
    assert f"our five splits cannot say (by {many} points). With five more they are" in TEXT
    more = re.search(r"parts 5 to 9: (.*?) points", letters_by_heart.__doc__)[1].split(", ")
    points, half = told(ahead("32 heads", "8 heads", "1500") + [float(n) / 100 for n in more])
    assert "by about three points; but on" in TEXT and round(points) == 3 and points > half
    assert f"but on {splits} others, in other code, they" in TEXT
    assert "they are about one point ahead, with 0 in the interval" in TEXT
    lead, half = map(float, other)
    assert round(lead) == 1 and lead < half
    told_so = f"ahead of one head with it by {100 * ahead_of_fed:.0f} points, no longer by"
    assert f"{told_so} {100 * whole:.0f}." in TEXT


def test_each_doubling_of_the_heads_but_one_helps_within_300_steps():
    assert "(between 8 and 16 alone, our ten seeds cannot tell)" in TEXT
    names = [f"{n} head{'s' if n > 1 else ''}" for n in (1, 2, 4, 8, 16, 32)]
    for fewer, more in pairwise(names):
        points, half = told(ahead(more, fewer, "300"))
        assert (points > half) == (more != "16 heads")


def test_the_lead_of_many_heads_is_larger_where_training_has_been():
    seen, new = (mean(ahead("32 heads", "1 head", "1500", w)) for w in ("learnt", "kept back"))
    assert seen > new
    said = "some {:.0f} points more than one, of new contexts some {:.0f}"
    assert said.format(100 * seen, 100 * new) in TEXT


def test_the_feed_forward_layer_has_as_many_parameters_as_the_page_says(page):
    sizes = [
        sum(p.numel() for p in page["Guesser"](1, kind=kind).parameters())
        for kind in (heads.models(page)["1 head, then feed-forward"][1], heads.MultiHeadAttention)
    ]
    assert f"the feed-forward layer has {sizes[0] - sizes[1]:,}." in TEXT
