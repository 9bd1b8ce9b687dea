"""Explorables that compute in the page, from a few numbers and without a code cell.

    ```{explorable} alike

    **Grow alike.** What it shows, and a question.
    ```

`static/explorables/NAME.js` draws the picture. What it draws at first stands in `stills/NAME.svg`:
that is what there is to see without a script. `test_playing.py` compares the two; with
`WRITE_STILLS=1` in its environment it writes the file. With `:model: NAME` the script gets the
parameters and words of `made` in `figures/NAME.json`, which become a file (`page_models.py`).
"""

import json
from base64 import b64encode
from pathlib import Path

import torch
from docutils import nodes
from docutils.parsers.rst.directives import unchanged
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attention_by_hand import figures
from attention_by_hand.models.safetensors import packed

STILLS = Path(__file__).parent / "stills"


class ExplorableDirective(SphinxDirective):
    """The figure: its caption, its still, and room for what the script adds."""

    required_arguments = 1
    has_content = True
    option_spec = {"model": unchanged}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        still = STILLS / f"{name}.svg"
        if not still.is_file():
            raise self.error(f"there is no {still.name} in {STILLS.name}")
        self.env.note_dependency(str(still))
        picture = still.read_text(encoding="utf-8").strip()
        caption = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, caption)
        head = (
            f'<figure class="explorable" id="explorable-{name}" data-explorable="{name}">'
            "<figcaption>"
        )
        rest = (
            f'</figcaption><div data-part="picture">{picture}</div>'
            '<div data-part="controls"></div>'
            f'<script type="application/json">{self.data()}</script></figure>'
        )
        return [
            nodes.raw("", head, format="html"),
            *caption.children,
            nodes.raw("", rest, format="html"),
        ]

    def data(self) -> str:
        """What the script is given: a model, if one is named."""
        if "model" not in self.options:
            return "{}"
        path = Path(figures.__file__).with_name(f"{self.options['model']}.json")
        self.env.note_dependency(str(path))
        made = json.loads(path.read_text(encoding="utf-8"))["made"]
        state = {name: torch.tensor(part) for name, part in made["state"].items()}
        model = packed(state, words=" ".join(made["words"]))
        return json.dumps({"model": b64encode(model).decode()}, separators=(",", ":"))


def setup(app: Sphinx) -> dict:
    app.add_directive("explorable", ExplorableDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
