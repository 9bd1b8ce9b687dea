"""Chapter 12's captioner: what its weights do is what the script has written down."""

import inspect
import json
import re

import numpy as np
import pytest
import torch

from attention_by_hand.data.glyphs import (
    MARKS,
    bare,
    bare_in_place,
    glyphs,
    held_out,
    mark_pixels,
    picture,
)
from attention_by_hand.models.captioner import (
    EOS,
    PAD,
    WEIGHTS,
    Captioner,
    ids_of,
    longest,
    pictures,
    prompt,
    trained,
    vocabulary,
    words_of,
)
from benchmarks import captions as script
from benchmarks.caption_rivals import closest, marks_on_letters, projections

RUNS = json.loads(script.RESULT.read_text(encoding="utf-8"))["runs"]
E_ACUTE = next(g for g in glyphs() if g.letter == "é" and g.font == "DejaVuSans")


@pytest.fixture(scope="module")
def model() -> Captioner:
    return trained()


def run_on_file(name: str, seed: int) -> dict:
    (found,) = [run for run in RUNS if (run["run"], run["seed"]) == (name, seed)]
    return found


def test_a_caption_is_its_words_between_two_tokens():
    (ids,) = ids_of(["LATIN SMALL LETTER E WITH ACUTE"])
    said = [vocabulary()[i] for i in ids.tolist()]
    assert said[:8] == ["[DEC]", "LATIN", "SMALL", "LETTER", "E", "WITH", "ACUTE", "[EOS]"]
    assert set(said[8:]) <= {"[PAD]"} and len(said) == longest()
    assert words_of(ids) == "LATIN SMALL LETTER E WITH ACUTE"
    assert prompt().tolist() == ids[:2].tolist()
    with pytest.raises(KeyError, match="GREEK"):
        ids_of(["GREEK SMALL LETTER ALPHA"])


def test_the_mark_is_where_a_glyph_differs_from_its_bare_letter():
    assert bare(E_ACUTE).letter == "e" and bare(E_ACUTE).name == "LATIN SMALL LETTER E"
    rows, _ = np.nonzero(mark_pixels(E_ACUTE))
    ink = np.nonzero(picture(bare(E_ACUTE)) > 0.5)[0]
    assert len(set(rows)) >= 3 and rows.max() < ink.min()  # an acute is above the letter
    below = next(g for g in glyphs() if g.letter == "ẹ" and g.font == "DejaVuSans")
    assert np.nonzero(mark_pixels(below))[0].min() > ink.max()
    assert not mark_pixels(bare(E_ACUTE)).any()


