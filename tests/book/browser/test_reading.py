"""Reading in a browser: keys, formulas, icons, the scrollbar, paper, no script."""

import re

import pytest
from test_figures import LEAST, smallest

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
# of each figure, all folds open: whether something in it scrolls, how far it is beyond the edges of
# the screen; how wide its picture was drawn, and how wide all of it is here, or would be; of one in
# panels, how many columns have something that no panel shows
FIGURES = """async () => {
  document.querySelectorAll("article *").forEach((e) => (e.style.contentVisibility = "visible"));
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  const scrolls = (e) => e.scrollWidth > e.clientWidth + 1
    && (e.tagName === "FIGURE" || /auto|scroll/.test(getComputedStyle(e).overflowX));
  const lost = async (picture, parts) => {
    picture.loading = "eager";
    await picture.decode();
    const [width, height] = ["width", "height"].map((of) => Number(picture.getAttribute(of)));
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const pen = canvas.getContext("2d");
    pen.drawImage(picture, 0, 0, width, height);
    for (const part of parts) {
      const cut = part.getBoundingClientRect();
      const all = part.firstElementChild.getBoundingClientRect();
      const clip = getComputedStyle(part.firstElementChild).clipPath.match(/([\\d.]+)%\\)/);
      const left = Math.max(cut.left - all.left, (clip ? clip[1] / 100 : 0) * all.width);
      const scale = cut.height > 40 ? width / all.width : 0;
      pen.clearRect(left * scale, 0, (cut.right - all.left - left) * scale, height);
    }
    const columns = new Set();
    pen.getImageData(0, 0, width, height).data.forEach((value, i) => {
      if (i % 4 === 3 && value) columns.add(((i - 3) / 4) % width);
    });
    return columns.size;
  };
  return Promise.all([...document.querySelectorAll("article figure")].map(async (figure) => {
    const { left, right } = figure.getBoundingClientRect();
    const picture = figure.querySelector(".picture > img");
    const parts = [...figure.querySelectorAll(".panel > span")];
    return {
      id: figure.id,
      scrolls: [figure, ...figure.querySelectorAll("*")].some(scrolls),
      beyond: Math.max(-left, right - innerWidth),
      source: picture?.getAttribute("src"),
      drawn: Number(picture?.getAttribute("width")),
      shown: (parts[0]?.firstElementChild ?? picture)?.getBoundingClientRect().width,
      panels: parts.length,
      lost: parts.length ? await lost(picture, parts) : 0,
    };
  }));
}"""
TOO_WIDE = """(tables) => tables.filter((table) => table.scrollWidth > table.clientWidth + 1)
  .map((table) => table.closest("[id]").id)"""


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
    formulas = page.locator("article p span.math:visible").all()[:12]
    assert formulas
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


@pytest.mark.share(8)
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


@pytest.mark.share(9)
@pytest.mark.parametrize("name", chapter_pages())
def test_no_code_in_the_open_text_scrolls_sideways(open_tab, name):
    assert open_tab().open(name).evaluate(SCROLLING) == []


@pytest.mark.share(5)
@pytest.mark.parametrize("name", [*chapter_pages(), "book/intro.html"])
def test_on_a_phone_no_figure_and_no_pencil_scrolls_and_all_can_be_read(open_tab, html, name):
    page = open_tab(390).open(name)
    figures = page.evaluate(FIGURES)
    assert len(figures) >= 5
    assert page.locator(".reader .pst-scrollable-table-container").evaluate_all(TOO_WIDE) == []
    assert [f["id"] for f in figures if f["scrolls"] or f["beyond"] > 1 or f["lost"]] == []
    letters = {
        f["id"]: smallest((html / "book" / f["source"]).read_text(encoding="utf-8"))
        * f["shown"]
        / f["drawn"]
        for f in figures
        if f["source"]
    }
    assert {name: size for name, size in letters.items() if round(size, 1) < LEAST} == {}
    wide = open_tab(1280).open(name)
    assert wide.locator(".panels").count() == sum(f["panels"] > 0 for f in figures)
    assert wide.locator(".panel:visible").count() == 0


# punctuation that a formula has left to the next line
ALONE = """() => [...document.querySelectorAll(".glued")].filter((glued) => {
  const math = glued.querySelector("math")?.getBoundingClientRect();
  const last = glued.lastChild;
  if (!math?.height || last.nodeType !== Node.TEXT_NODE) return false;
  const range = document.createRange();
  range.selectNodeContents(last);
  return range.getBoundingClientRect().top >= math.bottom - 2;
}).map((glued) => glued.parentElement.innerText.slice(0, 60))"""


@pytest.mark.share(4)
@pytest.mark.parametrize("number", ["03", "05", "06"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_line_begins_with_the_punctuation_behind_a_formula(open_tab, width, number):
    (name,) = [page for page in chapter_pages() if page.startswith(f"book/{number}")]
    page = open_tab(width).open(name)
    page.evaluate("document.documentElement.dataset.whole = ''")
    assert page.locator(".glued").count() > 20
    assert page.evaluate(ALONE) == []
    vectors = page.locator("p > .glued:not(:has(math)):visible")
    assert vectors.evaluate_all("(all) => all.every((one) => one.getClientRects().length === 1)")
    assert vectors.count()
