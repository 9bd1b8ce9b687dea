"""What the book's address, repository and authors add to its pages, and that nothing does unset."""

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import front_page
import paths
import publication
import pytest
from bs4 import BeautifulSoup

from autograder.student.check import verdict_on
from autograder.student.table import table_html
from solutions.masking import causal_mask

BASE = "https://attention.university.edu/course/"
PAGE = (
    "<html><head><title>Masking &#8212; Attention &amp; Hand</title></head><body><article>"
    "<p>Two things nobody should look at: “padding”, and a future that is not yet written.</p>"
    "</article></body></html>"
)


@pytest.mark.parametrize("url", ["", None, "https://attention.example/", "http://example"])
def test_an_address_that_is_nobodys_is_none(url):
    assert publication.address(url) == ""
    assert publication.identify(PAGE, "book/04_masking.html", "") == PAGE


def test_a_page_names_its_address_and_what_a_link_to_it_shows():
    base = publication.address(BASE.rstrip("/"))
    page = publication.identify(PAGE, "book/04_masking.html", base)
    head = BeautifulSoup(page, "html.parser").head
    assert head.find("link", rel="canonical")["href"] == f"{BASE}book/04_masking.html"
    shown = {tag["property"]: tag["content"] for tag in head.find_all("meta", property=True)}
    assert shown["og:title"] == "Masking — Attention & Hand"
    assert shown["og:description"].startswith("Two things nobody")
    assert shown["og:image"] == f"{BASE}_static/card.png"
    assert publication.identify(page, "book/04_masking.html", base) == page
    assert publication.identify(page, "book/04_masking.html", "") == PAGE


def test_the_front_page_has_one_address_whichever_file_it_is_in():
    for name in ("index.html", "book/intro.html"):
        page = BeautifulSoup(publication.identify(PAGE, name, BASE), "html.parser")
        assert page.find("link", rel="canonical")["href"] == BASE


def test_the_sitemap_lists_every_page():
    text = publication.sitemap(["book/intro.html", "book/04_masking.html"], BASE)
    found = [element.text for element in ET.fromstring(text).iter() if element.tag.endswith("loc")]
    assert found == [f"{BASE}book/04_masking.html", BASE]


