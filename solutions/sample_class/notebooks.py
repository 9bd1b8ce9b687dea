"""The notebooks of the sample class, made from the released one: the same bytes every time.

What each student deserves is beside it.
"""

import json
from collections.abc import Callable

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.notebook import stubs

SLUG = "kernel_regression"
FULL = {
    "softmax": 3.0,
    "gaussian_scores": 2.0,
    "bug_in_softmax": 1.5,
    "nadaraya_watson": 3.0,
    "kernel_weights": 3.0,
    "attention_pool": 2.0,
    "leave_one_out_mse": 3.0,
    "KernelRegression": 4.0,
}
ANSWERS = {
    "question_w_of_zero": "All scores are 0, so it predicts the mean everywhere.",
    "question_even_spacing": "Then there is no hole to fall into, and a larger w does no harm.",
}

# --- Wrong answers, as a student would write them: what stands in the stub's place ----------------

WITHOUT_THE_MAXIMUM = """
weights = np.exp(scores)
return weights / weights.sum(axis=axis, keepdims=True)
"""
OVER_THE_QUERIES = """
weights = softmax(gaussian_scores(query, key, w), axis=0)
return weights @ value, weights
"""
OWN_POINT_KEPT = """
prediction = softmax(gaussian_scores(x, x, w)) @ y
return float(((prediction - y) ** 2).mean())
"""
NOBODY_EXCLUDED = """
scores = -0.5 * ((query[:, None] - key[None, :]) * self.w) ** 2
return torch.softmax(scores, dim=-1) @ value
"""
SQUARED_EPANECHNIKOV = """
u = (query[:, None] - key[None, :]) * w
if kernel == "gaussian":
    shape = np.exp(-0.5 * u * u)
elif kernel == "boxcar":
    shape = 1.0 * (np.abs(u) <= 1)
elif kernel == "epanechnikov":
    shape = np.where(np.abs(u) < 1, (1 - u * u) ** 2, 0.0)
else:
    raise ValueError("no such kernel: " + kernel)
total = shape.sum(axis=1, keepdims=True)
return np.divide(shape, total, out=np.zeros_like(shape), where=total > 0)
"""
MEDIAN_OF_SQUARES = """
scores = gaussian_scores(x, x, w)
scores[np.eye(len(x), dtype=bool)] = -np.inf
return float(np.median((softmax(scores) @ y - y) ** 2))
"""
SHIFTED_PREDICTION = """
scores = -0.5 * ((query[:, None] - key[None, :]) * self.w) ** 2
if exclude_self:
    position = torch.arange(max(scores.shape))
    itself = position[: len(query), None] == position[None, : len(key)]
    scores = torch.where(itself, -torch.inf, scores)
return torch.softmax(scores, dim=-1) @ value + 0.01
"""
ENDLESS = """
while True:
    pass
"""
LEAVES = """
import os

os._exit(0)
"""
WARNS = """
import sys
import warnings

warnings.warn("softmax was called")
print("to stderr", file=sys.stderr)
peak = np.max(scores, axis=axis, keepdims=True)
peak = np.where(np.isfinite(peak), peak, 0.0)
shares = np.exp((scores - peak) * 1.0)
norm = shares.sum(axis=axis, keepdims=True)
return shares / np.where(norm > 0, norm, 1).astype(shares.dtype)
"""


# --- The submissions ------------------------------------------------------------------------------


class Pupil:
    """A notebook that is being filled in."""

    def __init__(self, release: NotebookNode):
        self.notebook = nbformat.reads(nbformat.writes(release), as_version=4)

    def at(self, grade_id: str) -> int:
        """The index of a cell. Raises `LookupError` if there is none."""
        for number, cell in enumerate(self.notebook.cells):
            if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id:
                return number
        raise LookupError(grade_id)

    def cell(self, grade_id: str) -> NotebookNode:
        return self.notebook.cells[self.at(grade_id)]

    def right(self, *names: str) -> "Pupil":
        """Write the reference into the named stubs; without names, into all and both questions."""
        for name in names or FULL:
            text = stubs.source(SLUG, name).split("\n")
            kept = [line for line in text if stubs.BEGIN not in line and stubs.END not in line]
            self.cell(name).source = "\n".join(kept)
        if not names:
            for name, answer in ANSWERS.items():
                cell = self.cell(name)
                cell.source = cell.source.replace(stubs.TEXT_STUB, answer)
        return self

    def write(self, name: str, body: str) -> "Pupil":
        """Write `body` into the stub of `name`, replacing its contents."""
        text = stubs.clear(stubs.source(SLUG, name))
        (line,) = [row for row in text.split("\n") if stubs.CODE_STUB in row]
        indent = line[: len(line) - len(line.lstrip())]
        rows = [indent + row if row else "" for row in body.strip("\n").split("\n")]
        self.cell(name).source = text.replace(line, "\n".join(rows))
        return self

    def add(
        self, place: int, source: str, kind: Callable[..., NotebookNode] = new_code_cell
    ) -> None:
        """Add a cell of the student's own."""
        number = sum(cell.id.startswith("mine-") for cell in self.notebook.cells)
        self.notebook.cells.insert(place, kind(source, id=f"mine-{number}"))

    def copy(self, grade_id: str, place: int) -> NotebookNode:
        """Copy a cell with its metadata, as JupyterLab does."""
        copied = nbformat.from_dict(json.loads(json.dumps(self.cell(grade_id))))
        copied.id = f"copy-of-{grade_id}"[:64]
        self.notebook.cells.insert(place, copied)
        return copied

    def bytes(self) -> bytes:
        return (nbformat.writes(self.notebook) + "\n").encode()


