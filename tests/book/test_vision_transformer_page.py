"""What chapter 11's page says of its models and of what they look at, held to the data."""

import functools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits

from attention_by_hand.blocks import VisionTransformer
from benchmarks import vision, vision_gaps
from benchmarks.second import moved_digits
from solutions.bert import attention_relevance

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "11_vision_transformer.md").read_text(encoding="utf-8")
MEASURED = ROOT / "benchmarks" / "vision_models.json"
MADE, RUNS = json.loads(MEASURED.read_text(encoding="utf-8")).values()
LOOKS = [run["looked at"] for run in RUNS if "looked at" in run]
SIZES = (100, 400, 1437)
GAPS = Path(vision_gaps.__file__).with_suffix(".json")
GAP_RUNS = json.loads(GAPS.read_text(encoding="utf-8"))["runs"]
TAUGHT = ("never", "as they stand", "moved")
EVEN = np.mean([
    math.dist((i, j), (k, m))
    for i in range(5) for j in range(5) for k in range(5) for m in range(5)
])  # fmt: skip


def of(model, key="test", images=1437, shifts=False, order="as they are", long=False):
    """The percentages of the five seeds."""
    wanted = (model, images, shifts, order)
    found = {
        run["seed"]: 100 * run[key]
        for run in RUNS
        if (run["model"], run["images"], run["shifts"], run["order"]) == wanted
        and (run["steps"] == MADE["steps of the page"]) == long
    }
    assert sorted(found) == [0, 1, 2, 3, 4], wanted
    return np.array([found[seed] for seed in range(5)])


def interval(values):
    """Both ends of the 95% interval of a mean of five."""
    half = 2.776 * values.std(ddof=1) / math.sqrt(5)
    return values.mean() - half, values.mean() + half


def told(values):
    """The mean of five and half of its 95% interval, as the page has them."""
    low, high = interval(values)
    return f"{(low + high) / 2:.1f} ± {(high - low) / 2:.1f}"


def test_it_says_where_it_comes_from_and_the_two_networks_are_of_a_size():
    assert {"script", "date", "machine", "torch", "steps", "steps of the page"} <= set(MADE)
    assert "/" not in MADE["machine"]
    vit, cnn = MADE["parameters"]["vit"], MADE["parameters"]["cnn"]
    assert abs(vit / cnn - 1) < 0.01


def test_what_the_page_says_of_moved_digits_is_what_is_stored():
    assert "the ViT, and to the SVM: they name fewer than two fifths" in PAGE
    assert max(of(name, "moved").mean() for name in ("vit", "svm")) < 40
    assert "The ViT comes only to about seven in ten, and after three times the steps" in PAGE
    assert round(of("vit", "moved", shifts=True).mean(), -1) == 70
    assert "after three times the steps to about nine." in PAGE
    assert f"after 2,400 {of('vit', 'train', shifts=True, long=True).mean():.0f}%." in PAGE
    for key in ("test", "moved"):
        assert round(of("vit", key, shifts=True, long=True).mean(), -1) == 90
    rivals = ("svm", "nearest")
    before, after = ([of(n, "moved", shifts=s).mean() for n in rivals] for s in (False, True))
    assert f"rise from {before[0]:.0f} and {before[1]:.0f}% to {after[0]:.0f}%" in PAGE
    assert round(after[0]) == round(after[1])
    cnn = of("cnn", "moved", shifts=True).mean()
    assert f"the convolutions to {cnn:.1f}%." in PAGE
    own = of("vit", "train", shifts=True).mean()
    assert f"the ViT names only {own:.0f}% of its own training pictures" in PAGE
    in_place = [of("vit", key, shifts=True, long=True).mean() for key in ("test", "moved")]
    assert "it is the other way round, by two points" in PAGE and round(-np.diff(in_place)[0]) == 2


def test_what_the_page_says_of_support_vectors_is_what_is_stored():
    assert "with 100 pictures it is level with the convolutions" in PAGE
    low, high = interval(of("cnn", images=100) - of("svm", images=100))
    assert low < 0 < high
    assert "with all of them less than a point behind" in PAGE
    assert 0 < (of("cnn") - of("svm")).mean() < 1
    for images in (100, 400, 1437):
        assert min(of("svm", images=images) - of("vit", images=images)) > 0


