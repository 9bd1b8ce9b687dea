"""Latin letters as the fonts of matplotlib draw them, and the names that Unicode gives them.

Chapter 12 describes these pictures in words: é is LATIN SMALL LETTER E WITH ACUTE. The fonts DejaVu
and STIX ship with matplotlib and the names with Python, so nothing is downloaded. What is held out
for the test are pairs of letter and mark, in both cases: if E WITH ACUTE is held out, neither É nor
é is in the training, but other letters with an acute are, and E with other marks.
"""

import random
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib import ft2font
from matplotlib.ft2font import FT2Font

_FLAGS: Any = getattr(ft2font, "LoadFlags", None)  # none before matplotlib 3.10
NO_HINTING = _FLAGS.NO_HINTING if _FLAGS else vars(ft2font)["LOAD_NO_HINTING"]
SIZE = 32  # pixels, both ways
EM, BASELINE = 22, 24  # pixels: what a font's unit is drawn as, and the row of the baseline
FONTS = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique", "DejaVuSans-BoldOblique",
    "DejaVuSansMono", "DejaVuSansMono-Bold", "DejaVuSansMono-Oblique", "DejaVuSansMono-BoldOblique",
    "DejaVuSerif", "DejaVuSerif-Bold", "DejaVuSerif-Italic", "DejaVuSerif-BoldItalic",
    "STIXGeneral", "STIXGeneralBol", "STIXGeneralItalic", "STIXGeneralBolIta",
)  # fmt: skip
MARKS = (
    "ACUTE", "GRAVE", "CIRCUMFLEX", "CARON", "TILDE", "MACRON", "BREVE", "INVERTED BREVE",
    "DIAERESIS", "DOUBLE GRAVE", "DOT ABOVE", "HOOK ABOVE",
    "DOT BELOW", "LINE BELOW", "CIRCUMFLEX BELOW", "CEDILLA", "OGONEK",
)  # fmt: skip
NAME = re.compile(r"LATIN (SMALL|CAPITAL) LETTER ([A-Z])(?: WITH ([A-Z ]+))?")


class Glyph(NamedTuple):
    """One letter in one font."""

    letter: str  # the character itself
    font: str
    name: str
    base: str  # A … Z
    mark: str  # one of MARKS, or "" for none

    @property
    def pair(self) -> tuple[str, str]:
        return self.base, self.mark


@cache
def glyphs() -> tuple[Glyph, ...]:
    """Every letter A to Z, small and capital, bare or with one of the marks, in every font."""
    found = []
    has = {font: set(_font(font).get_charmap()) for font in FONTS}
    for code in range(0x41, 0x1F00):
        match = NAME.fullmatch(unicodedata.name(chr(code), ""))
        if match and (match[3] is None or match[3] in MARKS):
            for font in FONTS:
                if code in has[font]:
                    found.append(Glyph(chr(code), font, match[0], match[2], match[3] or ""))
    return tuple(found)


@cache
def _font(name: str) -> FT2Font:
    folder = Path(matplotlib.__file__).parent / "mpl-data" / "fonts" / "ttf"
    return FT2Font(str(folder / f"{name}.ttf"))


def picture(glyph: Glyph, em: float = EM) -> np.ndarray:
    """`(SIZE, SIZE)`, float32, 0 for paper and 1 for ink; what does not fit is cut off."""
    font = _font(glyph.font)
    font.set_size(em, 72)
    font.set_text(glyph.letter, 0.0, flags=NO_HINTING)
    font.draw_glyphs_to_bitmap(antialiased=True)
    ink = np.asarray(font.get_image(), dtype=np.float32) / 255
    page = np.zeros((3 * SIZE, 3 * SIZE), dtype=np.float32)
    below = round(font.get_descent() / 64)
    bottom = SIZE + BASELINE + below
    left = SIZE + (SIZE - ink.shape[1]) // 2
    page[bottom - ink.shape[0] : bottom, left : left + ink.shape[1]] = ink
    return page[SIZE : 2 * SIZE, SIZE : 2 * SIZE]


def bare(glyph: Glyph) -> Glyph:
    """The same letter in the same font, without its mark."""
    name = glyph.name.partition(" WITH ")[0]
    letter = glyph.base.lower() if " SMALL " in name else glyph.base
    return Glyph(letter, glyph.font, name, glyph.base, "")


def bare_in_place(glyph: Glyph) -> np.ndarray:
    """`(SIZE, SIZE)`: the bare letter's picture where it stands in that of a glyph.

    `picture` centres the ink, so a mark that is wide, or stands to one side, moves its letter.
    """
    whole, letter = picture(glyph), picture(bare(glyph))
    moved = (np.roll(letter, columns, axis=1) for columns in range(-4, 5))
    return min(moved, key=lambda there: (abs(whole - there) > 0.2).sum())


def mark_pixels(glyph: Glyph) -> np.ndarray:
    """`(SIZE, SIZE)`, boolean: where a glyph's ink differs from that of its bare letter."""
    return abs(picture(glyph) - bare_in_place(glyph)) > 0.2


def held_out(seed: int = 0, share: float = 0.2, keep: int = 4) -> frozenset[tuple[str, str]]:
    """Pairs of letter and mark for the test: a share of them, at least `keep` left to each mark."""
    pairs = sorted({g.pair for g in glyphs() if g.mark})
    left = {mark: sum(m == mark for _, m in pairs) for mark in MARKS}
    order = random.Random(seed).sample(pairs, len(pairs))
    taken: set[tuple[str, str]] = set()
    for base, mark in order:
        if len(taken) < share * len(pairs) and left[mark] > keep:
            taken.add((base, mark))
            left[mark] -= 1
    return frozenset(taken)
