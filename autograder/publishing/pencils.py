"""Tables that the reader fills in: read as the author wrote them, for page and notebook.

An author writes the whole table and puts `[[ ]]` around what the reader is to find out.
`[[2 // 1 + 1]]` shows "1 + 1" among the answers. The directives `pencil`, `predict` and
`hard-problem` share this. A line of its own tells what a wrong number comes from:

    % slip: 8/25, not 8/24: You left out one count: the sum is 16 + 8 + 1.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.notebook.stubs import INSTRUCTOR
from autograder.publishing.bookindex import CHAPTER, BookError, BookIndex, Directive, directive
from autograder.publishing.plain_markdown import Page
from autograder.student import pencil
from autograder.student.expected import file_of

BLANK = re.compile(r"\[\[(.+?)\]\]")
SLIP = re.compile(r"% slip: (?P<right>.+?), not (?P<wrong>.+?): (?P<message>\S.*)")
CHOICE = re.compile(r"(\s*[-*+] +)\[\[(.+)\]\]\s*")
EXPLAINS = "explains"  # marks the cell that goes after the outcome, until it is there
MADE = "pencils.bin"  # beside the expected values


@dataclass(frozen=True)
class Parts:
    """A directive's text, and the text of the directive inside it, if any, with their lines."""

    text: str
    line: int
    inner: str = ""
    inner_line: int = 0


def parts(parser: MarkdownIt, found: Directive, inner: str, path: Path) -> Parts:
    """Split a directive's text from the directive `inner` at its end."""
    lines = found.body.split("\n")
    for token in parser.parse(found.body):
        start, end = token.map or (0, 0)
        here = found.body_line + start
        second = directive(token, path, here)
        if second is not None and second.name == inner and token.level == 0:
            if any(row.strip() for row in lines[end:]):
                raise BookError(path, here, f"text after the {{{inner}}}")
            text = "\n".join(lines[:start]).rstrip()
            return Parts(text, found.body_line, second.body, second.body_line)
    return Parts(found.body, found.body_line)


def answer(mark: str) -> tuple[str, str]:
    """What counts as right, and what is shown as the answer, from the text in `[[ ]]`."""
    right, _, shown = (part.strip() for part in mark.partition("//"))
    return right, shown or re.sub(r"\s*±.*", "", right.split(" or ")[0])


def split_slips(text: str) -> tuple[str, list[pencil.Slip]]:
    """The text without its lines about slips, and these. Raises `ValueError` for a bad one."""
    lines, found = text.split("\n"), []
    answers = {answer(mark)[0] for mark in BLANK.findall(text)}
    for i, line in enumerate(lines):
        if not line.startswith("% "):
            continue
        match = SLIP.fullmatch(line.strip())
        if match is None or match["right"] not in answers:
            raise ValueError(f"no slip in an answer of this table: {line}")
        found.append(pencil.Slip(**match.groupdict()))
        lines[i] = ""
    return "\n".join(lines).rstrip(), found


def split_choice(text: str) -> tuple[str, int | None]:
    """The text without the mark on the right choice in a list, and the number of that choice."""
    lines, right = text.split("\n"), None
    items = [i for i, row in enumerate(lines) if re.match(r"[-*+] ", row)]
    for count, i in enumerate(items):
        if match := CHOICE.fullmatch(lines[i]):
            right = count
            lines[i] = match[1] + match[2]
    return "\n".join(lines), right


def label(text: str) -> str:
    """A table's heading as plain text: `$d^2$` → d²."""
    text = re.sub(r"\{[\w:-]+\}`([^`<]+)(?:<[^>]*>)?`", r"\1", text)
    powers = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    text = re.sub(r"\^\{?(\d+)\}?", lambda m: m[1].translate(powers), text)
    text = re.sub(r"\\(?:text|mathrm|operatorname)\{([^}]*)\}", r"\1", text)
    text = text.replace(r"\times", "×").replace(r"\cdot", "·").replace(r"\top", "ᵀ")
    text = re.sub(r"\\(?:tfrac|frac)\{?(\w+)\}?\{?(\w+)\}?", r"\1/\2", text)
    return " ".join(re.sub(r"[$`*{}]|\\[,;!]|\\(?=[a-z])", "", text).split())