def test_what_the_page_says_of_logistic_regression_is_what_is_stored():
    assert "the ViT is last on average with every number of pictures" in PAGE
    for images in (100, 400, 1437):
        rivals = [of(name, images=images).mean() for name in ("cnn", "linear", "svm", "nearest")]
        assert of("vit", images=images).mean() < min(rivals)
    low, high = interval(of("linear") - of("vit"))
    assert low < 0 and f"{(low + high) / 2:.1f} ± {(high - low) / 2:.1f} points" in PAGE
    for images in (100, 400):
        assert interval(of("linear", images=images) - of("vit", images=images))[0] > 0


def test_what_the_page_says_of_more_steps_where_digits_stand_is_what_is_stored():
    tripled = [r for r in RUNS if r["steps"] == MADE["steps of the page"] and not r["shifts"]]
    assert [(r["seed"], r["model"]) for r in tripled] == [(0, "vit"), (1, "vit"), (2, "vit")]
    shares = 100 * np.array([r["test"] for r in tripled])
    for ahead, words in (
        (of("cnn")[:3] - shares, "it is still {:.1f} ± {:.1f} points behind their 800"),
        (shares - of("vit")[:3], "where digits stand, by {:.1f} ± {:.1f} points in three seeds"),
    ):
        half = 4.303 * ahead.std(ddof=1) / math.sqrt(3)
        assert words.format(ahead.mean(), half) in PAGE


def test_what_the_page_says_of_another_order_of_pixels_is_what_is_stored():
    assert "**The convolutions** lose about two points by it where digits stand still" in PAGE
    falls, gains, costs = [], [], []
    svm, convolutions = ((of(name) - of("vit")).mean() for name in ("svm", "cnn"))
    assert f"which has no neighbours to lose, leads by {svm:.1f}." in PAGE
    assert "With 100 pictures, the SVM leads the ViT by about as many points as they do" in PAGE
    assert abs((of("svm", images=100) - of("cnn", images=100)).mean()) < 1.5
    for images in SIZES[::2]:
        cnn, vit = (
            [of(name, images=images, order=order) for order in ("as they are", "pixels")]
            for name in ("cnn", "vit")
        )
        leads = [one - other for one, other in zip(cnn, vit, strict=True)]
        first, last = (f"{lead.mean():.1f}" for lead in leads)
        falls.append(f"from {first} to {last}")
        falls.append(f"by {told(leads[0] - leads[1])}")
        gains.append(told(vit[1] - vit[0]))
        costs.append(cnn[0] - cnn[1])
        assert interval(costs[-1])[0] > 0 > interval(vit[1] - vit[0])[0]
        share = [end / leads[0].mean() for end in interval(leads[0] - leads[1])]
        assert share[0] < 0.02 and share[1] > 0.8  # nearly nothing, or nearly all of it
    assert round(costs[1].mean()) == 2
    assert "Half of that is what they lose, half what the ViT seems to gain." in PAGE
    assert 0.45 < costs[1].mean() / (leads[0] - leads[1]).mean() < 0.55
    assert f"With 100 pictures, the convolutions lose {costs[0].mean():.1f} points." in PAGE
    few, by_few, many, by_many = falls
    assert f"falls where digits stand, {many} points, {by_many}: by nearly nothing" in PAGE
    assert f"With 100 pictures it falls {few} points, {by_few}: again by nearly nothing" in PAGE
    assert "Where digits stand, the convolutions lose about two points by it" in PAGE
    assert f"their lead falls {by_many} of {convolutions:.1f}" in PAGE
    assert f"(by {gains[1]} points with all pictures, and by {gains[0]})" in PAGE
    assert f"some of the lead is left: {told(leads_left())} points" in PAGE
    assert interval(leads_left())[0] > 0


def leads_left():
    """What is left of the lead with 100 pictures and their pixels in another order."""
    cnn, vit = (of(name, images=100, order="pixels") for name in ("cnn", "vit"))
    return cnn - vit


