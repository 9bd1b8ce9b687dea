"""What students write is shown, and can do nothing; whatever it is, it is shown in bounded time."""

import base64
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from hostile import Frames, png
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograder.gradebook.feedback import MarkedNotebook
from autograder.gradebook.feedback_pages import Pages, config_of
from autograder.notebook import inert, pictures
from autograder.notebook import reading as notebooks
from autograder.notebook.inert import NO_PICTURE, clean_html, clean_markdown
from autograder.notebook.pictures import Album, picture
from autograder.notebook.reading import UnusableFile, cells_of, parse_notebook, text_of
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import WRONG, no_marks
from autograder.student.table import table_html


@pytest.fixture(autouse=True)
def new_page():
    inert._page.renew()


# --- HTML -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '<p title="<img ">x</p><a href="http://x">y</a><img alt="<script>x</script>">',
        '<p title="a><script>x</script>">y</p><img src="http://x" alt="&lt;script&gt;">',
        "<img alt='\"><script>x</script>'>",
        "<svg><style><img src=x onerror=x></style></svg>",
        "<math><mtext><table><mglyph><style><!--</style><img title='--><script>x</script>'>",
        "<noscript><p title='</noscript><script>x</script>'>",
        "<form><math><mtext></form><form><mglyph><style></math><img src onerror=x>",
        "</div></div></div><div class=btn>",
    ],
)
def test_markup_that_confuses_parsers_leaves_no_live_tag(text):
    """Another parser finds in it what may be there, and nothing else."""
    cleaned = clean_html(text)
    soup = BeautifulSoup(cleaned, "html5lib")
    assert {tag.name for tag in soup.body.find_all()} <= inert.TAGS
    assert not any(name.startswith("on") for tag in soup.find_all() for name in tag.attrs)
    assert clean_html(cleaned) == cleaned


@pytest.mark.parametrize(
    "style, kept",
    [
        ("color:#1a7f37;font-weight:bold", "color:#1a7f37;font-weight:bold"),
        ("background-color: rgb(255, 0, 10)", "background-color: rgb(255, 0, 10)"),
        ("padding: 1.5em 2px 0 .3em", "padding: 1.5em 2px 0 .3em"),
        ("padding:5000px", None),
        ("padding:99em", None),
        ("border-left:900px solid red", None),
        ("border-left:thick", None),
        ("position:fixed;top:0;color:red", "color:red"),
        ("background:url(http://x)", None),
        ("color:" + "(" * 5000, None),
        ("color:expression(alert(1))", None),
        ("margin-top:-90px;display:none;font-size:0", None),
    ],
)
def test_of_a_style_stays_what_cannot_reach_beyond_its_place(style, kept):
    expected = f'<p style="{kept}">x</p>' if kept else "<p>x</p>"
    assert clean_html(f"<p style='{style}'>x</p>") == expected


def test_the_graders_class_is_the_graders_alone():
    table = '<div class="abh-check k">x</div>'
    assert clean_html(table, ours=True) == table
    for text in (table, table.replace("-", "&#45;"), table.replace("abh", "ABH")):
        assert clean_html(text) == '<div class="k">x</div>'
    assert "abh-" not in clean_markdown('<div class="abh-check abh-theirs">x</div>')


def test_a_table_of_pandas_stays_one():
    rows = "<tr><th>0</th>" + "<td>1.5</td>" * 20 + "</tr>"
    text = f"<div><style scoped>.x {{}}</style><table border='1'>{rows * 60}</table></div>"
    cleaned = clean_html(text)
    assert cleaned.count("<td>1.5</td>") == 1200 and ".x" not in cleaned


@pytest.mark.parametrize(
    "text",
    [
        "<p>" + "".join(f"<b id={n}>" for n in range(950)) + "<p>x" * 1000,
        "<div>" * (inert.MAX_TAGS + 1),
        "x" * (inert.MAX_HTML + 1),
    ],
)
def test_html_that_would_multiply_stands_there_as_text(text):
    cleaned = clean_html(text)
    assert inert.AS_TEXT in cleaned and len(cleaned) < 2 * inert.MAX_JUNK * 4


# --- Bounded time ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: inert.highlight_code("'" + "\\N{" * 60_000),
        lambda: clean_markdown("```python\n'" + "\\N{" * 16_000 + "\n```"),
        lambda: clean_markdown("\\begin{a}" * 5500),
    ],
)
def test_a_piece_that_takes_too_long_stands_there_as_text(make):
    assert inert.AS_TEXT in make()


