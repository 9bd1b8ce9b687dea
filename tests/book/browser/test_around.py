"""What stands around the text, and how it is set: the front page, roots, braces."""

import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from .conftest import chapter_pages
from .exploring import named, said, settled, unfold

PAGES = {name[5:7]: name for name in chapter_pages()}
FRONT = "book/intro.html"

# --- formulas -----------------------------------------------------------------------------------

ROOM = """() => [...document.querySelectorAll("math")].filter(
  (math) => math.getClientRects().length && math.lastElementChild.matches("msqrt")
).map((math) => {
  const within = math.lastElementChild.lastElementChild.getBoundingClientRect();
  return math.getBoundingClientRect().right - within.right;
})"""
SINKS = """() => [...document.querySelectorAll("p math mrow > mn + mi + msqrt")].map((root) => {
  const size = parseFloat(getComputedStyle(root).fontSize);
  const number = root.previousElementSibling.previousElementSibling;
  const line = number.getBoundingClientRect().bottom;
  return (root.getBoundingClientRect().bottom - line) / size;
})"""
WORDS_IN_PIECES = """() => [...document.querySelectorAll("article th, article td code")].flatMap(
  (cell) => {
    const found = [], walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      for (const word of walk.currentNode.data.matchAll(/\\p{L}+/gu)) {
        const range = document.createRange();
        range.setStart(walk.currentNode, word.index);
        range.setEnd(walk.currentNode, word.index + word[0].length);
        const rows = new Set([...range.getClientRects()].map((box) => box.top));
        if (rows.size > 1) found.push(word[0]);
      }
    }
    return found;
  }
)"""


@pytest.mark.share(0)
@pytest.mark.parametrize("number", ["02", "06"])
def test_no_gap_follows_a_root_and_none_sinks_below_its_line(open_tab, number):
    page = open_tab().open(PAGES[number])
    page.evaluate("document.documentElement.dataset.whole = ''")
    page.evaluate("document.fonts.ready")
    rooms, sinks = page.evaluate(ROOM), page.evaluate(SINKS)
    assert rooms and max(rooms) < 3
    if number == "06":
        assert sinks
    assert max(sinks, default=0) < 0.5


@pytest.mark.share(4)
@pytest.mark.parametrize("number", PAGES)
def test_no_formula_scrolls_on_a_phone(open_tab, number):
    page = open_tab(390).open(PAGES[number])
    page.evaluate("document.documentElement.dataset.whole = ''")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    wide = """(all) => all.filter((one) => one.scrollWidth > one.clientWidth)
      .map((one) => one.textContent)"""
    formulas = page.locator("article .formula")
    assert formulas.count() > 1 and formulas.evaluate_all(wide) == []


@pytest.mark.share(5)
@pytest.mark.parametrize("scale", [1, 1.25, 2])
def test_braces_have_both_their_halves(open_tab, scale):
    page = open_tab(device_scale_factor=scale).open(PAGES["05"])
    page.evaluate("document.documentElement.dataset.whole = ''")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => (fold.open = true))")
    braced = page.locator("munder:has(> mo.brace) > :first-child")
    assert braced.count() == 5
    for i in range(5):
        shot = Image.open(io.BytesIO(braced.nth(i).screenshot())).convert("L")
        ink = np.asarray(shot) < 160
        low = ink[-round(0.4 * 17 * scale) :]
        share = low.any(axis=0).mean()
        assert share > 0.9, f"brace {i} covers {share:.0%} of its width"


@pytest.mark.share(4)
@pytest.mark.parametrize("number", ["02", "05", "07"])
def test_on_a_phone_words_in_tables_stay_in_one_piece(open_tab, number):
    page = open_tab(390).open(PAGES[number])
    page.evaluate("document.documentElement.dataset.whole = ''")
    assert page.evaluate(WORDS_IN_PIECES) == []


# --- links, sources, stubs ----------------------------------------------------------------------


