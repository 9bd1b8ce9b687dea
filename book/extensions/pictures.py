"""Pictures that take the page's colours, and pictures on pages that are no notebooks.

    ```{picture} journey.neighbours
    :alt: What is to be seen, for those who cannot.

    The caption.
    ```

The name is that of a function in `figures`, which draws when the page is built.

A notebook shows its figures on a paper of their own. In the book the paper is taken away, and a
dark page inverts the colours (book.css): black becomes white, and hues stay what they are.
"""

import importlib
import os
import re
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # "svg" would change the size of a figure when its text is measured

import matplotlib.pyplot as plt
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attention_by_hand import plots

GROUND = re.compile(rf'(?<=style="fill: ){plots.PAPER}(?=")', re.IGNORECASE)  # it has no edge
# It hides what is below, or separates what touches.
COVER = re.compile(rf"(?<=fill: ){plots.PAPER}|(?<=stroke: ){plots.PAPER}", re.IGNORECASE)
REMARKS = re.compile(r"<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
BREAK = re.compile(r"\s*\n\s*")


def without_paper(svg: str) -> str:
    """A figure without its ground; what hides something gets the white of a page."""
    return COVER.sub("#ffffff", GROUND.sub("none", svg))


def lighter(svg: str) -> str:
    """A figure without what nothing shows: remarks, and the breaks and indents of its lines."""
    return BREAK.sub(" ", REMARKS.sub("", svg)).replace("> <", "><")


class Picture(SphinxDirective):
    """A figure, drawn by a function of `figures`."""

    required_arguments = 1
    has_content = True
    option_spec = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        module, _, function = name.rpartition(".")
        drawing = importlib.import_module(f"attention_by_hand.figures.{module}")
        for source in (plots.__file__, *sorted(Path(drawing.__file__).parent.glob("*.*"))):
            self.env.note_dependency(str(source))
        path = Path(self.env.app.doctreedir).parent / "drawings" / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        plt.close("all")
        getattr(drawing, function)()
        plt.savefig(path, format="svg", metadata={"Date": None})
        plt.close("all")
        address = "/" + Path(os.path.relpath(path, self.env.srcdir)).as_posix()
        figure = nodes.figure("", nodes.image(uri=address, alt=self.options["alt"]))
        caption = nodes.caption()
        self.state.nested_parse(self.content, self.content_offset, paragraphs := nodes.Element())
        caption += [child for part in paragraphs for child in part]
        figure += caption
        return [figure]


def take_paper(app: Sphinx, error: Exception | None) -> None:
    """Take away the paper of all figures of the book, and what weighs and shows nothing."""
    if error is not None or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / "_images").glob("*.svg"):
        svg = path.read_text(encoding="utf-8")
        if (bare := lighter(without_paper(svg))) != svg:
            path.write_text(bare, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.add_directive("picture", Picture)
    app.connect("build-finished", take_paper)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
