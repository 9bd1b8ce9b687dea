"""What a page needs at view time comes from the book itself: our assets in, other hosts out."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.fileutil import copy_asset

STATIC = Path(__file__).parent / "static"
FOREIGN = re.compile(r"(https?:)?//")


def keep_ours(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Drop scripts and style sheets of other hosts; load the explorables where a page has one."""
    for kind in ("script_files", "css_files"):
        context[kind] = [f for f in context.get(kind, []) if not FOREIGN.match(str(f.filename))]
    if doctree is not None and any(
        "data-explorable=" in raw.astext() for raw in doctree.findall(nodes.raw)
    ):
        app.add_js_file("explorables/core.js", type="module")


def copy_static(app: Sphinx, error: Exception | None) -> None:
    """Copy our own assets. They are in no html_static_path: that would put each on every page."""
    if error is None and app.builder.format == "html":
        copy_asset(str(STATIC), str(Path(app.outdir) / "_static"))


def setup(app: Sphinx) -> dict:
    app.add_css_file("temml.css")
    app.add_css_file("book.css", priority=900)
    app.connect("html-page-context", keep_ours, priority=900)
    app.connect("build-finished", copy_static)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
