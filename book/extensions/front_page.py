"""The front page: three doors, how long they take, something to try, one table of the chapters.

    ```{front}
    * [**{path}`hours 1-7`**](01_kernel_regression) The essential path.
    * [**{path}`hours 8-12` more**](08_recurrence_convolution) Its second part.
    * [**All of it**](01_kernel_regression) Everything.
    ```

The first two doors open the essential path, the third everything. Times are computed: those of the
path in `hours` and in `evenings`, one a chapter, those of `all`. The role `begin` links to the
essential path of a chapter; so does the link to the next page, unless the reader has chosen. A
`front` without content is the explorable of chapter 7, taken from its page as it was run, with
only what needs no explanation. The table is that of `intro.md`; each chapter's line also gets the
hours that it takes and a place for what the reader has done.
"""

import html
import json
import math
import re
from collections.abc import Mapping, Sequence

from bs4 import BeautifulSoup
from chapter_header import CHAPTER, FRONT, minutes, pencil_minutes, things_to_do
from docutils import nodes
from paths import COUNTS, path_minutes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from autograder.student.course import exercises_of

SHOWN, SOURCE = "translator", "book/07_transformer"
MINUTES_A_POINT = 6  # the estimate for the exercises
DATES = 12
CAPTION = (
    "<strong>Where a Transformer looks.</strong> This one, small enough to be trained in minutes, "
    "reads dates in many languages and writes them as year-month-day. Type or choose a date, and "
    "click a character of what it writes: the stronger the colour of a character of the source, "
    "the more it counted. It runs in your browser, and nothing that you type leaves it. In chapter "
    "7 you build it."
)
FIGCAPTION = re.compile(r"<figcaption>.*?</figcaption>", re.DOTALL)
DATA = re.compile(r'(<script type="application/json">)(.*?)(</script>)', re.DOTALL)
BEAMS = re.compile(r"<text [^>]*>what comes here.*?(?=</svg>)", re.DOTALL)
SLOT = '<div class="front-explorable"></div>'
TIME = re.compile(r'<span data-time="(\w+) (\d+)-(\d+)"></span>')
BEGIN = re.compile(r'<span data-begin="(\w+)"></span>')
DOOR = re.compile(r'(?<=<div class="doors).*?</ul>', re.DOTALL)
LEFT_FOR_BEAMS, WITHOUT_BEAMS = 'viewBox="0 0 352 592"', 'viewBox="0 0 352 236"'


class FrontPage(SphinxDirective):
    """The doors, a list with a link each; without content, the explorable."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        if not self.content:
            return [nodes.raw("", SLOT, format="html")]
        doors = nodes.container(classes=["doors"])
        self.state.nested_parse(self.content, self.content_offset, doors)
        return [doors]


def path_role(name, rawtext, text, lineno, inliner, options=None, content=()) -> tuple:
    """A place for a time, which is known when all chapters have been read."""
    return [nodes.raw("", f'<span data-time="{text}"></span>', format="html")], []


def begin_role(name, rawtext, text, lineno, inliner, options=None, content=()) -> tuple:
    """A link to a chapter's essential path, once all titles are known."""
    return [nodes.raw("", f'<span data-begin="{text}"></span>', format="html")], []


