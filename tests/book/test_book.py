"""The built book: it builds without a warning, gives no answer away and asks no other host."""

import gzip
import json
import re
import unicodedata
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urldefrag

import leaks
import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont

from autograder.notebook import stubs
from autograder.sandbox.student_package import student_package
from autograder.student.course import exercises_of

BASE = yaml.safe_load((leaks.ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
ELSEWHERE = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
FETCHED = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


@pytest.fixture(scope="session")
def index(html) -> dict:
    """Sphinx's search index."""
    text = (html / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))


def page_of(pages: dict, chapter: Path) -> BeautifulSoup:
    return pages[f"book/{chapter.stem}.html"]


# --- nothing from another host ---


def fetched(page: BeautifulSoup) -> Iterator[str]:
    """Every address that a browser would fetch to show a page. Links to click are none."""
    for tag in page.find_all(True):
        for name in ("src", "srcset", "poster", "data"):
            if tag.name != "math" and isinstance(tag.get(name), str):
                yield tag[name]
        is_fetched = tag.name == "link" and "canonical" not in tag.get("rel", ())
        if is_fetched or (tag.name in {"image", "use"} and tag.get("href")):
            yield tag["href"]
        for css in (tag.get("style", ""), tag.string or "" if tag.name == "style" else ""):
            yield from (a or b for a, b in FETCHED.findall(css))


def test_pages_fetch_nothing_from_another_host(pages):
    for name, page in pages.items():
        assert [url for url in fetched(page) if ELSEWHERE.match(url)] == [], name
        for script in page.find_all("script"):
            assert not re.search(r"https?://", script.string or ""), name


def test_style_sheets_fetch_nothing_from_another_host(html):
    for path in html.rglob("*.css"):
        urls = [a or b for a, b in FETCHED.findall(path.read_text(encoding="utf-8"))]
        assert [url for url in urls if ELSEWHERE.match(url)] == [], path.name


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link href="//fonts.example/x.css" rel="stylesheet">',
        '<img src="HTTPS://example.org/x.png">',
        '<p style="background: url(https://example.org/x.png)">x</p>',
        "<style>@import 'https://example.org/x.css';</style>",
    ],
)
def test_a_planted_address_is_found(tag):
    page = BeautifulSoup(tag, "html.parser")
    assert [url for url in fetched(page) if ELSEWHERE.match(url)]


# --- no answer is given away ---


def strings(value: object) -> Iterator[str]:
    """Every string inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


@pytest.fixture(scope="session")
def published(html, pages) -> dict[str, str]:
    """All text that leaves the house, by file: pages, search index, notebooks, what lies about."""
    texts = {name: page.get_text() for name, page in pages.items()}
    texts |= {f"{name} (attributes)": attributes(page) for name, page in pages.items()}
    for path in html.rglob("*"):
        if path.suffix in {".js", ".json", ".txt", ".md", ".ipynb", ".py", ".svg"}:
            texts[path.relative_to(html).as_posix()] = path.read_text(encoding="utf-8")
    for path in html.rglob("*.pf_fragment"):  # what Pagefind shows of a page
        texts[path.relative_to(html).as_posix()] = gzip.decompress(path.read_bytes()).decode()
    for archive in html.rglob("*.zip"):
        texts |= {f"{archive.name}: {n}": text for n, text in unpacked(archive).items()}
    for path in sorted((leaks.ROOT / "notebooks").rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))
        texts[path.relative_to(leaks.ROOT).as_posix()] = "\n".join(strings(cells))
    return texts


@pytest.fixture(scope="session")
def phrases(published) -> dict[str, set[str]]:
    """The runs of words that each text shares with some model answer: one pass over all of it."""
    secret = {
        run
        for chapter in leaks.CHAPTERS
        for answer in leaks.model_answers(chapter)
        for run in leaks.runs(answer)
    }
    return {name: leaks.leaked_phrases(text, secret) for name, text in published.items()}


@pytest.fixture(scope="session")
def shown(pages) -> str:
    """What the reader sees, and the chapters' sources less their model answers."""
    texts = [
        *(page.get_text() for page in pages.values()),
        *map(leaks.without_answers, leaks.CHAPTERS),
    ]
    return "\n".join(texts)


def unpacked(archive: Path) -> dict[str, str]:
    """The text files inside an archive; the expected values and the keys of paths are bytes."""
    with zipfile.ZipFile(archive) as packed:
        names = [name for name in packed.namelist() if not name.endswith((".bin", ".paths"))]
        return {name: packed.read(name).decode("utf-8") for name in names}


def attributes(page: BeautifulSoup) -> str:
    values = (value for tag in page.find_all(True) for value in tag.attrs.values())
    return "\n".join(v if isinstance(v, str) else " ".join(v) for v in values)