def test_a_letter_that_its_mark_has_moved_is_not_taken_for_the_mark():
    """Every other glyph, too: nothing of the mark is left where only the letter is."""
    apart = []
    for glyph in glyphs()[::23]:
        centred = (abs(picture(glyph) - picture(bare(glyph))) > 0.2).sum()
        assert mark_pixels(glyph).sum() <= centred
        apart.append(not np.array_equal(bare_in_place(glyph), picture(bare(glyph))))
    assert any(apart) and not all(apart)
    moved = next(
        g
        for g in glyphs()
        if g.mark == "OGONEK" and not np.array_equal(bare_in_place(g), picture(bare(g)))
    )
    ink = bare_in_place(moved) > 0.5
    assert not mark_pixels(moved)[: len(ink) // 2].any(), "an ogonek is below"


def test_the_weights_are_small_and_hold_nothing_but_numbers(model):
    assert WEIGHTS.stat().st_size < 1_000_000
    with np.load(WEIGHTS, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fi" for name in arrays.files)
    assert not model.training
    assert all(value.isfinite().all() for value in model.state_dict().values())
    found = run_on_file("captioner", 0)
    assert sum(p.numel() for p in model.parameters()) == found["parameters"]


@pytest.mark.share(0)
def test_the_weights_do_what_is_written_down(model):
    images, part = script.collection()[1], script.parts_of(0)
    found = script.tried(lambda i: [words_of(t) for t in script.captions(model, images[i])], 0)
    filed = run_on_file("captioner", 0)
    assert len(part["new"]) == 944 and len(part["font"]) > 300
    for name in ("new", "font"):  # half-precision weights, and another machine's rounding
        for what in ("exact", "words", "letter", "mark"):
            assert abs(found[name][what] - filed[name][what]) < 0.01
    for what in ("at 1", "at 5"):
        assert script.retrieval(model, 0)[what] == pytest.approx(filed["retrieval"][what], abs=0.03)
    assert script.gaze(model, 0) == pytest.approx(filed["gaze"], abs=0.02)
    judged = script.matching(model, 0)
    assert judged == pytest.approx({name: filed[name] for name in judged}, abs=0.02)


def test_nothing_held_out_is_read_in_training():
    every, out = glyphs(), held_out(1)
    part = script.parts_of(1)
    for i in part["train"].tolist():
        assert every[i].pair not in out and every[i].font != script.FONT
    assert {every[i].pair for i in part["new"].tolist()} == out
    assert sum(map(len, part.values())) == len(every)
    luck = np.random.RandomState(3)
    for chosen, moved, ids in script.batches(part["train"], 2, luck):
        assert set(chosen.tolist()) <= set(part["train"].tolist())
        names = [words_of(row) for row in ids]
        assert len(set(names)) == len(names) == script.BATCH
        ink = script.collection()[1][chosen].sum((1, 2))
        assert torch.allclose(moved.sum((1, 2)), ink, rtol=1e-4)


def test_where_it_looks_are_weights_over_the_places(model):
    images = pictures([E_ACUTE])
    looks = model.looks(ids_of([E_ACUTE.name]), model.encode(images))
    assert looks.shape == (1, 2, 4, longest(), 8, 8)
    assert torch.allclose(looks.sum((-2, -1)), torch.ones(()), atol=1e-5)


def test_the_captioner_reads_no_word_that_comes_later(model):
    memory = model.encode(pictures([E_ACUTE]))
    ids = ids_of([E_ACUTE.name])
    other = ids.clone()
    other[:, 5:] = EOS
    with torch.no_grad():
        assert torch.equal(model.decode(ids, memory)[:, :5], model.decode(other, memory)[:, :5])
        assert not torch.allclose(
            model.decode(ids, memory)[:, 5], model.decode(other, memory)[:, 5]
        )


def test_as_a_text_encoder_it_does_not_see_padding(model):
    (ids,) = ids_of([E_ACUTE.name])[None]
    with torch.no_grad():
        whole, cut = model.text_vectors(ids), model.text_vectors(ids[:, :8])
    assert (ids[:, 8:] == PAD).all() and torch.allclose(whole, cut, atol=1e-5)


def test_marks_are_counted_as_a_hand_would():
    names = ["LATIN SMALL LETTER E WITH ACUTE", "LATIN CAPITAL LETTER K WITH DOT BELOW"]
    written = ["LATIN SMALL LETTER E WITH ACUTE", "LATIN CAPITAL LETTER K WITH CEDILLA"]
    known = {("LATIN CAPITAL LETTER K", "CEDILLA")}
    found = script.marks_of(written, names, known)
    assert found["exact"] == found["mark"] == 0.5 and found["letter"] == 1.0
    assert found["words"] == round(9 / 11, 4) and found["wrong, but known"] == 1.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_seed_has_every_run(seed):
    every = [*script.CAPTIONERS, *script.CLASSIFIERS, *script.NEAREST]
    assert sorted(run["run"] for run in RUNS if run["seed"] == seed) == sorted(every)
    told = inspect.getdoc(script)
    for name in every:
        assert re.search(rf"\b{re.escape(name)}\b", told), name


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_only_knows_names_finds_no_unseen_pair_and_nearest_is_what_is_stored(seed):
    for name in ("nearest", "names as classes"):
        assert run_on_file(name, seed)["new"]["exact"] == 0, "by construction"
    assert script.nearest(seed) == {k: run_on_file("nearest", seed)[k] for k in ("new", "font")}


def test_the_nearest_is_found_where_it_stands_and_as_far_away_as_told():
    """Every picture is nearest to itself, and beside a grey page once it has moved too far."""
    names, known = [*"abcdg"], torch.zeros(5, 32, 32)
    for i in range(4):
        known[i, 8 * i, 5 * i] = 1.0
    known[4] = 0.01
    for reach in (0, 1, 2):
        for far in range(3):
            images = known.roll((far, -far), (1, 2))
            found = closest(names, known, images, reach)(torch.arange(5))
            assert found == (names if far <= reach else [*"ggggg"])


def test_pasted_pictures_are_marks_of_the_training_on_letters_of_their_font_and_case():
    every, images, _ = script.collection()
    train = script.parts_of(0)["train"].tolist()
    some = [i for i in train if every[i].font == "DejaVuSans" and every[i].base in "AEKO"]
    names, made_up = marks_on_letters(every, images, some)
    assert len(names) == len(made_up) and made_up.min() >= 0 and made_up.max() <= 1
    plain = {every[i].name for i in some if not every[i].mark}
    marks = {(every[i].name.split()[1], every[i].mark) for i in some if every[i].mark}
    wanted = {
        f"{name} WITH {mark}" for name in plain for case, mark in marks if f" {case} " in name
    }
    assert set(names) == plain | wanted
    for i in some:  # a mark put back onto its own letter is the glyph, but for a move of the letter
        if every[i].mark and np.array_equal(bare_in_place(every[i]), picture(bare(every[i]))):
            own = [made_up[k] for k, name in enumerate(names) if name == every[i].name]
            assert any(torch.allclose(one, images[i], atol=1e-6) for one in own)


def test_two_projections_find_partners_that_one_linear_map_relates():
    """Texts that are a rotation of their pictures are found; unrelated ones are not."""
    luck = torch.Generator().manual_seed(0)
    seen, other = torch.randn(2, 400, 24, generator=luck)
    turned = seen @ torch.linalg.qr(torch.randn(24, 24, generator=luck)).Q

    def fit(layers, loss_of):
        adam = torch.optim.Adam(layers.parameters(), 0.01)
        for _ in range(150):
            adam.zero_grad()
            loss_of(torch.randperm(300, generator=luck)[:48]).backward()
            adam.step()

    for read, low, high in ((turned, 0.9, 1.0), (other, 0.0, 0.1)):
        torch.manual_seed(0)
        with torch.no_grad():
            vectors = projections(seen, read, torch.enable_grad()(fit))(torch.arange(300, 400))
            assert low <= script.recalls(*vectors)["at 1"][0] <= high


def test_every_mark_is_read_with_some_letter():
    for seed in range(3):
        every, train = glyphs(), script.parts_of(seed)["train"]
        assert {every[i].mark for i in train.tolist()} == {"", *MARKS}
