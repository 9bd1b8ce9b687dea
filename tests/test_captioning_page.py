"""What chapter 12's page says of its captioner and of what failed before, held to the data."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from autograder import captioner
from autograder.blocks import CaptionLayer
from autograder.glyphs import bare, glyphs, held_out, picture
from solutions.captioning import recall_at, write_caption

ROOT = Path(__file__).resolve().parents[1]
MEASURED = json.loads((ROOT / "benchmarks" / "captions.json").read_text("utf-8"))
MADE, RUNS = MEASURED["made"], MEASURED["runs"]
SEEDS = sorted({run["seed"] for run in RUNS})
PAGE = (ROOT / "book" / "12_captioning.md").read_text("utf-8")


def of(name, part="new", key="exact"):
    """The shares of all seeds, in percent."""
    found = {run["seed"]: run[part][key] for run in RUNS if run["run"] == name}
    assert sorted(found) == SEEDS, name
    return 100 * np.array([found[seed] for seed in SEEDS])


def runs_of(name):
    return [run for run in sorted(RUNS, key=lambda run: run["seed"]) if run["run"] == name]


@pytest.fixture(scope="module")
def model():
    return captioner.trained()


@pytest.fixture(scope="module")
def unseen():
    pairs = held_out(0)
    return [glyph for glyph in glyphs() if glyph.pair in pairs]


def written(model, images):
    ids = write_caption(model, images, captioner.prompt(), captioner.EOS, captioner.longest())
    return [captioner.words_of(row) for row in ids]


def test_it_says_where_it_comes_from():
    assert {"script", "date", "machine", "torch", "pictures"} <= set(MADE)
    assert "/" not in MADE["machine"]
    assert SEEDS == [0, 1, 2]


def test_each_training_takes_less_than_a_quarter_of_an_hour():
    assert max(run.get("cpu_seconds", 0) for run in RUNS) < 15 * 60


def test_the_captioner_names_about_nine_in_ten_of_the_unseen_pairs_and_the_baselines_none():
    assert min(of("captioner")) > 85
    assert min(of("captioner", "font")) > 95
    for baseline in ("nearest", "names as classes"):
        assert max(of(baseline)) == 0
        assert max(of(baseline, key="mark")) < min(of("captioner", key="mark")) - 40


def test_the_nearest_has_the_letter_and_whole_names_are_as_good_in_a_new_font_and_lose_the_letter():
    assert min(of("nearest", key="letter")) > 90
    assert max(of("nearest", key="mark")) < 5
    assert min(of("names as classes", "font") - of("captioner", "font")) > -1
    assert min(of("names as classes", "font")) > 98
    assert max(of("names as classes", key="letter")) < 67


def test_the_weights_in_the_package_are_those_of_the_first_seed(model, unseen):
    images = captioner.pictures(unseen)
    right = [w == g.name for w, g in zip(written(model, images), unseen, strict=True)]
    first = next(run for run in RUNS if run["run"] == "captioner" and run["seed"] == 0)
    assert 100 * np.mean(right) == pytest.approx(100 * first["new"]["exact"], abs=1)


def test_the_six_letters_of_the_page_are_unseen_and_named_right(model, unseen):
    by_letter = {glyph.letter: glyph for glyph in unseen if glyph.font == "DejaVuSans"}
    six = [by_letter[letter] for letter in "õėśķḋẃ"]
    assert written(model, captioner.pictures(six)) == [glyph.name for glyph in six]


def cut_in_two(glyph):
    """Without the mark, and without the letter."""
    ink = picture(glyph)
    rows = np.flatnonzero(picture(bare(glyph)).max(axis=1) > 0.2)
    inside = np.zeros((len(ink), 1), bool)
    inside[rows[0] : rows[-1] + 1] = True
    return ink * inside, ink * ~inside


def test_without_the_mark_it_writes_the_bare_letter_and_without_the_letter_mostly_no_name(
    model, unseen
):
    tried = [glyph for glyph in unseen if glyph.base != "I"]
    letters, marks = (
        torch.from_numpy(np.stack(part))
        for part in zip(*(cut_in_two(glyph) for glyph in tried), strict=True)
    )
    plain = [w == bare(g).name for w, g in zip(written(model, letters), tried, strict=True)]
    assert np.mean(plain) > 0.95
    names = {glyph.name for glyph in glyphs()}
    assert np.mean([w in names for w in written(model, marks)]) < 0.25


def test_two_seeds_look_at_the_mark_and_the_second_hardly_more_than_evenly():
    first, second, _ = (run["gaze"] for run in runs_of("captioner"))
    assert 0.4 < first["mark"] < 0.5
    assert 3.5 < first["mark"] / first["of the picture"] < 5
    assert second["mark"] < 1.5 * second["of the picture"]
    third = runs_of("captioner")[2]["gaze"]["mark"]
    assert 0.3 < third < first["mark"]
    marks = of("captioner", key="mark")
    assert marks[1] >= marks[2]


def test_only_the_contrastive_loss_makes_pictures_find_their_names(model, unseen):
    for run in runs_of("captioner"):
        assert min(*run["retrieval"]["at 1"], *run["retrieval"]["at 5"]) > 0.9
        assert max(run["retrieval, untrained"]["at 1"]) < 0.05
        assert run["matching"] > 0.95
    for run in runs_of("captions only"):
        assert max(run["retrieval"]["at 1"]) < 0.1
    one_each = list({glyph.name: glyph for glyph in unseen}.values())
    with torch.no_grad():
        images = model.image_vectors(model.encode(captioner.pictures(one_each)))
        texts = model.text_vectors(captioner.ids_of([glyph.name for glyph in one_each]))
    alike = F.normalize(images, dim=-1) @ F.normalize(texts, dim=-1).T
    assert min(recall_at(alike, 1)) > 0.9


def test_the_loss_that_only_writes_writes_as_well():
    assert abs(of("captioner").mean() - of("captions only").mean()) < 5


def test_patches_name_fewer_than_one_in_ten_and_hidden_words_hardly_help():
    assert max(of("patches")) < 10
    assert round(of("patches").mean()) == 5
    gained = of("patches, words hidden") - of("patches")
    assert 1 < gained.mean() < 10
    assert max(of("patches, words hidden")) < 20


def test_heads_acquit_the_data_and_mostly_the_writer():
    heads, patches = of("heads on convolutions"), of("heads on patches")
    assert (round(heads.min()), round(heads.max())) == (85, 92)
    assert 28 <= patches.min() < patches.mean() < 35
    assert 30 < of("heads on patches", key="mark").mean() < 40


def test_patches_taught_longer_know_their_pairs_in_a_new_font_and_still_lag_behind():
    assert max(of("patches", "font")) < 65
    assert min(of("patches, longer", "font")) > 97
    longer = of("patches, longer")
    assert (round(longer.min()), round(longer.max())) == (59, 72)
    assert min(of("captions only") - longer) > 15
    letters, marks = (of("patches, longer", key=key) for key in ("letter", "mark"))
    assert min(letters) > 95 and max(marks) < 75
    assert 88 <= of("patches, longer", key="wrong, but known").mean() < 94
    steps = {run["run"]: run["steps"] for run in RUNS if "steps" in run}
    assert (steps["captions only"], steps["patches, longer"]) == (1500, 4500)


def test_without_batch_norm_convolutions_name_half_as_many_and_fewer_than_patches_taught_longer():
    bare_ = of("no batch norm")
    assert (round(bare_.min()), round(bare_.max())) == (40, 48)
    assert 0.45 < bare_.mean() / of("captions only").mean() < 0.55
    assert max(bare_ - of("patches, longer")) < 0 < min(bare_ - of("patches"))


def test_a_layer_of_the_model_is_the_chapters():
    layer = CaptionLayer(48, 64, 4, 96)
    layer.load_state_dict(captioner.trained().layers[0].state_dict())