@pytest.mark.parametrize("slug", leaks.SLUGS)
def test_no_solution_line_is_published(published, slug):
    lines = leaks.secret_lines(slug)
    assert len(lines) >= 10
    for name, text in published.items():
        assert leaks.leaked_lines(text, lines) == [], name


@pytest.mark.parametrize("slug", leaks.SLUGS)
def test_no_solution_line_is_in_the_files_that_students_have(slug):
    lines = leaks.secret_lines(slug)
    files = [file for file in student_package().values() if file.suffix == ".py"]
    assert {"language.py", "check.py", "probe.py"} <= {file.name for file in files}
    for file in files:
        assert leaks.leaked_lines(file.read_text(encoding="utf-8"), lines) == [], file.name


def test_the_front_page_adds_up_the_hours_of_its_table(pages):
    front = pages["book/intro.html"]
    hours = [
        float(cell.get_text().replace("½", ".5").split("\u00a0")[0])
        for cell in front.select("td.chapter-time")
    ]
    told = re.search(r"about (\d+) hours for chapters 1 to 7, and to about (\d+)", front.get_text())
    assert abs(int(told[1]) - sum(hours[:7])) <= 3
    assert abs(int(told[2]) - sum(hours)) <= 4


def test_the_front_page_shows_what_check_says_of_a_mistake(pages):
    (shown,) = pages["book/intro.html"].select(".abh-check")
    told = shown.get_text(" ")
    assert "A known mistake." in told and "exp is taken of the raw scores" in told
    assert re.search(r"✗ scores of ±10,000", told) and re.search(r"✓ \d pass", told)


@pytest.mark.parametrize("chapter", leaks.CHAPTERS, ids=leaks.SLUGS)
def test_no_model_answer_is_published(phrases, chapter):
    answers = leaks.model_answers(chapter)
    assert answers and len(phrases) > 50
    for answer in answers:
        mine = set(leaks.runs(answer))
        assert mine, "too short to look for"
        for name, found in phrases.items():
            assert found & mine == set(), name


@pytest.mark.parametrize("chapter", leaks.CHAPTERS, ids=leaks.SLUGS)
def test_the_search_index_knows_no_word_of_an_answer_that_no_page_shows(shown, index, chapter):
    lines = "\n".join(leaks.secret_lines(chapter.stem.partition("_")[2]))
    for secret in (lines, *leaks.model_answers(chapter)):
        assert leaks.leaked_terms(index, secret, shown) == set()


def test_a_planted_leak_is_found(shown, index):
    slug, chapter, text = leaks.SLUGS[0], leaks.CHAPTERS[0], shown
    line, answer = leaks.secret_lines(slug)[0], leaks.model_answers(chapter)[0]
    spaced = "\n  ".join(line.split())
    assert leaks.leaked_lines(text + spaced, leaks.secret_lines(slug)) == [line]
    secret_runs = set(leaks.runs(answer))
    assert leaks.leaked_phrases(text + "\n> ".join(answer.split(" ")), secret_runs) == secret_runs
    assert leaks.leaked_phrases(text, secret_runs) == set()
    secret = "\n".join(leaks.secret_lines(slug))
    unknown = leaks.stems(secret) - leaks.stems(text)
    assert unknown, "every word of the solutions stands on the page anyway"
    planted = {"terms": {**index["terms"], min(unknown): 0}, "titleterms": index["titleterms"]}
    assert leaks.leaked_terms(planted, secret, text) == {min(unknown)}


def test_no_sources_are_published(html):
    assert not (html / "_sources").exists()
    published = [p for p in html.rglob("*") if p.suffix in {".md", ".ipynb", ".py", ".doctree"}]
    assert [p.relative_to(html).as_posix() for p in sorted(published)] == [
        f"_downloads/{chapter.stem}.ipynb" for chapter in leaks.CHAPTERS
    ]
    for path in published:  # the student's version, to download
        assert path.read_bytes() == (leaks.ROOT / "notebooks" / path.stem / path.name).read_bytes()


# --- what a reader gets ---


@pytest.mark.parametrize("chapter", leaks.CHAPTERS, ids=leaks.SLUGS)
def test_each_exercise_shows_its_stub_and_points(pages, chapter):
    page = page_of(pages, chapter)
    slug = chapter.stem.partition("_")[2]
    module = import_module(f"solutions.{slug}")
    for exercise in exercises_of(slug):
        head = page.find(id=f"exercise-{exercise.name}")
        assert exercise.title in head.get_text()
        assert f"{exercise.points:g} point" in head.get_text()
        cell = head.find_parent(class_="tag_exercise")
        assert cell.find("pre").get_text().rstrip() == stubs.stub(getattr(module, exercise.name))
        assert f"import {exercise.name}" not in cell.get_text()


