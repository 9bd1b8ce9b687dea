"""Every page: no error, no other host, nothing that axe finds of WCAG 2.2 AA."""

import pytest

from .conftest import documents
from .sound import take_screenshots, wrong_with


@pytest.mark.share(12)
@pytest.mark.share(2, rest="nightly")
@pytest.mark.parametrize("name", documents())
def test_a_page_is_sound_in_light_and_dark_wide_and_narrow(name, open_tab):
    assert wrong_with(name, open_tab) == []


FAINT = {
    "1280 light": "@media (min-width: 800px) { html[data-theme=light] article p { color: #ccc } }",
    "390 light": "@media (max-width: 800px) { html[data-theme=light] article p { color: #ccc } }",
    "390 dark": "@media (max-width: 800px) { html[data-theme=dark] article p { color: #333 } }",
    "1280 dark": "@media (min-width: 800px) { html[data-theme=dark] article p { color: #333 } }",
    "1280 light, beside the article": "html[data-theme=light] nav a { color: #ccc !important }",
}


@pytest.mark.share(5)
@pytest.mark.parametrize(("look", "style"), FAINT.items(), ids=FAINT.keys())
def test_a_text_too_faint_in_one_look_alone_is_found(look, style, open_tab):
    found = wrong_with("book/bibliography.html", open_tab, style)
    assert any(what.startswith(f"{look.partition(',')[0]}: color-contrast") for what in found), (
        found
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_opens_in_the_readers_colours(scheme, open_tab):
    page = open_tab(scheme=scheme).open("book/bibliography.html")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme


@pytest.mark.nightly
@pytest.mark.parametrize("name", documents())
def test_screenshots_of_a_page_for_a_person_to_look_at(name, open_tab):
    assert take_screenshots(name, open_tab) >= 4