def brief(figure: str) -> str:
    """The explorable with a few dates, without what comes next and its beams."""
    before, data, after = DATA.search(figure).groups()
    told = json.loads(data)
    told["dates"] = told["dates"][:DATES]
    told["brief"] = True
    text = json.dumps(told, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    figure = DATA.sub(lambda _: before + text + after, figure)
    figure = FIGCAPTION.sub(f"<figcaption><p>{CAPTION}</p></figcaption>", figure)
    figure = BEAMS.sub("", figure)
    return figure.replace(LEFT_FOR_BEAMS, WITHOUT_BEAMS)


def _explorable(app: Sphinx) -> str:
    if SOURCE not in app.env.found_docs:
        return ""
    for raw in app.env.get_doctree(SOURCE).findall(nodes.raw):
        if f'data-explorable="{SHOWN}"' in raw.astext():
            return brief(raw.astext())
    return ""


# --- doors and times -----------------------------------------------------------------------------


def path_hours(minutes: int) -> str:
    """How long a path takes, to ten minutes."""
    hours, rest = divmod(10 * max(1, round(minutes / 10)), 60)
    said = [f"{hours} hour{'s' * (hours > 1)}"] * (hours > 0) + [f"{rest} minutes"] * (rest > 0)
    return " ".join(said)


def evenings(minutes: Sequence[int]) -> str:
    """A path as evenings, one for each chapter's minutes: the shortest and the longest."""
    shortest, longest = 5 * max(1, min(minutes) // 5), 5 * math.ceil(max(minutes) / 5)
    each = f"{shortest} to {longest}" if longest > shortest else f"{longest}"
    return f"{COUNTS[len(minutes)]} evening{'s' * (len(minutes) > 1)} of {each} minutes"


def _halves(minutes: float) -> str:
    halves = max(1, round(minutes / 30))
    return f"{halves // 2 or ''}{'½' if halves % 2 else ''}"


def _time(app: Sphinx, match: re.Match) -> str:
    """What stands for `{path}`: the time of some chapters, first to last."""
    what, first, last = match[1], int(match[2]), int(match[3])
    names = [name for name in _times(app) if first <= int(CHAPTER.match(name)[1][:2]) <= last]
    if what == "all":
        spent = (_times(app)[name] for name in names)
        return f"{sum(reading + MINUTES_A_POINT * points for reading, points in spent) / 60:.0f}"
    minutes = [path_minutes(app)[name] for name in names]
    return path_hours(sum(minutes)) if what == "hours" else evenings(minutes)


def _begin(app: Sphinx, match: re.Match) -> str:
    name = f"book/{match[1]}"
    address = app.builder.get_relative_uri(FRONT, name)
    title = html.escape(app.env.titles[name].astext())
    return f'<a class="reference internal" href="{address}?path=short">{title}</a>'


def open_doors(doors: str) -> str:
    """The doors, the first two of which ask for the essential path and the third for everything."""
    choices = iter(("short", "short", "whole"))
    return re.sub(r'(?<=\.html)(?=")', lambda _: f"?path={next(choices)}", doors, count=3)


# --- the table of the chapters -------------------------------------------------------------------


def hours(reading: int, points: float) -> str:
    """An estimate, in half hours, of how long a chapter takes with its pencils and exercises."""
    return f"{_halves(reading + MINUTES_A_POINT * points)} h"


def note_time(app: Sphinx, doctree: nodes.document) -> None:
    """Keep how long a chapter takes; runs before the head is put in."""
    if chapter := CHAPTER.match(app.env.docname):
        points = sum(exercise.points for exercise in exercises_of(chapter[2]))
        reading = minutes([doctree]) + pencil_minutes([doctree])
        _times(app)[app.env.docname] = (reading, points)


def _times(app: Sphinx) -> dict[str, tuple[int, float]]:
    """What each chapter takes: minutes of reading with a pencil, and points of exercises."""
    if not hasattr(app.env, "chapter_times"):
        app.env.chapter_times = {}
    return app.env.chapter_times


def with_progress(body: str, rows: Mapping[str, tuple[str, int]]) -> str:
    """A page's first table with links to chapters, with two more columns for these.

    `rows` has, for each address, the hours and how many things there are to do.
    """
    tables = re.finditer(r"<table.*?</table>", body, re.DOTALL)
    found = next((t for t in tables if any(f'href="{name}' in t[0] for name in rows)), None)
    if found is None:
        return body
    table = BeautifulSoup(found[0], "html.parser")
    for row in table.find_all("tr"):
        link = row.find("a")
        if link is None:
            for name in ("time", "done"):
                row.append(table.new_tag("th", attrs={"class": f"head chapter-{name}"}))
                row.contents[-1].string = name
            continue
        time, total = rows.get(link["href"], ("", 0))
        row.append(table.new_tag("td", attrs={"class": "chapter-time"}))
        row.contents[-1].string = time.replace(" ", "\u00a0")
        name = link["href"].partition(".")[0]
        row.append(
            table.new_tag(
                "td",
                attrs={"class": "chapter-done", "data-chapter": name, "data-total": str(total)},
            )
        )
    table.table["class"] = [*table.table.get("class", []), "chapters"]
    return body[: found.start()] + str(table) + body[found.end() :]


def fill(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Put the explorable and what there is to do in each chapter into the front page."""
    if pagename != FRONT or doctree is None:
        return
    if figure := _explorable(app):
        app.add_js_file("explorables/core.js", type="module")
    things, times = things_to_do(app), _times(app)
    rows = {
        app.builder.get_relative_uri(FRONT, name): (hours(*times[name]), len(things.get(name, ())))
        for name in app.env.found_docs
        if name in times
    }
    body = TIME.sub(lambda match: _time(app, match), context["body"])
    body = BEGIN.sub(lambda match: _begin(app, match), body)
    body = DOOR.sub(lambda match: open_doors(match[0]), body)
    context["body"] = with_progress(body.replace(SLOT, figure), rows)
    context["next"] = {**context["next"], "link": context["next"]["link"] + "?path=begin"}


def front_again(app: Sphinx, env) -> list[str]:
    return [FRONT]


def setup(app: Sphinx) -> dict:
    app.add_directive("front", FrontPage)
    app.add_role("path", path_role)
    app.add_role("begin", begin_role)
    app.connect("doctree-read", note_time, priority=590)
    app.connect("env-updated", front_again)
    app.connect("html-page-context", fill)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
