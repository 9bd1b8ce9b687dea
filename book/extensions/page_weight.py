"""Finished pages made light: one style sheet with the rules that pages use, nothing that blocks.

The theme links a dozen style sheets of which a page uses a tenth, loads the search's scripts and
index on every page, and runs its scripts before the text shows. Here each page gets one style
sheet, deferred scripts, lazily loaded pictures and a description, and loses the roles that
accessibility checkers reject. Code gets one `span` per change of colour instead of one per token;
those were two thirds of a chapter's elements.
"""

import hashlib
import html
import os
import re
from functools import cache
from itertools import islice
from pathlib import Path

import tinycss2
from page_fixes import GLUED
from panels import panels, view
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

SHEET = re.compile(r"[ \t]*<link\b(?=[^>]*rel=\"stylesheet\")[^>]*>\n?")
ADDRESS = re.compile(r'\bhref="([^"?]+)')
MADE_FROM = re.compile(r'\bdata-from="([^"]*)"')
PRELOAD = re.compile(r'[ \t]*<link rel="preload"(?![^>]*source-sans-3)[^>]*>\n?')
SCRIPT = re.compile(r'<script src="([^"?]+)([^"]*)"></script>')
SEARCH = re.compile(
    r'[ \t]*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>\n?'
)
OPTIONS = "documentation_options.js"
# The theme sets its colours after all is painted, so all is painted twice; this sets them first.
COLOURS_FIRST = (
    "{const root = document.documentElement.dataset; if (!['light', 'dark'].includes(root.mode))"
    " root.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'}"
)
# book.css leaves out far sections; before the browser looks for the target of a link, all of them
# must have their true height
WHOLE = (
    "{const whole = () => {document.documentElement.dataset.whole = ''};"
    " if (location.hash) whole();"
    " addEventListener('click', (e) => {if (e.target.closest('a[href*=\"#\"]')) whole()}, true)}"
)
CAPTION = re.compile(r"\s*(?:</a>)?\s*<figcaption>(.*?)</figcaption>", re.DOTALL)
SIDES = re.compile(r"\b(?:left|right)\b", re.IGNORECASE)
IMAGE = re.compile(r'<img\b([^>]*?)src="([^"]+\.svg)"([^>]*?)/?>')
WIDE = 624  # CSS pixels: a wider picture is taken apart on a phone, to stay legible
PHONE = 520  # CSS pixels: what a phone shows at the smallest scale at which letters are legible
SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt"[^>]*?', re.DOTALL)
HEIGHT = re.compile(r'<svg\b[^>]*?\bheight="([\d.]+)pt"', re.DOTALL)
REFUSED_ROLES = re.compile(r' role="(?:doc-biblioentry|doc-backlink)"|(?<=<div) role="list"')
# an accessible name must contain the visible text
MISNAMED = re.compile(
    r"(<summary|<button(?=[^>]*search-button-field)[^>]*?)"
    r' aria-label="(?:Toggle hidden content|Search)"'
)
# Whatever may scroll can be reached with Tab. The theme's script undoes that for what does not
# scroll, and lays out the whole page to find out. Here it looks only at what is laid out anyway.
STOP = 'tabindex="0"'
THEME = "scripts/pydata-sphinx-theme.js"
ALL_STOPS = ".forEach(e=>{e.tabIndex=e.scrollWidth>"
NEAR_STOPS = (
    ".forEach(e=>{if(!e.checkVisibility?.({contentVisibilityAuto:!0}))return;"
    "e.tabIndex=e.scrollWidth>"
)
WHEN = 'window.addEventListener("resize",t),new MutationObserver'
WHEN_NEAR = (
    'window.addEventListener("resize",t),'
    'document.addEventListener("contentvisibilityautostatechange",t),new MutationObserver'
)
ROW_HEADER = '<th scope="col"><span class="visually-hidden">row</span></th>'
EMPTY_HEADER = re.compile(r"<th\b[^>]*>(?:\s*<p>\s*</p>)?\s*</th>")
TOOLTIP = re.compile(r' data-bs-(?:placement="bottom"|toggle="tooltip")')
CODE = re.compile(r'<div class="highlight"><pre(?: tabindex="0")?>(.*?)(?=</pre>)', re.DOTALL)
TABLE = re.compile(r'(<div class="pst-scrollable-table-container")>')
PIECE = re.compile(r'<span class="(\w+)">([^<]*)</span>|<span></span>|([^<]+)')
COLOURS = re.compile(r"\.highlight ?(?:\.(\w+) )?\{([^}]*)\}")
COLOUR = re.compile(r"(?<!-)color: *(#\w+)")
ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
NO_TEXT = re.compile(r"<(math|script|style)\b.*?</\1>|<[^>]+>", re.DOTALL)
WORDS = re.compile(r"[A-Za-z_][\w-]*")
ATTRIBUTE = re.compile(r'\b(?:class|id)="([^"]*)"')
TAG = re.compile(r"<([a-zA-Z][\w-]*)")
DESCRIPTION = 155

