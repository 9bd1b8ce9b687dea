"""Terms of the glossary say what they mean: on pointing, by keyboard, on a tap."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from autograder.publishing.bookindex import BookIndex

from .conftest import ROOT, chapter_pages
from .sound import TAGS, told

PAGE = next(name for name in chapter_pages() if "masking" in name)
PADDING = "article a[href$='glossary.html#term-padding']"


def test_a_term_says_on_hover_and_focus_what_the_glossary_says(open_tab):
    tab = open_tab()
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    glossary = tab.open("book/glossary.html")
    said = glossary.locator("dt#term-padding ~ dd").first.inner_text()
    page = tab.open(PAGE)
    page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "cards.html" in url], "loaded when it is first wanted"
    link, tip = page.locator(PADDING).first, page.locator("#symbol-tip")
    link.hover()
    tip.wait_for()
    assert said in tip.inner_text()
    assert tip.locator("[lang=zh-Hans]").count() == 1
    assert link.get_attribute("aria-describedby") == tip.get_attribute("id")
    tip.hover()  # the tip stays while the pointer is on it
    page.wait_for_timeout(400)
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    page.mouse.move(0, 0)

    page.keyboard.press("Tab")  # so that the focus shows
    link.focus()
    tip.wait_for()
    assert said in tip.inner_text()
    page.keyboard.press("Tab")
    page.wait_for_timeout(400)
    assert said not in tip.inner_text() or tip.is_hidden()
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#term-padding")
    assert tab.wrong == []


def test_a_page_without_formulas_has_cards_as_well(open_tab):
    tab = open_tab()
    page = tab.open("book/intro.html")
    assert page.locator("[data-symbol]").count() == 0
    page.mouse.move(300, 300)
    page.wait_for_selector("#symbol-tip", state="attached")
    page.locator("article a[href*='glossary.html#term-']").first.hover()
    page.locator("#symbol-tip").wait_for()
    assert tab.wrong == []


def test_notebooks_name_the_places_of_terms_as_the_page_does(open_tab):
    terms = open_tab().open("book/glossary.html").locator("dl.glossary > dt")
    there = set(terms.evaluate_all("(all) => all.map((term) => term.id)"))
    assert {url.partition("#")[2] for url in BookIndex(ROOT).terms.values()} == there


def test_a_card_leads_to_the_glossary_and_to_the_terms_in_it(open_tab):
    page = open_tab().open("book/glossary.html")
    links = page.locator("dl.glossary dd a.reference.internal")
    assert links.count() > 3
    cards = page.evaluate(
        """async () => {
          const file = new URL("../_static/cards.html", location);
          const text = await (await fetch(file)).text();
          const all = new DOMParser().parseFromString(text, "text/html").querySelectorAll("a");
          return [...all].map((a) => new URL(a.getAttribute("href"), file).href);
        }"""
    )
    terms = page.locator("dl.glossary > dt").evaluate_all("(all) => all.map((t) => t.id)")
    leads = {url.partition("#")[2] for url in cards if "glossary.html#" in url}
    assert leads and leads <= set(terms)


def test_a_first_tap_shows_a_card_and_a_second_follows(open_tab):
    tab = open_tab(390, has_touch=True, is_mobile=True)
    page = tab.open(PAGE)
    link, tip = page.locator(PADDING).first, page.locator("#symbol-tip")
    link.tap()
    tip.wait_for()
    assert page.url.endswith(PAGE)
    box = tip.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.locator("article h1").tap()
    assert tip.is_hidden()
    link.tap()
    tip.wait_for()
    link.tap()
    page.wait_for_url("**/glossary.html#term-padding")
    assert tab.wrong == []


@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1280), pytest.param("dark", 390, marks=pytest.mark.share(0))]
)
def test_a_card_is_accessible(scheme, width, open_tab):
    page = open_tab(width, scheme).open(PAGE)
    page.locator(PADDING).first.hover()
    page.locator("#symbol-tip").wait_for()
    context = {"include": [["#symbol-tip"]]}
    assert told(Axe().run(page, context=context, options={"runOnly": TAGS})) == []


def test_without_a_script_a_term_is_a_link(open_tab):
    page = open_tab(java_script_enabled=False).open(PAGE)
    page.locator(PADDING).first.click()
    page.wait_for_url("**/glossary.html#term-padding")
