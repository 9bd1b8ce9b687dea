"""What helps a learner along: the head of each chapter, downloads, hints, a list of what is done.

Below a chapter's title are its length, its exercises and their points, the notebook and the
student's archive to download, and, if `_config.yml` names a repository, buttons that open the
notebook elsewhere. `static/progress.js` keeps what a reader has done, in the reader's browser.
"""

import html
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, urlencode, urlparse

from docutils import nodes
from mathml import mathml, mend
from pencil import blank
from sphinx.application import Sphinx
from sphinx.util import logging

from autograder.publishing import bundle
from autograder.publishing.pages import student_view
from autograder.student.course import exercises_of
from autograder.student.engine.runs import Exercise

ROOT = Path(__file__).resolve().parents[2]
logger = logging.getLogger(__name__)
CHAPTER = re.compile(r"^book/(\d\d_(\w+))$")
FRONT = "book/intro"
ARCHIVE = bundle.archive_name()
# d_k, √d_model, a_{i−j}; but num_heads and eos_id are names
INDEXED = re.compile(r"(√?)(?<![\w√])([A-Za-z])_([a-z]|model|ff|\{i−j\})(?![\w(])")
WORDS_A_MINUTE = 180  # a slow, technical pace
LINES_A_MINUTE = 15
FORMULAS_A_MINUTE = 4
PICTURES_A_MINUTE = 2
NUMBERS_A_MINUTE = 3  # in the tables that the reader fills in; a vector has several
MINUTES_A_PREDICTION = 2
MINUTES_A_LIVE_FIGURE = 2


# --- hints --------------------------------------------------------------------------------------


def _code(text: str) -> str:
    """A hint as a page shows it: names as code, and letters with an index as formulas."""
    parts = re.split(r"`([^`]+)`", text)
    return "".join(
        f"<code>{html.escape(part, quote=False)}</code>"
        if number % 2
        else INDEXED.sub(_formula, html.escape(part, quote=False))
        for number, part in enumerate(parts)
    )


def _formula(match: re.Match) -> str:
    root, letter, index = match.groups()
    if len(index) > 1 and not root and not index.startswith("{"):
        return match[0]  # the name of an argument
    tex = rf"{letter}_\text{{{index}}}" if len(index) > 1 else f"{letter}_{index}"
    tex = f"{letter}_{index}" if index.startswith("{") else tex
    formula = mathml(rf"\sqrt{{{tex}}}" if root else tex)
    return f'<span class="math">{mend(formula)}</span>'


# --- the head of a chapter ----------------------------------------------------------------------


def minutes(parts: Iterable[nodes.Node], *, code: bool = True, least: int = 5) -> int:
    """How long it takes to read parts of a chapter without exercises, in steps of `least` minutes.

    Without `code`, only text, formulas and pictures are read. Live figures are played with.
    """
    words = lines = formulas = live = pictures = 0
    for node in (node for part in parts for node in part.findall()):
        if isinstance(node, nodes.math_block):
            formulas += 1
        elif isinstance(node, nodes.raw):
            live += "data-explorable=" in node.astext()
        elif isinstance(node, nodes.figure):
            pictures += 1
        elif isinstance(node, nodes.literal_block) and not _is_hidden(node):
            lines += sum(bool(line.strip()) for line in node.astext().split("\n"))
        elif isinstance(node, nodes.paragraph | nodes.title | nodes.caption):
            words += len(node.astext().split())
    time = words / WORDS_A_MINUTE + formulas / FORMULAS_A_MINUTE
    time += pictures / PICTURES_A_MINUTE + MINUTES_A_LIVE_FIGURE * live
    if code:
        time += lines / LINES_A_MINUTE
    return max(least, least * round(time / least))


def pencil_minutes(parts: Iterable[nodes.Node], least: int = 5) -> int:
    """How long tables by hand and predictions in a chapter take, in steps of `least` minutes.

    An estimate for which no reader has been timed; hard problems are not included.
    """
    found = (box for part in parts for box in part.findall(nodes.admonition))
    boxes = [box for box in found if "reader" in box["classes"]]
    numbers = sum(1 + gap["answer"].count(", ") for box in boxes for gap in box.findall(blank))
    predictions = sum("predict" in box["classes"] for box in boxes)
    time = numbers / NUMBERS_A_MINUTE + MINUTES_A_PREDICTION * predictions
    return least * round(time / least)


def _is_hidden(node: nodes.Element) -> bool:
    """Whether code is folded away, or is what a cell has printed."""
    while node.parent is not None:
        node = node.parent
        classes = node.get("classes", ()) if isinstance(node, nodes.Element) else ()
        if {"tag_hide-input", "cell_output"} & set(classes):
            return True
    return False


def question_points(doctree: nodes.document) -> list[float]:
    """What each written question of a page is worth."""
    boxes = (n for n in doctree.findall(nodes.admonition) if "question" in n["classes"])
    return [float(re.search(r"\(([\d.]+) point", box[0].astext())[1]) for box in boxes]


