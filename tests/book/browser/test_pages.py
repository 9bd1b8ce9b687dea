"""What a reader gets at first: not much to fetch, and everything to read without a script."""

import gzip
from itertools import product

import pytest

from .conftest import chapter_pages

FIRST_VIEW = 400_000  # bytes over the wire


@pytest.mark.share(12)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", chapter_pages())
def test_a_chapter_is_light_at_first_view(name, width, open_tab, html):
    """What a browser fetches until nothing moves any more, texts as gzip sends them."""
    tab = open_tab(width)
    asked = []
    tab.page.on("requestfinished", lambda request: asked.append(request.url))
    tab.open(name)
    tab.page.wait_for_load_state("networkidle")
    weights = {}
    for url in dict.fromkeys(asked):
        path = html / url.removeprefix(tab.server).partition("?")[0].lstrip("/")
        data = path.read_bytes()
        packed = path.suffix in {".woff2", ".png", ".jpg"}
        weights[path.name] = len(data) if packed else len(gzip.compress(data, 6))
    assert weights[name.rpartition("/")[2]] > 0
    assert sum(weights.values()) < FIRST_VIEW, weights


@pytest.mark.parametrize(("name", "width"), list(product(chapter_pages()[:1], [1280, 390])))
def test_without_a_script_a_page_still_has_everything_to_read(name, width, open_tab):
    tab = open_tab(width, java_script_enabled=False)
    page = tab.open(name)
    assert page.locator("article figure svg, article figure img").count() >= 4
    assert page.locator(".glance").inner_text().startswith("About ")
    assert page.locator("[data-part=controls] *").count() == 0
    assert page.locator(".progress-slot > *, .symbol-tip").count() == 0
    assert ": " in page.locator(".formula[title]").first.get_attribute("title")
    assert tab.wrong == []