Looks = dict[str, tuple[str, ...]]


# --- style sheets -------------------------------------------------------------------------------


def purge(css: str, used: frozenset[str], tags: frozenset[str], folder: Path, root: Path) -> str:
    """The rules of a style sheet that could match something, addresses made relative to `root`.

    `used` holds every class, id and word of a script; a selector that names another can match
    nothing. Imported sheets are put in their places.
    """
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return "\n".join(filter(None, (_rule(rule, used, tags, folder, root) for rule in rules)))


def _rule(rule, used: frozenset[str], tags: frozenset[str], folder: Path, root: Path) -> str:
    if rule.type == "qualified-rule":
        selectors = [s for s in _split(rule.prelude) if _may_match(s, used, tags)]
        if not selectors:
            return ""
        heads = ",".join(tinycss2.serialize(s).strip() for s in selectors)
        return f"{heads}{{{_body(rule.content, folder, root)}}}"
    if rule.type != "at-rule":
        return ""
    name = rule.lower_at_keyword
    if name == "charset":
        return ""
    if name == "import":
        path = folder / next(t.value for t in rule.prelude if t.type in ("string", "url"))
        return purge(path.read_text(encoding="utf-8"), used, tags, path.parent, root)
    if rule.content is None:
        return rule.serialize()
    prelude = tinycss2.serialize(rule.prelude).strip()
    if name in ("media", "supports", "layer", "container"):
        inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        kept = [_rule(part, used, tags, folder, root) for part in inner]
        body = "\n".join(filter(None, kept))
        return f"@{name} {prelude}{{{body}}}" if body else ""
    body = _body(rule.content, folder, root)
    if name == "font-face" and "vendor/fontawesome" in body:
        return ""  # book.css has the few icons that pages show
    return f"@{name} {prelude}{{{body}}}"


def _split(prelude: list) -> list[list]:
    selectors: list[list] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            selectors.append([])
        else:
            selectors[-1].append(token)
    return selectors


def _may_match(selector: list, used: frozenset[str], tags: frozenset[str]) -> bool:
    before = ""
    for token in selector:
        if token.type == "ident":
            known = used if before == "." else tags
            name = token.value if before == "." else token.lower_value
            if before not in (":", "::", "|") and name not in known:
                return False
        elif token.type == "hash" and token.value not in used:
            return False
        elif _is_choice(token, before):
            return any(_may_match(part, used, tags) for part in _split(token.arguments))
        before = token.value if token.type == "literal" else ""
    return True


def _is_choice(token: tinycss2.ast.Node, before: str) -> bool:
    return token.type == "function" and before == ":" and token.lower_name in ("is", "where")


def _body(tokens: list, folder: Path, root: Path) -> str:
    text = tinycss2.serialize([t for t in tokens if t.type != "comment"]).strip()
    text = re.sub(r"\s+", " ", text)
    return re.sub(
        r"""url\((["']?)(?!data:|#)([^"')]+)\1\)""", lambda m: _move_url(m, folder, root), text
    )


def _move_url(match: re.Match, folder: Path, root: Path) -> str:
    target = (folder / match[2]).resolve()
    try:
        return f'url("{target.relative_to(root.resolve()).as_posix()}")'
    except ValueError:
        return match[0]


# --- code ---------------------------------------------------------------------------------------


def palette(css: str) -> Looks:
    """How each of Pygments' classes looks, theme by theme; "" is code that has no class."""
    looks: dict[str, dict[str, None]] = {}
    for name, body in COLOURS.findall(css):
        look = body.strip() if name else "".join(f"color: {c}" for c in COLOUR.findall(body))
        looks.setdefault(name, {})[look] = None
    return {name: tuple(found) for name, found in looks.items()}


