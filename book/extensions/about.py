"""What the About page draws: the way of an answer, the bank of known answers, how to cite.

The bank is drawn from `solutions/mistakes/`. The results of the last test run come from
`build/matrix.json`; a fresh clone has none yet, so they come from `benchmarks/matrix.json`, where
`make matrix` stored them. The results of the mutants are those that `make mutants` stored in
`benchmarks/mutants/result.json`; how often right answers were judged on fresh inputs is in
`benchmarks/luck.json`.
"""

import html
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from chapter_header import ROOT
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from autograder.bank import banks
from autograder.student.course import chapters, exercises_of

MATRIX = ROOT / "build" / "matrix.json"
STORED = ROOT / "benchmarks" / "matrix.json"
MUTANTS = ROOT / "benchmarks" / "mutants" / "result.json"
LUCK = ROOT / "benchmarks" / "luck.json"
CITATION = ROOT / "CITATION.cff"
PER_LINE = {"mistakes": 20, "rights": 8}
SIZE = 11  # pixels from one mark to the next
STATES = {
    "right": "as it should be",
    "unnamed": "loses marks, but is taken for another mistake",
    "wrong": "not as it should be",
    "unknown": "not in the last test run",
}

Run = Mapping[tuple[str, str], Mapping[str, Mapping[str, Mapping[str, bool]]]]


def last_run(*paths: Path) -> Run:
    """The last test run's result for each known answer, from the first file that exists, or {}."""
    path = next((path for path in paths or (MATRIX, STORED) if path.is_file()), None)
    if path is None:
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))["exercises"]
    return {(row["chapter"], row["exercise"]): row for row in rows}


def state(kind: str, found: Mapping[str, bool] | None) -> str:
    """How a known answer fared."""
    if found is None:
        return "unknown"
    if kind == "rights":
        return "right" if found["full"] else "wrong"
    if not found["caught"]:
        return "wrong"
    return "right" if found["named"] else "unnamed"


def states(run: Run) -> Iterator[tuple[str, str, dict[str, list[str]]]]:
    """Chapter, exercise, and how each of its mistakes and right answers fared."""
    for slug in chapters():
        try:
            known = banks(slug)
        except ModuleNotFoundError:
            continue  # a chapter that is being written
        for exercise in exercises_of(slug):
            if exercise.name not in known:
                continue
            bank, row = known[exercise.name], run.get((slug, exercise.name), {})
            yield (
                slug,
                exercise.name,
                {
                    kind: [state(kind, row.get(kind, {}).get(name)) for name in getattr(bank, kind)]
                    for kind in ("mistakes", "rights")
                },
            )


# --- the picture of the bank --------------------------------------------------------------------


