"""The essential path: what of a chapter shows, what one line opens, and what is printed."""

import io
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from paths import COUNTS
from pypdf import PdfReader

from .conftest import chapter_pages
from .sound import TAGS, told

PAGES = {name[5:7]: name for name in chapter_pages()}
LINES = ".path-more > button:visible"


def test_the_essential_path_is_kept_and_folds_what_is_not_essential(open_tab):
    tab = open_tab()
    page = tab.open(PAGES["04"])
    full = page.evaluate("document.documentElement.scrollHeight")
    choice = page.locator(".path-slot")
    short = choice.get_by_role("button", name="Essential path")
    assert short.get_attribute("aria-pressed") == "false"
    assert page.locator(f"{LINES}, summary.fold-line:visible").count() == 0
    glance = page.locator(".glance li").first.inner_text()
    times = [int(number) for number in re.findall(r"\d+", glance)]
    assert f"Everything, {sum(times)} min" in choice.inner_text()  # to read, and with a pencil
    told = re.search(r"Essential path, (\d+) min", choice.inner_text())
    assert 0 < int(told[1]) < sum(times) / 2
    short.click()
    page.reload()
    assert short.get_attribute("aria-pressed") == "true"
    assert page.evaluate("document.documentElement.scrollHeight") < 0.6 * full
    sections = page.locator("article > section > section")
    shown = page.locator("article > section > section:visible")
    off = page.locator("article > section > section.off-path")
    assert off.count() > 3 and shown.count() == sections.count() - off.count()
    assert shown.count() == page.locator("article > section > section > h2:visible").count()
    assert page.locator("summary.fold-line:visible, details.hide.above-input:visible").count() == 0
    assert page.locator("#summary p:visible, #summary li:visible").count() > 0

    # a link to what is folded unfolds it
    place = page.locator(".exercise-head").last.get_attribute("id")
    tab.open(f"{PAGES['04']}?#{place}")
    assert page.locator(f"#{place}").is_visible()
    choice.get_by_role("button", name="Everything").click()
    assert page.locator("details.fold:not([open])").count() == 0
    assert tab.wrong == []


@pytest.mark.share(5)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_essential_path_is_accessible(open_tab, scheme, width):
    page = open_tab(width, scheme).open(PAGES["02"])
    page.get_by_role("button", name="Essential path").click()
    found = Axe().run(page, options={"runOnly": TAGS, "resultTypes": ["violations"]})
    assert told(found) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


EVIDENCE = """(article) => article.insertAdjacentHTML("beforeend",
  "<details class='evidence'><summary>Evidence</summary><p id='proof'>proof</p></details>"
)"""


def test_paper_has_no_buttons_and_no_lists_of_contents(open_tab):
    page = open_tab().open(PAGES["04"])
    page.emulate_media(media="print")
    screen = ".bd-main button, .bd-sidebar-primary, .bd-sidebar-secondary, .path-slot, .bd-header"
    assert page.locator(screen).count() > 5
    assert page.locator(screen).locator("visible=true").count() == 0
    assert page.locator("article h2:visible").count() > 5


@pytest.mark.share(6)
@pytest.mark.parametrize("number", PAGES)
def test_one_line_stands_for_all_that_is_folded_up_to_the_next_section(open_tab, number):
    page = open_tab().open(f"{PAGES[number]}?path=short")
    shown = page.locator("article > section > section:visible").count()
    assert 3 <= page.locator(LINES).count() <= shown
    named = page.locator(f"{LINES} code").count()
    told = " ".join(page.locator(LINES).all_inner_texts())
    counted = [COUNTS.index(word) for word in re.findall(r"(\w+) exercises \(", told)]
    folded = page.locator("details.fold:not(.code) .exercise-head").count()
    assert named + sum(counted) == folded > 1


