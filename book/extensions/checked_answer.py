"""An answer to an exercise, shown on a page, and below it what `check` says about it.

    ```{checked} softmax
    def softmax(scores, axis=-1):
        ...
    ```

The code is ours; it is run when the page is built, with NumPy as `np` and `torch`.
"""

from pathlib import Path

import numpy as np
import torch
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from autograder.student import expected, table
from autograder.student.check import verdict_on
from autograder.student.course import find_exercise


class CheckedAnswer(SphinxDirective):
    """A code block, the call of `check` on what it defines, and the table."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name, code = self.arguments[0], "\n".join(self.content)
        scope = {"np": np, "torch": torch}
        exec(code, scope)  # noqa: S102
        verdict = verdict_on(scope[name], name)
        numbers = Path(expected.__file__).parent / find_exercise(name)[0] / f"{name}.bin"
        for path in (table.__file__, numbers):
            self.env.note_dependency(str(path))
        code += f"\n\n\ncheck({name})"
        told = (
            f'<div class="cell_output"><div class="output">{table.table_html(verdict)}</div></div>'
        )
        return [
            nodes.literal_block(code, code, language="python"),
            nodes.raw("", told, format="html"),
        ]


def setup(app: Sphinx) -> dict:
    app.add_directive("checked", CheckedAnswer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
