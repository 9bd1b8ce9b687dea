"""What chapter 11's page says of its models and of what they look at, held to the data."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.blocks import VisionTransformer

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "benchmarks" / "vision_models.json"
MADE, RUNS = json.loads(MEASURED.read_text(encoding="utf-8")).values()
LOOKS = [run["looked at"] for run in RUNS if "looked at" in run]
SIZES = (100, 400, 1437)
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


def test_the_training_of_the_page_takes_a_minute_at_most():
    times = [r["cpu_seconds"] for r in RUNS if "looked at" in r]
    assert len(times) == 5
    assert max(times) <= 60


@pytest.mark.parametrize("images", SIZES)
def test_convolutions_are_ahead_of_the_vit_with_every_number_of_images(images):
    assert interval(of("cnn", images=images) - of("vit", images=images))[0] > 0


def test_with_100_images_the_vit_is_last_and_1437_are_enough_for_nine_in_ten():
    for other in ("cnn", "linear", "nearest"):
        assert interval(of(other, images=100) - of("vit", images=100))[0] > 0
    assert of("vit").mean() > 88
    assert of("vit", images=400).mean() > 84


def test_moved_by_a_pixel_the_vit_is_lost_and_the_convolutions_are_not():
    for model, low, high in (("vit", 20, 40), ("linear", 20, 40), ("nearest", 45, 60)):
        assert low < of(model, "moved").mean() < high, model
    assert 84 < of("cnn", "moved").mean() < 92
    assert max(of("vit", "moved")) < 50
    assert min(of("vit")) > 80


def test_more_images_that_stand_still_hardly_help_and_moved_ones_do():
    still = of("vit", "moved") - of("vit", "moved", images=100)
    shown = of("vit", "moved", shifts=True) - of("vit", "moved")
    assert interval(shown - still)[0] > 0
    assert shown.mean() > 30
    assert still.mean() < 20


def test_taught_with_moved_digits_the_vit_pays_and_names_about_nine_in_ten():
    assert 65 < of("vit", "moved", shifts=True).mean() < 80
    assert interval(of("vit") - of("vit", shifts=True))[0] > 0
    for key in ("test", "moved"):
        assert 88 < of("vit", key, shifts=True, long=True).mean() < 93


def test_it_has_not_caught_up_and_does_not_name_all_that_it_was_taught():
    vit = of("vit", "moved", shifts=True, long=True)
    for other in (of("cnn", "moved", shifts=True, long=True), of("nearest", "moved", shifts=True)):
        assert interval(other - vit)[0] > 0
    assert of("vit", "train", shifts=True, long=True).mean() < 99


def test_another_order_of_pixels_costs_the_convolutions_about_two_points_and_the_vit_nothing():
    lost = of("cnn") - of("cnn", order="pixels")
    assert interval(lost)[0] > 0
    assert 1 < lost.mean() < 3
    low, high = interval(of("vit") - of("vit", order="pixels"))
    assert low < 0 < high < 2
    ahead = (of("cnn") - of("vit")).mean()
    left = of("cnn", order="pixels") - of("vit", order="pixels")
    assert interval(left)[0] > 0
    assert lost.mean() < ahead / 2


def test_near_positions_are_more_alike_in_every_trained_model_and_in_no_other():
    assert len(LOOKS) == 5
    assert min(one["positions"] for one in LOOKS) > 0.1
    assert max(abs(one["positions, never trained"]) for one in LOOKS) < 0.1


def test_no_layer_looks_near_and_the_last_looks_a_tenth_of_a_patch_farther_than_the_first():
    table = np.array([one["distance"] for one in LOOKS])  # (seed, layer, head)
    layers = table.mean((0, 2))
    assert all(0.85 * EVEN < layer < EVEN for layer in layers)
    farther = table[:, 2].mean(1) - table[:, 0].mean(1)
    assert interval(farther)[0] > 0
    assert round(farther.mean(), 1) == 0.1
    within = (table.max(2) - table.min(2)).mean()
    assert within > layers.max() - layers.min()


def test_the_class_tokens_map_says_something_else_in_every_model_and_less_than_the_ruler():
    maps = [one["agreement"]["class token's map"][0][0] for one in LOOKS]
    assert min(maps) < 0.1
    assert max(maps) > 0.3
    for one in LOOKS:
        (token, _), (rollout, half), (change, other) = (
            one["agreement"][way][0]
            for way in ("class token's map", "rollout", "change of the picture")
        )
        assert token < rollout - half
        assert rollout + half < change - other


def test_where_the_sign_counts_nothing_says_much():
    assert max(abs(way[1][0]) for one in LOOKS for way in one["agreement"].values()) < 0.4


def test_vit_base_has_as_many_parameters_as_the_page_says():
    with torch.device("meta"):
        base = VisionTransformer(224, 16, 3, 1000, 768, 12, 12)
    sizes = {name: p.numel() for name, p in base.named_parameters()}
    assert sum(sizes.values()) == 86_567_656
    encoder = sum(n for name, n in sizes.items() if name.startswith(("blocks", "norm")))
    assert round(100 * encoder / 86_567_656) == 98
