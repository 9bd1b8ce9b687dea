"""The essential path: what the marks in a chapter's source say of its parts."""

import re

import paths
import pytest
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.core import publish_doctree, publish_from_doctree
from myst_parser.docutils_ import Parser
from sphinx.errors import ExtensionError

CHAPTER = """# Title

Opening.

## Partly

before

% essential

within

% beyond

after

% essential

again

% fold: Evidence: `d`, *three* of $k$

proof

% unfold

between

### Below

below

## Never

never

### Deep

% essential

deep

## Wholly off

off

% fold: Controls

control

### Nested

nested
"""


def read(text, path):
    path.write_text(text, encoding="utf-8")
    options = {"doctitle_xform": False, "myst_enable_extensions": ["dollarmath", "colon_fence"]}
    tree = publish_doctree(text, source_path=str(path), parser=Parser(), settings_overrides=options)
    chapter = next(tree.findall(nodes.section))
    marks = paths.Marks(chapter)
    marks.fold(chapter, 3)
    page = publish_from_doctree(tree, writer_name="html5", settings_overrides={"report_level": 5})
    return BeautifulSoup(page, "html.parser"), marks


def folds_of(page, text):
    """The lines behind which a paragraph is, the outermost last."""
    around = page.find("p", string=text).find_parents("details")
    return [(fold["class"][0], fold.has_attr("open"), fold.summary.get_text()) for fold in around]


def lines_of(page):
    """The lines that tell what is folded, each with the heading before it."""
    return [(line.find_previous(re.compile(r"h\d")).get_text(), line.get_text().strip()) for line in
            page.select(".path-more > button")]  # fmt: skip


def test_what_is_marked_stays_and_the_rest_folds(tmp_path):
    page, marks = read(CHAPTER, tmp_path / "a.md")
    more = section = ("fold", True, "More")
    for text in ("Opening.", "within", "again", "between", "deep"):
        assert folds_of(page, text) == [], text
    for text in ("before", "after", "never"):
        assert folds_of(page, text) == [more], text
    for text in ("below", "off", "nested"):
        assert folds_of(page, text) == [section], text
    evidence = ("evidence", False, "Evidence: d, three of k")
    assert [(k, o, " ".join(t.split())) for k, o, t in folds_of(page, "proof")] == [evidence]
    assert folds_of(page, "control") == [("evidence", False, "Controls"), section]
    assert sorted(node.astext() for node in marks.on) == [
        *("Opening.", "again", "between", "deep", "within")
    ]


def test_a_section_off_the_path_is_marked_as_such(tmp_path):
    page, _ = read(CHAPTER, tmp_path / "a.md")
    shown = [h.get_text() for h in page.select("h1, h2, h3, h4") if not h.find_parent("details")]
    assert shown == ["Title", "Partly", "Below", "Never", "Deep", "Wholly off"]
    assert [part["id"] for part in page.select(".off-path")] == ["below", "wholly-off"]


def test_one_line_tells_of_all_that_is_folded_up_to_the_next_section_on_the_path(tmp_path):
    page, _ = read(CHAPTER, tmp_path / "a.md")
    assert lines_of(page) == [
        ("Below", "More on this, and section 3.1.1, Below (1 min)"),
        ("Nested", "More on this, and section 3.3, Wholly off (1 min)"),
    ]
    on, off = "## {0}\n\n% essential\n\n{0}\n\n", "## {0}\n\n{0}\n\n"
    parts = [on.format("a"), *map(off.format, "bc"), on.format("d"), on.format("e")]
    page, _ = read("# T\n\n" + "".join([*parts, *map(off.format, "fgh")]), tmp_path / "b.md")
    assert lines_of(page) == [
        ("c", "Sections 3.2 and 3.3 (1 min)"),
        ("h", "Sections 3.6–3.8 (1 min)"),
    ]


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        (["3.4.1", "3.5", "3.6"], "3.4.1, 3.5 and 3.6"),
        (["4.8.1", "4.8.2", "4.9", "4.10", "4.11"], "4.8.1, 4.8.2 and 4.9–4.11"),
        (["6.2", "6.4", "6.5"], "6.2, 6.4 and 6.5"),
    ],
)
def test_sections_that_follow_one_another_are_told_by_the_first_and_the_last(numbers, told):
    assert paths._list_numbers(numbers) == told


def test_a_line_counts_the_minutes_of_all_that_it_opens():
    words = [nodes.paragraph(text=" ".join(["word"] * n)) for n in (300, 420)]
    folded = [paths.FoldedPart(words[:1]), paths.FoldedPart(words[1:], "3.2", "A & B")]
    assert paths.line(folded) == "More on this, and section 3.2, A &amp; B (4 min)"


def test_several_marks_in_a_row_hold_one_after_the_other(tmp_path):
    text = "# T\n\n## A\n\n% fold: x\n\nin\n\n% unfold\n% essential\n\non\n"
    page, _ = read(text, tmp_path / "a.md")
    assert folds_of(page, "in") == [("evidence", False, "x")]
    assert folds_of(page, "on") == []


def test_a_fold_on_the_path_is_seen_whatever_comes_behind_it(tmp_path):
    text = "# T\n\n## A\n\n% essential\n\non\n\n% fold: x\n\nin\n\n% unfold\n% beyond\n\noff\n"
    page, marks = read(text, tmp_path / "a.md")
    assert folds_of(page, "in") == [("evidence", False, "x")]
    assert folds_of(page, "off") == [("fold", True, "More")]
    assert "in" not in {node.astext() for node in marks.on}  # nor read in the path's minutes


def test_the_line_of_a_fold_names_the_exercises_in_it():
    cells = [nodes.container(classes=["cell"]) for _ in range(3)]
    for cell, name in zip(cells, ("softmax", "causal_mask"), strict=False):
        cell.append(nodes.container(classes=["exercise-head"], ids=[f"exercise-{name}"]))
    assert paths._exercises(cells[2:]) == []
    assert paths._exercises(cells[1:]) == ["exercise <code>causal_mask</code>"]
    assert paths._exercises(cells) == ["exercises <code>softmax</code>, <code>causal_mask</code>"]
    assert paths._exercises(2 * cells) == ["four exercises"]


@pytest.mark.parametrize(
    ("mark", "line", "reason"),
    [
        ("% esential", 7, "is unknown"),
        ("% Essential", 7, "is unknown"),
        ("% essential path", 7, "is unknown"),
        ("% a remark", 7, "is unknown"),
        ("% fold", 7, "is unknown"),
        ("% fold:", 7, "is unknown"),
        ("% unfold: x", 7, "is unknown"),
        ("% unfold", 7, "without a fold"),
        ("% fold: a\n\nx\n\n% fold: b", 11, "inside a fold"),
        ("% fold: a\n\nx\n\n% essential", 11, "inside a fold"),
        ("% fold: a\n\nx\n\n% unfold\n\n% unfold", 11, "without a fold"),
        (":::{note}\n% essential\n:::", 8, "inside something else"),
    ],
)
def test_a_mark_that_is_unknown_or_out_of_place_is_an_error_with_file_and_line(
    tmp_path, mark, line, reason
):
    source = tmp_path / "a.md"
    with pytest.raises(ExtensionError) as error:
        read(f"# T\n\no\n\n## A\n\n{mark}\n\ny\n\n## B\n\nz\n", source)
    assert str(error.value).startswith(f"{source}:{line}: ")
    assert str(error.value).endswith(reason)
