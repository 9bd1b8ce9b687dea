"""What pages load is what the pages' own cells train and measure."""

import json
import re

import matplotlib
import numpy as np
import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from attention_by_hand.models import checkpoints
from benchmarks.checkpoints import BOOK, MEASURED, TRAINED, run_page

matplotlib.use("Agg")
STEPS = 12
load_kept = checkpoints.load_or_train  # while pages run, others stand in their place
read_kept = checkpoints.load_or_measure
KEPT = json.loads(checkpoints.MEASUREMENTS.read_text(encoding="utf-8"))
pytestmark = pytest.mark.share(0)  # each runs a chapter's first half


class Enough(Exception):
    """A page has been run far enough."""


def first_losses(model, train) -> list[float]:
    """The losses of the first steps of a page's training, which is then stopped."""
    losses: list[float] = []
    count = 0

    def stop(*_) -> None:
        nonlocal count
        count += 1
        if count > STEPS:
            raise Enough

    hook = register_optimizer_step_post_hook(stop)
    try:
        train(model)
    except Enough as enough:
        frame = enough.__traceback__
        while frame.tb_frame.f_code.co_name != train.__name__:
            frame = frame.tb_next
        losses = frame.tb_frame.f_locals["losses"][:STEPS]
    finally:
        hook.remove()
    return losses


def end_of(curves: dict, page: dict, model) -> tuple[float, float]:
    """What a page measures at the end of its training: as kept, and of the model that is kept."""
    if "matches" in curves:
        return curves["matches"][-1], page["exact_match"](model, page["valid"])
    if "bits" in curves:
        return curves["bits"][-1], page["held_out"](model, page["valid"][:4000])
    if "shares" in curves:
        return curves["shares"][-1], page["filled"](model, page["valid"][:150])[0]
    images, answers = page["pictures"][page["drawn"]], page["labels"][page["drawn"]]
    moves = torch.randint(-1, 2, (2, len(images)))
    found = torch.nn.functional.cross_entropy(model(page["moved"](images, *moves)), answers)
    return float(np.mean(curves["losses"][-100:])), found.item()


@pytest.mark.parametrize("chapter", TRAINED)
def test_a_training_repeats_its_kept_losses_and_the_kept_model_is_where_they_end(chapter):
    taken = {}

    def load_or_train(name, model, train):
        taken["first"] = first_losses(model, train)
        loaded = load_kept(name, model, train)
        taken["curves"], taken["model"] = loaded[0], model.eval()
        return loaded

    page = run_page(chapter, "load_or_train", load_or_train)
    curves = taken["curves"]
    np.testing.assert_allclose(taken["first"], curves["losses"][:STEPS], rtol=2e-3)
    with torch.no_grad():
        kept, found = end_of(curves, page, taken["model"])
    assert found == pytest.approx(kept, abs=0.02)


def parts_of(found) -> list:
    """All numbers and texts in nested lists and dictionaries."""
    if isinstance(found, dict | list | tuple):
        parts = found.values() if isinstance(found, dict) else found
        return [each for part in parts for each in parts_of(part)]
    return [found]


def texts_of(parts: list) -> list[str]:
    return [part for part in parts if isinstance(part, str)]


def mean_of(parts: list) -> float:
    return sum(part for part in parts if not isinstance(part, str)) / len(parts)


def names_on(chapter: str) -> list[str]:
    page = (BOOK / f"{chapter}.md").read_text(encoding="utf-8")
    return [name for name in KEPT if re.search(rf'load_or_measure\([^"]*"{name}"', page)]


@pytest.mark.nightly
@pytest.mark.parametrize("chapter", MEASURED)
def test_what_was_measured_comes_out_once_more(chapter):
    """Within three points: other processors round otherwise, and training multiplies it."""
    wanted = {*names_on(chapter)}

    def load_or_measure(name, measure):
        found = read_kept(name, measure)
        kept, again = parts_of(found), parts_of(measure())
        assert len(again) == len(kept), name
        assert texts_of(again) == texts_of(kept), name
        assert mean_of(again) == pytest.approx(mean_of(kept), rel=0.03, abs=0.03), name
        wanted.remove(name)
        if not wanted:
            raise Enough
        return found

    with pytest.raises(Enough):
        run_page(chapter, "load_or_measure", load_or_measure)


def test_every_measurement_is_kept_for_one_page():
    assert sorted(name for chapter in MEASURED for name in names_on(chapter)) == sorted(KEPT)
