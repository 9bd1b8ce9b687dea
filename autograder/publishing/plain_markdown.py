"""MyST Markdown → plain Markdown that every notebook viewer shows, with links into the book.

The text is parsed with the page's own parser, and only what plain Markdown lacks is rewritten; the
rest stays as the author typed it. What cannot be translated raises `BookError`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it.token import Token

from autograder.publishing.bookindex import BookError, BookIndex, Directive, directive

ADMONITIONS = {
    "note", "tip", "hint", "warning", "important", "caution", "attention", "danger", "seealso",
}  # fmt: skip
UNTRANSLATED = {
    "amsmath": "an AMS environment; use $$ … $$",
    "html_block": "raw HTML",
    "html_inline": "raw HTML",
    "footnote_ref": "a footnote",
    "footnote_reference_open": "a footnote",
    "substitution_block": "a substitution",
    "substitution_inline": "a substitution",
    "dl_open": "a definition list",
    "field_list_open": "a field list",
    "front_matter": "front matter",
}
EXPLICIT = re.compile(r"(?P<text>.+?)\s*<(?P<target>[^<>]+)>", re.DOTALL)


@dataclass
class Page:
    """A page that is being translated, and the papers it has cited so far."""

    book: BookIndex
    path: Path
    cited: set[str] = field(default_factory=set)

    @property
    def name(self) -> Path:
        return self.path.relative_to(self.book.root)

    def plain(self, text: str, line: int = 1) -> str:
        """Translate `text`, whose first line is line `line` of the page's source."""
        lines = text.split("\n")
        edits: list[tuple[int, int, list[str]]] = []
        done = 0
        tokens = self.book.parser.parse(text)
        for token in tokens:
            if token.map is None:
                continue
            first, last = token.map
            here = line + first
            if token.type in UNTRANSLATED:
                raise BookError(self.name, here, f"no translation for {UNTRANSLATED[token.type]}")
            if (found := directive(token, self.name, here)) is not None:
                if token.level:
                    raise BookError(self.name, here, "a directive inside a list or a quotation")
                edits.append((first, last, self._directive(found, here).split("\n")))
            elif token.type in {"myst_target", "myst_line_comment"}:
                after = last + 1 if last < len(lines) and not lines[last].strip() else last
                edits.append((first, after if token.type == "myst_line_comment" else last, []))
            elif token.type == "math_block_label":
                block = "\n".join(lines[first:last])
                edits.append((first, last, self._numbered(block, token.info, here).split("\n")))
            elif token.type == "inline" and first >= done:
                # the cells of a table row share their lines: treat the row as one
                done = last
                row = [t for t in tokens if t.type == "inline" and t.map == token.map]
                group = [child for t in row for child in t.children or []]
                before = "\n".join(lines[first:last])
                edits.append((first, last, self._inline(before, group, here).split("\n")))
        for first, last, new in sorted(edits, key=lambda edit: edit[0], reverse=True):
            lines[first:last] = new
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def caption(self, text: str, label: str, line: int) -> str:
        """A figure's caption in italics, with the figure's number if there is one."""
        number = self.book.labels[label].number if label in self.book.labels else ""
        body = " ".join(self.plain(text, line).split())
        lead = f"Figure {number}. " if number else ""
        return f"*{lead}{body}*" if "*" not in body else f"*{lead.strip()}* {body}".strip()

    def _inline(self, text: str, children: list[Token], line: int) -> str:
        """Rewrite the roles and links in some lines, in step with the parser's tokens."""
        position, pieces, links = 0, [], []
        for child in children:
            here = line + text[:position].count("\n")
            new = None
            if child.type in UNTRANSLATED:
                raise BookError(self.name, here, f"no translation for {UNTRANSLATED[child.type]}")
            if child.type == "code_inline":
                pattern = child.markup + r"\s?" + _loosely(child.content) + r"\s?" + child.markup
            elif child.type.startswith("math_inline"):
                pattern = (
                    re.escape(child.markup) + _loosely(child.content) + re.escape(child.markup)
                )
            elif child.type == "myst_role":
                name = child.meta["name"]
                pattern = rf"\{{{re.escape(name)}\}}(`+){_loosely(child.content)}\1"
                new = self._role(name, " ".join(child.content.split()), here)
            elif child.type == "link_open":
                links.append(str(child.attrs["href"]))
                continue
            elif child.type == "link_close":
                href = links.pop()
                if re.match(r"(https?|mailto):", href) or child.info == "auto":
                    continue
                pattern, new = rf"\]\(<?{re.escape(href)}>?", f"]({self._link(href, here)}"
            elif child.type == "image":
                source = str(child.attrs["src"])
                pattern = rf"\]\(<?{re.escape(source)}>?"
                new = f"]({self._image(source, here)}"
            else:
                continue
            match = re.compile(pattern, re.DOTALL).search(text, position)
            if match is None:
                raise BookError(self.name, here, f"cannot find {child.content!r} in the source")
            pieces += [text[position : match.start()], match[0] if new is None else new]
            position = match.end()
        return "".join([*pieces, text[position:]])

    def _numbered(self, block: str, label: str, line: int) -> str:
        """A labelled equation, with its number in place of the label."""
        number = self.book.labels[label].number
        body = re.sub(r"\$\$\s*\([^()]*\)\s*$", "$$", block)
        tag = rf" \tag{{{number}}}" if number else ""
        return re.sub(r"\s*\$\$$", lambda end: tag + end[0], body)

    def _label(self, name: str, kinds: set[str], line: int):
        label = self.book.labels.get(name)
        if label is None or label.kind not in kinds:
            raise BookError(self.name, line, f"nothing in the book is labelled {name}")
        return label

    def _role(self, name: str, content: str, line: int) -> str:
        match = EXPLICIT.fullmatch(content)
        text, target = (match["text"], match["target"]) if match else ("", content)
        if name == "eq":
            label = self._label(target, {"equation"}, line)
            return f"[({label.number})]({label.url})"
        if name == "numref":
            label = self._label(target, {"figure"}, line)
            if not label.number:
                raise BookError(self.name, line, f"{target} has no number")
            words = text.replace("%s", label.number).replace("{number}", label.number)
            return f"[{words or f'Figure {label.number}'}]({label.url})"
        if name == "ref":
            label = self._label(target, {"heading", "figure", "equation"}, line)
            if not (text or label.title):
                raise BookError(self.name, line, f"{{ref}}`{target}` needs its own text")
            return f"[{text or label.title}]({label.url})"
        if name == "doc":
            page = self.book.page(target, self.path)
            if page is None:
                raise BookError(self.name, line, f"there is no page {target}")
            return f"[{text or page.title}]({page.url})"
        if name == "term":
            if target.lower() not in self.book.terms:
                raise BookError(self.name, line, f"the glossary has no {target}")
            return f"[{text or target}]({self.book.terms[target.lower()]})"
        if name in {"cite:p", "cite:t"}:
            return self._citation(name, [key.strip() for key in content.split(",")], line)
        raise BookError(self.name, line, f"no translation for the role {{{name}}}")

    def _citation(self, name: str, keys: list[str], line: int) -> str:
        words = []
        for key in keys:
            if key not in self.book.papers.entries:
                raise BookError(self.name, line, f"references.bib has no {key}")
            self.cited.add(key)
            authors, year, link = self.book.cite(key)
            word = f"{authors}, {year}" if name == "cite:p" else f"{authors} ({year})"
            words.append(f"[{word}]({link})" if link else word)
        return f"({'; '.join(words)})" if name == "cite:p" else ", ".join(words)

    def _link(self, href: str, line: int) -> str:
        if href.startswith("#"):
            return self._label(href[1:], {"heading", "figure", "equation"}, line).url
        page = self.book.page(href.partition("#")[0], self.path)
        if page is None:
            raise BookError(self.name, line, f"{href} leads nowhere")
        return page.url + ("#" + href.partition("#")[2] if "#" in href else "")

    def _image(self, source: str, line: int) -> str:
        if re.match(r"https?:", source) or not (self.path.parent / source).is_file():
            raise BookError(self.name, line, f"there is no image {source} in the book")
        return f"{self.book.config['html']['baseurl'].rstrip('/')}/_images/{Path(source).name}"

    def _directive(self, found: Directive, line: int) -> str:
        name = found.name
        translate: Callable[[Directive, int], str]
        if name in ADMONITIONS or name in {"admonition", "dropdown"}:
            translate = self._admonition
        elif name in {"figure", "image"}:
            translate = self._figure
        elif name == "bibliography":
            translate = self._bibliography
        elif name == "math":
            translate = self._math
        elif name == "explorable":
            translate = self._explorable
        else:
            raise BookError(self.name, line, f"no translation for the directive {{{name}}}")
        return translate(found, line)

    def _admonition(self, found: Directive, line: int) -> str:
        title, text, first = found.name.capitalize(), found.body, found.body_line
        if found.name in {"admonition", "dropdown"}:
            title = self.plain(found.argument, line)
        elif found.argument:
            text, first = f"{found.argument}\n{text}".rstrip(), line
        body = self.plain(text, first)
        quoted = "\n".join(f"> {row}".rstrip() for row in body.split("\n"))
        return f"> **{title}**\n>\n{quoted}"

    def _figure(self, found: Directive, line: int) -> str:
        alt = found.options.get("alt")
        if not alt:
            raise BookError(self.name, line, f"{found.argument} has no alt text")
        picture = f"![{alt}]({self._image(found.argument, line)})"
        if not found.body:
            return picture
        label = found.options.get("name", "")
        return f"{picture}\n\n{self.caption(found.body, label, found.body_line)}"

    def link_to(self, anchor: str) -> str:
        """A line in place of what only the page can show."""
        url = self.book.url(self.path, anchor)
        return f"*What stands here needs the page: [look at it in the book]({url}).*"

    def _explorable(self, found: Directive, line: int) -> str:
        caption = self.plain(found.body, found.body_line)
        return f"{caption}\n\n{self.link_to(f'explorable-{found.argument}')}"

    def _bibliography(self, found: Directive, line: int) -> str:
        return "\n".join(f"- {entry}" for entry in self.book.bibliography(self.cited))

    def _math(self, found: Directive, line: int) -> str:
        label = found.options.get("label")
        number = self.book.labels[label].number if label else ""
        return f"$$\n{found.body}" + (rf" \tag{{{number}}}" if number else "") + "\n$$"


def _loosely(content: str) -> str:
    """A pattern for text that may be wrapped and quoted (`> `) differently."""
    return r"\s+(?:>\s*)*".join(re.escape(word) for word in re.split(r"\s+", content))
