"""Notebooks as people leave them: renamed, merged, split, reordered, answered elsewhere."""

from copy import deepcopy

from honest_forms import Notebook, at, cell, code, form, mark, of_code, text


@form("softmax", "gaussian_scores", notes=("added text that may be the answer",))
def renamed_and_annotated(notebook: Notebook) -> None:
    """The title replaced by one's own name; cells of every kind added above, between and below."""
    notebook["cells"][0]["source"] = "# HW 1 — Zoë Ångström (s3141592), group 7 🐙\n*late by 1 day*"
    notes = [
        text("## Idea\n\n$$\\alpha_i = \\frac{e^{s_i}}{\\sum_j e^{s_j}}$$ and \\(x < y\\)"),
        code("a = np.arange(3)\na"),
        text('<details open><summary>scratch</summary>\n<div style="color:red">x</div></details>'),
        code(""),
        text("", "raw"),
        text("not run", "raw"),
        code("# only a comment"),
        text("| a | b |\n|---|:-:|\n| `x` | ~~y~~ |\n\n- [ ] todo\n- [x] done[^1]\n\n[^1]: note"),
        code("assert softmax(np.zeros(2)).sum() == 1\nplt.plot([0, 1]); plt.show()"),
    ]
    for grade_id in ("softmax", "check_softmax", "gaussian_scores", "check_gaussian_scores"):
        place = at(notebook, grade_id)
        notebook["cells"][place:place] = deepcopy(notes[:8])
    notebook["cells"] = [text("by me"), *notebook["cells"], *notes]


@form("simple_attention", notes=("simple_attention occurs 2 times",))
def answer_copied(notebook: Notebook) -> None:
    """The answer's cell copied, with its metadata: the first one kept as it was for comparison."""
    place = at(notebook, "simple_attention")
    copy = deepcopy(notebook["cells"][place])
    copy["id"] = "copy-1"
    head = "def simple_attention(query, key, value):\n"
    notebook["cells"][place]["source"] = f"{head}    raise NotImplementedError  # first try below\n"
    notebook["cells"].insert(place + 1, copy)


@form("padding_mask", notes=("padding_mask occurs 2 times",))
def answer_split_in_two(notebook: Notebook) -> None:
    """Split by Jupyter, which copies the metadata: a helper above, the answer below."""
    place = at(notebook, "padding_mask")
    upper = notebook["cells"][place]
    lower = deepcopy(upper) | {"id": "split-1"}
    upper["source"] = "def longest(lengths):\n    return int(lengths.max())"
    lower["source"] = lower["source"].replace("int(lengths.max())", "longest(lengths)")
    notebook["cells"].insert(place + 1, lower)


@form("multi_head_numpy", "split_heads")
def cells_moved(notebook: Notebook) -> None:
    """The second answer moved above the first, with its check; a question moved to the end."""
    cells = notebook["cells"]
    for grade_id in ("check_multi_head_numpy", "multi_head_numpy"):
        cells.insert(2, cells.pop(at(notebook, grade_id)))
    cells.append(cells.pop(at(notebook, "question_round_trip")))


@form("gaussian_scores")
def answer_below_its_check(notebook: Notebook) -> None:
    """An answer moved one cell down, by accident: its check stands above it now."""
    cells = notebook["cells"]
    place = at(notebook, "gaussian_scores")
    check = at(notebook, "check_gaussian_scores")
    cells[place], cells[check] = cells[check], cells[place]


@form("gelu", notes=("check_gelu is missing",))
def answer_merged_with_its_check(notebook: Notebook) -> None:
    """Two cells made one by Shift-M: the answer, and its check below it."""
    check = notebook["cells"].pop(at(notebook, "check_gelu"))
    cell(notebook, "gelu")["source"] += "\n\n" + check["source"]


@form("softmax", "gaussian_scores")
def merged_notebooks(notebook: Notebook) -> None:
    """Two authors' notebooks merged by nbdime; marks of conflicts in Markdown, both tries there."""
    cells = notebook["cells"]
    marker = '<span style="color:red">**{}**</span>'
    theirs = code(
        "def softmax(scores, axis=-1):\n    e = np.exp(scores)\n    return e / e.sum(axis)\n"
    )
    place = at(notebook, "softmax")
    cells[place:place] = [text(marker.format("<<<<<<< local")), theirs, text("=======")]
    cells.insert(place + 4, text(marker.format(">>>>>>> remote")))
    cells[0]["source"] += (
        "\n<<<<<<< HEAD\nwritten by Ann\n=======\nwritten by Bo\n>>>>>>> 3f2a9c1\n"
    )


@form("relative_positions")
def prose_deleted(notebook: Notebook) -> None:
    """Everything deleted that is not code and not a question, to have it shorter."""
    notebook["cells"] = [c for c in notebook["cells"] if c["cell_type"] == "code" or mark(c)]


@form("causal_mask", notes=("check_causal_mask had been edited",))
def check_edited(notebook: Notebook) -> None:
    """The check commented out, and a line of one's own in its place."""
    cell(notebook, "check_causal_mask")["source"] = "# check(causal_mask)\ncausal_mask(4, 6)"


@form("shift_right", notes=("pandas is not here",))
def imports_edited(notebook: Notebook) -> None:
    """The course's cell of imports has grown: more imports, a seed, a device, a version printed."""
    first = next(c for c in of_code(notebook) if "import numpy as np" in c["source"])
    first["source"] += (
        "\nimport os, sys, random, warnings\nfrom tqdm.auto import tqdm\n"
        "import pandas as pd\nwarnings.simplefilter('ignore')\nprint(torch.__version__)\n"
    )