def merge_spans(code: str, looks: Looks) -> str:
    """Highlighted code in which neighbours that look the same share a `span`."""
    pieces = list(PIECE.finditer(code))
    if "" not in looks or sum(len(piece[0]) for piece in pieces) != len(code):
        return code  # there is something else in it
    runs: list[tuple[str, str]] = []
    for piece in pieces:
        name, text = piece[1] or "", piece[2] or piece[3] or ""
        if looks.get(name, looks[""]) == looks[""]:
            name = ""
        if runs and (not text.strip() or looks.get(name) == looks.get(runs[-1][0])):
            runs[-1] = (runs[-1][0], runs[-1][1] + text)
        elif text:
            runs.append((name, text))
    return "".join(f'<span class="{name}">{text}</span>' if name else text for name, text in runs)


# --- pages --------------------------------------------------------------------------------------


def light(
    page: str,
    sheet: str,
    options: str,
    looks: Looks,
    pictures: Path,
) -> str:
    """A page with one style sheet, deferred scripts, and pictures that load when they come near."""
    found = SHEET.search(page)
    if found is not None:
        rest = SHEET.sub("", page[found.end() :])
        page = f"{page[: found.start()]}    {sheet}\n{rest}"
    page = PRELOAD.sub("", page)
    page = SEARCH.sub("", page)  # search.js takes their place
    page = SCRIPT.sub(lambda m: _script(m, options), page)
    page = REFUSED_ROLES.sub("", page)
    page = EMPTY_HEADER.sub(ROW_HEADER, MISNAMED.sub(r"\1", page))
    page = TOOLTIP.sub("", page).replace(" data-bs-title=", " title=")
    page = IMAGE.sub(lambda m: _image(m, pictures), page)
    page = CODE.sub(
        lambda m: f'<div class="highlight"><pre {STOP}>{merge_spans(m[1], looks)}', page
    )
    page = TABLE.sub(rf"\1 {STOP}>", page)
    if 'name="description"' not in page and (about := describe(page)):
        meta = f'<meta name="description" content="{html.escape(about)}" />'
        page = page.replace("</title>", f"</title>\n    {meta}", 1)
    return page


def _script(match: re.Match, options: str) -> str:
    if match[1].endswith(OPTIONS):  # the page's own lines below need it at once
        return f"<script>{options} {COLOURS_FIRST} {WHOLE}</script>"
    return f'<script defer src="{match[1]}{match[2]}"></script>'


def _image(match: re.Match, pictures: Path) -> str:
    before, address, after = match.groups()
    if "loading=" in before + after:
        return match[0]
    size = _size(pictures / Path(address).name)
    room = (
        f' width="{size[0]}" height="{size[1]}"' if size and "width=" not in before + after else ""
    )
    image = f'<img{before}src="{address}"{after.rstrip()}{room} loading="lazy" decoding="async" />'
    kind = "picture"
    if size and size[0] > WIDE:
        caption = CAPTION.match(match.string, match.end())
        parts = _parts(address, pictures, size, caption[1] if caption else "")
        kind, image = "picture panels" if parts else kind, image + parts
    return f'<a class="{kind}" href="{address}">{image}</a>'  # alone, as large as you like


def _parts(address: str, pictures: Path, size: tuple[int, int], caption: str) -> str:
    """The panels of a wide figure, for phones, each under its name in the caption."""
    parts = panels(pictures / Path(address).name, PHONE * 3 / 4)
    columns = sum(part.held for part in parts)
    if len(parts) < 2:
        return ""
    names = iter([] if columns != 3 else ["left", "middle", "right"])
    if "middle" not in caption.lower() and len(parts) == 2:
        names, parts = iter(["left", "right"]), [part._replace(held=1) for part in parts]
    shown = ""
    for part in parts:
        side = ", ".join(islice(names, part.held)) if SIDES.search(caption) else ""
        shown += f'<span class="panel" data-side="{side}">{view(part, address, size)}</span>'
    return shown


