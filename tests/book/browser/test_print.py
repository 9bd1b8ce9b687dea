"""The print edition: everything of the book on paper, with numbers, links and bookmarks."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from pypdf import PdfReader

from autograder.publishing.print_edition import page_numbers, print_book

from .conftest import ROOT

pytestmark = pytest.mark.share(0)  # takes long

NAMES = [  # enough to see links from page to page; printing everything takes long
    "book/intro.html",
    "book/04_masking.html",
    "book/notation.html",
    "book/glossary.html",
]


@pytest.fixture(scope="module")
def pdf(html, tmp_path_factory) -> PdfReader:
    target = tmp_path_factory.mktemp("print") / "book.pdf"
    with ThreadPoolExecutor(1) as other:  # this thread may hold another test's browser
        return PdfReader(other.submit(print_book, ROOT, html, target, NAMES).result())


@pytest.fixture(scope="module")
def texts(pdf) -> list[str]:
    return [page.extract_text() for page in pdf.pages]


def bookmarks(pdf, outline=None, level=1):
    for item in pdf.outline if outline is None else outline:
        if isinstance(item, list):
            yield from bookmarks(pdf, item, level + 1)
        else:
            yield level, item.title, pdf.get_destination_page_number(item)


def test_each_page_of_the_book_has_a_bookmark_that_leads_to_its_title(pdf, texts, pages):
    first = [(title, page) for level, title, page in bookmarks(pdf) if level == 1]
    assert len(first) == len(NAMES)
    for (title, page), name in zip(first, NAMES, strict=True):
        heading = pages[name].find("article").find("h1").get_text().replace("#", "")
        assert title == " ".join(heading.split())
        words = re.sub(r"\W", "", title)
        assert words in re.sub(r"\W", "", texts[page].replace("ﬀ", "ff").replace("ﬁ", "fi"))


def test_the_contents_name_the_pages_on_which_things_stand(pdf, texts):
    table = "\n".join(texts[1:5])
    chapters = [(t, page) for level, t, page in bookmarks(pdf) if level == 1 and t[0].isdigit()]
    assert chapters
    for title, page in chapters:
        assert f"{title} {page + 1}" in " ".join(table.split())


def test_links_inside_the_book_lead_somewhere(pdf):
    known, count = page_numbers(pdf.stream), 0
    for page in pdf.pages:
        for note in (note.get_object() for note in page.get("/Annots", ())):
            target = note.get("/Dest") or note.get("/A", {}).get("/D")
            if isinstance(target, str):
                count += 1
                assert target.lstrip("/") in known, target
            address = note.get("/A", {}).get("/URI", "")
            assert not address.startswith(("http://127.", "file:")), address
    assert count > 50


def test_every_number_of_an_equation_and_a_figure_is_on_paper(texts, pages):
    everything = re.sub(r"\s+", "", "".join(texts))
    for name in NAMES:
        page = pages[name]
        for number in page.select(".eqno"):
            assert re.search(r"\(\d\.\d+\)", number.get_text())[0] in everything
        for number in page.select(".caption-number"):
            assert re.sub(r"\s+", "", number.get_text()) in everything
