"""HTML that cannot do anything, made in bounded time: the filters that `nbgrader_config.py` names.

They make the feedback pages, and what formgrader shows in its web server. What a student's code or
text displays is framed and labelled; only the grader's own table may have its CSS class.

TRUST BOUNDARY. Everything that comes in is hostile. What goes out contains no script, form, frame,
id, foreign style or remote picture, and its tags are balanced, so that it ends where it should.
Cleaning is linear in what is let in: more tags than `MAX_TAGS`, or tags whose nesting would
multiply, are shown as text. The regular expressions of Markdown and of Pygments are not linear:
each piece and each page has a limit of CPU time; what would take longer is shown as text. No filter
raises.
"""

import html
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

import nh3
from jinja2 import pass_context
from jinja2.runtime import Context
from nbconvert.filters.ansi import ansi2html, strip_ansi
from nbconvert.filters.highlight import Highlight2HTML
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode

from autograder.notebook import pictures
from autograder.notebook.reading import ADDED, exercise_of

MAX_HTML = 1_000_000
MAX_PAGE = 20_000_000
MAX_JUNK = 20_000  # what is shown of HTML that cannot be cleaned
MAX_TAGS = 10_000  # cleaning is quadratic in nesting
MAX_REPEATED = 300_000  # an open <b> may be repeated in each paragraph that follows
MAX_MARKDOWN = 50_000
MAX_CODE = 200_000
MAX_ESCAPES = 1_000  # colours in a terminal's text, quadratic in their number
PIECE_SECONDS = 1.0
PAGE_SECONDS = 3.0

Attachments = Mapping[str, Mapping[str, str]]

# --- Bounded time ---------------------------------------------------------------------------------


class _TooSlow(BaseException):
    """A piece has used up its time. No library's `except Exception` catches this."""


class _Budget:
    """What the pieces of one page may use: CPU time, characters, and characters of pictures."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.left, self.room, self.pictures = PAGE_SECONDS, MAX_PAGE, pictures.MAX_PICTURES

    def picture(self, data: str) -> str | None:
        """A picture, if there is room for it: one may be used a thousand times."""
        if len(data) > self.pictures:
            return None
        self.pictures -= len(data)
        return data

    def limit(self, make: Callable[[], str | None], *, interrupt: bool = True) -> str | None:
        """The result of `make`; None if it fails or takes too long.

        Only the main thread can be interrupted; in others, only the page's total is limited.
        """
        if self.left <= 0:
            return None
        started = time.process_time()
        alarm = interrupt and threading.current_thread() is threading.main_thread()
        try:
            if alarm:
                signal.signal(signal.SIGVTALRM, _late)
                signal.setitimer(signal.ITIMER_VIRTUAL, min(PIECE_SECONDS, self.left))
            try:
                made = make()
            finally:
                if alarm:
                    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            if made is None or len(made) > self.room:
                return None
            self.room -= len(made)
            return made
        except (_TooSlow, Exception):  # despite a library's error, the text is shown
            return None
        finally:
            self.left -= time.process_time() - started


def _late(*_: object) -> None:
    raise _TooSlow


_page = _Budget()


def new_page() -> None:
    """Renew the budget: what comes now is another page, or another student's."""
    _page.renew()


class NewPage(Preprocessor):
    """nbconvert runs it before each page, to renew the page's budget."""

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        new_page()
        return nb, resources


# --- The filters ----------------------------------------------------------------------------------

BY_CODE = "Displayed by this cell's code, not by the grader"
BY_STUDENT = "Written by the student"
AS_TEXT = "Too long or too complex to be shown except as text:"
NO_PICTURE = "a picture that cannot be shown"


@pass_context
def show_html(context: Context, element: object) -> str:
    """The filter `clean_html`: the grader's own table as it is, all else framed and labelled."""
    text = element.decode("utf-8", "replace") if isinstance(element, bytes) else str(element)
    cell: Any = context.get("cell") or {}
    if cell and exercise_of(cell):  # its outputs are the grader's
        return clean_html(text, ours=True)
    cleaned = clean_html(text)
    return _frame(cleaned, BY_CODE if cell.get("cell_type") == "code" else BY_STUDENT)


