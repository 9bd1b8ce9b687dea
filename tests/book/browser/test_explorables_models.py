"""The explorables of the trained models, chapters 9 to 12: what they say is computed here again."""

import numpy as np
import pytest

from .exploring import named, number, said, slider, started, weights


def test_chapter_9_what_is_cut_off_a_distribution_is_what_the_three_sliders_say(open_tab):
    _, figure, data = started(open_tab, "09", named("sampling"))
    counts = []
    for entry, temperature, k, p in ((0, 4, 9, 8), (0, 1, 9, 8), (1, 6, 4, 11), (2, 6, 4, 4)):
        figure.locator("select").select_option(str(entry))
        for label, index in (("temperature τ", temperature), ("top-k", k), ("top-p", p)):
            slider(figure, label).fill(str(index))
        logits = np.array(data["entries"][entry]["logits"])
        row = weights(logits / data["temperatures"][temperature])
        first = row[: data["ks"][k]] / row[: data["ks"][k]].sum()
        share = data["ps"][p]
        kept = len(first) if share == 1 else int(np.argmax(first.cumsum() >= share - 1e-12)) + 1
        text = said(figure)
        assert int(number(r"(\d+) of", text)) == kept
        assert number(r"had ([\d.]+) %", text) == pytest.approx(100 * row[:kept].sum(), abs=0.051)
        largest = row[0] / row[:kept].sum()
        assert number(r"drawn with ([\d.]+)", text) == pytest.approx(largest, abs=0.00051)
        filled = figure.locator("[data-part=bars] rect").evaluate_all(
            "(bars) => bars.map((bar) => bar.getAttribute('fill-opacity') === '1')"
        )
        shown = len(filled) - 1
        assert filled[:shown] == [i < kept for i in range(shown)]
        assert filled[shown] == (kept > shown)
        counts.append(kept)
    assert counts[1] < counts[0], "a lower temperature leaves fewer tokens"


def test_chapter_11_a_cover_gives_what_the_model_says_under_it(open_tab):
    tab, figure, data = started(open_tab, "11")
    grid = data["grid"]
    covers = [(0, 0, 0)]
    for size in (1, 2, 3):
        places = range(grid - size + 1)
        covers += [(size, row, column) for row in places for column in places]
    seen = set()
    for case, cover in ((0, (0, 0, 0)), (1, (1, 4, 3)), (2, (2, 1, 3)), (4, (3, 2, 2))):
        figure.locator("select").select_option(str(case))
        for label, value in zip(("cover", "row", "column"), cover, strict=True):
            slider(figure, label).fill(str(value))
        one, text = data["cases"][case], said(figure)
        shares = one["said"][covers.index(cover)]
        best = shares.index(max(shares))
        assert number(r"The model says (\d) with", text) == best
        assert number(r"with ([\d.]+), which", text) == pytest.approx(
            max(shares) / 1000, abs=0.0051
        )
        assert ("which is right" in text) == (best == one["digit"])
        now = shares[one["digit"]] / 1000
        assert number(r"now ([\d.]+)\.$", text) == pytest.approx(now, abs=0.0051)
        size, row, column = cover
        tints = figure.locator("[data-part=pixels] rect").evaluate_all(
            "(all) => all.map((one) => Number(one.getAttribute('fill-opacity')))"
        )
        side = grid * data["patch"]
        for i, tint in enumerate(tints):
            down, across = (x // data["patch"] for x in divmod(i, side))
            hidden = row <= down < row + size and column <= across < column + size
            right = (data["cover"] if hidden else one["pixels"])[i] / 99
            assert tint == pytest.approx(right, abs=0.0051)
        seen.add(tuple(shares))
    assert len(seen) == 4
    slider(figure, "cover").fill("1")
    figure.locator("[data-part=pixels] rect").nth(0).click()
    assert slider(figure, "row").input_value() == "0"
    assert slider(figure, "column").input_value() == "0"
    assert tab.wrong == []