def test_many_such_pieces_share_what_a_page_may_take():
    sources = [f"'{number}" + "\\N{" * 60_000 for number in range(20)]
    assert all(inert.AS_TEXT in inert.highlight_code(source) for source in sources)
    assert inert._page.left <= 0
    assert inert.AS_TEXT in inert.highlight_code("a = 'something short and new'")
    table = '<div class="abh-check">a verdict after all that</div>'
    assert clean_html(table, ours=True) == table
    inert.NewPage().preprocess(nbformat.v4.new_notebook(), {})
    assert inert.AS_TEXT not in inert.highlight_code("a = 'something short and new'")


def test_a_library_that_raises_costs_one_piece(monkeypatch):
    def fail(*_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr(inert, "_render", fail)
    assert "<pre>&lt;b&gt;</pre>" in clean_markdown("<b>")
    monkeypatch.setattr(inert.nh3, "clean", fail)
    assert "<pre>&lt;u&gt;new</pre>" in clean_html("<u>new")


def test_a_terminal_of_many_colours_has_none():
    few, many = "\x1b[31mred\x1b[0m", "\x1b[31mr<" * (inert.MAX_ESCAPES + 1)
    assert 'class="ansi-red-fg"' in inert.show_terminal(few)
    assert inert.show_terminal(many) == "r&lt;" * (inert.MAX_ESCAPES + 1)


# --- Pictures -------------------------------------------------------------------------------------

GIF = base64.b64encode(b"GIF89a" + bytes([3, 0, 2, 0, 0, 0, 0]) + bytes(90)).decode()
JPEG = base64.b64encode(
    b"\xff\xd8\xff\xe0\x00\x04ab"
    + b"\xff\xc0\x00\x0b\x08\x00\x02\x00\x03\x01\x11\x00\x00"
    + bytes(80)
).decode()


@pytest.mark.parametrize(
    "data, kind",
    [
        (png(1), "image/png"),
        (GIF, "image/gif"),
        (JPEG, "image/jpeg"),
        (png(1)[:40] + "\n " + png(1)[40:], "image/png"),
        (png(1, 100_000, 1_000), None),
        (png(1, 0, 5), None),
        (png(1)[:20], None),
        (JPEG[:12], None),
        ("", None),
        ("ÄÖÜ", None),
        (base64.b64encode(b"<svg/>").decode(), None),
        (base64.b64encode(b"\xff\xd8\xff\xd9" + bytes(100)).decode(), None),
    ],
)
def test_a_picture_is_what_its_bytes_say(data, kind):
    found = picture(data)
    assert (found and found[0]) == kind
    assert found is None or base64.b64decode(found[1]) == base64.b64decode(data)


def test_pictures_have_a_number_and_a_size():
    album = Album()
    kept = album.attach({f"{n}": {"image/png": png(1)} for n in range(pictures.MAX_COUNT + 5)})
    assert len(kept) == pictures.MAX_COUNT and len(album.notes) == 5
    big = base64.b64encode(base64.b64decode(png(1)) + bytes(2_900_000)).decode()
    assert len(Album().attach({str(n): {"image/png": big} for n in range(9)})) == 3
    assert Album().attach({"a" * 201: {"image/png": png(1)}, "": {"image/png": png(1)}}) == {}


def test_a_picture_called_other_than_it_is_gets_its_kind():
    assert Album().attach({"a.png": {"image/png": JPEG}}) == {"a.png": {"image/jpeg": JPEG}}
    both = {"image/svg+xml": "<svg/>", "image/png": [png(1)[:30], png(1)[30:]]}
    assert Album().attach({"a": both}) == {"a": {"image/png": png(1)}}


def test_pictures_in_the_text_become_attachments_and_examples_stay():
    text = f"![a](data:image/png;base64,{png(1)}) `data:image/png;base64,abc`"
    lifted, made = Album().lift_all(text)
    assert lifted == "![a](attachment:written-1.png) `data:image/png;base64,abc`"
    assert made == {"written-1.png": {"image/png": png(1)}}


@pytest.mark.parametrize(
    "text",
    [
        "![x](attachment:a%20b.png)",
        "![x](<attachment:a b.png>)",
        '<img src="attachment:a b.png" alt="x">',
        f"![x](data:image/png;base64,{png(7)})",
        f"<img alt='x' src='data:image/png;base64,{png(7)}'>",
    ],
)
def test_a_picture_is_shown_however_it_is_named(text):
    shown = clean_markdown(text, {"a b.png": {"image/png": png(7)}})
    assert re.search(r"<img [^>]*>", shown) and NO_PICTURE not in shown
    assert f'src="data:image/png;base64,{png(7)}"' in shown and 'alt="x"' in shown


@pytest.mark.parametrize(
    "address",
    ["attachment:b", "attachment:", "http://spy/x.png", "x.png", "data:image/svg+xml;base64,AAAA",
     "data:image/png;base64,AAAA", "data:text/html,x", "//spy/x.png", "javascript:x"],
)  # fmt: skip
def test_a_picture_that_cannot_be_shown_is_a_note(address):
    assert clean_markdown(f"![a & b]({address})", {}).count(f"[{NO_PICTURE}: a &amp; b]") == 1
    assert clean_html(f"<img src='{address}'>") == f"<em>[{NO_PICTURE}]</em>"


def test_a_text_too_long_to_be_read_as_markdown_shows_its_pictures_too():
    shown = clean_markdown("word " * 20_000, {"a": {"image/png": png(7)}})
    assert "word word" in shown and f"data:image/png;base64,{png(7)}" in shown


# --- Reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, text",
    [
        ("a\r\nb\rc\0", "a\nb\nc"),
        (["a\n", "b"], "a\nb"),
        ("\ud800x\udfff", "?x?"),
        ("\u202e", "\u202e"),
        ("", ""),
        ([], ""),
        (["a", 1], None),
        (None, None),
        ({"a": 1}, None),
    ],
)
def test_a_source_is_text_that_can_be_written(source, text):
    assert text_of(source) == text


