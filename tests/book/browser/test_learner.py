"""What helps a learner along, tried as a learner would."""

import re

import nbformat
import pytest
from axe_playwright_python.sync_playwright import Axe
from bs4 import BeautifulSoup

from .conftest import chapter_pages
from .sound import TAGS

FIRST = chapter_pages()[0]


def test_progress_survives_a_reload_and_shows_in_the_sidebar_and_on_the_front_page(open_tab):
    tab = open_tab()
    page = tab.open(FIRST)
    page.locator(".progress-list summary").click()
    assert "0 of" in page.locator(".progress-list summary").inner_text()
    page.locator(".progress-list input").first.check()
    page.locator(".exercise-done input").nth(1).press(" ")
    page.reload()
    assert re.search(r"2 of \d+ done", page.locator(".progress-list summary").inner_text())
    assert page.locator(".exercise-done input").nth(1).is_checked()
    assert not page.locator(".exercise-done input").nth(0).is_checked()
    total = re.search(r"of (\d+)", page.locator(".progress-list summary").inner_text())[1]
    assert page.locator(".bd-links .progress-sum").all_inner_texts() == [f" 2/{total}"]

    tab.open("book/intro.html")
    page.locator("details:has(table.chapters) > summary").click()
    rows = page.locator("table.chapters tbody tr")
    assert rows.locator("progress").first.evaluate("(bar) => bar.value") == 2
    assert f"2 of {total}" in rows.first.text_content()  # not laid out yet
    assert rows.count() == len(chapter_pages())
    rows.locator("a").first.click()
    page.locator(".exercise-done input").nth(1).uncheck()
    page.reload()
    assert "1 of" in page.locator(".progress-list summary").inner_text()
    assert tab.wrong == []


def test_a_browser_that_keeps_nothing_shows_no_progress_and_no_error(open_tab):
    tab = open_tab()
    tab.page.add_init_script(
        "Object.defineProperty(window, 'localStorage',"
        " { get() { throw new DOMException('no', 'SecurityError'); } });"
    )
    page = tab.open(FIRST)
    page.wait_for_load_state("networkidle")
    assert page.locator(".progress-list, .exercise-done").count() == 0


@pytest.mark.share(6)
@pytest.mark.parametrize("name", chapter_pages())
def test_hints_unfold_one_at_a_time(name, open_tab):
    page = open_tab().open(name)
    heads = page.locator(".exercise-head").count()
    assert page.locator(".hints").count() == heads > 0
    for i in range(2):
        hints = page.locator(".hints").nth(i)
        shown = hints.locator("summary:visible, p:visible")
        assert shown.count() == 1
        hints.locator("summary").nth(0).focus()
        page.keyboard.press("Enter")
        assert shown.count() == 3  # the first hint, and the offer of a second
        hints.locator("summary").nth(1).press("Enter")
        assert hints.locator("p:visible").count() == 2


def test_a_symbol_is_explained_by_pointer_and_by_keyboard(open_tab):
    tab = open_tab()
    page = tab.open("book/04_masking.html")
    tip = page.locator("#symbol-tip")
    mark = page.locator('.formula [data-symbol="symbol-s_ij"]').first
    mark.hover()
    tip.wait_for()
    assert "may attend" in tip.inner_text()
    assert "attn_mask" in tip.inner_text(), "torch's name"
    tip.hover()  # the tip stays while the pointer is on it
    page.wait_for_timeout(400)
    assert tip.is_visible()
    page.keyboard.press("Escape")
    assert tip.is_hidden()

    formula = page.locator(".formula").first
    formula.focus()
    page.keyboard.press("ArrowRight")
    here = page.locator("[data-symbol]:focus")
    assert here.get_attribute("aria-describedby") == "symbol-tip"
    first, told = here.get_attribute("data-symbol"), tip.inner_text()
    for _ in range(formula.locator("[data-symbol]").count()):
        page.keyboard.press("ArrowRight")
        if here.get_attribute("data-symbol") != first:  # Q and K share an entry
            break
    assert tip.is_visible() and tip.inner_text() != told
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    symbol = here.get_attribute("data-symbol")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/notation.html#{symbol}")
    assert page.locator(f"tr#{symbol}").is_visible()
    assert tab.wrong == []


