"""A verdict as a table, in HTML and in plain text."""

import re
from collections.abc import Sequence
from html import escape as escaped
from textwrap import fill

from autograder.engine.verdict import CORRECT, POLICY, AspectVerdict, Verdict

_GREEN, _RED = "#1a7f37", "#c4311b"  # white on them, or they on white: at least 4.5 : 1
_CELL = "text-align:left;vertical-align:top;padding:.15em .8em .15em 0"
# What an answer says is not typeset as a formula, by MathJax 2 (nbconvert) or 3 (JupyterLab).
_CLASSES = "abh-check tex2jax_ignore mathjax_ignore"
_BAR = "border-left:.3em solid {};padding:.1em 0 .1em .8em"


def _html(text: str) -> str:
    """Escaped, with `names` between backticks as code."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escaped(text))


def number(value: float) -> str:
    """A number of points without trailing zeros."""
    return f"{round(value, 2):g}"


def headline(verdict: Verdict) -> str:
    """`softmax: 2.25 of 3 points`, or that the points are withheld."""
    score = "withheld" if verdict.verdict == POLICY else number(verdict.score)
    return f"{verdict.exercise}: {score} of {number(verdict.points)} points"


def _precision(aspect: AspectVerdict) -> str:
    if not aspect.judged or aspect.error is None or aspect.tolerance is None:
        return ""
    return f"error {_rough(aspect.error)}, tolerance {_rough(aspect.tolerance)}"


def _rough(value: float) -> str:
    """A number to one digit: 3000, 0.2, 1e-09."""
    return f"{float(f'{value:.1g}'):g}"


def table_text(verdict: Verdict, advice: str | None = None) -> str:
    """The verdict for a terminal: one line per aspect, and below a failed one what is wrong.

    `advice` is shown first.
    """
    lines = [headline(verdict)]
    if advice:
        lines += _indented(advice, "  ")
    if verdict.remark:
        lines += _indented(verdict.remark, "  ")
    if verdict.cause:
        lines += _indented("This is a known mistake: " + verdict.cause, "  ")
    for text in filter(None, (verdict.besides, verdict.guess)):
        lines += _indented(text, "  ")
    if verdict.pointer:
        lines += ["  Where to look (a hint):"]
        lines += ["      " + line for line in verdict.pointer.splitlines()]
    if verdict.note:
        return "\n".join([*lines, *_indented(verdict.note, "  ")])
    width = max(len(a.title) for a in verdict.aspects)
    for aspect, reasons in zip(verdict.aspects, _all_reasons(verdict), strict=True):
        mark = "✓" if aspect.passed else "✗" if aspect.judged else "–"
        row = f"  {mark} {aspect.title:<{width}}  {number(aspect.points):>4}  {_precision(aspect)}"
        lines.append(row.rstrip())
        for text in reasons:
            lines += _indented(text, "      ")
    return "\n".join(lines)


_OF_ITS_OWN = ("nan", "missing", "dtype", "shape")  # kinds of failure with causes of their own
_HINTS = 3  # rows whose hints are shown while the first one fails


def _all_reasons(verdict: Verdict) -> list[list[str]]:
    """For each aspect what is wrong and the hint, each told once: then it points to that row."""
    told: dict[str, str] = {}
    return [_reasons(aspect, _fits(verdict, i), told) for i, aspect in enumerate(verdict.aspects)]


def _fits(verdict: Verdict, row: int) -> bool:
    """Whether the hint of a row is likely to help.

    The cause of a known mistake says more than the hints and replaces them. If the first aspect
    fails, most others fail for the same reason: then it is the hints of the first rows that help,
    and of those that fail in another way than all before them.
    """
    if verdict.cause is not None:
        return False
    aspect, before = verdict.aspects[row], verdict.aspects[:row]
    if row == 0 or before[0].passed:
        return True
    if aspect.kind in _OF_ITS_OWN:
        return all(other.passed or other.kind != aspect.kind for other in before)
    return aspect.kind == "value" and row < _HINTS


def _reasons(aspect: AspectVerdict, with_hint: bool, told: dict[str, str]) -> list[str]:
    if aspect.passed:
        return []
    wrong = aspect.message or ""
    raised = wrong.removesuffix(f" ({aspect.call})") if aspect.kind == "raised" else wrong
    texts = {raised: wrong, aspect.hint if with_hint and aspect.hint else "": aspect.hint}
    new = [text for key, text in texts.items() if key and key not in told]
    known = told.get(raised)
    told |= {key: aspect.title for key in texts if key not in told}
    return new or ([f"as under “{known}”"] if aspect.judged else [])


def _indented(text: str, by: str) -> list[str]:
    return [
        fill(line, 88, initial_indent=by, subsequent_indent=by, break_long_words=False)
        for line in text.splitlines()
    ]


def table_html(verdict: Verdict, advice: str | None = None) -> str:
    """The verdict for a notebook or a page. All text from outside is escaped.

    `advice` is shown first.
    """
    colour = _GREEN if verdict.verdict == CORRECT else _RED
    parts = [f"<p><strong>{_html(headline(verdict))}</strong></p>"]
    if advice:
        parts.append(f"<p><strong>{_html(advice)}</strong></p>")
    if verdict.remark:
        parts.append(f"<p>{_html(verdict.remark)}</p>")
    if verdict.cause:
        parts.append(f"<p><strong>A known mistake.</strong> {_html(verdict.cause)}</p>")
    for text in filter(None, (verdict.besides, verdict.guess)):
        parts.append(f"<p>{_html(text)}</p>")
    if verdict.pointer:
        parts.append(_pointer_html(verdict.pointer))
    if verdict.note:
        parts.append(f"<p>{_html(verdict.note)}</p>")
    else:
        pairs = zip(verdict.aspects, _all_reasons(verdict), strict=True)
        rows = "".join(_row(aspect, reasons) for aspect, reasons in pairs)
        head = "".join(f'<th scope="col" style="{_CELL}">{t}</th>' for t in _COLUMNS)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    style = _BAR.format(colour)
    return f'<div class="{_CLASSES}" style="{style}">{"".join(parts)}</div>'


def _pointer_html(pointer: str) -> str:
    """Where to look: a hint, in which the answer may have said anything."""
    told = [
        '<p><em title="made where your code ran; no mark depends on it">'
        "Where to look (a hint).</em> "
    ]
    is_code = False
    for line in pointer.splitlines():
        code = line.startswith("    ")
        if code != is_code:
            told.append(f'</p><pre style="{_CODE}">' if code else "</pre><p>")
        told.append(escaped(line[4:]) + "\n" if code else _html(line) + " ")
        is_code = code
    return "".join([*told, "</pre>" if is_code else "</p>"])


# A notebook's page may set code in the letters of its prose, and carets must stand below theirs.
_CODE = (
    "margin:.2em 0 .6em 1em;line-height:1.2;overflow-x:auto;background:none;border:0;padding:0;"
    "font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;white-space:pre"
)
_WITH_HYPHEN = re.compile(r"(?<![\d.])\d[\d.]*+e-\d+")  # a browser would break the line there
_COLUMNS = ("", "What is checked", "Points", "What came out")


# On a ground of their own, so that they can be read in a dark notebook, too.
_BADGE = "color:#fff;background-color:{};padding:0 .25em"


def _row(aspect: AspectVerdict, reasons: Sequence[str]) -> str:
    mark, word = ("✓", "passes") if aspect.passed else ("✗", "fails")
    style = _BADGE.format(_GREEN if aspect.passed else _RED)
    if not aspect.passed and not aspect.judged:
        mark, style, word = "–", "color:inherit", "not checked yet"
    texts = [_html(text) for text in reasons]
    if texts and aspect.hint == reasons[-1]:
        texts[-1] = f"<em>Hint.</em> {texts[-1]}"
    precision = _precision(aspect)
    texts += [_WITH_HYPHEN.sub(r'<span style="white-space:nowrap">\g<0></span>', precision)]
    cells = (
        f'<b role="img" aria-label="{word}" style="{style}">{mark}</b>',
        _html(aspect.title),
        number(aspect.points),
        "<br>".join(filter(None, texts)),
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"