@cache
def _size(path: Path) -> tuple[int, int] | None:
    """Width and height of an SVG in CSS pixels."""
    if not path.is_file():
        return None
    head = path.read_text(encoding="utf-8")[:3000]
    width, height = SIZE.search(head), HEIGHT.search(head)
    if width is None or height is None:
        return None
    return round(float(width[1]) * 4 / 3), round(float(height[1]) * 4 / 3)


def describe(page: str) -> str:
    """The first sentences of a page's text, or its title: for search engines and previews."""
    article = ARTICLE.search(page)
    for paragraph in PARAGRAPH.findall(article[0] if article else ""):
        text = " ".join(html.unescape(NO_TEXT.sub("", paragraph)).split())
        if len(text) > 40:
            if len(text) <= DESCRIPTION:
                return text
            return text[:DESCRIPTION].rsplit(" ", 1)[0].rstrip(" ,;:") + " …"
    title = TITLE.search(page)
    return html.unescape(title[1]) if title else ""


def finish(app: Sphinx, error: Exception | None) -> None:
    """Make all pages light; runs when our assets are in place and other hosts are out."""
    if error is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    static = output / "_static"
    pages = {
        p: p.read_text(encoding="utf-8") for p in output.rglob("*.html") if static not in p.parents
    }
    words = {GLUED}  # page_fixes puts it in later
    tags: set[str] = {"html", "body", "*"}
    for page in pages.values():
        for value in ATTRIBUTE.findall(page):
            words.update(value.split())
        tags.update(tag.lower() for tag in TAG.findall(page))
    for script in [*static.rglob("*.js"), *output.glob("*.js")]:
        if script.name not in ("searchindex.js", "fontawesome.js", "bootstrap.js"):
            found = WORDS.findall(script.read_text(encoding="utf-8"))
            words.update(found)
            tags.update(found)
    used, known = frozenset(words), frozenset(tags)
    _spare(static / THEME)
    looks = palette((static / "pygments.css").read_text(encoding="utf-8"))
    stale = set(static.glob("pages.*.css"))
    for path, page in pages.items():
        files = _sheets(page, path.parent, static)
        if not files:
            continue
        made = static / _combine(files, used, known, static)
        stale.discard(made)
        up = "../" * len(path.relative_to(output).parent.parts)
        origin = " ".join(os.path.relpath(file, static) for file in files)
        sheet = f'<link rel="stylesheet" href="{up}_static/{made.name}" data-from="{origin}" />'
        options = " ".join((static / OPTIONS).read_text(encoding="utf-8").split())
        done = light(page, sheet, options, looks, output / "_images")
        if done != page:
            path.write_text(done, encoding="utf-8")
    for sheet in stale:
        sheet.unlink()
    _combine.cache_clear()
    _size.cache_clear()


def _spare(script: Path) -> None:
    """Let the theme's script look only at what is near.

    Raises `ExtensionError` if the script is not the one for which these replacements were written:
    after a new release of the theme, somebody has to look at what it does now.
    """
    text = script.read_text(encoding="utf-8")
    if NEAR_STOPS in text:
        return
    for old, new in ((ALL_STOPS, NEAR_STOPS), (WHEN, WHEN_NEAR)):
        if text.count(old) != 1:
            raise ExtensionError(
                f"{script.name} has changed: page_weight.py expected this text once, found it "
                f"{text.count(old)} times: {old}"
            )
        text = text.replace(old, new)
    script.write_text(text, encoding="utf-8")


def _sheets(page: str, folder: Path, static: Path) -> tuple[Path, ...]:
    """The style sheets of a page, or those that its one sheet was made from in an earlier build."""
    files: list[Path] = []
    for link in SHEET.findall(page):
        if made := MADE_FROM.search(link):
            files += [(static / name).resolve() for name in made[1].split()]
        elif address := ADDRESS.search(link):
            files.append((folder / address[1]).resolve())
    return tuple(dict.fromkeys(file for file in files if file.is_file()))


@cache
def _combine(
    files: tuple[Path, ...], used: frozenset[str], tags: frozenset[str], static: Path
) -> str:
    parts = [purge(f.read_text(encoding="utf-8"), used, tags, f.parent, static) for f in files]
    css = "\n".join(parts)
    name = f"pages.{hashlib.sha256(css.encode()).hexdigest()[:12]}.css"
    (static / name).write_text(css, encoding="utf-8")
    return name


def setup(app: Sphinx) -> dict:
    app.connect("build-finished", finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
