"""Notebooks whose form is the point: as Colab, VS Code and other tools write them.

Each function here is given a chapter's notebook as JSON, with right answers in it, and does to it
what a tool does. It returns the file's bytes where they matter, or nothing.
"""

import json
import random
import re

from honest_forms import PIXEL, Notebook, at, cell, code, form, of_code, text, without_ids

# --- pictures -------------------------------------------------------------------------------------


@form("softmax")
def picture_in_a_markdown_cell(notebook: Notebook) -> None:
    """A screenshot pasted below the title and into a cell of one's own, as Jupyter writes it."""
    pasted = {"image.png": {"image/png": PIXEL}}
    notebook["cells"][0]["source"] += "\n\n![image.png](attachment:image.png)"
    notebook["cells"][0]["attachments"] = pasted
    own = 'My notes:\n\n<img src="attachment:image.png" width="300">\n\n![x](attachment:image.png)'
    notebook["cells"].insert(at(notebook, "softmax"), text(own, attachments=pasted))


@form("shift_right", kept=(PIXEL, "a sketch of it"))
def picture_in_a_written_answer(notebook: Notebook) -> None:
    """A photograph of a sheet of paper is the answer to a question, and a word below it."""
    question = cell(notebook, "question_two_readings")
    question["source"] = re.sub(
        r"\*Write your answer here\.\*",
        "![IMG_2041.png](attachment:9f3c-IMG_2041.png)\n\nThat is a sketch of it.",
        question["source"],
    )
    question["attachments"] = {"9f3c-IMG_2041.png": {"image/png": PIXEL}}


@form("causal_mask", notes=("added text that may be the answer",))
def attachments_without_pictures(notebook: Notebook) -> None:
    """Empty attachments, as some editors leave them, and one that nothing shows."""
    notebook["cells"][0]["attachments"] = {}
    left = {"old.png": {"image/png": PIXEL}}
    notebook["cells"].append(text("no picture any more", attachments=left))
    notebook["cells"].append(text("a raw note", "raw", attachments={}))


# --- tools ----------------------------------------------------------------------------------------


@form("softmax", "gaussian_scores")
def colab(notebook: Notebook) -> None:
    """Saved by Google Colab: its metadata, ids in the metadata, forms, outputs of its kernel."""
    without_ids(notebook, 0)
    notebook["metadata"] = {
        "colab": {"provenance": [], "toc_visible": True, "collapsed_sections": ["9uOEiBPbUg3J"]},
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python"},
        "accelerator": "GPU",
        "gpuClass": "standard",
        "widgets": {"application/vnd.jupyter.widget-state+json": {"0f1e": {"model_name": "HBox"}}},
    }
    for number, each in enumerate(notebook["cells"]):
        each["metadata"] |= {"id": f"Wq{number:02}xYzAbCdE"}
    top = code(
        '#@title Setup { display-mode: "form" }\ntry:\n    from google.colab import drive\n'
        "    drive.mount('/content/drive')\nexcept ImportError:\n    pass\n",
        [{"output_type": "stream", "name": "stdout", "text": ["Mounted at /content/drive\n"]}],
    )
    top["metadata"] = {
        "id": "kPq3Jx",
        "outputId": "aa90a1fc-7c5b-4d65-cb13-7b5aef4bb4cb",
        "colab": {"base_uri": "https://localhost:8080/", "height": 34},
        "cellView": "form",
    }
    notebook["cells"].insert(1, top)
    link = '<a href="https://colab.research.google.com/github/me/hw/blob/main/hw1.ipynb" '
    link += 'target="_parent"><img src="https://colab.research.google.com/assets/colab-badge.svg"/>'
    badge = text(link + "</a>")
    badge["metadata"] = {"id": "view-in-github", "colab_type": "text"}
    notebook["cells"].insert(0, badge)


@form("split_heads", "multi_head_numpy")
def vs_code(notebook: Notebook) -> None:
    """Saved by VS Code: its environment's name, `vscode` everywhere, Copilot's empty last cell."""
    notebook["metadata"] = {
        "kernelspec": {
            "display_name": ".venv (3.12.4)", "language": "python", "name": "python3",
        },
        "language_info": {
            "codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py",
            "mimetype": "text/x-python", "name": "python", "nbconvert_exporter": "python",
            "pygments_lexer": "ipython3", "version": "3.12.4",
        },
        "orig_nbformat": 4,
        "vscode": {"interpreter": {"hash": "31f2aee4e71d21fbe5cf8b01ff0e069b9275f58929596ceb0"}},
    }  # fmt: skip
    notebook["nbformat_minor"] = 2
    for number, each in enumerate(notebook["cells"]):
        each["id"] = f"{0xF3A9 + number:08x}"
        each["metadata"] |= {"vscode": {"languageId": "python"}}
    notebook["cells"].append(code("", id="00000fff"))


