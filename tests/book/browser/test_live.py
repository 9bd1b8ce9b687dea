"""Explorables with a model: it is loaded late, they are open to everyone, and they fit."""

import pytest

from .exploring import LETTERS, chooser, is_open, named, said, settled, started, touched

LIVE = {  # the chapter, what a finger touches there, and what is said then
    "translator": ("07", ".translator-cell >> nth=3", "To write "),
    "writer": ("09", ".translator-cell >> nth=7", "At token 7, "),
    "gaps": ("10", "[data-part=lines] text >> nth=2", "2 gaps are filled in right"),
    "patches": ("11", "[role=checkbox] rect >> nth=0", "patches covered: 1."),
    "glances": ("12", "[role=checkbox] rect >> nth=0", "squares covered: 1."),
}
SQUARES = {"patches": 5, "glances": 8}  # across the picture


@pytest.mark.share(6)
@pytest.mark.parametrize("name", LIVE)
def test_a_finger_is_answered_and_no_model_is_loaded_before(open_tab, name):
    number, place, text = LIVE[name]
    still = []

    def touch(figure):
        still.append(figure.locator("svg").first.inner_html())
        figure.locator(place).tap()

    figure, _ = touched(open_tab(width=390, has_touch=True), number, named(name), touch)
    assert text in said(figure) and figure.locator("svg").first.inner_html() not in still


def answer(name: str, figure) -> None:
    """Have an explorable's model answer."""
    if name == "translator":
        chooser(figure, "attention").select_option("1")
        figure.get_by_label("mask", exact=True).press("Space")
    elif name == "writer":
        figure.get_by_role("button", name="write 20", exact=True).press("Enter")
    elif name == "gaps":
        chooser(figure, "or one of these").select_option("2")
    else:
        figure.get_by_role("checkbox").press("Enter")
    settled(figure)


@pytest.mark.share(5)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", LIVE)
def test_what_has_answered_is_open_to_everyone_and_fits(open_tab, name, width, scheme):
    tab, figure, _ = started(open_tab, LIVE[name][0], named(name), width=width, scheme=scheme)
    answer(name, figure)
    told = {"writer": "", "gaps": "6 gaps are filled in right"}.get(name, LIVE[name][2])
    assert told in said(figure)
    is_open(tab, named(name), SQUARES.get(name, 0))
    if name in ("writer", "gaps"):
        for svg in figure.locator("svg").all():
            assert min((high for high, _ in svg.evaluate(LETTERS)), default=12) >= 12