def head(
    name: str,
    asked: Sequence[Exercise],
    questions: Sequence[float],
    time: int,
    launch: dict,
    pencil: int = 0,
) -> str:
    """What is shown below a chapter's title; `time` and `pencil` are minutes."""
    facts = [f"About {time} minutes to read" + (f", {pencil} more with a pencil" if pencil else "")]
    if asked:
        worth = sum(exercise.points for exercise in asked)
        facts.append(
            f'<a href="#exercise-{asked[0].name}">{_count_of(len(asked), "exercise")}</a>, '
            f"{_count_of(worth, 'point')}"
        )
    if questions:
        facts.append(
            f"{_count_of(len(questions), 'written question')}, {_count_of(sum(questions), 'point')}"
        )
    actions = list(downloads(name)) + [
        f'<a href="{html.escape(url)}">{label}</a>' for label, url in launches(name, launch)
    ]
    parts = [
        f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
        for items in (facts, actions)
        if items
    ]
    return f'<div class="glance">{"".join(parts)}<div class="progress-slot"></div></div>'


def _count_of(count: float, what: str) -> str:
    return f"{count:g} {what}{'' if count == 1 else 's'}"


def downloads(name: str) -> Iterator[str]:
    """Links to what can be taken home: the chapter's notebook, and everything in one archive."""
    if _notebook(name).is_file():
        yield f'<a href="../_downloads/{name}.ipynb" download>Download the notebook</a>'
        yield f'<a href="../_downloads/{ARCHIVE}" download>all notebooks and the checks (zip)</a>'


def _notebook(name: str) -> Path:
    return ROOT / "notebooks" / name / f"{name}.ipynb"


def launches(name: str, launch: dict) -> Iterator[tuple[str, str]]:
    """Where a notebook opens in one click; nothing unless `launch` names a repository.

    `launch` has the `repository`'s address, its `branch` (default: main) and, for nbgitpuller, the
    address of a `jupyterhub`.
    """
    repository = launch.get("repository", "").removesuffix("/").removesuffix(".git")
    if not repository:
        return
    branch = launch.get("branch", "main")
    path = f"notebooks/{name}/{name}.ipynb"
    parts = urlparse(repository)
    project = parts.path.strip("/")
    if parts.netloc == "github.com":
        yield "Colab", f"https://colab.research.google.com/github/{project}/blob/{branch}/{path}"
        binder = f"gh/{project}"
    elif parts.netloc == "gitlab.com":
        binder = f"gl/{quote(project, safe='')}"
    else:
        binder = f"git/{quote(repository, safe='')}"
    urlpath = urlencode({"urlpath": f"lab/tree/{path}"})
    yield "Binder", f"https://mybinder.org/v2/{binder}/{quote(branch, safe='')}?{urlpath}"
    if hub := launch.get("jupyterhub", "").rstrip("/"):
        folder = Path(project).name
        pull = {"repo": repository, "branch": branch, "urlpath": f"lab/tree/{folder}/{path}"}
        yield "JupyterHub", f"{hub}/hub/user-redirect/git-pull?{urlencode(pull)}"


# --- pages --------------------------------------------------------------------------------------


def add_head(app: Sphinx, doctree: nodes.document) -> None:
    """Put the head below a chapter's title."""
    docname = app.env.docname
    chapter = CHAPTER.match(docname)
    if chapter is None:
        return
    section = next(doctree.findall(nodes.section))
    name, slug = chapter.groups()
    asked = exercises_of(slug)
    time, pencil = minutes([doctree]), pencil_minutes([doctree])
    text = head(name, asked, question_points(doctree), time, app.config.launch, pencil)
    title = section.index(next(section.findall(nodes.title)))
    section.insert(title + 1, nodes.raw("", text, format="html"))
    parts = [part["ids"][0] for part in section.children if isinstance(part, nodes.section)]
    things_to_do(app)[docname] = [*(f"exercise-{e.name}" for e in asked), *parts]


def things_to_do(app: Sphinx) -> dict[str, list[str]]:
    """What there is to do in each chapter: exercises and sections, by their anchors."""
    if not hasattr(app.env, "things_to_do"):
        app.env.things_to_do = {}
    return app.env.things_to_do


def copy_downloads(app: Sphinx, error: Exception | None) -> None:
    """Copy what can be downloaded beside the pages; `bundle` decides what is in the archive."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_downloads"
    shutil.rmtree(folder, ignore_errors=True)
    notebooks = [
        path
        for docname in sorted(app.env.found_docs)
        if (match := CHAPTER.match(docname)) and (path := _notebook(match[1])).is_file()
    ]
    if not notebooks:
        return
    folder.mkdir(parents=True)
    for notebook in notebooks:
        shutil.copyfile(notebook, folder / notebook.name)
    try:
        bundle.bundle(ROOT, folder / ARCHIVE)
    except (ValueError, KeyError, OSError) as reason:
        logger.warning("no archive to download: %s (run `autograder release`)", reason)


def setup(app: Sphinx) -> dict:
    student_view.Hints.text = staticmethod(_code)  # with formulas
    app.add_config_value("launch", {}, "env", types=[dict])
    app.add_js_file("progress.js", type="module")
    app.connect("doctree-read", add_head, priority=600)  # the stubs are in their places by then
    app.connect("build-finished", copy_downloads, priority=400)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