@pytest.mark.parametrize("name", [FRONT, PAGES["02"]])
def test_links_have_one_colour(open_tab, name):
    page = open_tab().open(name)
    links = "article :is(p, li, td, dd) > a:not(.headerlink, .prev-next-footer a, .doors a)"
    shown = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("(s) => document.documentElement.dataset.theme === s", arg=scheme)
        colours = page.locator(links).evaluate_all(
            "(all) => all.map((a) => getComputedStyle(a).color)"
        )
        assert len(colours) > 10 and len(set(colours)) == 1
        shown += colours[:1]
    assert shown[0] != shown[1]


def test_sources_hang_by_a_little_only(open_tab):
    page = open_tab(390).open("book/bibliography.html")
    left = page.locator(".citation > p").first.evaluate(
        "(p) => p.getBoundingClientRect().left + parseFloat(getComputedStyle(p).paddingLeft)"
    )
    assert left < 390 / 8


def test_a_citation_says_on_hover_and_focus_which_paper_it_is(open_tab):
    tab = open_tab()
    page = tab.open(PAGES["01"])
    page.evaluate("document.documentElement.dataset.whole = ''")
    link = page.locator("article a.reference.internal[href^='#id']:visible").first
    tip = page.locator("#symbol-tip")
    link.hover()
    source = page.locator(link.get_attribute("href")).locator("p").text_content()
    assert tip.is_visible() and tip.text_content() == source
    assert link.get_attribute("aria-describedby") == tip.get_attribute("id")
    page.keyboard.press("Escape")
    assert tip.is_hidden()
    assert tab.wrong == []


def test_what_has_no_room_in_a_stub_goes_on_where_its_line_began(open_tab):
    page = open_tab(390).open(PAGES["04"])
    starts = page.evaluate(
        """() => [...document.querySelectorAll(".stub [data-line]")].map((line) => {
          const range = document.createRange();
          range.selectNodeContents(line);
          const boxes = [...range.getClientRects()].filter((box) => box.width > 1);
          const rows = [...new Set(boxes.map((box) => Math.round(box.top)))];
          const edge = parseFloat(getComputedStyle(line).paddingLeft);
          const second = boxes.filter((box) => Math.round(box.top) === rows[1]);
          const left = line.getBoundingClientRect().left;
          return rows.length > 1 ? Math.min(...second.map((box) => box.left)) - left - edge : 0;
        })"""
    )
    assert len(starts) > 30
    assert all(abs(start) < 1 for start in starts)


# --- the front page -----------------------------------------------------------------------------


def test_the_front_page_has_something_to_try_and_one_table(open_tab):
    tab = open_tab()
    page = tab.open(FRONT)
    unfold(page)
    figure = page.locator(named("translator"))
    page.wait_for_selector(f"{named('translator')}[data-ready=true]")
    data = json.loads(figure.locator('script[type="application/json"]').text_content())
    seen = set()
    for k in (2, 5):
        figure.locator(".translator-cell").nth(k).click()
        settled(figure)
        seen.add(said(figure))
        assert f"To write “{data['dates'][0][2][k]}” it looks at" in said(figure)
    assert len(seen) == 2
    assert page.locator("article table a[href^='01_']").count() == 1
    assert page.locator("article table.chapters progress").count() == len(PAGES)
    assert tab.wrong == []


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_says_what_for_whom_how_long_and_has_all_doors(open_tab, width, height):
    page = open_tab(width).open(FRONT)
    page.set_viewport_size({"width": width, "height": height})
    assert page.locator(".doors a").count() == 3
    # all that comes before the second section is within the first screen, nothing cut off
    first = page.locator("article section section").first.bounding_box()["y"]
    ends = page.locator("article section > :is(p, ul), .doors li").evaluate_all(
        "(all, first) => all.map((one) => one.getBoundingClientRect())"
        ".filter((box) => box.top < first).map((box) => box.bottom)",
        first,
    )
    assert len(ends) >= 4 and max(ends) <= height
    doors = page.locator(".doors").inner_text()
    assert re.search(r"\bhours?\b.*evenings of", doors, re.DOTALL)
    assert re.search(r"about \d+ hours", doors)
    told = page.locator("article section > p").first.text_content()
    assert page.locator("meta[name=description]").get_attribute("content") == told