@form("padding_mask", "causal_mask")
def kaggle(notebook: Notebook) -> None:
    """Saved by Kaggle: `_uuid`, `trusted`, execution times, its own first cell."""
    without_ids(notebook, 4)
    notebook["metadata"]["kaggle"] = {"accelerator": "none", "dataSources": [], "isGpuEnabled": 0}
    first = "# This Python 3 environment comes with many helpful analytics libraries installed\n"
    first += "import os\nfor dirname, _, filenames in os.walk('/kaggle/input'):\n"
    first += "    for filename in filenames:\n        print(os.path.join(dirname, filename))\n"
    notebook["cells"].insert(0, code(first))
    for each in of_code(notebook):
        each["metadata"] |= {
            "_uuid": "8f2839f25d086af736a60e9eeb907d3b93b6e0e5",
            "_cell_guid": "b1076dfc-b9ad-4769-8c92-a6c4dae69d19",
            "trusted": True,
            "execution": {"iopub.status.busy": "2026-11-02T10:21:07.123Z", "shell": None},
        }


@form("relative_positions")
def papermill(notebook: Notebook) -> None:
    """Run by Papermill: parameters, injected ones, durations, exceptions: null."""
    when = {"start_time": "2026-11-02T10:21:07.123456", "duration": 0.01, "exception": None}
    notebook["metadata"]["papermill"] = when | {"parameters": {"seed": 7}, "version": "2.6.0"}
    for each in notebook["cells"]:
        each["metadata"] |= {"papermill": when | {"status": "completed"}, "tags": []}
    given = code("# Parameters\nseed = 7\n")
    given["metadata"] = {"tags": ["injected-parameters"]}
    own = code("seed = 0  # default\n")
    own["metadata"] = {"tags": ["parameters"]}
    notebook["cells"][1:1] = [own, given]


@form("gelu")
def jupytext(notebook: Notebook) -> None:
    """Kept in step with a script by Jupytext; Markdown headings collapsed by JupyterLab."""
    notebook["metadata"]["jupytext"] = {
        "formats": "ipynb,py:percent",
        "text_representation": {"extension": ".py", "format_name": "percent"},
    }
    for each in notebook["cells"]:
        more = {"lines_to_next_cell": 2} if each["cell_type"] == "code" else {}
        each["metadata"] |= more or {"jp-MarkdownHeadingCollapsed": True}
        each["metadata"] |= {"editable": True, "slideshow": {"slide_type": "slide"}}


@form("shift_right")
def classic_with_extensions(notebook: Notebook) -> None:
    """Classic Jupyter with extensions: ExecuteTime, toc, folding, hidden cells, a cell toolbar."""
    without_ids(notebook, 1)
    notebook["metadata"] |= {
        "celltoolbar": "Create Assignment",
        "toc": {"base_numbering": 1, "toc_cell": True, "toc_position": {}},
        "varInspector": {"cols": {"lenName": 16}, "kernels_config": {"python": {}}},
        "latex_envs": {"autoclose": False},
        "hide_input": False,
        "widgets": {"state": {}, "version": "1.1.2"},
    }
    for each in of_code(notebook):
        each["metadata"] |= {
            "ExecuteTime": {"end_time": "2026-11-02T10:21:07.123456Z"},
            "code_folding": [0],
            "collapsed": True,
            "scrolled": True,
            "jupyter": {"outputs_hidden": True, "source_hidden": True},
        }


@form("simple_attention")
def other_kernel(notebook: Notebook) -> None:
    """The kernel of a conda environment that nobody else has, and no language_info."""
    notebook["metadata"] = {
        "kernelspec": {
            "display_name": "Python [conda env:attention-für-später]",
            "language": "python",
            "name": "conda-env-attention-py",
        }
    }


@form("softmax")
def metadata_lost(notebook: Notebook) -> None:
    """A tool has dropped all metadata; the cells' ids are left."""
    notebook["metadata"] = {}
    for each in notebook["cells"]:
        each["metadata"] = {}


# --- how the file is written ----------------------------------------------------------------------


@form("gaussian_scores")
def format_4_0(notebook: Notebook) -> None:
    without_ids(notebook, 0)


@form("split_heads")
def format_4_2(notebook: Notebook) -> None:
    without_ids(notebook, 2)


@form("relative_positions")
def format_4_3_with_ids(notebook: Notebook) -> None:
    """A tool has written the version of an old format and left the ids of a new one."""
    notebook["nbformat_minor"] = 3


@form("gelu")
def sources_as_lists(notebook: Notebook) -> None:
    """Every source a list of lines, some of them empty, some strings that hold several lines."""
    for number, each in enumerate(notebook["cells"]):
        lines = each["source"].splitlines(keepends=True)
        each["source"] = ["", *lines] if number % 2 else ["".join(lines[:2]), *lines[2:]]