@pass_context
def show_markdown(context: Context, source: str) -> str:
    """The filter `markdown2html`: with the cell's pictures, framed if a student added the cell."""
    cell: Any = context.get("cell") or {}
    if cell.get("cell_type") != "markdown" or source != cell.get("source"):
        return clean_markdown(source)
    cleaned = clean_markdown(source, cell.get("attachments"))
    return _frame(cleaned, BY_STUDENT) if cell.get("id", "").startswith(ADDED) else cleaned


def highlight_code(source: str, language: str | None = None, metadata: dict | None = None) -> str:
    language = language or (metadata or {}).get("magics_language")
    made = None
    if len(source) <= MAX_CODE:
        made = _page.limit(lambda: _colour(source, language))
    return as_text(source) if made is None else made


def show_terminal(text: str) -> str:
    """The filter `ansi2html`: a terminal's text with its colours."""
    return ansi2html(text if text.count("\x1b") <= MAX_ESCAPES else strip_ansi(text))


def leave_unchanged(text: str) -> str:
    """Replaces `strip_files_prefix`, which is quadratic in the length of a line."""
    return text


@lru_cache(maxsize=1024)  # most cells are the release's: coloured once for all students
def _colour(source: str, language: str | None) -> str:
    return Highlight2HTML(pygments_lexer="ipython3")(source, language)


def _frame(inner: str, by: str) -> str:
    style = "border:1px dashed #767676;padding:.2em .6em"
    label = f'<div style="color:#595959;font-size:.8em">{by}</div>'
    return f'<div class="abh-theirs" style="{style}">{label}{inner}</div>'


def as_text(text: str, attachments: Attachments | None = None) -> str:
    """Any text in readable form, with the pictures that belong to it."""
    shown = f"<p><em>{AS_TEXT}</em></p><pre>{html.escape(text)}</pre>"
    for name, bundle in (attachments or {}).items():
        for kind, data in bundle.items():
            if source := _page.picture(f"data:{kind};base64,{data}"):
                shown += f'<img alt="{html.escape(name)}" src="{html.escape(source)}">'
    return shown


# --- Markdown -------------------------------------------------------------------------------------


class _Renderer(IPythonRenderer):
    """nbconvert's, but pictures are left to `clean_html`, where a missing one is no error."""

    def _embed_image_or_attachment(self, src: str) -> str:
        return src


def clean_markdown(source: str, attachments: Attachments | None = None) -> str:
    """Markdown as HTML that cannot do anything."""
    made = None
    if len(source) <= MAX_MARKDOWN:
        made = _page.limit(lambda: _render(source))
    return as_text(source, attachments) if made is None else clean_html(made, attachments)


@lru_cache(maxsize=512)  # most of it is the release's, the same for all students
def _render(source: str) -> str:
    renderer = _Renderer(escape=False, exclude_anchor_links=True)
    return MarkdownWithMath(renderer=renderer).render(source)


# --- HTML -----------------------------------------------------------------------------------------