@pytest.mark.share(5)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_what_unfolds_is_accessible_too(scheme, width, open_tab):
    page = open_tab(width, scheme).open("book/04_masking.html")
    # what is out of view is laid out, too: with estimated heights, rows lie on one another there
    page.add_style_tag(content="* { content-visibility: visible !important }")
    page.evaluate("document.querySelectorAll('article details').forEach((d) => (d.open = true))")
    page.locator(".exercise-done input").first.check()
    page.locator(".formula").nth(1).focus()
    page.keyboard.press("ArrowRight")
    page.locator("#symbol-tip").wait_for()
    parts = (".glance", ".hints", "#symbol-tip", ".math-display", ".bd-links", ".exercise-head")
    context = {"include": [[part] for part in parts]}
    found = Axe().run(page, context=context, options={"runOnly": TAGS})
    assert [v["id"] for v in found.response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.share(3)
@pytest.mark.parametrize("name", chapter_pages())
def test_most_formulas_have_explained_symbols_and_all_terms_cards(name, pages, html):
    page = pages[name]
    shown = page.select("article .formula")
    explained = [f for f in shown if f.find(attrs={"data-symbol": True})]
    assert len(explained) >= 0.7 * len(shown)
    text = (html / "_static" / "cards.html").read_text(encoding="utf-8")
    made = BeautifulSoup(text, "html.parser").find_all(attrs={"data-card": True})
    cards = {anchor for card in made for anchor in card["data-card"].split()}
    assert {mark["data-symbol"] for mark in page.select("article [data-symbol]")} <= cards
    links = page.select('article a[href*="glossary.html#term-"]')
    assert {link["href"].partition("#")[2] for link in links} <= cards


def test_search_finds_causal_mask(open_tab):
    tab = open_tab()
    page = tab.open("book/intro.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("causal mask")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=causal+mask*")
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").evaluate_all("(all) => all.map((a) => a.href)")
    assert any("04_masking.html" in address for address in found)
    page.locator('#search-results li a[href*="04_masking.html"]').first.click()
    page.wait_for_load_state("load")
    assert "causal" in page.locator("article").text_content().lower()
    assert tab.wrong == []


def test_search_leads_to_passages_not_pages(open_tab):
    tab = open_tab()
    page = tab.open("search.html?q=softmax+over+the+queries")
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a")
    addresses = found.evaluate_all("(all) => all.map((a) => a.hash)")
    assert len(addresses) > 5 and all(addresses[:5])
    marked = page.locator("#search-results li").first.locator("mark").all_text_contents()
    assert "softmax" in " ".join(marked).lower()
    found.first.click()
    page.wait_for_load_state("load")
    section = page.locator(page.evaluate("CSS.escape(location.hash.slice(1))").join(["#", ""]))
    assert "softmax" in section.text_content().lower()
    assert tab.wrong == []


def test_search_says_that_it_found_nothing(open_tab):
    tab = open_tab()
    page = tab.open("search.html?q=xylophone")
    page.wait_for_selector(".search-count")
    assert "Nothing in the book matches “xylophone”" in page.locator(".search-count").text_content()
    assert page.locator("#search-results li").count() == 0
    assert tab.wrong == []


def test_previous_and_next_lead_from_chapter_to_chapter(open_tab):
    page = open_tab().open(chapter_pages()[0])
    for name in chapter_pages()[1:3]:
        page.locator(".prev-next-footer a.right-next").click()
        page.wait_for_url(f"**/{name}")
    page.locator(".prev-next-footer a.left-prev").click()
    page.wait_for_url(f"**/{chapter_pages()[1]}")


def test_code_is_copied_at_the_press_of_a_button(open_tab):
    tab = open_tab(permissions=["clipboard-read", "clipboard-write"])
    page = tab.open(FIRST)
    cell = page.locator(".tag_check div.highlight").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == cell.locator("pre").inner_text().strip()
    assert copied.startswith("check(")


@pytest.mark.share(6)
@pytest.mark.parametrize("name", chapter_pages())
def test_the_notebook_and_the_archive_are_there_to_download(name, open_tab):
    page = open_tab().open(name)
    stem = name.removeprefix("book/").removesuffix(".html")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download the notebook").click()
    assert waiting.value.suggested_filename == f"{stem}.ipynb"
    notebook = nbformat.read(waiting.value.path(), as_version=4)
    nbformat.validate(notebook)
    assert "raise NotImplementedError" in "\n".join(c.source for c in notebook.cells)
    with page.expect_download() as waiting:
        page.get_by_role("link", name="all notebooks").click()
    assert waiting.value.path().read_bytes()[:4] == b"PK\x03\x04"


@pytest.mark.parametrize("width", [1280, 390])
def test_a_link_within_the_page_arrives_although_far_sections_are_left_out(width, open_tab):
    tab = open_tab(width)
    page = tab.open(FIRST)
    sections = page.locator("article > section > section")
    names = sections.evaluate_all("(all) => all.map((section) => section.id)")
    hidden = "(section) => getComputedStyle(section).contentVisibility === 'auto'"
    assert sections.nth(1).evaluate(hidden)
    for name in (names[-1], names[len(names) // 2], names[1]):
        page.locator(f'article a.headerlink[href="#{name}"]').first.evaluate("(a) => a.click()")
        page.wait_for_timeout(200)
        top = page.evaluate("(id) => document.getElementById(id).getBoundingClientRect().top", name)
        assert 0 <= top < 120, name
    page = open_tab(width).open(f"{FIRST}#{names[-2]}")
    page.wait_for_timeout(500)
    place = f"document.getElementById('{names[-2]}').getBoundingClientRect().top"
    assert 0 <= page.evaluate(place) < 120
    assert tab.wrong == []
