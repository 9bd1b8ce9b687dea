"""The letters that chapter 12 is to describe: drawn by matplotlib's fonts, named by Unicode."""

import unicodedata
from collections import Counter

import numpy as np
import pytest

from attention_by_hand.data import glyphs as data
from attention_by_hand.data.glyphs import FONTS, MARKS, SIZE, glyphs, held_out, picture


def test_every_name_is_unicodes_and_says_letter_and_mark():
    for glyph in glyphs():
        assert unicodedata.name(glyph.letter) == glyph.name
        bare = unicodedata.normalize("NFD", glyph.letter)[0]
        assert bare.upper() == glyph.base and glyph.name.split()[3] == glyph.base
        assert glyph.name.endswith(f" WITH {glyph.mark}" if glyph.mark else f" {glyph.base}")


def test_all_fonts_have_the_alphabet_and_no_glyph_comes_twice():
    seen = Counter((glyph.letter, glyph.font) for glyph in glyphs())
    assert set(seen.values()) == {1}
    bare = {(glyph.letter, glyph.font) for glyph in glyphs() if not glyph.mark}
    assert len(bare) == 2 * 26 * len(FONTS)
    assert {glyph.mark for glyph in glyphs()} == {"", *MARKS}


def test_a_mark_adds_ink_and_the_letter_stays_where_it_was():
    """Marks above leave the ink of the rows below alone, marks below that of the rows above."""
    by_letter = {glyph.letter: glyph for glyph in glyphs() if glyph.font == "DejaVuSans"}
    plain, above, below = (picture(by_letter[letter]) for letter in ("e", "é", "ę"))
    half = SIZE // 2
    plain_rows, above_rows, below_rows = (ink.sum(axis=1) for ink in (plain, above, below))
    assert (
        np.abs(plain_rows - above_rows)[half:].max() < 0.2 < np.abs(plain_rows - above_rows).max()
    )
    assert (
        np.abs(plain_rows - below_rows)[:half].max() < 0.2 < np.abs(plain_rows - below_rows).max()
    )
    assert above.sum() > plain.sum() < below.sum()


def test_pictures_are_of_one_size_with_ink_from_0_to_1_the_same_each_time():
    for glyph in glyphs()[:: len(glyphs()) // 200]:
        ink = picture(glyph)
        assert ink.shape == (SIZE, SIZE) and ink.dtype == np.float32
        assert ink.min() >= 0 and 0.3 < ink.max() <= 1
        assert np.array_equal(ink, picture(glyph))


def test_few_glyphs_touch_the_edge():
    """What is cut off cannot be read; tall capitals with two marks in one may just reach it."""
    cut = [g for g in glyphs() if picture(g)[[0, -1]].any() or picture(g)[:, [0, -1]].any()]
    assert len(cut) < len(glyphs()) / 100, sorted({g.name for g in cut})


@pytest.mark.parametrize("seed", range(3))
def test_what_is_held_out_are_pairs_and_every_part_of_them_is_left(seed):
    pairs = held_out(seed)
    left = {glyph.pair for glyph in glyphs()} - pairs
    assert pairs and all(mark for _, mark in pairs)
    assert {base for base, _ in pairs} <= {base for base, _ in left}
    marks = Counter(mark for _, mark in left)
    assert all(marks[mark] >= 4 for mark in MARKS)
    every = {glyph.pair for glyph in glyphs() if glyph.mark}
    assert 0.15 < len(pairs) / len(every) <= 0.21


def test_another_seed_holds_out_other_pairs():
    assert held_out(0) == held_out(0) != held_out(1)
    assert data.held_out(2) != held_out(1)