def blocks(parser: MarkdownIt, text: str) -> list[tuple[bool, list[str]]]:
    """The blocks of some Markdown that have blanks: whether each is a table, and its lines."""
    lines = text.split("\n")
    found = []
    for token in parser.parse(text):
        if token.level == 0 and token.map and token.nesting >= 0:
            rows = lines[token.map[0] : token.map[1]]
            if any(BLANK.search(row) for row in rows):
                found.append((token.type == "table_open", rows))
    return found


def rows(parser: MarkdownIt, text: str) -> Iterator[pencil.TableRow]:
    """The rows with blanks, in order: those of tables, and lines such as `weights: [[1]]`."""
    for table, lines in blocks(parser, text):
        heads = [label(cell) for cell in _cells(lines[0])] if table else []
        for number, line in enumerate(lines[2:] if table else lines, 1):
            marks = BLANK.findall(line)
            if not marks:
                continue
            answers = [answer(mark)[0] for mark in marks]
            if not table:
                before = re.split(r"[.;?!]\s", line[: line.index("[[")])[-1]
                before = label(before).lstrip("-+ ").rstrip(":,= ")
                yield pencil.TableRow(before, [""] * len(answers), answers)
                continue
            cells = _cells(line)
            columns = [heads[i] for i, c in enumerate(cells) for _ in BLANK.findall(c)]
            first = "" if BLANK.search(cells[0]) else label(cells[0])
            only = len(lines) == 3
            yield pencil.TableRow(first or ("" if only else f"row {number}"), columns, answers)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


# --- the notebook -------------------------------------------------------------------------------


def cells(page: Page, source: str, line: int) -> list[NotebookNode]:
    """A chapter's Markdown cell as cells of a notebook, split at the directives of this module."""
    made: list[NotebookNode] = []
    done = 0
    lines = source.split("\n")
    for token in page.book.parser.parse(source):
        start, end = token.map or (0, 0)
        found = directive(token, page.name, line + start) if token.map else None
        if found is None or found.name not in TRANSLATED:
            continue
        here = line + start
        if token.level:
            raise BookError(page.name, here, f"{{{found.name}}} inside a list")
        made += _prose(page, lines[done:start], line + done)
        made += TRANSLATED[found.name](page, found, here)
        done = end
    return made + _prose(page, lines[done:], line + done)


def in_order(page: Page, made: list[NotebookNode]) -> list[NotebookNode]:
    """The cells with each prediction's explanation after the cells that show the outcome."""
    ordered: list[NotebookNode] = []
    explanation: list[NotebookNode] = []
    for cell in made:
        outcome = "outcome" in cell.metadata.get("tags", ())
        if outcome and not explanation:
            raise BookError(page.name, 1, "an outcome without a {predict} before it")
        if not outcome:
            ordered += explanation
            explanation = []
        (explanation if cell.metadata.pop(EXPLAINS, False) else ordered).append(cell)
    return ordered + explanation


def _text(lines: list[str]) -> str:
    return "\n".join(lines).strip()


def _prose(page: Page, lines: list[str], line: int) -> list[NotebookNode]:
    plain = page.plain("\n".join(lines), line) if _text(lines) else ""
    return [new_markdown_cell(plain)] if plain else []


def _pencil(page: Page, found: Directive, line: int) -> list[NotebookNode]:
    name = found.argument
    if not name.isidentifier():
        raise BookError(page.name, line, f"{{pencil}} {name}: the name must be a Python name")
    table = read(page, found, line)
    got = parts(page.book.parser, found, "explanation", page.name)
    blank = page.plain(BLANK.sub("…", split_slips(got.text)[0]), got.line)
    return [
        new_markdown_cell(f"**By hand**\n\n{blank}"),
        new_code_cell(code(name, table), metadata={"tags": ["draw"]}),  # not run when grading
    ]


def read(page: Page, found: Directive, line: int) -> pencil.PencilAnswers:
    """A pencil's answers. Raises `BookError` if nothing in it is to be filled in."""
    got = parts(page.book.parser, found, "explanation", page.name)
    try:
        text, slips = split_slips(got.text)
    except ValueError as error:
        raise BookError(page.name, line, str(error)) from None
    table = list(rows(page.book.parser, text))
    if not table:
        raise BookError(page.name, line, f"{{{found.name}}} {found.argument}: nothing is in [[ ]]")
    told = page.plain(got.inner, got.inner_line) if got.inner else ""
    return pencil.PencilAnswers(table, told, slips)


