"""Finished pages polished: what is put right in a page's text."""

import re

import page_fixes
import pytest
from bs4 import BeautifulSoup

MATH = '<span class="math"><math><mi>x</mi></math></span>'
PAGE = (
    '<html lang="en" data-theme="auto"><head><title>A &#8212; A</title></head><body>'
    "<article><section><h1>A</h1>{}</section></article></body></html>"
)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"so {MATH}, and", f"{MATH},"),
        (f"so ({MATH}).", f"({MATH})."),
        (f"the {MATH}-th", f"{MATH}-th"),
        (f"<em>{MATH}.</em>", f"{MATH}."),
    ],
)
def test_a_formula_and_its_punctuation_stay_on_one_line(text, kept):
    assert f'<span class="glued">{kept}</span>' in page_fixes.polish(PAGE.format(text))


def test_a_formula_among_words_is_left_alone():
    text = f"so {MATH} is {MATH}"
    assert text in page_fixes.polish(PAGE.format(text))


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("<p>so (1, 3, 2) scores 6 + 1 − 0 = 7.</p>", ["(1, 3, 2)", "6 + 1 − 0 = 7"]),
        ("<p>it is 4.84/5 = 0.97 apart</p>", ["4.84/5 = 0.97"]),
        ("<td>grapefruit, (1, 3, 2)</td>", ["(1, 3, 2)"]),
        ("<td>(0, 0, 0, 0)</td><td>4 + 2 − 0 = 6</td><td>224 × 224</td>", ["4 + 2 − 0 = 6"]),
        ("<td>(−1.4, −0.2, 0.2, 1.4)</td><p>(0.5, 1, 1.5)</p>", ["(0.5, 1, 1.5)"]),
        ("<p>1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 = 36</p>", []),
        ("<pre>(1, 3, 2)</pre>", []),
        ('<p><input data-answer="(1, 3, 2)"/></p>', []),
        ("<p>in 2015, 2017 and 2019</p>", []),
    ],
)
def test_short_vectors_and_sums_stay_on_one_line_where_there_is_room(text, whole):
    page = BeautifulSoup(page_fixes.unbroken(text), "html.parser")
    assert [part.get_text() for part in page.select(".glued")] == whole
    assert page.get_text() == BeautifulSoup(text, "html.parser").get_text()


def test_polishing_again_changes_nothing():
    once = page_fixes.polish(PAGE.format(f"<section id='s'><p>({MATH}).</p></section>"))
    assert page_fixes.polish(once) == once


def test_the_front_page_says_its_title_once_and_without_scripts_pages_are_light():
    page = page_fixes.polish(PAGE.format(""))
    assert "<title>A</title>" in page
    assert '<html lang="en" data-theme="light">' in page
    other = "<title>Masking &#8212; A</title>"
    assert other in page_fixes.polish(PAGE.format("").replace("<title>A &#8212; A</title>", other))


def test_chinese_terms_say_what_they_are():
    term = "<dl><dt>batch</dt><dd><p>(批量、批次 / 批次) Sequences together.</p></dd></dl>"
    page = BeautifulSoup(page_fixes.polish(PAGE.format(term)), "html.parser")
    found = [(span["lang"], span.get_text()) for span in page.select("span[lang]")]
    assert found == [("zh-Hans", "批量、批次"), ("zh-Hant", "批次")]
    assert page.select_one("dd").get_text() == "(批量、批次 / 批次) Sequences together."


def test_a_longer_section_is_estimated_higher_and_higher_still_on_a_phone():
    sections = "".join(
        f'<section {off}id="s{n}"><h2>S</h2>' + ("<p>" + "word " * 60 + "</p>") * n + "</section>"
        for n, off in ((1, ""), (5, 'class="off-path" '))
    )
    page = page_fixes.polish(PAGE.format(sections))
    heights = re.findall(r'id="s\d" style="--wide: (\d+)px; --narrow: (\d+)px;"', page)
    (wide1, narrow1), (wide5, narrow5) = [tuple(map(int, pair)) for pair in heights]
    assert wide1 < narrow1 < narrow5
    assert wide1 < wide5 < narrow5


def test_each_line_of_a_stub_knows_how_far_it_is_indented():
    code = '<span class="k">def </span>f(x):\n    <span class="sd">"""One.\n\n    Two."""\n</span>'
    stub = '<div class="stub highlight-python"><div class="highlight"><pre>{}</pre></div></div>'
    page = BeautifulSoup(page_fixes.polish(PAGE.format(stub.format(code))), "html.parser")
    lines = [(line["style"], line.get_text()) for line in page.select("[data-line]")]
    assert lines == [
        ("--in: 0", "def f(x):\n"),
        ("--in: 4", '    """One.\n'),
        ("--in: 0", "\n"),
        ("--in: 4", '    Two."""\n'),
    ]
    assert page.pre.get_text() == BeautifulSoup(code, "html.parser").get_text()


@pytest.mark.parametrize(("code", "wraps"), [("x" * 82, 0), ("x" * 83, 1), ("<b>&</b>" * 83, 0)])
def test_code_wraps_where_a_line_would_not_fit(code, wraps):
    box = f'<div class="highlight"><pre>{code}\n</pre></div>'
    page = BeautifulSoup(page_fixes.polish(PAGE.format(box)), "html.parser")
    assert len(page.select("[data-line]")) == wraps
    assert page.pre.get_text() == BeautifulSoup(code, "html.parser").get_text() + "\n"


def test_sentences_of_a_docstring_flow_together_and_lists_do_not():
    full = "    " + "word " * 16 + "word"
    code = f'<span class="sd">{full}\n    goes on.\n    short\n    alone\n\n{full}\n</span>'
    lines = re.findall(r'<span data-line="(\w+)"', page_fixes.in_lines(code))
    assert lines == ["flow", "one", "one", "one", "one"]


@pytest.mark.parametrize(
    ("value", "told"), [(2000, "stopped at step 2000 of at most 2500"), (2500, "all 2500 steps")]
)
def test_on_a_page_no_progress_bar_stands_still(value, told):
    bar = (
        f'<p class="progress-bar"><progress max="2500" value="{value}" style="x"></progress> '
        f"step {value} of 2500, 262 s  loss 0.5</p>"
    )
    page = page_fixes.polish(PAGE.format(bar))
    assert "<progress" not in page
    assert f">{told}, 262 s" in page
