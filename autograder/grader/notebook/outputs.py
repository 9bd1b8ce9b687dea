"""A cell's outputs, fit for a notebook: copied key by key, and cut to size.

TRUST BOUNDARY. What comes in is what a student's code displayed, and may have any shape. What goes
out is made here, of known kinds and bounded size, and none of it is a mark: nbgrader reads marks
from results, so a student's become displays. It is not inert yet: `inert` sees to that before a
browser shows it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output

MAX_TEXT = 100_000
MAX_IMAGE = 4_000_000
MAX_SHOWN = 4_000_000  # characters of text in all of a notebook's outputs
MAX_PICTURES = 24_000_000
MAX_OUTPUTS = 2_000
MIME = {
    "text/plain": MAX_TEXT,
    "text/html": MAX_TEXT,
    "text/markdown": MAX_TEXT,
    "text/latex": MAX_TEXT,
    "image/png": MAX_IMAGE,
    "image/jpeg": MAX_IMAGE,
    "image/svg+xml": MAX_IMAGE,
}


class Room:
    """How much more the outputs of one notebook may take."""

    def __init__(self) -> None:
        self.outputs, self.text, self.pictures = MAX_OUTPUTS, MAX_SHOWN, MAX_PICTURES

    def fill(self, outputs: Iterable[NotebookNode]) -> Iterator[NotebookNode]:
        """A cell's outputs, as far as there is room; the last one says that more are missing."""
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


def safe_outputs(outputs: Any) -> Iterator[NotebookNode]:
    """The outputs from the sandbox that may go into a notebook, copied key by key."""
    for output in outputs if isinstance(outputs, list | tuple) else ():
        if not isinstance(output, Mapping):
            continue
        kind = output.get("output_type")
        if kind == "stream":
            name = "stderr" if output.get("name") == "stderr" else "stdout"
            yield new_output("stream", name=name, text=text_of(output.get("text")))
        elif kind in ("display_data", "execute_result"):
            data = dict(_safe_data(output.get("data")))
            if data:
                yield new_output("display_data", data=data)
        elif kind == "error":
            lines = output.get("traceback")
            lines = lines if isinstance(lines, list | tuple) else ()
            yield new_output(
                "error",
                ename=text_of(output.get("ename"), 200),
                evalue=text_of(output.get("evalue"), 2000),
                traceback=[text_of(line, 4000) for line in lines[:100]],
            )


def _safe_data(data: Any) -> Iterator[tuple[str, str]]:
    for mime, most in MIME.items():
        value = data.get(mime) if isinstance(data, Mapping) else None
        if isinstance(value, list | tuple):
            value = "".join(part for part in value if isinstance(part, str))
        if isinstance(value, str) and len(value) <= most:
            yield mime, text_of(value, most)


def text_of(value: Any, most: int = MAX_TEXT) -> str:
    """A string that can be written as UTF-8, cut to size."""
    parts = value if isinstance(value, list | tuple) else [value]
    text = "".join(part for part in parts if isinstance(part, str))
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= most else text[:most] + "\n… cut off here"
