"""What the reader finds out: tables to fill in, outcomes to predict, hard problems.

    :::{pencil} noon
    | key | distance | weight |
    |---:|---:|---:|
    | 0 | [[0]] | [[16/25]] |
    :::

On the page a blank is an input that `static/pencil.js` judges; the answers are behind a fold.
Without the script, and on paper, the blanks stay blanks. `publishing/pencils.py` has the syntax.
"""

import html
import json
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from autograder.publishing import pencils
from autograder.publishing.bookindex import Directive, parser
from autograder.student import pencil as rules


class blank(nodes.Inline, nodes.Element):
    """A place to write an answer."""


class choice(nodes.Inline, nodes.Element):
    """The button in front of one of several answers, and what comes after them."""


class fold(nodes.General, nodes.Element):
    """What is not to be read before trying."""


def visit_blank(self: HTML5Translator, node: blank) -> None:
    answer, name = html.escape(node["answer"]), html.escape(node["label"])
    given = f'data-answer="{answer}" aria-label="{name}"'
    if slips := node.get("slips"):
        told = json.dumps(slips, ensure_ascii=False, separators=(",", ":"))
        given += f" data-slips='{html.escape(told, quote=False).replace(chr(39), '’')}'"
    if node["answer"].lower() in rules.YES | rules.NO:
        options = "<option></option><option>✓ yes</option><option>✗ no</option>"
        field = f"<select {given}>{options}</select>"
    else:
        field = (
            f'<input type="text"{_keyboard(node["answer"])} {given} '
            f'style="--size: {node["size"]}" autocomplete="off" '
            'autocapitalize="off" spellcheck="false" />'
        )
    self.body.append(f'<span class="blank">{field}<span class="verdict" aria-hidden="true"></span>')
    self.body.append("</span>")
    raise nodes.SkipNode


def _keyboard(answer: str) -> str:
    """A phone's number pad, where a number is wanted; pencil.js adds the signs that it lacks."""
    ways = [way.partition("±")[0] for way in answer.split(" or ")]
    return ' inputmode="decimal"' if all(map(rules.number, ways)) else ""


def visit_choice(self: HTML5Translator, node: choice) -> None:
    right = " data-right" if node["right"] else ""
    self.body.append(f'<label><input type="radio" name="{node["name"]}"{right} /> ')


def depart_choice(self: HTML5Translator, node: choice) -> None:
    self.body.append('<span class="verdict" aria-hidden="true"></span></label>')


def visit_fold(self: HTML5Translator, node: fold) -> None:
    summary = html.escape(node["summary"])
    self.body.append(f'<details class="answers"><summary>{summary}</summary>\n')


def depart_fold(self: HTML5Translator, node: fold) -> None:
    self.body.append("</details>\n")


class Box(SphinxDirective):
    """What the three directives share: a titled box, parsed in parts."""

    required_arguments = 1
    has_content = True
    inner = "explanation"
    kind = title = ""

    def run(self) -> list[nodes.Node]:
        text, line = "\n".join(self.content), self.content_offset
        self.parser = parser(list(self.config.myst_enable_extensions))
        path = Path(self.env.doc2path(self.env.docname, base=False))
        found = Directive(self.name, self.arguments[0], {}, text, line)
        box = nodes.admonition(classes=["reader", self.kind], ids=[f"{self.kind}-{self.slug}"])
        box += nodes.title("", self.title)
        self.fill(box, pencils.parts(self.parser, found, self.inner, path))
        self.set_source_info(box)
        return [box]

    @property
    def slug(self) -> str:
        return nodes.make_id(self.arguments[0])

    def parse(self, text: str, line: int, into: nodes.Element) -> nodes.Element:
        source = self.env.doc2path(self.env.docname)
        self.state.nested_parse(StringList(text.split("\n"), source), line, into)
        return into

    def blanks(self, text: str, line: int, box: nodes.Element) -> None:
        """Parse some text with blanks in it, and name each after its row and column."""
        start = len(box)
        self.parse(pencils.BLANK.sub(r"{blank}`\1`", text), line, box)
        found = [node for part in box[start:] for node in part.findall(blank)]
        every = [
            (row, k) for row in pencils.rows(self.parser, text) for k in range(len(row.answers))
        ]
        if len(found) != len(every):
            raise ExtensionError(f"{self.env.docname}:{line}: [[ ]] where no blank can be")
        widths: dict[str, int] = {}
        for row, k in every:
            column, answer = row.columns[k], row.answers[k].split("±")[0].strip()
            widths[column] = max(widths.get(column, 4), *map(len, answer.split(" or ")))
        for node, (row, k) in zip(found, every, strict=True):
            told = [row.columns[k], row.label]
            if not row.columns[k] and len(row.answers) > 1:
                told.append(f"{k + 1} of {len(row.answers)}")
            node["label"] = ", ".join(filter(None, told)) or "answer"
            node["size"] = min(widths[row.columns[k]], 16)
        box += nodes.raw("", '<p class="told" role="status"></p>', format="html")

    def answers(self, text: str, line: int, into: nodes.Element) -> None:
        """Append the blocks that have blanks, filled in."""
        filled = nodes.container()
        shown = pencils.BLANK.sub(lambda m: f"{{answer}}`{pencils.answer(m[1])[1]}`", text)
        self.parse(shown, line, filled)
        into += [part for part in filled.children if next(_shown(part), None) is not None]


