"""What comes out of a sandbox, rebuilt field by field: a cell's outputs, clean text.

TRUST BOUNDARY. Everything that comes in may be forged. What goes out is made here: it has the types
and keys that it should have, the kinds in `MIMES`, and text that is fit for a file or a terminal.
What cannot be rebuilt raises some exception, and the process that sent it is killed (`host`).
What shows it must make it inert (`inert`).
"""

import json
import re
from typing import Any

import numpy as np

from autograder.student.engine.values import Array

_CONTROL = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
Output = dict[str, Any]  # in nbformat's form
_OUTPUTS = 400  # per cell
_LINES = 1000  # per traceback
TOO_LARGE = {
    "output_type": "stream",
    "name": "stderr",
    "text": "[the submission's outputs are too large; this one was left out]\n",
}
MIMES = (
    "text/plain", "text/html", "text/markdown", "text/latex",
    "image/png", "image/jpeg", "image/svg+xml",
)  # fmt: skip


def outputs_from(packed: object, limit: int) -> list[Output]:
    """A cell's outputs, from at most `limit` bytes of JSON."""
    if not isinstance(packed, Array) or packed.data.dtype != np.uint8 or packed.data.size > limit:
        raise ValueError("not a cell's outputs")
    return [_output(output) for output in json.loads(packed.data.tobytes())[:_OUTPUTS]]


def _output(output: Output) -> Output:
    kind = output["output_type"]
    if kind == "stream":
        name = "stderr" if output["name"] == "stderr" else "stdout"
        return {"output_type": kind, "name": name, "text": clean(output["text"])}
    if kind == "error":
        lines = [clean(line) for line in output["traceback"][:_LINES]]
        name, value = clean(output["ename"]), clean(output["evalue"])
        return {"output_type": kind, "ename": name, "evalue": value, "traceback": lines}
    if kind not in ("display_data", "execute_result"):
        raise ValueError("an unknown kind of output")
    data = {mime: clean(output["data"][mime]) for mime in MIMES if mime in output["data"]}
    shown = {"output_type": kind, "data": data, "metadata": {}}
    if kind == "execute_result":
        count = output["execution_count"]
        shown["execution_count"] = count if type(count) is int else None
    return shown


def clean(text: object) -> str:
    """Text from inside, fit for a file or a terminal: no lone surrogates, no control characters."""
    if not isinstance(text, str):
        raise ValueError("not a text")
    text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub("", text)
