"""What chapter 11's page says of its models and of what they look at, held to the data."""

import inspect
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_by_hand import blocks
from attention_by_hand.blocks import VisionTransformer
from benchmarks import vision_gaps, vision_letters
from solutions import language_model

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "11_vision_transformer.md").read_text(encoding="utf-8")
MEASURED = ROOT / "benchmarks" / "vision_models.json"
MADE, RUNS = json.loads(MEASURED.read_text(encoding="utf-8")).values()
LOOKS = [run["looked at"] for run in RUNS if "looked at" in run]
SIZES = (100, 400, 1437)
GAPS = Path(vision_gaps.__file__).with_suffix(".json")
GAP_RUNS = json.loads(GAPS.read_text(encoding="utf-8"))["runs"]
TAUGHT = ("never", "as they stand", "moved")
LETTERS = Path(vision_letters.__file__).with_suffix(".json")
ABOUT, LETTER_RUNS = json.loads(LETTERS.read_text(encoding="utf-8")).values()
KEPT = {name: torch.from_numpy(a) for name, a in np.load(LETTERS.with_suffix(".npz")).items()}
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


def test_it_says_where_it_comes_from_and_the_two_networks_are_of_a_size():
    assert {"script", "date", "machine", "torch", "steps", "steps of the page"} <= set(MADE)
    assert "/" not in MADE["machine"]
    vit, cnn = MADE["parameters"]["vit"], MADE["parameters"]["cnn"]
    assert abs(vit / cnn - 1) < 0.01


def test_what_the_page_says_of_moved_digits_is_what_is_stored():
    assert "they name between a quarter and two fifths. The nearest neighbour keeps half" in PAGE
    assert all(25 < of(name, "moved").mean() < 40 for name in ("vit", "linear", "svm"))
    assert round(of("nearest", "moved").mean(), -1) == 50
    assert "it comes from about three in ten to about seven" in PAGE
    assert round(of("vit", "moved", shifts=True).mean(), -1) == 70
    assert "after 2,400 steps it names about nine in ten of both" in PAGE
    for key in ("test", "moved"):
        assert round(of("vit", key, shifts=True, long=True).mean(), -1) == 90


def test_what_the_page_says_of_support_vectors_is_what_is_stored():
    assert "with 100 pictures they are level with the convolutions" in PAGE
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


def test_what_the_page_says_of_another_order_of_pixels_is_what_is_stored():
    lost = of("cnn") - of("cnn", order="pixels")
    assert "**The convolutions lose** about two points" in PAGE
    assert round(lost.mean()) == 2
    leads = [of("cnn", order=o) - of("vit", order=o) for o in ("as they are", "pixels")]
    assert "from 7.6 to 3.4 points" in PAGE
    assert [round(lead.mean(), 1) for lead in leads] == [7.6, 3.4]
    assert "its interval reaches from a loss of two points to a gain of six" in PAGE
    gain = of("vit", order="pixels") - of("vit")
    assert "it even gains two points" in PAGE and round(gain.mean()) == 2
    assert [round(end) for end in interval(gain)] == [-2, 6]
    assert "so the *lead* falls by twice as much" in PAGE
    assert (leads[0] - leads[1]).mean() == pytest.approx(2 * lost.mean(), abs=0.3)


def gaps_of(model, taught="never"):
    """The gaps of the three seeds, `(seed, change)`: a patch, a pixel, mirrored, turned."""
    found = [run for run in GAP_RUNS if (run["model"], run["taught"]) == (model, taught)]
    assert [run["seed"] for run in found] == [0, 1, 2], (model, taught)
    return np.array([run["gaps"] for run in found])


