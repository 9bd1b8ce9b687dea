"""What a cross-reference can point to: pages, headings, figures, equations, terms, papers.

Sphinx finds these while it builds the page. The notebook is made without Sphinx, so this module
reads the same sources, numbers them as Sphinx does, and gives links into the published book; a test
compares every link and number with the built pages.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from docutils.nodes import make_id
from jupytext.myst import parse_directive_options
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from pybtex.database import BibliographyData, Entry, parse_file
from pybtex.plugin import find_plugin
from pybtex.richtext import Text

from autograder.gradebook.course_file import read_course

DIRECTIVE = re.compile(r"\{([^}\s]+)\}\s*(.*)")
CHAPTER = re.compile(r"(\d\d)_(\w+)")


class BookError(ValueError):
    """Something in the book's source that cannot be translated. The message gives file and line."""

    def __init__(self, path: Path, line: int, reason: str):
        super().__init__(f"{path}:{line}: {reason}")


@dataclass(frozen=True)
class Directive:
    """A directive: name, argument (the rest of its line), options, body, the body's first line."""

    name: str
    argument: str
    options: dict
    body: str
    body_line: int


@dataclass(frozen=True)
class Label:
    """A place in the book. `kind` is page, heading, figure or equation; `number` as "1.2"."""

    kind: str
    url: str
    title: str = ""
    number: str = ""


def chapter_number(path: Path) -> str:
    """`01_kernel_regression.md` → "1"; "" for a page that is not a chapter."""
    match = CHAPTER.fullmatch(path.stem)
    return str(int(match[1])) if match else ""


def directive(token: Token, path: Path, line: int) -> Directive | None:
    """The directive that a fence holds, or None for plain code. `line` is the fence's."""
    match = DIRECTIVE.fullmatch(token.info.strip()) if "fence" in token.type else None
    if match is None:
        return None
    try:
        body, options = parse_directive_options(token.content, "")
    except Exception as error:
        raise BookError(path, line, f"options of {{{match[1]}}}: {error}") from error
    while body and not body[0].strip():
        body.pop(0)
    body_line = line + 1 + len(token.content.splitlines()) - len(body)
    return Directive(match[1], match[2].strip(), options, "\n".join(body), body_line)


def parser(extensions: list[str]) -> MarkdownIt:
    """The parser that also builds the page, so that both read the source alike."""
    return create_md_parser(MdParserConfig(enable_extensions={*extensions}), RendererHTML)


def published_at(root: Path, config: Mapping[str, Any]) -> str:
    """Where the book of a course is published, without a slash at the end: as `course.toml` says,
    or else `_config.yml`."""
    return read_course(root).address or config["html"]["baseurl"].rstrip("/")