def code(name: str, table: pencil.PencilAnswers) -> str:
    """The cell in which a student fills in the table."""
    lines, heads = [], None
    for row in table.rows:
        if row.columns != heads:
            heads = row.columns
            if any(heads):
                wrapped = textwrap.wrap(", ".join(heads), 70)
                lines += [f"    # {part}" for part in wrapped]
        dots = f"[{', '.join(['...'] * len(row.answers))}]"
        lines.append(f"    {dots}," + (f"  # {row.label}" if row.label else ""))
    body = "\n".join(lines)
    if len(table.rows) == 1:
        *comments, only = lines
        dots, _, told = only.strip().partition(",  # ")
        notes = [*([f"# {told}"] if told else []), *(row.strip() for row in comments)]
        filled = "\n".join([*notes, f"{name} = {dots.rstrip(',')}"])
    else:
        filled = f"{name} = [\n{body}\n]"
    return f"""from autograder import check_pencil, show_pencil

{filled}
check_pencil("{name}", {name})
# show_pencil("{name}")  # the answers"""


def _predict(page: Page, found: Directive, line: int) -> list[NotebookNode]:
    got = parts(page.book.parser, found, "explanation", page.name)
    if not got.inner.strip():
        raise BookError(page.name, line, f"{{predict}} {found.argument} has no {{explanation}}")
    text, right = split_choice(got.text)
    if right is None and not BLANK.search(text):
        raise BookError(page.name, line, f"{{predict}} {found.argument}: nothing is in [[ ]]")
    asked = page.plain(BLANK.sub("…", text), got.line)
    told = page.plain(got.inner, got.inner_line)
    return [
        new_markdown_cell(f"**Predict, then run**\n\n{asked}"),
        new_markdown_cell("**My prediction:** …"),
        new_markdown_cell(f"**What comes out, and why**\n\n{told}", metadata={EXPLAINS: True}),
    ]


def _hard(page: Page, found: Directive, line: int) -> list[NotebookNode]:
    got = parts(page.book.parser, found, "model-answer", page.name)
    if not got.inner.strip():
        raise BookError(page.name, line, f"{{hard-problem}} {found.argument}: no {{model-answer}}")
    title = "**★ A hard problem** (optional, no points)"
    told = page.plain(got.inner, got.inner_line)
    return [
        new_markdown_cell(f"{title}\n\n{page.plain(got.text, got.line)}"),
        new_markdown_cell("*Room for your thoughts.*"),
        new_markdown_cell(f"**Model answer**\n\n{told}", metadata={"tags": [INSTRUCTOR]}),
    ]


TRANSLATED = {"pencil": _pencil, "predict": _predict, "hard-problem": _hard}


# --- the answers of the whole book --------------------------------------------------------------


def tables(root: Path) -> dict[str, pencil.PencilAnswers]:
    """The answers of all pencils of the book. Raises `BookError` for a name that is used twice."""
    book = BookIndex(root.resolve())
    found: dict[str, pencil.PencilAnswers] = {}
    for path in sorted((book.root / "book").glob("*.md")):
        if not CHAPTER.fullmatch(path.stem):
            continue
        page = Page(book, path)
        bound: set[str] = set()
        before = set(found)
        for token in book.parser.parse(path.read_text(encoding="utf-8")):
            line = token.map[0] + 1 if token.map else 1
            here = directive(token, page.name, line)
            if here is None:
                continue
            if here.name == "code-cell":
                bound |= _names_stored(here.body)
            if here.name == "pencil":
                if here.argument in found:
                    raise BookError(page.name, line, f"{{pencil}} {here.argument} is used twice")
                found[here.argument] = read(page, here, line)
        if both := bound & (set(found) - before):
            raise BookError(page.name, 1, f"a pencil and a variable share a name: {sorted(both)}")
    return found


def _names_stored(source: str) -> set[str]:
    lines = [row for row in source.split("\n") if not row.lstrip().startswith(("%", "!"))]
    tree = list(ast.walk(ast.parse("\n".join(lines))))
    stored = {n.id for n in tree if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.name for n in tree if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def write_pencils(root: Path) -> bool:
    """Bring `expected/pencils.bin` up to date; return whether it had to be written."""
    path = file_of(MADE)
    made = tables(root)
    if path.is_file() and pencil.parse(path.read_bytes()) == made:
        return False
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pencil.dump(made))
    pencil._all_answers.cache_clear()
    return True