def test_what_the_page_says_of_gaps_is_what_is_stored():
    assert gaps_of("no positions")[:, 0].max() < 1e-4 < gaps_of("no positions")[:, 1:].min()
    assert gaps_of("circular")[:, 0].max() < 1e-4 < gaps_of("circular")[:, 1:].min()
    assert gaps_of("unpooled")[:, :2].max() < 1e-4 < gaps_of("unpooled")[:, 2:].min()
    assert "answer a digit moved by a patch about as if it were another one" in PAGE
    assert gaps_of("cnn")[:, 0].mean() == pytest.approx(1, abs=0.1)
    assert "For the pixel, pooling alone does most of it" in PAGE
    assert gaps_of("circular")[:, 1].mean() > 0.5 * gaps_of("cnn")[:, 1].mean()
    assert "Training brings that down to a third or less, and moved digits further" in PAGE
    assert "Trained, it is a third or less, with zeros or without" in PAGE
    for name, first in (("cnn", 0), ("circular", 1)):
        standing, moved = (gaps_of(name, t)[:, first:2] for t in ("as they stand", "moved"))
        assert standing.max() < 1 / 3 and (moved < standing).all()
    assert "before training, their answers to any two digits hardly differ" in PAGE
    apart = [(r["taught"], r["apart"]) for r in GAP_RUNS if r["model"] == "circular"]
    assert all(far < 0.01 if taught == "never" else far > 10 for taught, far in apart)
    assert "less than a third as much as for another digit; the ViT, about as much" in PAGE
    assert "a move by a patch is hardly noticed" in PAGE and gaps_of("vit")[:, 0].max() < 0.15
    assert "trained where digits stand, it counts as much as another digit" in PAGE
    standing, moved = (gaps_of("vit", taught) for taught in ("as they stand", "moved"))
    assert standing[:, 0].mean() == pytest.approx(1, abs=0.1)
    assert standing[:, 1].mean() == pytest.approx(0.8, abs=0.1)
    assert "but more for the pixel, by which they were moved, than for the patch" in PAGE
    fall = (standing - moved)[:, :2]
    assert (fall > 0).all() and fall[:, 1].mean() > fall[:, 0].mean()
    assert "none of which is more than 0.1 away from it" in PAGE
    for name in ("linear", "vit", "cnn"):
        for seeds in (gaps_of(name, taught) for taught in TAUGHT[1:]):
            assert round(abs(seeds - seeds.mean(0)).max(), 2) <= 0.1
    assert all(gaps_of(m, t)[:, 2:].min() > 0.4 for m in ("linear", "vit", "cnn") for t in TAUGHT)


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
    assert "but by a tenth of a patch" in PAGE
    farther = table[:, 2].mean(1) - table[:, 0].mean(1)
    assert round(farther.mean(), 1) == 0.1


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
    assert "the baseline from about 0.9 to about one half" in PAGE
    assert {round(x, 1) for x in correlations("agreement", "change of the picture")} == {0.9}
    assert {round(x, 1) for x in correlations("agreement, changed", "change of the picture")} == {
        0.5
    }
    assert "ahead of rollout in three of our five models and level with it in the other two" in PAGE
    pairs = [one["rollout ahead of the change"]["agreement, changed"] for one in LOOKS]
    assert sum(mean + half < 0 for mean, half in pairs) == 3
    assert sum(abs(mean) <= half for mean, half in pairs) == 2


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


@pytest.fixture(scope="module")
def page():
    """What the page's cells define."""
    return vision_letters.page_definitions()


@pytest.fixture(scope="module")
def reader():
    """Seed 0's ViT, as it is stored."""
    model, start = vision_letters.vit().eval(), "0, as they are: "
    own = {n.removeprefix(start): a.float() for n, a in KEPT.items() if n.startswith(start)}
    model.load_state_dict(own)
    return model


def on_letters(model, order="as they are"):
    found = [r for r in LETTER_RUNS if (r["model"], r["order"]) == (model, order)]
    return sorted(found, key=lambda run: run["seed"] or 0)


def test_letters_are_stored_small_and_say_where_they_come_from():
    assert {"script", "date", "machine", "torch", "pictures"} <= set(ABOUT)
    assert "/" not in ABOUT["machine"]
    assert all(a.dtype == torch.float16 for a in KEPT.values())
    assert LETTERS.with_suffix(".npz").stat().st_size < 1 << 20
    for model, order in (("vit", "as they are"), ("vit", "pixels"), ("cnn", "as they are")):
        assert [run["seed"] for run in on_letters(model, order)] == [0, 1, 2]
    assert ABOUT["parameters"] == sum(p.numel() for p in vision_letters.vit().parameters())


def test_no_letter_of_the_test_is_one_of_the_training():
    """Not even moved as in training: the two most similar pictures are two."""
    images, _, held_out, _ = vision_letters.collection()
    assert ABOUT["pictures"] == {"train": len(images), "test": len(held_out)}
    far = torch.cdist(held_out.flatten(1), images.flatten(1)).min().item()
    (twins,) = on_letters("twins")
    assert 1 < twins["apart"] <= far + 1e-3


def test_stored_tables_give_the_stored_correlations(page):
    for run in [*on_letters("vit"), *on_letters("vit", "pixels")]:
        alike = page["likeness"](KEPT[f"{run['seed']}, {run['order']}: positions"].float())
        assert run["positions"] == pytest.approx(vision_letters.nearness(alike), abs=2e-4)


def test_stored_weights_give_the_stored_distances_and_accuracy(page, reader):
    _, _, held_out, answers = vision_letters.collection()
    run = on_letters("vit")[0]
    assert vision_letters.right(reader, held_out, answers) == pytest.approx(run["test"], abs=3e-3)
    for key, value in vision_letters.looked_at(page, reader, held_out).items():
        assert np.array(run[key]) == pytest.approx(np.array(value), abs=3e-3)


def test_where_neighbourhood_means_nothing_no_likeness_goes_with_it(page):
    """Whatever a table holds: over all ways of laying it out, the correlation is 0 on average, and
    controls, for which one layout is as good as another, lie where such layouts do."""
    luck = torch.Generator().manual_seed(0)
    for order in ("as they are", "pixels"):
        for run in on_letters("vit", order):
            alike = page["likeness"](KEPT[f"{run['seed']}, {order}: positions"].float())
            layouts = [torch.randperm(64, generator=luck) for _ in range(200)]
            by_chance = np.array([vision_letters.nearness(alike[o][:, o]) for o in layouts])
            assert abs(by_chance.mean()) < 4 * by_chance.std() / math.sqrt(200)
            spread = 5 * by_chance.std()
            assert order == "as they are" or abs(run["positions"]) < spread
            assert abs(run["untrained"]["positions"]) < 0.15