def test_what_the_page_says_of_few_and_many_digits_that_stand_is_what_is_stored():
    vit, cnn = ([round(of(name, images=n).mean()) for n in SIZES] for name in ("vit", "cnn"))
    assert "100, 400 and 1,437 pictures, the ViT names {}, {} and {}%".format(*vit) in PAGE
    assert "the convolutions {}, {} and {}%".format(*cnn) in PAGE
    assert f"With all 1,437 it names {vit[2]}%, the convolutions {cnn[2]}%" in PAGE


def gaps_of(model, taught="never"):
    """The gaps of the three seeds, `(seed, change)`: a patch, a pixel, mirrored, turned."""
    found = [run for run in GAP_RUNS if (run["model"], run["taught"]) == (model, taught)]
    assert [run["seed"] for run in found] == [0, 1, 2], (model, taught)
    return np.array([run["gaps"] for run in found])


def test_what_the_page_says_of_gaps_is_what_is_stored():
    assert gaps_of("no positions")[:, 0].max() < 1e-4 < gaps_of("no positions")[:, 1:].min()
    assert gaps_of("circular")[:, 0].max() < 1e-4 < gaps_of("circular")[:, 1:].min()
    assert gaps_of("unpooled")[:, :2].max() < 1e-4 < gaps_of("unpooled")[:, 2:].min()
    assert "For the pixel, pooling alone does most of it" in PAGE
    assert gaps_of("circular")[:, 1].mean() > 0.5 * gaps_of("cnn")[:, 1].mean()
    assert "about a quarter of the step to another digit; moved digits halve that" in PAGE
    gaps = [gaps_of("cnn", t)[:, :2].mean() for t in ("as they stand", "moved")]
    assert 0.2 < gaps[0] < 0.3 and 0.4 < gaps[1] / gaps[0] < 0.6
    assert "Trained, it is a third or less, with zeros or without" in PAGE
    for name, first in (("cnn", 0), ("circular", 1)):
        standing, moved = (gaps_of(name, t)[:, first:2] for t in ("as they stand", "moved"))
        assert standing.max() < 1 / 3 and (moved < standing).all()
    assert "before training, their answers to any two digits hardly differ" in PAGE
    apart = [(r["taught"], r["apart"]) for r in GAP_RUNS if r["model"] == "circular"]
    assert all(far < 0.01 if taught == "never" else far > 10 for taught, far in apart)
    assert (
        "by little more than a quarter of the step to another digit; the ViT, by four fifths "
        "of it or more" in PAGE
    )
    assert "a move by a patch is hardly noticed" in PAGE and gaps_of("vit")[:, 0].max() < 0.15
    assert "trained where digits stand, it counts as much as another digit" in PAGE
    standing, moved = (gaps_of("vit", taught) for taught in ("as they stand", "moved"))
    assert standing[:, 0].mean() == pytest.approx(1, abs=0.1)
    assert standing[:, :2].mean(0).min() > 0.8
    assert f"near one for a patch, both {standing[:, 1].mean():.1f} for a pixel" in " ".join(
        PAGE.split()
    )
    assert "tells it, more for a move by a pixel, which it saw, than by a patch" in PAGE
    left = [gaps_of(m, "moved").mean(0)[:2] for m in ("vit", "cnn")]
    assert "its gap falls to {:.2f} for a patch and to {:.2f} for a pixel".format(*left[0]) in PAGE
    assert "that of the convolutions to {:.2f} and {:.2f}.".format(*left[1]) in PAGE
    fall = (standing - moved)[:, :2]
    assert (fall > 0).all() and fall[:, 1].mean() > fall[:, 0].mean()
    assert "none of which is more than 0.11 away from it" in PAGE
    for name in ("linear", "vit", "cnn"):
        for seeds in (gaps_of(name, taught) for taught in TAUGHT[1:]):
            assert abs(seeds - seeds.mean(0)).max() <= 0.11
    drawn = [gaps_of(m, t).mean(0) for m in ("linear", "vit", "cnn") for t in TAUGHT[1:]]
    assert "Mirrored or turned, all are at two thirds or more" in " ".join(PAGE.split())
    assert min(gaps[2:].min() for gaps in drawn) >= 2 / 3


