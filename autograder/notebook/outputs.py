"""Makes a submission's outputs fit into its notebook: how many, and how long.

TRUST BOUNDARY. What comes in has been rebuilt by `sandbox.outputs`: its shape is known, but its
contents are the student's. None of it may become a mark: nbgrader reads marks from results, so a
student's become displays. It is not inert yet: `inert` sees to that before a browser shows it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

MAX_TEXT = 100_000  # characters of one output
MAX_IMAGE = 4_000_000
MAX_SHOWN = 4_000_000  # characters of text in all of a notebook's outputs
MAX_PICTURES = 24_000_000
MAX_OUTPUTS = 2_000


class Room:
    """How much more the outputs of one notebook may take."""

    def __init__(self) -> None:
        self.outputs, self.text, self.pictures = MAX_OUTPUTS, MAX_SHOWN, MAX_PICTURES

    def fill(self, outputs: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
        """A cell's outputs, as far as there is room; the last one says if more are missing."""
        for output in outputs:
            pictures, text = 0, 0
            for key, value in {**output, **output.get("data", {})}.items():
                size = sum(map(len, value)) if isinstance(value, list | str) else 0
                if key.startswith("image/"):
                    pictures += size
                else:
                    text += size
            if not self.outputs or text > self.text or pictures > self.pictures:
                yield new_output("stream", name="stderr", text="… more is not shown here")
                return
            self.outputs -= 1
            self.text -= text
            self.pictures -= pictures
            yield output


def fit_outputs(outputs: Iterable[Mapping[str, Any]]) -> Iterator[NotebookNode]:
    """A cell's outputs in nbformat's form, each cut to size, or left out if it cannot be cut."""
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            yield new_output("stream", name=output["name"], text=cut(output["text"]))
        elif kind == "error":
            yield new_output(
                "error",
                ename=cut(output["ename"], 200),
                evalue=cut(output["evalue"], 2000),
                traceback=[cut(line, 4000) for line in output["traceback"][:100]],
            )
        else:
            data = {
                mime: text for mime, text in output["data"].items() if len(text) <= _limit_of(mime)
            }
            if data:
                yield new_output("display_data", data=data)


def _limit_of(mime: str) -> int:
    return MAX_IMAGE if mime.startswith("image/") else MAX_TEXT


def cut(text: str, most: int = MAX_TEXT) -> str:
    """A text, or its beginning and a note if it is too long."""
    return text if len(text) <= most else text[:most] + "\n… cut off here"
