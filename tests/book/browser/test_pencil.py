"""Tables to fill in and outcomes to predict, as a reader uses them."""

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.pencil_cases import CASES

from .conftest import ROOT, chapter_pages
from .sound import TAGS

FIRST = chapter_pages()[0]
SCRIPT = (ROOT / "book/extensions/static/pencil.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def judging(chromium):
    page = chromium.new_page()
    page.add_script_tag(content=SCRIPT)
    yield page
    page.close()


@pytest.mark.parametrize(("answer", "given", "verdict"), CASES)
def test_the_page_judges_as_the_notebook_does(answer, given, verdict, judging):
    assert judging.evaluate("([answer, given]) => judge(answer, given)", [answer, given]) == verdict


def test_a_table_says_what_is_right_and_keyboard_goes_on(open_tab):
    tab = open_tab()
    page = tab.open(FIRST)
    box = page.locator("#pencil-noon")
    fields = box.locator("[data-answer]")
    told = box.locator(".told")
    assert "16/25" not in box.inner_text() and told.inner_text() == ""
    first = fields.nth(0)
    assert first.get_attribute("aria-label") == "weight, 0"
    first.fill("0,64")
    first.press("Enter")
    assert fields.nth(1).evaluate("(field) => field === document.activeElement")
    fields.nth(1).fill("7")
    fields.nth(3).fill("1")
    fields.nth(3).blur()
    assert told.inner_text() == f"2 of {fields.count()} right, 1 not (✗)."
    verdicts = box.locator(".blank").evaluate_all("(all) => all.map((b) => b.dataset.verdict)")
    assert verdicts[:4] == ["right", "wrong", None, "right"]
    assert box.locator(".verdict").nth(0).inner_text() == "✓"
    assert box.locator(".verdict").nth(1).inner_text() == "✗"
    assert fields.nth(1).get_attribute("aria-invalid") == "true"
    assert fields.nth(1).get_attribute("aria-label") == "count × 16, 1: not right"
    for i in range(fields.count()):
        fields.nth(i).fill(fields.nth(i).get_attribute("data-answer"))
    fields.last.blur()
    assert told.inner_text() == f"{fields.count()} of {fields.count()} right."
    assert tab.wrong == []


def test_a_known_slip_is_told_until_it_is_mended(open_tab):
    tab = open_tab()
    page = tab.open(FIRST)
    box = page.locator("#pencil-noon")
    told = box.locator(".told")
    known = "You left out one count: the sum is 16 + 8 + 1."
    assert known not in box.inner_text()
    for field, given in ((box.locator("[data-answer='16/25']"), "0.67"),
                         (box.locator("[data-answer='8/25']"), "8/24")):  # fmt: skip
        field.fill(given)
        field.blur()
    assert told.inner_text().endswith(f"2 not (✗). {known}")
    field.fill("0.9")
    field.blur()
    assert told.inner_text().count(known) == 1
    box.locator("[data-answer='16/25']").fill("0.64")
    box.locator("[data-answer='16/25']").blur()
    assert known not in told.inner_text()
    assert tab.wrong == []


def test_the_answers_unfold(open_tab):
    page = open_tab().open(FIRST)
    fold = page.locator("#pencil-noon details.answers")
    assert not fold.locator("table").is_visible()
    fold.locator("summary").press("Enter")
    shown = fold.locator(".answer").all_inner_texts()
    assert len(shown) == page.locator("#pencil-noon [data-answer]").count()
    assert "16/25" in shown and any("375/25 = 15" in answer for answer in shown)


@pytest.mark.share(8)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_blanks_and_answers_are_accessible(scheme, width, open_tab):
    page = open_tab(width, scheme).open(FIRST)
    page.evaluate("document.querySelectorAll('.answers').forEach((d) => (d.open = true))")
    page.locator("#pencil-noon [data-answer]").nth(0).fill("16/25")
    page.locator("#pencil-noon [data-answer]").nth(1).fill("9")
    page.locator("#pencil-noon [data-answer]").nth(1).blur()
    context = {"include": [[".reader"]]}
    found = Axe().run(page, context=context, options={"runOnly": TAGS})
    assert [v["id"] for v in found.response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_a_script_there_are_blanks_and_a_fold(open_tab):
    page = open_tab(java_script_enabled=False).open(FIRST)
    box = page.locator("#pencil-noon")
    assert box.locator("input").count() == 7
    box.locator("summary").click()
    assert box.locator(".answers table").is_visible()


def test_on_paper_the_answers_follow_the_blanks(open_tab):
    page = open_tab().open(FIRST)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#pencil-noon .answers table").is_visible()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert not page.locator("#pencil-noon .answers table").is_visible()


def test_a_prediction_is_made_before_its_outcome_is_seen(open_tab):
    page = open_tab().open(FIRST)
    box = page.locator(".predict").first
    assert not box.locator(".cell").is_visible()
    assert box.get_by_role("radiogroup", name="Your prediction").count() == 1
    buttons = box.locator("input[type=radio]")
    right = box.locator("input[data-right]")
    assert buttons.count() > right.count() == 1
    right.press(" ")
    assert box.locator("[data-verdict=right]").count() == 1
    assert "✓" in box.locator(".told").inner_text()
    box.locator("input[type=radio]:not([data-right])").first.check()
    assert box.locator("[data-verdict=right]").count() == 0
    assert "✗" in box.locator(".told").inner_text()
    box.locator("summary").click()
    assert box.locator(".cell").is_visible()


# --- what is kept, and phones -------------------------------------------------------------------


def test_entries_are_kept_and_can_be_cleared(open_tab):
    tab = open_tab()
    page = tab.open(FIRST)
    box = page.locator("#pencil-noon")
    fields = box.locator("[data-answer]")
    clear = box.get_by_role("button", name="Clear")
    assert clear.is_hidden()
    fields.nth(0).fill("16/25")
    fields.nth(1).fill("7")
    fields.nth(1).press("Tab")
    page.locator(".predict").first.locator("input[data-right]").check()
    # gone and back: not the browser's own memory of a form
    tab.open("book/intro.html")
    tab.open(FIRST)
    assert [fields.nth(i).input_value() for i in range(3)] == ["16/25", "7", ""]
    assert box.locator(".told").text_content() == f"1 of {fields.count()} right, 1 not (✗)."
    assert page.locator(".predict").first.locator("input[data-right]").is_checked()
    assert "✓" in page.locator(".predict").first.locator(".told").text_content()
    clear.click()
    assert clear.is_hidden() and box.locator(".told").text_content() == ""
    assert fields.nth(0).evaluate("(field) => field === document.activeElement")
    assert fields.nth(1).get_attribute("aria-label") == "count × 16, 1"
    tab.open("book/intro.html")
    tab.open(FIRST)
    assert fields.nth(0).input_value() == ""
    assert page.locator(".predict").first.locator("input[data-right]").is_checked()
    assert tab.wrong == []


@pytest.mark.share(3)
@pytest.mark.parametrize("entries", ["none", "[", "null", "7", '{"01_kernel_regression.html": 3}'])
def test_a_browser_that_keeps_nothing_or_something_odd_still_judges(entries, open_tab):
    tab = open_tab()
    if entries == "none":
        tab.page.add_init_script(
            "Object.defineProperty(window, 'localStorage',"
            " { get() { throw new DOMException('no', 'SecurityError'); } });"
        )
    else:
        kept = f"localStorage.setItem('attention-by-hand-entries', {entries!r})"
        tab.page.add_init_script(kept)
    page = tab.open(FIRST)
    box = page.locator("#pencil-noon")
    first = box.locator("[data-answer]").first
    first.fill("16/25")
    first.press("Enter")
    assert box.locator(".told").text_content().startswith("1 of")
    box.get_by_role("button", name="Clear").click()
    assert box.locator(".told").text_content() == ""
    assert entries == "none" or tab.wrong == []  # the theme's own script does complain


def test_a_phone_shows_a_number_pad_and_has_minus_and_fraction(open_tab):
    tab = open_tab(390, has_touch=True, is_mobile=True)
    page = tab.open(FIRST)
    box = page.locator("#pencil-noon")
    field = box.locator("[data-answer='16/25']")
    assert field.get_attribute("inputmode") == "decimal"
    field.tap()
    keys = page.get_by_role("group", name="Signs")
    field.press_sequentially("16")
    keys.get_by_role("button", name="/").tap()
    field.press_sequentially("25")
    assert field.input_value() == "16/25"
    assert field.evaluate("(field) => field === document.activeElement")
    box_of_keys = keys.bounding_box()
    assert box_of_keys["x"] >= 0 and box_of_keys["x"] + box_of_keys["width"] <= 390
    other = box.locator("[data-answer]").last
    other.tap()
    keys.get_by_role("button", name="−").tap()
    assert other.input_value() == "−"
    page.locator("article h1").tap()
    assert keys.is_hidden()
    assert box.locator(".told").text_content().startswith("1 of")
    words = page.locator(".blank input:not([inputmode])")
    assert page.locator(".blank input[inputmode=decimal]").count() > words.count()
    assert tab.wrong == []


def test_a_mouse_brings_no_keys(open_tab):
    page = open_tab().open(FIRST)
    page.locator("#pencil-noon [data-answer]").first.click()
    assert page.locator(".pencil-keys").count() == 0