@pytest.mark.share(2)
@pytest.mark.parametrize("font", ["the book's", "the machine's"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_pencil_begins_on_the_third_screen_and_code_comes_behind_it(
    open_tab, width, height, font
):
    tab = open_tab(width)
    if font == "the machine's":  # as on a slow line
        tab.page.route("**/*.woff2", lambda route: route.abort())
    page = tab.open(FRONT)
    page.set_viewport_size({"width": width, "height": height})
    places = ("figure img", ".pencil", "#before-you-begin", ".abh-check", "#the-chapters")
    tops = [page.locator(place).first.bounding_box()["y"] for place in places]
    assert tops == sorted(tops) and tops[1] < 3 * height


def test_the_doors_open_the_essential_path_and_everything(open_tab):
    tab = open_tab()
    doors = ((0, "Essential path", "01"), (1, "Essential path", "08"), (2, "Everything", "01"))
    for place, pressed, chapter in doors:
        page = tab.open(FRONT)
        page.locator(".doors a").nth(place).click()
        page.wait_for_url(f"**/{PAGES[chapter]}?path=*")
        choice = page.locator(".path-slot [aria-pressed=true]")
        assert choice.inner_text().startswith(pressed)
    page.goto(f"{tab.server}/{PAGES['02']}")
    assert choice.inner_text().startswith("Everything"), "the choice is kept"
    assert tab.wrong == []


def test_who_is_told_to_begin_begins_on_the_essential_path(open_tab):
    page = open_tab().open(FRONT)
    unfold(page)
    links = page.locator("article p:has-text('egin') a[href*='01_']")
    begins = links.evaluate_all("(all) => all.map((a) => a.getAttribute('href'))")
    assert len(begins) >= 2 and {*begins} == {"01_kernel_regression.html?path=short"}


def test_the_next_page_is_the_essential_path_unless_the_reader_has_chosen(open_tab):
    page = open_tab().open(FRONT)
    choice = page.locator(".path-slot [aria-pressed=true]")
    for chosen in ("Essential path", "Everything"):
        page.locator("a.right-next").click()
        page.wait_for_url(f"**/{PAGES['01']}?path=begin")
        assert choice.inner_text().startswith(chosen)
        page.locator(".path-slot button:has-text('Everything')").click()
        page.go_back()
    assert page.url.endswith(FRONT)


def test_an_address_that_leads_nowhere_is_told_kindly(open_tab):
    tab = open_tab()
    page = tab.open("404.html")
    assert "not here" in page.locator("h1").inner_text()
    page.get_by_role("link").click()
    page.wait_for_url("**/book/intro.html")
    assert tab.wrong == []


def test_wherever_the_book_lies_its_404_leads_to_its_front_page(open_tab, html):
    tab = open_tab()
    page, text = tab.page, (html / "404.html").read_text(encoding="utf-8")
    page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html"))
    for below in ("", "courses/attention/"):
        for asked in ("404.html", "book/nothing.html", "book/a/b.html", "_images/x"):
            page.goto(f"{tab.server}/{below}{asked}")
            link = page.get_by_role("link")
            assert link.evaluate("(a) => a.href") == f"{tab.server}/{below}book/intro.html"


def test_the_book_s_address_leads_to_its_front_page(open_tab):
    tab = open_tab()
    tab.page.goto(f"{tab.server}/", wait_until="commit")  # it leads on before it is loaded
    tab.page.wait_for_url("**/book/intro.html")
    tab.page.wait_for_load_state("networkidle")
    assert tab.wrong == []
