"""Reading in a browser: keys, formulas, icons, the scrollbar, paper, no script."""

import re

import pytest

from .conftest import ROOT, chapter_pages

ICONS = """() => {
  const found = new Set();
  for (const element of document.querySelectorAll("*"))
    for (const which of ["::before", "::after"]) {
      const style = getComputedStyle(element, which);
      const sign = style.content.match(/^"([\\ue000-\\uf8ff])"$/);
      if (sign) found.add(style.fontFamily + " " + sign[1].codePointAt(0).toString(16));
    }
  return [...found];
}"""
HEIGHTS = """async () => {
  const images = [...document.querySelectorAll("article img")];
  images.forEach((image) => (image.loading = "eager"));
  await Promise.all(images.map((image) => image.decode().catch(() => {})));
  await document.fonts.ready;
  return [...document.querySelectorAll("article > section > section")].slice(1).map((section) => {
    const own = getComputedStyle(section).containIntrinsicHeight.match(/[\\d.]+/);
    section.style.contentVisibility = "visible";
    return [Number(own[0]), section.offsetHeight];
  });
}"""


SCROLLING = """() => {
  document.querySelectorAll("article *").forEach((e) => (e.style.contentVisibility = "visible"));
  return [...document.querySelectorAll("article pre")]
    .filter((box) => !box.closest("details:not([open])") && box.scrollWidth > box.clientWidth + 1)
    .map((box) => box.innerText.slice(0, 60));
}"""
# of each figure in panels: how far it sticks out, the share of it that its parts show together,
# and whether a part is out of sight
PANELS = """() => {
  document.querySelectorAll("article *").forEach((e) => (e.style.contentVisibility = "visible"));
  return [...document.querySelectorAll("article .panels")].map((figure) => {
    const parts = [...figure.querySelectorAll(".panel > span")];
    const share = (part) => part.clientWidth / part.firstElementChild.clientWidth;
    return [
      figure.scrollWidth - figure.clientWidth,
      parts.map(share).reduce((a, b) => a + b, 0),
      parts.some((part) => part.offsetHeight < 40),
    ];
  });
}"""


@pytest.mark.parametrize("target", ["[role=checkbox]", "div.highlight pre"])
def test_arrow_keys_do_not_leave_the_chapter(open_tab, target):
    page = open_tab().open("book/04_masking.html")
    page.wait_for_selector("[data-explorable][data-ready=true]")
    page.locator(target).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(300)
    assert page.url.endswith("book/04_masking.html")


@pytest.mark.parametrize("name", ["book/03_multi_head.html", "book/notation.html"])
def test_no_letter_of_a_formula_is_cut_off(open_tab, name):
    page = open_tab().open(name)
    cut = "[...document.querySelectorAll('article span.math')].filter(e => getComputedStyle(e)"
    assert page.evaluate(f"{cut}.overflow !== 'visible').length") == 0
    formulas = page.locator("article p span.math").all()[:12]
    before = [formula.screenshot() for formula in formulas]
    page.add_style_tag(content="article span.math { overflow: visible !important }")
    assert [formula.screenshot() for formula in formulas] == before


@pytest.mark.parametrize(
    "name", ["book/bibliography.html", "book/04_masking.html?highlight=mask", "search.html"]
)
def test_every_icon_that_is_shown_is_in_our_font(open_tab, name):
    css = (ROOT / "book" / "extensions" / "static" / "book.css").read_text(encoding="utf-8")
    ours = {code.lower() for code in re.findall(r"U\+([0-9a-f]{4})", css)}
    page = open_tab().open(name)
    shown = [icon.rsplit(" ", 1) for icon in page.evaluate(ICONS)]
    assert shown
    for family, code in shown:
        assert "Font Awesome 6 Free" in family and code in ours, (family, code)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["book/running_a_course.html", chapter_pages()[1]])
def test_the_scrollbar_knows_about_how_long_a_page_is(open_tab, name, width):
    heights = open_tab(width).open(name).evaluate(HEIGHTS)
    estimated, real = map(sum, zip(*heights, strict=True))
    assert estimated == pytest.approx(real, rel=0.15)


def test_a_page_is_printed_light_with_all_its_pictures(open_tab):
    page = open_tab(scheme="dark").open("book/04_masking.html")
    state = (
        "[document.documentElement.dataset.theme,"
        " document.querySelectorAll('img[loading=lazy]').length]"
    )
    theme, waiting = page.evaluate(state)
    assert theme == "dark" and waiting
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(state) == ["light", 0]
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(state)[0] == "dark"


def test_without_a_script_a_page_is_light_whatever_the_reader_prefers(open_tab):
    page = open_tab(scheme="dark", java_script_enabled=False).open("book/04_masking.html")
    assert page.locator("html").get_attribute("data-theme") == "light"


def test_controls_are_dark_in_the_dark(open_tab):
    page = open_tab(scheme="dark").open("book/04_masking.html")
    assert page.evaluate("getComputedStyle(document.querySelector('input')).colorScheme") == "dark"


@pytest.mark.parametrize("name", chapter_pages())
def test_no_code_in_the_open_text_scrolls_sideways(open_tab, name):
    assert open_tab().open(name).evaluate(SCROLLING) == []


@pytest.mark.parametrize("number", [2, 7, 10])
def test_on_a_phone_a_wide_figure_is_shown_panel_by_panel(open_tab, number):
    name = chapter_pages()[number - 1]
    page = open_tab(390).open(name)
    # what is folded has no size
    figures = [figure for figure in page.evaluate(PANELS) if figure[1] == figure[1]]
    assert len(figures) >= 3
    for beyond, shown, hidden in figures:
        assert beyond <= 1 and shown == pytest.approx(1, abs=0.04) and not hidden
    wide = open_tab(1280).open(name)
    assert wide.evaluate("document.querySelectorAll('.panels').length") >= len(figures)
    assert wide.locator(".panel:visible").count() == 0