def matrix(run: Run, titles: Mapping[str, str]) -> str:
    """A table with a square for each known mistake and a circle for each known right answer."""
    rows = list(states(run))
    everything: dict[str, list[str]] = {"mistakes": [], "rights": []}
    body = ""
    for slug in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == slug]
        for kind, all_of in everything.items():
            all_of += [s for _, _, found in mine for s in found[kind]]
        count = sum(len(found["mistakes"]) for _, _, found in mine)
        body += (
            f'<tr><th scope="rowgroup" colspan="2">{html.escape(titles.get(slug, slug))}: '
            f"{len(mine)} exercises, {count} mistakes</th></tr>"
        )
        for _, name, found in mine:
            wrong, right = (marks(kind, found[kind]) for kind in ("mistakes", "rights"))
            body += f"<tr><td><code>{name}</code>{wrong}</td><td>{right}</td></tr>"
    head = '<th scope="col">exercise, its mistakes</th><th scope="col">right answers</th>'
    return (
        f'<div class="pst-scrollable-table-container" tabindex="0" role="region" '
        f'aria-label="The bank of known answers"><table class="table matrix">'
        f"<caption>{caption(everything)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def caption(everything: Mapping[str, list[str]]) -> str:
    """What there is, how it fared in the last run, and how to read the picture."""
    wrong, right = everything["mistakes"], everything["rights"]
    text = f"{len(wrong)} known mistakes (squares), {len(right)} right answers (circles). "
    if set(wrong + right) == {"unknown"}:
        return text + (
            "No test run is at hand where this page was built, so the marks are hollow: "
            "this is the bank, not its result. <code>make test</code> fills them in."
        )
    caught = sum(s in ("right", "unnamed") for s in wrong)
    named, full = wrong.count("right"), right.count("right")
    text += (
        f"In the last test run before this page was built, {caught} mistakes lost marks, {named} "
        f"of them under their own name, and {full} right answers got full marks (filled)."
    )
    if unknown := (wrong + right).count("unknown"):
        text += f" {unknown} were not in that run (hollow)."
    failed = len(wrong) + len(right) - named - full - unknown
    return text + (f" {failed} did not come out as they should (crossed)." if failed else "")


def marks(kind: str, found: list[str]) -> str:
    """One mark for each known answer."""
    shapes = []
    line = PER_LINE[kind]
    for i, what in enumerate(found):
        x, y = SIZE * (i % line), SIZE * (i // line)
        if kind == "mistakes":
            shape = f'<rect x="{x + 1.5}" y="{y + 1.5}" width="8" height="8" class="{what}"/>'
        else:
            shape = f'<circle cx="{x + 5.5}" cy="{y + 5.5}" r="4" class="{what}"/>'
        if what in ("wrong", "unnamed"):
            shape += f'<path d="M{x + 2} {y + 2}l7 7m0 -7l-7 7" class="cross"/>'
        shapes.append(shape)
    width, height = SIZE * min(line, len(found)), SIZE * -(-len(found) // line)
    what = "mistakes" if kind == "mistakes" else "right answers"
    counts = [f"{found.count(s)} {STATES[s]}" for s in STATES if s in found]
    label = f"{len(found)} {what}: {', '.join(counts)}"
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{"".join(shapes)}</svg>'
    )


class MutationMatrix(SphinxDirective):
    """The bank of known answers and how it fared in the last test run."""

    def run(self) -> list[nodes.Node]:
        for path in [MATRIX, STORED, *sorted((ROOT / "solutions" / "mistakes").rglob("*.py"))]:
            self.env.note_dependency(str(path))
        return [nodes.raw("", matrix(last_run(), _titles()), format="html")]


# --- the score of the mutants -------------------------------------------------------------------


COUNTS = ("made", "caught", "named", "equivalent", "survived")


def mutants(rows: Mapping[str, Mapping[str, int]], titles: Mapping[str, str]) -> str:
    """A table of what came of the mutants of each chapter, with the score in its caption."""
    body, total = "", dict.fromkeys(COUNTS, 0)
    for slug in chapters():
        mine = [rows[e.name] for e in exercises_of(slug) if e.name in rows]
        counts = {count: sum(row[count] for row in mine) for count in COUNTS}
        total = {count: total[count] + counts[count] for count in COUNTS}
        cells = "".join(f"<td>{counts[count]}</td>" for count in COUNTS)
        body += f'<tr><th scope="row">{html.escape(titles.get(slug, slug))}</th>{cells}</tr>'
    wrong = total["made"] - total["equivalent"]
    score = f"{total['caught']} of {wrong}"
    text = (
        f"{total['made']} mutants, of which {total['equivalent']} are still right answers. Of the "
        f"others, {score} lose marks ({total['caught'] / max(wrong, 1):.1%}), "
        f"{total['named']} of them as a mistake that has a name."
    )
    head = "".join(f'<th scope="col">{count}</th>' for count in COUNTS)
    return (
        f'<div class="pst-scrollable-table-container" tabindex="0" role="region" '
        f'aria-label="What came of the mutants"><table class="table">'
        f'<caption>{text}</caption><thead><tr><th scope="col">chapter</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


class MutationScore(SphinxDirective):
    """What came of the mutants when all of them were last judged."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(MUTANTS))
        rows = json.loads(MUTANTS.read_text(encoding="utf-8"))
        return [nodes.raw("", mutants(rows, _titles()), format="html")]


# --- right answers on fresh inputs --------------------------------------------------------------


def luck(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """How often right answers were judged on fresh inputs, and how often they lost marks."""
    rows = {name: row for name, row in rows.items() if row["times"]}
    made = sum(row["answers"] * row["times"] for row in rows.values())
    answers = sum(row["answers"] for row in rows.values())
    sets = [row["times"] for row in rows.values()]
    often = f"{min(sets)} to {max(sets)}" if min(sets) < max(sets) else f"{max(sets)}"
    losses = [one["times"] for row in rows.values() for one in row["lost"].values()]
    lost = f"aspects were lost {sum(losses):,} times" if losses else "none of them lost a mark"
    return (
        f"The {answers} right answers to {len(rows)} exercises, the references among them, were "
        f"judged on {often} sets of fresh inputs each. In these {made:,} judgements, {lost}."
    )


class Luck(SphinxDirective):
    """How often right answers have been judged on fresh inputs, and with what result."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(LUCK))
        told = luck(json.loads(LUCK.read_text(encoding="utf-8")))
        return [nodes.paragraph("", told)]


def _titles() -> dict[str, str]:
    """The chapters' titles, by slug."""
    found = {}
    for path in sorted((ROOT / "book").glob("[0-9][0-9]_*.md")):
        lines = path.read_text(encoding="utf-8").split("\n")
        title = next((line[2:] for line in lines if line.startswith("# ")), path.stem)
        found[path.stem[3:]] = f"{int(path.stem[:2])}. {title}"
    return found


# --- the way of an answer -----------------------------------------------------------------------


class Drawing(SphinxDirective):
    """A picture from `static/drawings/`, put into the page so that it takes the page's colours."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        path = Path(__file__).parent / "static" / "drawings" / f"{self.arguments[0]}.svg"
        self.env.note_dependency(str(path))
        picture = path.read_text(encoding="utf-8")
        return [nodes.raw("", f'<figure class="drawing">{picture}</figure>', format="html")]


# --- how to cite --------------------------------------------------------------------------------


def citation() -> tuple[str, str]:
    """How to cite the course, in words and as BibTeX, from `CITATION.cff`."""
    cff = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    authors = " and ".join(
        author.get("name") or f"{author['given-names']} {author['family-names']}"
        for author in cff["authors"]
    )
    year = str(cff["date-released"])[:4]
    where = cff.get("doi") and f"https://doi.org/{cff['doi']}"
    url = where or cff.get("url") or cff.get("repository-code") or ""
    words = f"{authors} ({year}). {cff['title']} (version {cff['version']}). {url}".strip()
    fields = {
        "author": f"{{{authors}}}",
        "title": f"{{{cff['title']}}}",
        "year": year,
        "version": str(cff["version"]),
        "url": url,
    }
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items() if value]
    return words, "\n".join(["@software{attention_by_hand,", *lines, "}"])


class Citation(SphinxDirective):
    """How to cite the course."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(CITATION))
        words, bibtex = citation()
        block = nodes.literal_block(bibtex, bibtex, language="bibtex")
        return [nodes.block_quote("", nodes.paragraph("", words)), block]


def setup(app: Sphinx) -> dict:
    app.add_directive("mutation-matrix", MutationMatrix)
    app.add_directive("mutation-score", MutationScore)
    app.add_directive("luck", Luck)
    app.add_directive("drawing", Drawing)
    app.add_directive("how-to-cite", Citation)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
