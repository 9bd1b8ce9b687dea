"""Finished pages made light: what is left out changes nothing that a reader sees."""

import re
import shutil
from pathlib import Path

import page_weight
import pydata_sphinx_theme
import pytest
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.errors import ExtensionError

EXTENSIONS = Path(__file__).resolve().parents[2] / "book" / "extensions"

CSS = """
html[data-theme="light"] .highlight { background: #fefefe; color: #080808 }
html[data-theme="light"] .highlight .n { color: #080808 }
html[data-theme="light"] .highlight .p { color: #080808 }
html[data-theme="light"] .highlight .k { color: #6730C5 }
html[data-theme="light"] .highlight .o { color: #00622F }
html[data-theme="light"] .highlight .s2 { color: #00622F }
html[data-theme="light"] .highlight .mi { color: #080808 }
html[data-theme="dark"] .highlight { background: #2b2b2b; color: #F8F8F2 }
html[data-theme="dark"] .highlight .n { color: #F8F8F2 }
html[data-theme="dark"] .highlight .p { color: #F8F8F2 }
html[data-theme="dark"] .highlight .k { color: #DCC6E0 }
html[data-theme="dark"] .highlight .o { color: #ABE338 }
html[data-theme="dark"] .highlight .s2 { color: #ABE338 }
html[data-theme="dark"] .highlight .mi { color: #FFD900 }
"""
SOURCE = 'def f(x, y=1):\n    """Two words."""\n    return f"{x:>3}" + "a" if x < y else x @ y\n'
LOOKS = page_weight.palette(CSS)
SPAN = re.compile(r'<span class="(\w+)">([^<]*)</span>|([^<]+)')


def coloured(code: str) -> list[tuple[str, object]]:
    """Each letter with how it looks."""
    found = []
    for piece in SPAN.finditer(code.replace("<span></span>", "")):
        look = LOOKS.get(piece[1] or "", LOOKS[""])
        found += [(letter, look) for letter in piece[2] or piece[3] if letter.strip()]
    return found


def test_merged_code_has_the_same_letters_in_the_same_colours_and_fewer_elements():
    code = highlight(SOURCE, PythonLexer(), HtmlFormatter(nowrap=True))
    done = page_weight.merge_spans(code, LOOKS)
    assert coloured(done) == coloured(code)
    assert re.sub(r"<[^>]+>", "", done) == re.sub(r"<[^>]+>", "", code)
    assert done.count("<span") < 0.6 * code.count("<span")
    assert page_weight.merge_spans(done, LOOKS) == done


def test_a_class_that_looks_like_plain_code_in_one_theme_only_keeps_its_span():
    assert (
        page_weight.merge_spans('<span class="mi">1</span>', LOOKS) == '<span class="mi">1</span>'
    )
    assert page_weight.merge_spans('<span class="n">x</span>', LOOKS) == "x"


@pytest.mark.parametrize("code", ['<span class="n"><b>x</b></span>', '<a href="#x">x</a>'])
def test_code_with_something_else_in_it_is_left_alone(code):
    assert page_weight.merge_spans(code, LOOKS) == code


def test_the_theme_s_own_script_is_changed_once_and_for_all(tmp_path):
    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    script = tmp_path / "theme.js"
    shutil.copyfile(theme / page_weight.THEME, script)
    page_weight._spare(script)
    changed = script.read_text(encoding="utf-8")
    assert page_weight.NEAR_STOPS in changed and page_weight.WHEN_NEAR in changed
    page_weight._spare(script)
    assert script.read_text(encoding="utf-8") == changed


@pytest.mark.parametrize("lost", [page_weight.ALL_STOPS, page_weight.WHEN])
def test_a_theme_that_has_changed_stops_the_build_and_is_left_as_it_is(tmp_path, lost):
    script = tmp_path / "theme.js"
    text = (page_weight.ALL_STOPS + page_weight.WHEN).replace(lost, "something else")
    script.write_text(text, encoding="utf-8")
    with pytest.raises(ExtensionError, match="theme.js has changed"):
        page_weight._spare(script)
    assert script.read_text(encoding="utf-8") == text


def test_a_page_without_a_paragraph_is_described_by_its_title():
    head = "<head><title>Search &amp; find</title></head>"
    assert page_weight.describe(f"{head}<article><p>Short.</p></article>") == "Search & find"
    long = "A paragraph that says in a few words what this page has to show."
    assert page_weight.describe(f"{head}<article><p>{long}</p></article>") == long
