"""A verdict as a table, in HTML and in plain text."""

import re
from html import escape as escaped
from textwrap import fill

from autograder.engine.verdict import CORRECT, POLICY, AspectVerdict, Verdict

_GREEN, _RED = "#1a7f37", "#c4311b"  # both at least 4.5 : 1 on white
_CELL = "text-align:left;vertical-align:top;padding:.15em .8em .15em 0"
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
    return f"error {aspect.error:.1g}, tolerance {aspect.tolerance:.1g}"


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
    if verdict.note:
        return "\n".join([*lines, *_indented(verdict.note, "  ")])
    width = max(len(a.title) for a in verdict.aspects)
    told: set[str] = set()
    for aspect in verdict.aspects:
        mark = "✓" if aspect.passed else "✗" if aspect.judged else "–"
        row = f"  {mark} {aspect.title:<{width}}  {number(aspect.points):>4}  {_precision(aspect)}"
        lines.append(row.rstrip())
        for text in _reasons(verdict, aspect, told):
            lines += _indented(text, "      ")
    return "\n".join(lines)


def _reasons(verdict: Verdict, aspect: AspectVerdict, told: set[str]) -> list[str]:
    """What is wrong and the hint, leaving out what an earlier aspect has said already.

    The cause of a known mistake says more than the hints and replaces them. If the first aspect
    fails, only its own hint is shown: the others most likely fail for the same reason.
    """
    if aspect.passed:
        return []
    first = verdict.aspects[0]
    hint = aspect.hint if verdict.cause is None and (first.passed or aspect is first) else None
    new = [text for text in (aspect.message, hint) if text and text not in told]
    told.update(new)
    return new or ["as above"]


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
    if verdict.note:
        parts.append(f"<p>{_html(verdict.note)}</p>")
    else:
        told: set[str] = set()
        rows = "".join(_row(verdict, aspect, told) for aspect in verdict.aspects)
        head = "".join(f'<th scope="col" style="{_CELL}">{t}</th>' for t in _COLUMNS)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    style = _BAR.format(colour)
    return f'<div class="abh-check" style="{style}">{"".join(parts)}</div>'


_WITH_HYPHEN = re.compile(r"\d[\d.]*e-\d+")  # a browser would break the line there
_COLUMNS = ("", "What is checked", "Points", "What came out")


def _row(verdict: Verdict, aspect: AspectVerdict, told: set[str]) -> str:
    mark, colour, word = ("✓", _GREEN, "holds") if aspect.passed else ("✗", _RED, "fails")
    if not aspect.passed and not aspect.judged:
        mark, colour, word = "–", "inherit", "not judged yet"
    reasons = _reasons(verdict, aspect, told)
    texts = [_html(text) for text in reasons]
    if texts and aspect.hint == reasons[-1]:
        texts[-1] = f"<em>Hint.</em> {texts[-1]}"
    precision = _precision(aspect)
    texts += [_WITH_HYPHEN.sub(r'<span style="white-space:nowrap">\g<0></span>', precision)]
    cells = (
        f'<b role="img" aria-label="{word}" style="color:{colour}">{mark}</b>',
        _html(aspect.title),
        number(aspect.points),
        "<br>".join(filter(None, texts)),
    )
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"
