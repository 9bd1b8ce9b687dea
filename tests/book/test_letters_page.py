"""What chapter 11's page says of letters, whose positions, distances and heads it shows."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import vision_letters

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "11_vision_transformer.md").read_text(encoding="utf-8")
LETTERS = Path(vision_letters.__file__).with_suffix(".json")
ABOUT, LETTER_RUNS = json.loads(LETTERS.read_text(encoding="utf-8")).values()
KEPT = {name: torch.from_numpy(a) for name, a in np.load(LETTERS.with_suffix(".npz")).items()}


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
    assert "In the control, and before training, neighbours are no more alike than others." in PAGE
    assert (
        "farther apart in a row, positions are still somewhat alike, in a column they are not"
        in PAGE
    )
    neighbours, twins, likely = {}, [], []
    images = vision_letters.collection()[0].mean(0)
    means = torch.nn.functional.unfold(images[None], 4, stride=4)[0].T
    unlike, far = torch.cdist(means, means), vision_letters.BETWEEN
    next_to = torch.isclose(far, torch.ones(()))
    pairs = np.triu_indices(64, 1)
    for order in ("as they are", "pixels"):
        for run in on_letters("vit", order):
            table = KEPT[f"{run['seed']}, {order}: positions"].float()
            alike = page["likeness"](table).numpy()
            besides, above = alike[(down == 0) & (across == 1)], alike[(down == 1) & (across == 0)]
            neighbours.setdefault(order, []).extend([besides.mean(), above.mean()])
            if order == "pixels":
                assert abs(besides.mean()) < 0.1 and abs(above.mean()) < 0.1
            else:
                assert min(besides.mean(), above.mean()) > 0.3
                twin = torch.where(far[:, None] >= 3, unlike, torch.inf).argmin(-1).numpy()
                i, j = next_to.nonzero().T.numpy()
                twins.append([alike[i, twin[i, j]].mean(), alike[i, j].mean()])
                likely.append(np.corrcoef(alike[pairs], -unlike.numpy()[pairs])[0, 1])
                assert alike[(down == 0) & (across > 1)].mean() > 0.05
                assert alike[(down > 1) & (across == 0)].mean() < 0.05
    ends = [f"{end(column):.2f}" for column in zip(*twins, strict=True) for end in (min, max)]
    words = "its cosine is {} to {} on average, the neighbour's {} to {}".format(*ends)
    assert words.replace("-", "−") in PAGE
    assert f"(correlations of {min(likely):.2f} to {max(likely):.2f})" in PAGE
    assert max(run["positions"] for run in on_letters("vit")) < 0.045
    told_ends = [f"{end(neighbours[o]):.2f}" for o in neighbours for end in (min, max)]
    words = "(cosines of {} to {}); in the control ({} to {})".format(*told_ends)
    assert words.replace("-", "−") in PAGE
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
