"""Formulas as MathML, made while the book is built: a page needs no script to show them.

Temml (vendor/temml.min.js, MIT licence) translates TeX; it runs in QuickJS, inside this process.
The font is STIX Two Math (static/stix-two-math.woff2, Open Font Licence), cut down by fontTools'
`pyftsubset --layout-features='*' --no-hinting --flavor=woff2` to the characters that a course on
attention uses: ASCII, Greek, both in italics, and some signs. A test looks up every character of
the built pages.
"""

import re
from functools import cache
from pathlib import Path

import quickjs
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from symbols import mark_symbols

logger = logging.getLogger(__name__)
TEMML = Path(__file__).parent / "vendor" / "temml.min.js"
BRIDGE = """
function render(tex, display) {
  const options = {displayMode: display, throwOnError: true, wrap: "none"};
  return [temml.renderToString(tex, options)].join();  // in one piece, to be handed over
}
"""
GAP = re.compile(r"\\qquad\s*")
BRACE = re.compile(r"<mo( stretchy=\"true\"[^>]*)>⏟</mo>")


@cache
def _temml() -> quickjs.Function:
    context = quickjs.Context()
    context.eval(TEMML.read_text(encoding="utf-8"))
    context.eval(BRIDGE)
    return context.get("render")


@cache
def mathml(tex: str, display: bool = False) -> str:
    """TeX → a `<math>` element. Raises `ValueError` with what Temml says about bad TeX."""
    try:
        return _temml()(tex, display)
    except quickjs.JSException as error:
        raise ValueError(str(error).split("\n    at ")[0]) from error


def mend(formula: str) -> str:
    """A formula in which what browsers draw badly is drawn for them.

    A root reaches as high over ε as over d, and so does not sink below the line; the brace under a
    term is drawn by temml.css, where Chromium leaves out parts of the glyph.
    """
    formula = formula.replace("<msqrt>", '<msqrt><mspace height="0.72em"></mspace>')
    return BRACE.sub(r'<mo class="brace"\1>⏟</mo>', formula)


def _render(node: nodes.math | nodes.math_block, display: bool) -> str:
    """MathML, in which parts that `\\qquad` keeps apart are rows: a phone puts them on lines."""
    tex = node.astext().strip()
    parts = GAP.split(tex) if display and "{aligned}" not in tex else [tex]
    try:
        return re.sub("</math><math [^>]*>", "", "".join(mathml(part, display) for part in parts))
    except ValueError as error:
        logger.warning("%s in: %s", error, tex, location=node)
        return f"<code>{nodes.unescape(tex)}</code>"


def visit_inline(self, node: nodes.math) -> None:
    formula, title = mark_symbols(_render(node, False), self.builder.current_docname)
    self.body.append(f'<span class="math"{title}>{mend(formula)}</span>')
    raise nodes.SkipNode


def visit_display(self, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-display"))
    formula, title = mark_symbols(_render(node, True), self.builder.current_docname)
    self.body.append(f'<div class="formula" tabindex="0"{title}>{mend(formula)}</div>')
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
