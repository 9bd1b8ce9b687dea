"""Chapter 12's captioner on pictures drawn anew: other sizes and places, by other code.

The weights are those that the book ships. The letters are drawn from their outlines instead of the
fonts' bitmaps, and the captions are written here, word by word. Some 20 seconds.
Run: python -m benchmarks.second new_pictures
"""

import numpy as np
import torch
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

from attention_by_hand.data import glyphs as drawn
from attention_by_hand.models import captioner


def outlined(glyph: drawn.Glyph, em: float, right: float, down: float) -> np.ndarray:
    """`(32, 32)`: the outline filled, `em` pixels to the unit, away from the middle by so much."""
    font = drawn._font(glyph.font)
    font.set_size(64, 72)
    font.load_char(ord(glyph.letter), flags=drawn.NO_HINTING)
    points, codes = font.get_path()
    points = points * em / 64
    width = points[:, 0].min() + points[:, 0].max()
    page = RendererAgg(32, 32, 72)
    ink = page.new_gc()
    ink.set_linewidth(0)
    moved = Affine2D().translate(15.3 - width / 2 + right, 33 - drawn.BASELINE - down)
    page.draw_path(ink, Path(points, codes), moved, (0, 0, 0, 1))
    return np.asarray(page.buffer_rgba())[..., 3].astype(np.float32) / 255


def written(model, picture: np.ndarray) -> str:
    words, ids = captioner.vocabulary(), captioner.prompt().tolist()
    with torch.no_grad():
        memory = model.encode(torch.from_numpy(picture)[None])
        while ids[-1] != captioner.EOS and len(ids) < captioner.longest():
            ids.append(model.decode(torch.tensor([ids]), memory)[0, -1].argmax().item())
    return " ".join(words[i] for i in ids if i > captioner.EOS)


def main(step: int = 4) -> None:
    model, out, draw = captioner.trained(), drawn.held_out(0), np.random.default_rng(5)
    unseen = [g for g in drawn.glyphs() if g.pair in out][::step]
    for words, size, far in (
        ("as trained", 22.0, 0.0),
        ("up to a pixel away", 22.0, 1.0),
        ("smaller by a tenth", 19.8, 0.0),
        ("larger by a tenth", 24.2, 0.0),
    ):
        right = 0
        for glyph in unseen:
            places = draw.uniform(-far, far, 2)
            right += written(model, outlined(glyph, size, *places)) == glyph.name
        print(f"{words}: {right / len(unseen):.1%} of {len(unseen)} exact")
