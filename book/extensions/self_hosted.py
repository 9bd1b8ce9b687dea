"""What a page needs at view time comes from the book itself: our assets in, other hosts out.

The theme's template contains a few things that no setting removes: the address of Thebe on another
host (twice, though it is off), 1.5 MB of script that draws a dozen icons which the icon font draws
as well, Bootstrap's script for tooltips, for which a title would do, and the date of the build.
They are removed from the finished pages.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset

STATIC = Path(__file__).parent / "static"
SCRIPT = re.compile(r"[ \t]*<script\b[^>]*>.*?</script>\n?", re.DOTALL)
LINK = re.compile(r"[ \t]*<link\b[^>]*>\n?")
ELSEWHERE = re.compile(r"""https?://|["'(=]//\w""")
DATE = re.compile(r'[ \t]*<meta name="docbuild:last-update"[^>]*>\n?')
UNUSED = re.compile(r"thebe|fontawesome\.js|scripts/bootstrap\.js")
DESIGN = re.compile(r"sphinx-design|design-tabs|sd-tabs")


def add_explorables(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load the explorables' module on the pages that have one."""
    if doctree is not None and any(
        "data-explorable=" in raw.astext() for raw in doctree.findall(nodes.raw)
    ):
        app.add_js_file("explorables/core.js", type="module")


def keep_ours(page: str) -> str:
    """A page without the scripts and style sheets that it does not need or that are elsewhere."""
    body = page.partition("<body")[2]
    drop_design = not re.search(r'class="[^"]*\bsd-', body)

    def kept(tag: re.Match) -> str:
        text = tag[0]
        foreign = ELSEWHERE.search(text) is not None
        design = drop_design and DESIGN.search(text) is not None
        return "" if foreign or design or UNUSED.search(text) else text

    page = LINK.sub(kept, SCRIPT.sub(kept, page))
    return DATE.sub("", page)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Copy our own assets, and clean every page.

    The assets are not in `html_static_path`, since that would put each script on every page.
    """
    if error is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    copy_asset(str(STATIC), str(output / "_static"))
    for path in output.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        if (cleaned := keep_ours(page)) != page:
            path.write_text(cleaned, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.add_css_file("temml.css")
    app.add_css_file("book.css", priority=900)
    app.add_css_file("pages.css", priority=910)
    app.connect("html-page-context", add_explorables)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