@form("softmax", "gaussian_scores")
def windows(notebook: Notebook) -> bytes:
    r"""Edited on Windows: \r\n in every source and in the file, and a byte order mark."""
    for each in notebook["cells"]:
        each["source"] = each["source"].replace("\n", "\r\n")
    return json.dumps(notebook, indent=1).replace("\n", "\r\n").encode("utf-8-sig")


@form("shift_right")
def tabs_and_form_feeds(notebook: Notebook) -> None:
    """Tabs for indentation, trailing blanks, form feeds, blank lines of blanks, no-break spaces."""
    for name in ("shift_right",):
        tabs = cell(notebook, name)["source"].replace("    ", "\t").replace("\n", "  \t\n")
        cell(notebook, name)["source"] = f"\n\n\f{tabs}\n   \n\t\n# a\u00a0b\u3000c \f\n\n"
    notebook["cells"].insert(1, code("   \n\t\n"))


@form("padding_mask", notes=("added text that may be the answer",))
def very_long_lines(notebook: Notebook) -> None:
    """A line of 60,000 characters in the answer, a literal of 2,000 numbers, a long comment."""
    noise = random.Random(0)
    numbers = ", ".join(f"{noise.random():.6f}" for _ in range(2000))
    words = " ".join(["word"] * 12_000)
    answer = cell(notebook, "padding_mask")
    answer["source"] = f"DATA = [{numbers}]\n# {words}\n" + answer["source"]
    notebook["cells"].append(text(words))


@form("simple_attention")
def json_of_four_blanks(notebook: Notebook) -> bytes:
    """Indented by four, keys sorted, everything beyond ASCII escaped."""
    return json.dumps(notebook, indent=4, sort_keys=True).encode()


@form("causal_mask")
def json_on_one_line(notebook: Notebook) -> bytes:
    dense = json.dumps(notebook, separators=(",", ":"), ensure_ascii=False)
    return dense.encode()


# --- outputs --------------------------------------------------------------------------------------


@form("shift_right")
def nan_in_outputs(notebook: Notebook) -> bytes:
    """NaN and Infinity in the JSON, as Python's json writes them."""
    plot = {"data": [{"y": [1.0, float("nan"), float("inf")], "type": "scatter"}], "layout": {}}
    shown = {"application/vnd.plotly.v1+json": plot, "text/plain": ["Figure"]}
    out = {"output_type": "display_data", "data": shown, "metadata": {"loss": float("nan")}}
    notebook["cells"].append(code("fig.show()", [out]))
    return json.dumps(notebook).encode()


@form("gaussian_scores", "softmax")
def outputs_of_other_kernels(notebook: Notebook) -> None:
    """Tracebacks in colour, widgets, a picture of two megabytes, HTML with scripts, progress."""
    cell(notebook, "softmax")["outputs"] = [
        {
            "output_type": "error", "ename": "ZeroDivisionError", "evalue": "division by zero",
            "traceback": ["\x1b[0;31m---------\x1b[0m", "\x1b[0;32m<ipython-input-3>\x1b[0m", "!"],
        },
        {"output_type": "stream", "name": "stderr", "text": ["\r 50%|█████     | 5/10", "\r100%"]},
    ]  # fmt: skip
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "3f", "version_major": 2}}
    table = "<div><style scoped>.dataframe td {}</style><table class='dataframe'><td>1</table>"
    script = "<script>require(['plotly'], function(P) { P.newPlot('a', [], {}) })</script>"
    kinds = (
        view | {"text/plain": ["HBox(children=(FloatProgress(value=0.0)"]},
        {"image/png": PIXEL[:-4] + "A" * 2_000_000, "text/plain": "<Figure size 640x480>"},
        {"text/html": [table, script], "text/latex": "$x$", "application/json": {"a": [1]}},
    )
    shown = [{"output_type": "display_data", "data": kind, "metadata": {}} for kind in kinds]
    shown.append({"output_type": "execute_result", "execution_count": 7, "metadata": {}} | {
        "data": {"text/plain": ["tensor([1., 2.], device='cuda:0')"]},
    })  # fmt: skip
    notebook["cells"].append(code("print('plots')", shown, execution_count=7))


@form("split_heads", "multi_head_numpy")
def run_in_any_order(notebook: Notebook) -> None:
    """Execution counts of a long evening, some cells run often and some never; a busy one."""
    counts = list(range(1, 400, 7))
    random.Random(1).shuffle(counts)
    for number, each in enumerate(of_code(notebook)):
        each["execution_count"] = None if number % 5 == 0 else counts[number]
        stuck = {"output_type": "stream", "name": "stdout", "text": "In progress…"}
        each["outputs"] = [stuck] if number == 3 else []