def test_what_the_page_says_of_no_positions_is_what_is_stored():
    """Taught where digits stand: tokens without positions, and the page's ViT in the same seeds."""
    named = {
        model: [
            100 * run["test"]
            for run in GAP_RUNS
            if (run["model"], run["taught"]) == (model, "as they stand")
        ]
        for model in ("no positions", "vit")
    }
    ends = [end for found in named.values() for end in (min(found), max(found))]
    said = "trained without, our ViT names {:.0f} to {:.0f}% of the digits where they stand,"
    said += " instead of {:.0f} to {:.0f}% (three seeds)"
    assert said.format(*ends) in PAGE and {len(found) for found in named.values()} == {3}
    assert gaps_of("no positions", "as they stand")[:, 0].max() < 1e-4, "however shuffled"


def test_what_the_page_says_of_moved_digits_reordered_is_what_the_other_code_found():
    found = moved_digits.__doc__.partition("Pixels in another order")[2]
    shares = np.array(re.findall(r"\d+\.\d", found), float).reshape(2, 2, 3)
    for k, name in enumerate(("where they stand", "moved by a pixel")):
        cells = (f"{min(row):.0f} to {max(row):.0f}%" for row in shares[::-1, k])
        assert f"| {name} | {' | '.join(cells)} |" in PAGE


@pytest.mark.parametrize("name", ["linear", "vit", "no positions", "cnn", "circular", "unpooled"])
def test_stored_gaps_come_out_again(name):
    """Of models that were never trained, which are the same everywhere."""
    page = vision_gaps.page_definitions()
    images = vision_gaps.held_out_with_room(page, 0)[:40]
    torch.manual_seed(0)
    model = vision_gaps.makers(page)[name]().eval()
    answers = model(images).detach()
    apart = torch.pdist(answers).square().mean()
    for k, change in enumerate(vision_gaps.CHANGES.values()):
        gap = ((model(change(images)) - answers).square().sum(1).mean() / apart).sqrt().item()
        assert gap == pytest.approx(gaps_of(name)[0, k], rel=0.3, abs=1e-4)


def test_what_the_page_says_of_positions_and_distances_is_what_is_stored():
    assert len(LOOKS) == 5
    table = np.array([one["distance"] for one in LOOKS])  # (seed, layer, head)
    layers = table.mean((0, 2))
    assert "look almost as far as one that looks evenly" in PAGE
    assert all(0.85 * EVEN < layer < EVEN for layer in layers)
    farther = table[:, 2].mean(1) - table[:, 0].mean(1)
    half = 2.776 * farther.std(ddof=1) / math.sqrt(5)
    assert "by about a tenth of a patch, if at all" in PAGE
    assert round(farther.mean(), 1) == 0.1 and farther.mean() - half < 0.05
    assert (
        f"The means of the layers are {min(layers):.1f} to {max(layers):.1f} patches" in PAGE
        and "where looking evenly has 2.55" in PAGE
        and f"{EVEN:.2f}" == "2.55"
    )


def correlations(key, way, sign=0):
    return [one[key][way][sign][0] for one in LOOKS]


@pytest.mark.parametrize("key", ["agreement", "agreement, changed"])
def test_correlations_are_some_and_the_paired_difference_is_the_difference_of_the_means(key):
    for one in LOOKS:
        assert all(-1 <= mean <= 1 and half > 0 for way in one[key].values() for mean, half in way)
        rollout, change = (one[key][way][0][0] for way in ("rollout", "change of the picture"))
        assert one["rollout ahead of the change"][key][0] == pytest.approx(
            rollout - change, abs=2e-4
        )