def _shown(part: nodes.Node):
    return (node for node in part.findall(nodes.inline) if "answer" in node["classes"])


class Pencil(Box):
    """A table, or lines, that the reader fills in; what is marked `[[ ]]` comes blank."""

    kind, title = "pencil", "By hand"

    def fill(self, box: nodes.Element, got: pencils.Parts) -> None:
        text, slips = pencils.split_slips(got.text)
        self.blanks(text, got.line, box)
        for gap in box.findall(blank):
            gap["slips"] = {s.wrong: s.message for s in slips if s.right == gap["answer"]}
        inside = fold(summary="Show the answers")
        self.answers(text, got.line, inside)
        if got.inner:
            self.parse(got.inner, got.inner_line, inside)
        box += inside


class Predict(Box):
    """A question about what the next cells, tagged `outcome`, will show."""

    kind, title = "predict", "Predict, then look"

    def fill(self, box: nodes.Element, got: pencils.Parts) -> None:
        text, right = pencils.split_choice(got.text)
        if right is None:
            self.blanks(text, got.line, box)
        else:
            self.parse(text, got.line, box)
            self.choices(next(box.findall(nodes.bullet_list)), right)
            box += nodes.raw("", '<p class="told" role="status"></p>', format="html")
        box += fold(summary="What comes out, and why")
        self.parse(got.inner, got.inner_line, box[-1])

    def choices(self, items: nodes.bullet_list, right: int) -> None:
        for number, item in enumerate(items.children):
            button = choice(name=f"predict-{self.slug}", right=number == right)
            for part in item.children:
                button += part.children if isinstance(part, nodes.paragraph) else part
            item[:] = [nodes.paragraph("", "", button)]
        items["classes"].append("choices")
        group = '<div role="radiogroup" aria-label="Your prediction">'
        place = items.parent.index(items)
        items.parent.insert(place + 1, nodes.raw("", "</div>", format="html"))
        items.parent.insert(place, nodes.raw("", group, format="html"))


class HardProblem(Box):
    """A problem without points; its model answer is dropped before it is parsed."""

    kind, title = "hard-problem", "★ A hard problem (optional, no points)"
    inner = "model-answer"

    def fill(self, box: nodes.Element, got: pencils.Parts) -> None:
        self.parse(got.text, got.line, box)


def blank_role(name, rawtext, text, lineno, inliner, options=None, content=()) -> tuple:
    return [blank(answer=pencils.answer(text)[0], label="", size=4)], []


def answer_role(name, rawtext, text, lineno, inliner, options=None, content=()) -> tuple:
    return [nodes.inline(rawtext, text, classes=["answer"])], []


def fold_outcomes(app: Sphinx, doctree: nodes.document) -> None:
    """Put each cell tagged `outcome` into the fold of the prediction before it."""
    for cell in list(doctree.findall(nodes.container)):
        if "tag_outcome" not in cell.get("classes", ()):
            continue
        place = cell.parent.index(cell)
        box = cell.parent[place - 1] if place else None
        if not isinstance(box, nodes.admonition) or "predict" not in box["classes"]:
            raise ExtensionError(f"{app.env.docname}: an outcome without a predict before it")
        cell.parent.remove(cell)
        within = next(box.findall(fold))
        within.insert(sum("tag_outcome" in node.get("classes", ()) for node in within), cell)


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load the script on the pages that have something to fill in."""
    if doctree is not None and next(doctree.findall(fold), None) is not None:
        app.add_js_file("pencil.js", loading_method="defer")


def setup(app: Sphinx) -> dict:
    app.add_node(blank, html=(visit_blank, None))
    app.add_node(choice, html=(visit_choice, depart_choice))
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_role("blank", blank_role)
    app.add_role("answer", answer_role)
    app.add_directive("pencil", Pencil)
    app.add_directive("predict", Predict)
    app.add_directive("hard-problem", HardProblem)
    app.add_css_file("pencil.css", priority=901)
    app.connect("doctree-read", fold_outcomes, priority=400)  # before others fold cells
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