def test_the_card_is_a_picture_of_the_size_that_is_shown(tmp_path):
    publication.card("Attention by Hand", tmp_path / "card.png")
    data = (tmp_path / "card.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(data[16:20]) == 1200 and int.from_bytes(data[20:24]) == 630


def test_without_a_repository_there_is_no_link_and_with_one_there_are_three():
    name = "book/04_masking"
    assert publication.places(name, {}) == []
    found = dict(publication.places(name, {"repository": "https://github.com/a/b.git"}))
    assert found["Edit this page"] == f"https://github.com/a/b/edit/main/{name}.md"
    issue = "https://github.com/a/b/issues/new?title=book%2F04_masking%3A+"
    assert found["Report a mistake"] == issue
    found = dict(publication.places(name, {"repository": "https://gitlab.com/a/b", "branch": "x"}))
    assert found["Edit this page"] == f"https://gitlab.com/a/b/-/edit/x/{name}.md"
    other = publication.places(name, {"repository": "https://git.university.edu/a/b"})
    assert [label for label, _ in other] == ["The book's repository"]


def test_authors_are_named_with_version_and_date_if_they_have_names(tmp_path):
    cff = tmp_path / "CITATION.cff"
    cff.write_text("version: 1.2.0\ndate-released: 2026-11-21\n")
    known = SimpleNamespace(author="Ada L. & Emmy N.")
    assert publication.credits(known, cff) == "By Ada L. &amp; Emmy N. · Version 1.2.0, 2026-11-21"
    nobody = SimpleNamespace(author="The authors of Attention by Hand")
    assert publication.credits(nobody, cff) == ""


# --- verdicts, and the table on the front page ---

ROW = '<tr><td><b role="img" aria-label="{}">✓</b></td><td>{}</td></tr>'
VERDICT = (
    '<div class="abh-check" style="x"><p><strong>softmax: 3 of 3 points</strong></p>'
    "<table><thead><tr><th>a</th></tr></thead><tbody>{}</tbody></table></div>"
)


def test_a_verdict_in_which_all_holds_is_a_line_that_unfolds():
    rows = "".join(ROW.format("passes", i) for i in range(9))
    page = BeautifulSoup(paths.fold_verdicts(VERDICT.format(rows)), "html.parser")
    box = page.find("details", class_="abh-check")
    told = "softmax: 3 of 3 points ✓ nine checks, with the course’s solution"
    assert " ".join(box.summary.get_text().split()) == told
    assert not box.has_attr("open") and len(box.select("tbody tr")) == 9


def test_what_check_says_of_the_reference_is_such_a_line():
    page = BeautifulSoup(
        paths.fold_verdicts(table_html(verdict_on(causal_mask, "causal_mask"))), "html.parser"
    )
    assert page.find("details", class_="abh-check").summary.get_text().startswith("causal_mask: 3")


@pytest.mark.parametrize("word", ["fails", "not checked yet"])
def test_a_verdict_in_which_something_does_not_hold_stays_open(word):
    page = VERDICT.format(ROW.format("passes", 1) + ROW.format(word, 2))
    assert paths.fold_verdicts(page) == page


def test_the_table_of_chapters_gets_hours_and_a_place_for_what_is_done():
    body = (
        "<table>before</table><table><thead><tr><th></th><th>chapter</th></tr></thead><tbody><tr>"
        '<td>1</td><td><a href="01_x.html">X</a></td></tr></tbody></table><table>other</table>'
    )
    page = BeautifulSoup(front_page.with_progress(body, {"01_x.html": ("2½ h", 23)}), "html.parser")
    before, first, other = page.find_all("table")
    assert before.get_text() == "before"
    assert [th.get_text() for th in first.find_all("th")] == ["", "chapter", "time", "done"]
    cell = first.find("td", class_="chapter-done")
    assert (cell["data-chapter"], cell["data-total"]) == ("01_x", "23")
    assert first.find("td", class_="chapter-time").get_text() == "2½\u00a0h"
    assert other.get_text() == "other"


@pytest.mark.parametrize(
    ("reading", "points", "told"), [(45, 20, "3 h"), (75, 32, "4½ h"), (5, 1, "½ h")]
)
def test_hours_are_reading_and_six_minutes_a_point(reading, points, told):
    assert front_page.hours(reading, points) == told


@pytest.mark.parametrize(
    ("minutes", "told"),
    [(1, "10 minutes"), (58, "1 hour"), (76, "1 hour 20 minutes"), (192, "3 hours 10 minutes")],
)
def test_the_hours_of_a_path_are_told_to_ten_minutes(minutes, told):
    assert front_page.path_hours(minutes) == told


@pytest.mark.parametrize(
    ("minutes", "told"),
    [
        ([26, 28, 21, 24, 27, 24, 34], "seven evenings of 20 to 35 minutes"),
        ([20, 25], "two evenings of 20 to 25 minutes"),
        ([30, 30, 30], "three evenings of 30 minutes"),
        ([1], "one evening of 5 minutes"),
    ],
)
def test_a_path_takes_an_evening_a_chapter(minutes, told):
    assert front_page.evenings(minutes) == told


def test_the_first_two_doors_ask_for_the_essential_path_and_the_third_for_everything():
    to = ("01_x.html", "08_y.html", "01_x.html")
    doors = "<ul>" + "".join(f'<li><a href="{name}">a</a></li>' for name in to) + "</ul>"
    links = BeautifulSoup(front_page.open_doors(doors), "html.parser").find_all("a")
    asked = [
        f"{name}?path={path}" for name, path in zip(to, ("short", "short", "whole"), strict=True)
    ]
    assert [a["href"] for a in links] == asked