def test_what_the_page_says_of_maps_is_what_is_stored():
    assert "rollout falls from 0.66 and more to between 0.33 and 0.50" in PAGE
    assert f"{min(correlations('agreement', 'rollout')):.2f}" == "0.66"
    changed = correlations("agreement, changed", "rollout")
    assert [round(x, 2) for x in (min(changed), max(changed))] == [0.33, 0.50]
    class_token, baseline = (
        correlations("agreement, changed", name)
        for name in ("class token's map", "change of the picture")
    )
    for found, said in (
        (class_token, "rank correlations of {:.2f} to {:.2f} (five models)"),
        (class_token, "is {:.2f} to {:.2f} for the class token's map"),
        (changed, "to between {:.2f} and {:.2f}, the baseline"),
        (changed, "{:.2f} to {:.2f} for rollout"),
        (baseline, "to about one half ({:.2f} to {:.2f})."),
        (baseline, "{:.2f} to {:.2f} for the change of the picture."),
    ):
        assert said.format(min(found), max(found)) in PAGE
    assert "the baseline from about 0.9 to about one half" in PAGE
    assert {round(x, 1) for x in correlations("agreement", "change of the picture")} == {0.9}
    assert {round(x, 1) for x in correlations("agreement, changed", "change of the picture")} == {
        0.5
    }
    assert "ahead of rollout in three of our five models and level with it in the other two" in PAGE
    pairs = [one["rollout ahead of the change"]["agreement, changed"] for one in LOOKS]
    assert sum(mean + half < 0 for mean, half in pairs) == 3
    assert sum(abs(mean) <= half for mean, half in pairs) == 2


def test_slopes_are_those_of_the_weights_and_of_the_pixels():
    page = vision.page_definitions()
    source = re.search(r"^def by_slopes.*?(?=\n\n\n)", PAGE, re.M | re.S)[0]
    page["attention_relevance"] = attention_relevance
    exec(source, page)
    torch.manual_seed(0)
    model = page["vit"]().double().eval()
    images, cover, step = torch.rand(2, 1, 10, 10).double(), torch.rand(1, 10, 10).double(), 1e-6
    found = page["by_slopes"](model, images, cover)
    best = model(images).argmax(-1)

    def answer(x):
        return model(x).log_softmax(-1).gather(1, best[:, None])[:, 0]

    falls = (answer(images) - answer(images + step * (cover - images))) / step
    torch.testing.assert_close(found["slope × change"].sum(1), falls, rtol=1e-3, atol=1e-5)
    kept = []

    def forward(attn, x):
        q, k, v = attn.qkv(x).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        kept.append((q @ k.mT / math.sqrt(8)).softmax(-1))
        return attn.proj((kept[-1] @ v).movedim(1, 2).flatten(-2))

    for block in model.blocks:
        block.attn.forward = functools.partial(forward, block.attn)
    slopes = torch.autograd.grad(answer(images).sum(), kept)
    told_by = attention_relevance([w.detach() for w in kept], slopes)[:, 0, 1:]
    torch.testing.assert_close(found["relevance"], told_by)


def test_where_no_two_pixels_are_combined_their_order_means_nothing():
    """Support vectors, nearest neighbours and logistic regression, on the pixels reordered."""
    luck = np.random.default_rng(0)
    digits, order = load_digits(), luck.permutation(64)
    x, y = digits.data[:400] / 16, digits.target[:400]
    for rival in vision.RIVALS.values():
        said = [clone(rival).fit(a[:300], y[:300]).predict(a[300:]) for a in (x, x[:, order])]
        assert (said[0] == said[1]).mean() > 0.98  # they are computed to some digits only


def test_the_margin_alone_makes_a_correlation_of_what_knows_nothing():
    """Numbers drawn at random, and 0 at the margin: they agree, until the margin is left out."""
    luck = np.random.default_rng(0)
    margin = np.arange(25) >= 15
    found = []
    for _ in range(500):
        one, other = (np.where(margin, 0.0, 1 + luck.random(25)) for _ in range(2))
        ranks = [np.argsort(np.argsort(x)) for x in (one, other)]
        kept = [np.argsort(np.argsort(x[~margin])) for x in (one, other)]
        found.append([np.corrcoef(*ranks)[0, 1], np.corrcoef(*kept)[0, 1]])
    everywhere, inside = np.mean(found, axis=0)
    assert everywhere > 0.5 and abs(inside) < 0.05


def test_vit_base_has_as_many_parameters_as_the_page_says():
    with torch.device("meta"):
        base = VisionTransformer(224, 16, 3, 1000, 768, 12, 12)
    sizes = {name: p.numel() for name, p in base.named_parameters()}
    assert sum(sizes.values()) == 86_567_656
    encoder = sum(n for name, n in sizes.items() if name.startswith(("blocks", "norm")))
    assert round(100 * encoder / 86_567_656) == 98
