"""An explorable in the browser: opened, with its data, and read."""

import json
import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator

from .conftest import Tab, chapter_pages
from .sound import TAGS, told

WIRE = 1_200_000  # bytes that a model may take
# With how many inputs a page's model is compared with torch's.
SAMPLED = pytest.mark.parametrize("count", [25, pytest.param(200, marks=pytest.mark.share(0))])
PAGES = {name[5:7]: name for name in chapter_pages()} | {"intro": "book/intro.html"}

# the letters of a drawing: how many pixels high each text's are, and the text
LETTERS = """(svg) => [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim())
  .map((text) => {
    const { a, b } = text.getScreenCTM();
    return [parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b), text.textContent];
  })"""


def started(open_tab, number: str, which: str = "figure[data-explorable]", **options):
    """A page with its explorable ready, the first of several, and what goes with it."""
    tab = open_tab(**options)
    page = tab.open(PAGES[number])
    unfold(page)
    figure = page.locator(which).first
    page.wait_for_selector(f"{which}[data-ready]", state="attached")
    figure.scroll_into_view_if_needed()
    data = json.loads(figure.locator('script[type="application/json"]').text_content())
    return tab, figure, data


def unfold(page) -> None:
    """Open what hides an explorable."""
    hiding = page.locator("details:has(figure[data-explorable])")
    hiding.evaluate_all("(all) => all.forEach((one) => { one.open = true; })")


def named(explorable: str) -> str:
    """What selects an explorable by its name."""
    return f'figure[data-explorable="{explorable}"]'


def explorables(page) -> list[str]:
    """The explorables of a page that is open, by their names, all of them ready."""
    unfold(page)
    figures = page.locator("figure[data-explorable]")
    names = figures.evaluate_all("(all) => all.map((one) => one.dataset.explorable)")
    for name in names:
        page.wait_for_selector(f'{named(name)}[data-ready="true"]', state="attached")
    return names


def said(figure) -> str:
    return figure.locator("output").first.text_content().strip()  # also where nothing is laid out


def number(pattern: str, text: str) -> float:
    return float(re.search(pattern, text)[1].rstrip(".").replace("−", "-"))


def slider(figure, label: str):
    return figure.get_by_label(label, exact=True)


def chooser(figure, label: str):
    return figure.locator(f'label:has(span:text-is("{label}")) select')


def settled(figure) -> None:
    """Wait until an explorable's model, if it has one, has answered."""
    figure.page.wait_for_function(
        "(figure) => figure.getAttribute('aria-busy') !== 'true'", arg=figure.element_handle()
    )


def weights(scores) -> np.ndarray:
    counts = np.exp(np.asarray(scores, dtype=float) - np.max(scores))
    return counts / counts.sum()


def is_open(tab: Tab, which: str, squares: int = 0) -> None:
    """Axe finds nothing wrong with an explorable, and the page is no wider than the window; nor
    does its picture, of so many squares across, leave its frame."""
    context = {"include": [which]}
    assert told(Axe().run(tab.page, context=context, options={"runOnly": TAGS})) == []
    width = tab.page.viewport_size["width"]
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    if squares:
        _fits(tab.page.locator(which), squares, width < 600)
    assert tab.wrong == []


def _fits(figure: Locator, squares: int, narrow: bool) -> None:
    """Its letters are large enough and stand inside; where it is narrow, fingers hit a square."""
    svg = figure.locator("svg")
    assert min(high for high, _ in svg.evaluate(LETTERS)) >= 12
    frame, box = svg.bounding_box(), figure.get_by_role("checkbox").bounding_box()
    right, bottom = (frame[a] + frame[b] for a, b in (("x", "width"), ("y", "height")))
    for one in svg.locator("text:not(:empty)").all():
        place = one.bounding_box()
        assert frame["x"] - 1 <= place["x"] and place["x"] + place["width"] <= right + 1
        assert place["y"] + place["height"] <= bottom + 1
    if narrow:  # as wide as the card, its squares for fingers
        assert box["width"] > 0.97 * frame["width"] and box["width"] / squares >= 40


def touched(
    tab: Tab, number: str, which: str, touch: Callable[[Locator], object]
) -> tuple[Locator, str]:
    """An explorable after a touch, and the address of its model, which is not loaded before."""
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.open(PAGES[number])
    figure = tab.page.locator(which)
    tab.page.wait_for_selector(f"{which}[data-ready=true]", state="attached")
    figure.scroll_into_view_if_needed()
    late = ("/models/", "transformer.js", "slopes.js")
    assert [url for url in asked if any(name in url for name in late)] == []
    touch(figure)
    tab.page.wait_for_selector(f"{which}[aria-busy=false]")
    (model,) = (url for url in asked if url.endswith(".safetensors"))
    assert tab.wrong == []  # among it, requests to others
    return figure, model


def comes_back(
    open_tab, tab: Tab, which: str, broken: str = "", told: Sequence[str] = ()
) -> Locator:
    """The explorable in another tab, to which the address brings what is chosen in this one.

    With a `broken` address it says what is `told`.
    """
    tabs = [tab]
    for address in [tab.page.url, *filter(None, [broken and f"{tab.server}/{broken}"])]:
        tabs.append(open_tab())
        tabs[-1].page.goto(address)
        tabs[-1].page.wait_for_function("() => document.querySelector('[aria-busy=false] output')")
    here, again, *_ = (one.page.locator(which) for one in tabs)
    assert said(again) == said(here)
    assert [text for text in told if text not in said(tabs[-1].page.locator(which))] == []
    assert [one.wrong for one in tabs if one.wrong] == []
    return again