@pytest.mark.parametrize("chapter", leaks.CHAPTERS, ids=leaks.SLUGS)
def test_each_check_shows_its_table_at_full_marks(pages, chapter):
    tables = page_of(pages, chapter).select(".tag_check .abh-check")
    asked = exercises_of(chapter.stem.partition("_")[2])
    assert sorted(t.find("strong").get_text() for t in tables) == sorted(
        f"{e.name}: {e.points:g} of {e.points:g} points" for e in asked
    )


@pytest.mark.parametrize("chapter", leaks.CHAPTERS, ids=leaks.SLUGS)
def test_questions_show_their_points(pages, chapter):
    boxes = page_of(pages, chapter).select(".admonition.question, .admonition.hard-problem")
    assert len(boxes) == len(leaks.model_answers(chapter))
    for box in boxes:
        title = box.find(class_="admonition-title").get_text()
        assert re.search(r"\((\d+|optional, no) points?\)", title)


@pytest.mark.parametrize("chapter", leaks.CHAPTERS, ids=leaks.SLUGS)
def test_the_open_text_of_a_chapter_has_4500_words_at_most(pages, chapter):
    """Of sentences: without what is folded for everybody, code, formulas, pencils, captions, tables
    and the list of references."""
    page = BeautifulSoup(str(page_of(pages, chapter).find("article")), "html.parser")
    apart = "details:not([open]), .dropdown, .cell, pre, math, .reader, figure, table, dl.citation"
    for node in page.select(f"{apart}, div.citation, summary, template, script"):
        if not node.decomposed:
            node.decompose()
    words = [word for word in page.get_text(" ").split() if any(map(str.isalnum, word))]
    assert len(words) <= 4500


def test_every_picture_has_an_alternative_text(pages):
    count = 0
    for name, page in pages.items():
        for image in page.select("img:not(.panel img)"):  # the whole figure has the words
            count += 1
            assert len(image.get("alt", "")) >= 20, f"{name}: {image['src']}"
        for drawing in page.select("svg[role=img]"):
            assert drawing.get("aria-label"), name
    assert count >= 4 * len(leaks.CHAPTERS)


def test_figures_are_vector_graphics(pages):
    for chapter in leaks.CHAPTERS:
        for image in page_of(pages, chapter).select("figure img"):
            assert image["src"].endswith(".svg")


def test_formulas_are_mathml_without_a_script_and_without_an_error(pages):
    for name, page in pages.items():
        for formula in page.select(".math, .math-display .formula"):
            assert formula.find("math"), f"{name}: {formula.get_text()[:80]}"
        assert not page.find(class_="temml-error"), name
        assert not re.search(r"\$\$|\\frac|\\sum", page.get_text()), name
    assert sum(len(page.find_all("math")) for page in pages.values()) > 50


# What a browser shows for an `<mi>` of one letter: the italic one of mathematics.
ITALIC = {"h": "ℎ"} | {
    chr(int(unicodedata.decomposition(chr(code)).split()[1], 16)): chr(code)
    for code in (*range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C))
    if unicodedata.decomposition(chr(code))
}


def test_the_font_has_every_character_of_every_formula(html, pages):
    font = TTFont(html / "_static" / "stix-two-math.woff2")
    known = set(font.getBestCmap())
    for name, page in pages.items():
        shown = {c for formula in page.find_all("math") for c in formula.get_text()}
        letters = {mi.get_text() for mi in page.select("math mi:not([mathvariant])")}
        shown |= {ITALIC[letter] for letter in letters & ITALIC.keys()}
        missing = {c for c in shown if ord(c) not in known and not c.isspace()}
        invisible = {"\u2061", "\u2062", "\u2063", "\u2064", "\u200b", "\u2060"}
        assert missing - invisible == set(), name


# --- the notebooks' links ---


@pytest.mark.parametrize("chapter", leaks.CHAPTERS, ids=leaks.SLUGS)
def test_links_from_the_notebooks_arrive(html, pages, chapter):
    path = leaks.ROOT / "notebooks" / chapter.stem / f"{chapter.stem}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    prose = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
    links = re.findall(rf"\[([^\]]*)\]\({re.escape(BASE)}([^)]*)\)", prose)
    assert links
    for text, target in links:
        name, anchor = urldefrag(unquote(target))
        assert name in pages or (html / name).is_file(), target
        if not anchor:
            continue
        place = pages[name].find(id=anchor)
        assert place is not None, target
        if re.fullmatch(r"\(\d+\.\d+\)", text):
            assert place.find(class_="eqno").get_text().startswith(text), target
        elif re.fullmatch(r"Figure \d+\.\d+", text):
            assert place.find(class_="caption-number").get_text().strip() == text, target
