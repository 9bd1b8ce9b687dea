"""The written questions: `question` is a box with its points, `model-answer` is never on a page."""

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Question(SphinxDirective):
    """A question for the reader; its argument names it, `:points:` says what it is worth."""

    required_arguments = 1
    has_content = True
    option_spec = {"points": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        worth = float(self.options["points"])
        points = f"{worth:g} point{'' if worth == 1 else 's'}"
        box = nodes.admonition(classes=["question"], ids=[f"question-{self.arguments[0]}"])
        box += nodes.title("", f"Question ({points})")
        self.state.nested_parse(self.content, self.content_offset, box)
        self.set_source_info(box)
        return [box]


class ModelAnswer(SphinxDirective):
    """What an instructor sees in the grading view. Its text is dropped before it is parsed."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return []


def setup(app: Sphinx) -> dict:
    app.add_directive("question", Question)
    app.add_directive("model-answer", ModelAnswer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