TAGS = frozenset(
    re.findall(
        r"\w+",
        "a abbr b blockquote br caption code dd del div dl dt em figcaption figure font "
        "h1 h2 h3 h4 h5 h6 hr i img li mark ol p pre s small span strong sub sup "
        "table tbody td tfoot th thead tr tt u ul",
    )
)
ATTRIBUTES = {
    "*": {"class", "style", "scope", "role", "aria-label", "title"},
    "a": {"href"},
    "img": {"src", "alt"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
}
OURS = {"abh-check", "tex2jax_ignore", "mathjax_ignore"}  # the classes of a verdict's table
_CLASSES = re.compile(r"highlight|[a-z]{1,2}[0-9a-z]?")  # those of Pygments
_LENGTH = (
    r"(?:\d{0,2}(?:\.\d{1,3})?(?:px|pt)|\d?(?:\.\d{1,3})?r?em|0)"  # no content far from its frame
)
_COLOUR = r"(?:#?\w{1,30}|rgba?\([\d.,%\s]{1,40}\))"
_STYLE = re.compile(
    rf"(?:(?:background-)?color\s*:\s*{_COLOUR}"
    rf"|border-left\s*:\s*{_LENGTH}\s+\w{{1,10}}\s+{_COLOUR}"
    rf"|padding\s*:\s*{_LENGTH}(?:\s+{_LENGTH}){{0,3}}"
    r"|(?:font-style|font-weight|text-align|vertical-align|white-space)\s*:\s*[-\w]{1,20})"
)
_BRACKETS = str.maketrans("<>", "‹›")  # what begins with < in clean HTML is a tag
_LINK = re.compile(r"(?:https?://|mailto:|#)", re.IGNORECASE)
_IMAGE = re.compile(r'<img((?:[^<>"]|"[^"]*")*+)>')  # as the cleaner writes it
_FORMATTING = re.compile(
    r"<(?:a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\b", re.IGNORECASE
)


def clean_html(text: str, attachments: Attachments | None = None, *, ours: bool = False) -> str:
    """HTML without scripts, forms, frames, ids, foreign styles and remote pictures.

    `ours` marks the grader's own, which alone may have the class `abh-check`.
    """
    if ours:  # small, and not charged to the page
        return _cleaned_once(text, True) or ""
    once = not attachments and len(text) <= MAX_MARKDOWN
    made = _page.limit(
        lambda: _cleaned_once(text, False) if once else _clean(text, attachments or {}, False),
        interrupt=False,  # what an attribute filter raises is swallowed
    )
    return as_text(text[:MAX_JUNK], attachments) if made is None else made


def _clean(text: str, attachments: Attachments, ours: bool) -> str | None:
    """The same, or None if it would take too long."""
    tags = text.count("<")
    repeated = tags * len(_FORMATTING.findall(text))
    if len(text) > MAX_HTML or tags > MAX_TAGS or repeated > MAX_REPEATED:
        return None

    def attribute(tag: str, name: str, value: str) -> str | None:
        try:
            return _attribute(name, value.translate(_BRACKETS), attachments, ours)
        except Exception:  # noqa: BLE001  (on an exception, the cleaner would keep the value)
            return None

    cleaned = nh3.clean(
        text,
        tags=set(TAGS),
        attributes=ATTRIBUTES,
        attribute_filter=attribute,
        url_schemes={"http", "https", "mailto", "data", "attachment"},
    )
    return _IMAGE.sub(_shown_picture, cleaned)


@lru_cache(maxsize=512)  # right answers have the same table
def _cleaned_once(text: str, ours: bool) -> str | None:
    return _clean(text, {}, ours)


def _attribute(name: str, value: str, attachments: Attachments, ours: bool) -> str | None:
    """The value that an attribute may have; None to drop it."""
    if name == "class":
        known = [w for w in value.split() if _CLASSES.fullmatch(w) or (ours and w in OURS)]
        return " ".join(known) or None
    if name == "style":
        parts = (part.strip() for part in value.split(";")[:20])
        return ";".join(part for part in parts if _STYLE.fullmatch(part)) or None
    if name == "src":
        return _picture(value, attachments)
    if name == "href":
        return value if _LINK.match(value) else None
    if name in ("colspan", "rowspan"):
        return value if re.fullmatch(r"[0-9]{1,3}", value) else None
    return value


def _picture(source: str, attachments: Attachments) -> str | None:
    """A picture as a `data:` URL; None if it is remote, missing, or not a picture."""
    if source.startswith("attachment:"):
        name = source.removeprefix("attachment:")
        bundle = attachments.get(name) or attachments.get(unquote(name, errors="replace")) or {}
        address = next((f"data:{kind};base64,{data}" for kind, data in bundle.items()), None)
        return address and _page.picture(address)
    head, comma, data = source.partition(",")
    if re.fullmatch(r"data:image/(?:png|jpeg|jpg|gif);base64", head) and comma:
        found = pictures.picture(data)
        return f"data:{found[0]};base64,{found[1]}" if found else None
    return None


def _shown_picture(found: re.Match[str]) -> str:
    """A picture, or a note that replaces it."""
    if ' src="' in found[1]:
        return found[0]
    alt = re.search(r' alt="([^"]{1,200})', found[1])
    name = f": {html.escape(html.unescape(alt[1]), quote=False)}" if alt else ""
    return f"<em>[{NO_PICTURE}{name}]</em>"