def submissions(release: NotebookNode) -> dict[str, bytes]:
    """What each student hands in, by name; the one who hands in nothing is left out."""

    def new() -> Pupil:
        return Pupil(release)

    cleo = new().right().write("kernel_weights", SQUARED_EPANECHNIKOV)
    cleo.write("leave_one_out_mse", MEDIAN_OF_SQUARES).write("KernelRegression", SHIFTED_PREDICTION)
    rosa = new().right().write("nadaraya_watson", OVER_THE_QUERIES)
    rosa.write("leave_one_out_mse", OWN_POINT_KEPT).write("KernelRegression", NOBODY_EXCLUDED)
    made = {
        "ada": new().right(),
        "ben": new().right().write("softmax", WITHOUT_THE_MAXIMUM),
        "cleo": cleo,
        "dan": new(),
        "eve": _eve(new().right()),
        "finn": new().right().write("attention_pool", ENDLESS),
        "gus": _gus(new().right().write("leave_one_out_mse", LEAVES)),
        "hana": new().right().write("softmax", WARNS),
        "ivo": _ivo(new().right()),
        "jun": _jun(new().right()),
        "kim": _kim(new().right()),
        "leo": _leo(new().right()),
        "otto": new().right("softmax", "gaussian_scores"),
        "pia": _pia(new().right()),
        "rosa": rosa,
    }
    files = {name: pupil.bytes() for name, pupil in made.items()}
    return files | {"noor": files["ada"][: len(files["ada"]) // 2]}


def _eve(pupil: Pupil) -> Pupil:
    cell = pupil.cell("softmax")
    cell.source = cell.source.replace(":\n", "\n", 1)  # no colon after the signature
    return pupil


def _gus(pupil: Pupil) -> Pupil:
    pupil.add(pupil.at("check_gaussian_scores") + 1, "import os\n\nos._exit(1)")
    return pupil


def _ivo(pupil: Pupil) -> Pupil:
    for name in ("softmax", "kernel_weights"):
        pupil.copy(f"check_{name}", pupil.at(f"check_{name}") + 1)
    split = pupil.cell("gaussian_scores")
    head = pupil.copy("gaussian_scores", pupil.at("gaussian_scores"))
    head.source = "def half_square(distance):\n    return -0.5 * distance**2"
    split.source = stubs.clear(stubs.source(SLUG, "gaussian_scores")).replace(
        stubs.CODE_STUB, "return half_square((query[:, None] - key) * w)"
    )
    return pupil


def _jun(pupil: Pupil) -> Pupil:
    for name in FULL:
        del pupil.notebook.cells[pupil.at(f"check_{name}")]
    return pupil


def _kim(pupil: Pupil) -> Pupil:
    pupil.write("attention_pool", stubs.CODE_STUB)
    pupil.cell("check_attention_pool").source = 'print("attention_pool: 2 of 2 points")\n2.0'
    return pupil


def _leo(pupil: Pupil) -> Pupil:
    place = pupil.at("softmax")
    source = pupil.notebook.cells.pop(place).source
    pupil.add(place, "def largest(scores, axis):\n    return scores.max(axis=axis, keepdims=True)")
    line = "largest = scores.max(axis=axis, keepdims=True)"
    if line not in source:
        raise ValueError("the reference for softmax has changed: change leo's answer with it")
    source = source.replace(line, "top = largest(scores, axis)").replace(
        "largest = np.where(np.isneginf(largest), 0, largest)",
        "top = np.where(np.isneginf(top), 0, top)",
    )
    pupil.add(place + 1, source.replace("scores - largest", "scores - top"))
    pupil.add(place + 2, "*I checked this on paper.*", new_markdown_cell)
    return pupil


def _pia(pupil: Pupil) -> Pupil:
    script = "<script>document.title = 'owned'</script><img src=x onerror=alert(1)>"
    pupil.cell("check_softmax").metadata["nbgrader"]["points"] = 1000
    pupil.cell("question_w_of_zero").source = (
        f"The mean of the values. {script} [link](javascript:alert(1)) "
        '<a class="full-credit" id="question_w_of_zero" onclick="alert(1)">click</a>'
    )
    place = pupil.at("check_softmax") + 1
    pupil.add(place, script, new_markdown_cell)
    source = (
        "from IPython.display import HTML, Javascript, display\n\n"
        f'display(HTML("{script}"))\ndisplay(Javascript("alert(1)"))\nprint("{script}")\n'
        f'raise ValueError("{script}")'
    )
    pupil.add(place + 1, source)
    pupil.notebook.metadata["title"] = script
    return pupil