def test_looks_sum_to_one_and_even_ones_have_the_distance_of_looking_evenly(page, reader):
    images = vision_letters.some_of(vision_letters.collection()[2])[:5]
    assert all((w.sum(-1) - 1).abs().max() < 1e-5 for w in page["maps"](reader, images))
    even = vision_letters.vit().eval()
    for block in even.blocks:
        block.attn.qkv.weight.data.zero_()
    for table in page["distances"](even, images, vision_letters.BETWEEN):
        assert table.numpy() == pytest.approx(vision_letters.BETWEEN.mean().item(), abs=1e-4)


def test_what_all_patches_look_at_alike_is_as_far_whoever_asks(page):
    """A head whose queries are all the same is as far with its own weights as with their mean."""
    model = vision_letters.vit().eval()
    for block in model.blocks:
        block.attn.qkv.weight.data[: vision_letters.WIDTH] = 0
        block.attn.qkv.bias.data[: vision_letters.WIDTH] = 5
    images = vision_letters.some_of(vision_letters.collection()[2])[:5]
    own, shared = page["distances"](model, images, vision_letters.BETWEEN)
    assert own.numpy() == pytest.approx(shared.numpy(), abs=1e-4)


def test_what_the_page_says_of_letters_is_what_is_stored(page):
    row, column = np.divmod(np.arange(64), 8)
    down, across = (np.abs(np.subtract.outer(x, x)) for x in (row, column))
    assert "positions side by side are alike, and so are those one above the other" in PAGE
    assert (
        "farther apart in a row, positions are still somewhat alike, in a column they are not"
        in PAGE
    )
    for order in ("as they are", "pixels"):
        for run in on_letters("vit", order):
            table = KEPT[f"{run['seed']}, {order}: positions"].float()
            alike = page["likeness"](table).numpy()
            besides, above = alike[(down == 0) & (across == 1)], alike[(down == 1) & (across == 0)]
            if order == "pixels":
                assert abs(besides.mean()) < 0.1 and abs(above.mean()) < 0.1
            else:
                assert min(besides.mean(), above.mean()) > 0.3
                assert alike[(down == 0) & (across > 1)].mean() > 0.05
                assert alike[(down > 1) & (across == 0)].mean() < 0.05
    assert "the ViT is behind even the nearest neighbour, where each picture may move" in PAGE
    (moved,) = on_letters("nearest, moved")
    assert max(run["test"] for run in on_letters("vit")) < moved["test"]
    assert "with 26 answers and 40,330 parameters to the ViT's 41,690" in PAGE
    assert ABOUT["parameters"] == 41_690
    assert {run["parameters"] for run in on_letters("cnn")} == {40_330}
    assert "in each of three seeds it names more than the ViT" in PAGE
    cnn, vit = (np.array([run["test"] for run in on_letters(name)]) for name in ("cnn", "vit"))
    assert min(cnn - vit) > 0
    assert f"by {100 * (cnn - vit).mean():.1f} points on average, but in two of them less" in PAGE
    assert sum(cnn < moved["test"]) == 2
    assert "distances are a little short of even" in PAGE and "they are as short" in PAGE
    even = vision_letters.BETWEEN.mean().item()
    for run in on_letters("vit"):
        own, shared = (np.mean(run[key]) for key in ("distance", "distance, whoever asks"))
        assert 0.9 * even < own < even and shared < own + 0.05


@pytest.mark.parametrize("training", [False, True])
def test_gpts_layer_with_the_lines_changed_is_vits(training):
    source = inspect.getsource(language_model.DecoderBlock).replace(
        "dropout: float = 0.0", "dropout=0.0, drop_path=0.0"
    )
    diff = PAGE.split("```diff\n")[1].split("```")[0]
    before = ""
    for new in re.findall(r"^\+(.+?)(?:  #.*)?$", diff, re.MULTILINE):
        begins = re.match(r" +(?:return|[\w.]+ =) ", new)[0]
        old = [line for line in source.splitlines() if line.startswith(begins)]
        if "norm1 =" in new:  # "and norm2"
            source = source.replace(old[0].replace("1", "2"), new.replace("1", "2"))
        if old:
            assert len(old) == 1
            source = source.replace(old[0], new)
        else:
            source = source.replace(before, f"{before}\n{new}")
        before = new
    names = vars(language_model) | {"PackedAttention": blocks.PackedAttention}
    names["DropPath"] = blocks.DropPath
    exec(source.replace("DecoderBlock", "Changed"), names)
    mine = names["Changed"](8, 2, 12, 0.1, 0.3).train(training)
    block = blocks.ViTBlock(8, 2, 12, 0.1, 0.3).train(training)
    block.load_state_dict(mine.state_dict())
    x, found = torch.randn(6, 3, 8), []
    for layer in (mine, block):
        torch.manual_seed(3)
        found.append(layer(x))
    torch.testing.assert_close(*found)