def test_cells_are_read_one_by_one():
    notes: list[str] = []
    cells = [
        {"cell_type": "code", "source": "x", "metadata": {"tags": ["draw", 3]}, "id": 3},
        {"cell_type": "code", "source": "y", "metadata": {"nbgrader": {"grade_id": "softmax"}}},
        {"cell_type": "markdown", "source": "z", "attachments": {"a": {"image/png": png(1)}}},
        {"cell_type": "code", "source": "w", "attachments": {"a": {"image/png": png(1)}}},
        {"cell_type": "heading", "source": "x"},
        {"source": "x"},
        {"cell_type": {}},
        None,
    ]
    found = list(cells_of({"cells": cells}, notes))
    assert [(c.kind, c.source) for c in found] == [
        ("code", "x"), ("code", "y"), ("markdown", "z"), ("code", "w"),
    ]  # fmt: skip
    assert found[0].tags == {"draw"} and found[0].cell_id is None
    assert found[1].grade_id == "softmax" and found[1].tags == frozenset()
    assert found[2].pictures == {"a": {"image/png": png(1)}} and found[3].pictures == {}
    assert len(notes) == 4


def test_millions_of_lists_are_refused_before_they_are_made():
    lists = b"[]," * (notebooks.MAX_CONTAINERS + 1)
    with pytest.raises(UnusableFile, match="millions"):
        parse_notebook(b'{"nbformat": 4, "cells": [], "x": [' + lists + b"[]]}")


# --- A page ---------------------------------------------------------------------------------------


def test_a_page_tells_who_says_what(tmp_path):
    """The verdict is the grader's; everything else is framed, or nbgrader says whose it is."""
    verdict = table_html(no_marks(find_exercise("softmax")[1], WRONG, "x"))
    mark = {"grade_id": "check_softmax", "grade": True, "locked": True, "solution": False,
            "task": False, "points": 3, "schema_version": 3}  # fmt: skip
    shown = [new_output("display_data", data={"text/html": verdict})]
    cells = [
        new_code_cell("1", id="a", outputs=shown),
        new_code_cell("2", id="check_softmax", outputs=shown, metadata={"nbgrader": mark}),
        new_markdown_cell("**the release's**", id="b"),
        new_markdown_cell(f"**theirs** {verdict}", id="added-1"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    marked = MarkedNotebook({"check_softmax": (0.0, 3.0)}, {}, 0.0, 3.0, 0.0)
    page = Pages(config_of(tmp_path)).page(notebook, "x", "ann", marked)
    frames = Frames()
    frames.feed(page)
    kinds = [
        (text, "abh-check" in classes, "abh-theirs" in classes) for text, classes in frames.strong
    ]
    head = "softmax: 0 of 3 points"
    assert kinds == [
        (head, False, True), (head, True, False), ("the release's", False, False),
        ("theirs", False, True), (head, False, True),
    ]  # fmt: skip
