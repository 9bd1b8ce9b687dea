"""Figures of the built book: without paper, and with letters that can be read on a phone."""

import re
from pathlib import Path

import numpy as np
import page_weight
import pictures
import pytest

from attention_by_hand import plots

LETTERS = re.compile(r"scale\(([\d.]+) -[\d.]+\)")  # matplotlib's: hundredths of the size in points
PHONE, LEAST = 390, 10  # CSS pixels: a figure takes the whole width of a phone


def smallest(svg: str) -> float:
    """The smallest letters of a figure, in CSS pixels at its own size."""
    return min(map(float, LETTERS.findall(svg)), default=1.0) * 100 * 4 / 3


def on_a_phone(width: float, letters: float, panels: bool = False) -> float:
    """How large letters of a figure are there, in CSS pixels; a panel is as wide as it, or less."""
    return letters * PHONE / (page_weight.PHONE if panels else width)


def test_letters_are_legible_on_a_phone(html, pages):
    small = {}
    for name, page in pages.items():
        for image in page.select("figure a.picture > img"):
            svg = (html / "_images" / Path(image["src"]).name).read_text(encoding="utf-8")
            panels = "panels" in image.parent["class"]
            size = on_a_phone(float(image["width"]), smallest(svg), panels)
            if round(size, 1) < LEAST:
                small[name, image["alt"][:40]] = size
    assert not small


@pytest.mark.parametrize(("width", "points", "legible"), [
    (500, 11, True), (624, 12, True), (624, 11, False), (700, 12, False),
])  # fmt: skip
def test_small_letters_are_found(width, points, legible):
    svg = f'<g transform="translate(3 4) scale({points / 100} -{points / 100})"/>'
    assert (round(on_a_phone(width, smallest(svg)), 1) >= LEAST) is legible


def test_no_figure_brings_its_paper(html):
    svgs = list((html / "_images").glob("*.svg"))
    assert len(svgs) > 50
    assert not [s.name for s in svgs if "#fcfcfa" in s.read_text(encoding="utf-8").lower()]


def test_the_ground_goes_and_what_hides_something_is_white():
    ground = '<path d="M0 0" style="fill: #fcfcfa"/>'
    cover = '<path d="M0 0" style="fill: #FCFCFA; stroke: #000000"/>'
    edge = '<path d="M0 0" style="fill: #0072b2; stroke: #fcfcfa"/>'
    other = '<path d="M0 0" style="fill: #fcfcf0"/>'
    assert pictures.without_paper(ground + cover + edge + other) == (
        '<path d="M0 0" style="fill: none"/>'
        '<path d="M0 0" style="fill: #ffffff; stroke: #000000"/>'
        '<path d="M0 0" style="fill: #0072b2; stroke: #ffffff"/>' + other
    )


def test_what_shows_nothing_goes():
    svg = '<svg>\n <metadata>\n <a/></metadata>\n<!-- 0.68 -->\n <path d="M 0 1 \nL 2 3"/>\n</svg>'
    assert pictures.lighter(svg) == '<svg><path d="M 0 1 L 2 3"/></svg>'


@pytest.mark.parametrize(("numbers", "told"), [
    (True, ["0.25", "1.00"]), (".0f", ["0", "1"]), (False, []),
])  # fmt: skip
def test_a_heat_map_writes_its_numbers_as_wanted(numbers, told):
    axes = plots.plt.figure().add_subplot()
    plots.heatmap(axes, np.array([[0.25, 1.0]]), numbers=numbers)
    assert [text.get_text() for text in axes.texts] == told
    plots.plt.close("all")