def test_a_line_opens_what_it_stands_for_and_closes_it(open_tab):
    tab = open_tab()
    page = tab.open(f"{PAGES['04']}?path=short")
    line = page.locator(".path-more > button", has_text="causal_mask, ").or_(
        page.locator(".path-more > button", has_text="sections 4.5.1")
    )
    assert line.count() == 1
    place = page.locator("#exercise-causal_mask")
    others = page.locator("#exercise-influence, #exercise-padding_mask")
    assert place.is_hidden()
    line.press("Enter")
    assert line.get_attribute("aria-expanded") == "true"
    assert place.is_visible() and others.locator("visible=true").count() == 0
    line.press("Enter")
    assert line.get_attribute("aria-expanded") == "false" and place.is_hidden()
    assert tab.wrong == []


def test_on_the_path_the_head_says_its_minutes_alone(open_tab):
    page = open_tab().open(f"{PAGES['02']}?path=short")
    head = page.locator(".glance")
    assert re.findall(r"\d+ min", head.inner_text()) == [
        f"{page.locator('.path-slot').get_attribute('data-short')} min"
    ]
    assert "exercises" not in head.inner_text()
    page.get_by_role("button", name="Everything").click()
    assert re.search(r"About \d+ minutes to read", head.inner_text())


@pytest.mark.share(2)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_contents_grey_what_is_off_the_path_and_a_link_there_shows_it(open_tab, scheme):
    tab = open_tab(scheme=scheme)
    page = tab.open(f"{PAGES['03']}?path=short")
    colours = {
        name: page.locator(f".bd-sidebar-secondary .toc-entry > a[href='#{name}']").evaluate(
            "(link) => getComputedStyle(link).color"
        )
        for name in ("split-and-merge", "several-heads-in-numpy", "the-module")
    }
    on, *off = colours.values()
    assert off[0] == off[1] != on
    page.locator(".bd-sidebar-secondary a[href='#the-module']").click()
    page.wait_for_selector("#the-module > h2", state="visible")
    page.wait_for_selector("#exercise-multiheadattention, #exercise-MultiHeadAttention")
    assert page.locator("#several-heads-in-numpy").is_hidden()
    page.get_by_role("button", name="Everything").click()
    assert page.locator(".bd-sidebar-secondary .toc-entry > a.off").first.evaluate(
        "(link) => getComputedStyle(link).color"
    ) == page.locator(".bd-sidebar-secondary .toc-entry > a:not(.off, .active)").first.evaluate(
        "(link) => getComputedStyle(link).color"
    )
    assert tab.wrong == []


def test_the_whole_is_printed_open_and_the_essential_path_without_what_it_folds(open_tab):
    page = open_tab().open(PAGES["04"])
    page.locator("article").evaluate(EVIDENCE)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#proof").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#proof").is_hidden()
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Essential path").click()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(f"{LINES}, summary.fold-line:visible, .evidence:visible").count() == 0
    assert page.locator("article h2:visible").count() > 0
    assert page.locator(".off-path").count() > 0 and page.locator(".off-path:visible").count() == 0


@pytest.mark.share(6)
@pytest.mark.parametrize("number", PAGES)
def test_the_essential_path_is_printed_on_twelve_pages_at_most(open_tab, number):
    page = open_tab().open(f"{PAGES[number]}?path=short")
    margin = dict.fromkeys(("top", "right", "bottom", "left"), "15mm")
    printed = PdfReader(io.BytesIO(page.pdf(format="A4", margin=margin)))
    assert 1 <= len(printed.pages) <= 12


def test_a_link_into_evidence_unfolds_it(open_tab):
    page = open_tab().open(PAGES["04"])
    page.locator("article").evaluate(EVIDENCE)
    assert page.locator("#proof").is_hidden()
    page.evaluate("location.hash = 'proof'")
    page.wait_for_selector("#proof", state="visible")


def test_without_a_script_everything_is_there(open_tab):
    page = open_tab(java_script_enabled=False).open(PAGES["04"])
    assert page.locator("details.fold").count() > 5
    assert (
        page.locator(f"details.fold:not([open]), summary.fold-line:visible, {LINES}").count() == 0
    )
    assert page.locator(".path-slot > *").count() == 0
