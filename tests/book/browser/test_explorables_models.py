"""Explorables of the trained models of chapters 10 to 12: what they say is computed here again."""

import pytest

from .exploring import number, said, slider, started


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