class BookIndex:
    """The sources under `root`, read once.

    `root` is the repository's; the pages are `book/*.md`, the papers `book/references.bib`.
    """

    def __init__(self, root: Path):
        self.root = root
        self.config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
        self.parser = parser(self.config["parse"]["myst_enable_extensions"])
        self.labels: dict[str, Label] = {}
        self.terms: dict[str, str] = {}
        for path in sorted((root / "book").glob("*.md")):
            self._read(path)

    @property
    def base(self) -> str:
        """Where the book is published."""
        return published_at(self.root, self.config)

    def url(self, path: Path, anchor: str = "") -> str:
        """Where the page made from `path` is published."""
        page = path.resolve().relative_to(self.root.resolve()).with_suffix(".html").as_posix()
        return f"{self.base}/{page}" + (f"#{anchor}" if anchor else "")

    def page(self, name: str, origin: Path) -> Label | None:
        """The page that a link or a {doc} role on the page `origin` names."""
        target = (origin.parent / name).with_suffix(".md")
        return self.labels.get(f"page:{target.stem}") if target.is_file() else None

    @cached_property
    def papers(self) -> BibliographyData:
        return parse_file(str(self.root / "book" / "references.bib"), bib_format="bibtex")

    def cite(self, key: str) -> tuple[str, str, str]:
        """Authors, year and link of a paper. Raises `KeyError` for an unknown key."""
        entry = self.papers.entries[key]
        names = [" ".join(p.prelast_names + p.last_names) for p in entry.persons["author"]]
        names = [str(Text.from_latex(name)) for name in names]
        authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        return authors, entry.fields["year"], _link(entry)

    def bibliography(self, keys: set[str]) -> list[str]:
        """The papers as lines of Markdown, sorted by author and year."""
        style = find_plugin("pybtex.style.formatting", "alpha")()
        backend = find_plugin("pybtex.backends", "markdown")()
        entries = style.format_entries([self.papers.entries[key] for key in sorted(keys)])
        # the backend escapes full stops and brackets, which Markdown leaves alone in running text
        lines = [html.unescape(entry.text.render(backend)) for entry in entries]
        return [re.sub(r"\\([.()!+-])", r"\1", line.replace("\n", " ")) for line in lines]

    def _read(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        counts = {"figure": 0, "equation": 0}
        chapter = chapter_number(path)
        waiting: list[str] = []
        for token, found, line in self._walk(text, path, 1):
            kind, label, title = "", "", ""
            if token.type == "myst_target":
                waiting.append(token.meta.get("label", token.content))
            elif token.type == "heading_open" and found:
                title = found.body
                if token.tag == "h1":
                    self.labels[f"page:{path.stem}"] = Label("page", self.url(path), title)
                for name in waiting:
                    self._add(
                        name, Label("heading", self.url(path, make_id(name)), title), path, line
                    )
                waiting = []
            elif token.type == "math_block_label":
                kind, label = "equation", token.info
            elif found and found.name == "math" and "label" in found.options:
                kind, label = "equation", found.options["label"]
            elif found and found.name == "figure" and found.body:
                kind, label = "figure", found.options.get("name", "")
            elif found and found.name == "code-cell":
                figure = found.options.get("mystnb", {}).get("figure", {})
                if "caption" in figure:
                    kind, label = "figure", figure.get("name", "")
            elif found and found.name == "glossary":
                for term in re.findall(r"^\S.*$", found.body, re.MULTILINE):
                    if not term.startswith(":"):
                        self.terms[term.lower()] = self.url(path, f"term-{_term_id(term)}")
            if kind:
                counts[kind] += 1
                number = f"{chapter}.{counts[kind]}" if chapter else ""
                anchor = make_id(f"equation-{label}" if kind == "equation" else label)
                if label:
                    self._add(label, Label(kind, self.url(path, anchor), "", number), path, line)

    def _add(self, name: str, label: Label, path: Path, line: int) -> None:
        if name in self.labels:
            raise BookError(path, line, f"the label {name} is used twice in the book")
        self.labels[name] = label

    def _walk(
        self, text: str, path: Path, line: int
    ) -> Iterator[tuple[Token, Directive | None, int]]:
        """Every block in reading order, also inside directives; headings with their text."""
        tokens = self.parser.parse(text)
        for number, token in enumerate(tokens):
            here = line + token.map[0] if token.map else line
            found = directive(token, path, here)
            if token.type == "heading_open":
                found = Directive("heading", "", {}, tokens[number + 1].content, here)
            yield token, found, here
            if found and found.name not in {"code-cell", "heading", "model-answer", "glossary"}:
                yield from self._walk(found.body, path, found.body_line)


def _link(entry: Entry) -> str:
    if "doi" in entry.fields:
        return f"https://doi.org/{entry.fields['doi']}"
    return entry.fields.get("url", "")


def _term_id(term: str) -> str:
    """Sphinx's id of a glossary term: ASCII letters, digits, dots and hyphens; the case is kept."""
    bare = unicodedata.normalize("NFKD", term).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-zA-Z0-9._-]+", "-", bare.strip()).strip("-")
