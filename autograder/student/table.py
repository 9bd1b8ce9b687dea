"""A verdict as a table, in HTML and in plain text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape as escaped
from itertools import chain
from textwrap import TextWrapper

from autograder.student.engine.runs import KEPT
from autograder.student.engine.verdict import (
    CORRECT,
    OF_DIGITS,
    POLICY,
    AspectVerdict,
    Verdict,
)

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


def table_text(verdict: Verdict, advice: str | None = None, below: int = 0) -> str:
    """The verdict for a terminal: one line per aspect, and below a failed one what is wrong.

    `advice` is shown first; `below` is the number of lines to leave for what follows.
    """
    lines = _lines_above(verdict, advice)
    if verdict.note:
        return "\n".join(lines)
    plan = _plan(verdict, advice, below)
    for row in plan.rows:
        lines += _row_text(*row)
    return "\n".join(lines + _others_text(plan.others, plan.terse))


def _lines_above(verdict: Verdict, advice: str | None) -> list[str]:
    """The lines that stand above the aspects."""
    texts = (advice, _remark(verdict))
    texts += (verdict.cause and f"This is a known mistake: {verdict.cause}",)
    texts += (verdict.other_problems, verdict.suspicion)
    lines = [headline(verdict)]
    lines += [line for text in filter(None, texts) for line in _indent(text, "  ")]
    if verdict.pointer:
        lines += ["  Where to look (a hint):"]
        for line in verdict.pointer.splitlines():
            lines += ["      " + line] if line.startswith("    ") else _indent(line, "      ")
    return lines + (_indent(verdict.note, "  ") if verdict.note else [])


def _remark(verdict: Verdict) -> str:
    """The remark; where a place is shown, without what it might be."""
    remark = verdict.remark or ""
    return remark.replace(OF_DIGITS, "").strip() if verdict.pointer else remark


def _others_text(others: Sequence[tuple[str, str, list[AspectVerdict]]], terse: bool) -> list[str]:
    if terse:
        return _indent("; ".join(f"{mark} {told}" for mark, told, _ in others), "  ", "    ")
    return [
        line
        for mark, told, aspects in others
        for line in _indent(f"{mark} {told}: {_titles(aspects)}", "  ", "    ")
    ]


def _row_text(aspect: AspectVerdict, reasons: Sequence[str]) -> list[str]:
    row = f"  {_mark(aspect)} {aspect.title}  {number(aspect.points)}  {_precision(aspect)}"
    return [row.rstrip(), *(line for text in reasons for line in _indent(text, "      "))]


_OF_ITS_OWN = ("raised", "lost", "dtype", "shape", "kind")  # failures that say what is wrong
_OF_GRADIENTS = ("missing", "gradient")  # they may follow from wrong values
_OF_FORM = ("shape", "kind")
_CAUSES = (KEPT, "mismatch")  # of other failures
_NUMBER = re.compile(r"\d")
_MOST, _LINES = 2, 7  # failures that are told at once, and their lines together
MOST_LINES = 12  # of the whole table, unless what stands above the aspects is long
_TITLES, _ROOM = 2, 50  # of the others: titles, and characters for them


def _mark(aspect: AspectVerdict) -> str:
    return "✓" if aspect.passed else "✗" if aspect.judged else "–"


def _told_aspects(verdict: Verdict) -> list[AspectVerdict]:
    """The aspects whose failure is told, the one that says most first.

    One failure is enough for a mistake that is known or guessed, where parameters do not fit, where
    something is kept from one call to the next, and where the first aspect's result has another
    form: the others may fail for that reason. If the first aspect fails, most others fail for the
    same reason: then those are told that fail in another way.
    """
    failed = [aspect for aspect in verdict.aspects if aspect.judged and not aspect.passed]
    groups = _CAUSES, _OF_ITS_OWN
    failed.sort(key=lambda a: (*(a.kind not in kinds for kinds in groups), a.kind in _OF_GRADIENTS))
    first_passes = verdict.aspects[0].passed
    told: dict[str, AspectVerdict] = {}
    for aspect in failed:
        by_text = first_passes or aspect.kind in ("raised", "lost")
        told.setdefault(_reason(aspect) if by_text else aspect.kind, aspect)
    causes = failed and failed[0].kind in _CAUSES
    named = verdict.cause or verdict.suspicion
    enough = named or causes or verdict.aspects[0].kind in _OF_FORM
    return [*told.values()][: 1 if enough else _MOST]


def first_row(verdict: Verdict) -> list[AspectVerdict]:
    """The aspect that has a row of its own in the table, whatever stands above it."""
    return _told_aspects(verdict)[:1]


def _reason_alone(aspect: AspectVerdict) -> str:
    """What is wrong, without the call that shows it."""
    return (aspect.message or "").removesuffix(f" ({aspect.call})")


def _reason(aspect: AspectVerdict) -> str:
    """What is wrong, whatever the sizes."""
    return _NUMBER.sub("", _reason_alone(aspect))


@dataclass(frozen=True)
class _Plan:
    """Aspects that have a row of their own, each with what is wrong and the hint; the others in
    groups: a mark, what it says, and the aspects. `terse` says that only their numbers are told."""

    rows: list[tuple[AspectVerdict, list[str]]]
    others: list[tuple[str, str, list[AspectVerdict]]]
    terse: bool = False


def _plan(verdict: Verdict, advice: str | None, below: int = 0) -> _Plan:
    """What is told of the aspects: as much as fits, and what says most.

    A hint is shown where it is likely to help: if the first aspect fails, others have theirs for
    nothing. What a known mistake is, or is likely to be, says more than any hint, and so do a
    pointer and the first failure.
    """
    if verdict.verdict == CORRECT:
        return _Plan([(aspect, []) for aspect in verdict.aspects], [])
    first, named = verdict.aspects[0], verdict.cause or verdict.suspicion
    told = [(aspect, [aspect.message or ""]) for aspect in _told_aspects(verdict)]
    rows = [
        (aspect, reasons + [aspect.hint or ""] * (not named and (first.passed or aspect is first)))
        for aspect, reasons in told
    ]
    brief = [(a, [_reason_alone(a)]) for a, _ in told[:1]]
    others = len(_lines_above(verdict, advice)) + below
    plans = [_Plan(some, _others(verdict, some)) for some in (rows, rows[:1], told[:1])]
    plans += [_Plan(some, plans[-1].others, True) for some in (told[:1], brief)]
    if sum(len(_row_text(*row)) for row in rows) > _LINES:
        plans = plans[1:]
    for plan in plans:
        lines = [line for row in plan.rows for line in _row_text(*row)]
        if others + len(lines + _others_text(plan.others, plan.terse)) <= MOST_LINES:
            return plan
    return plans[-1]


def _others(
    verdict: Verdict, rows: Sequence[tuple[AspectVerdict, list[str]]]
) -> list[tuple[str, str, list[AspectVerdict]]]:
    """The aspects without a row of their own in groups."""
    shown = [aspect for aspect, _ in rows]
    rest = [aspect for aspect in verdict.aspects if aspect not in shown]
    as_well = " as well" if shown else ""
    words = {"✗": ("fails", "fail", as_well), "–": ("is", "are", " checked later")}
    words["✓"] = ("passes", "pass", "")
    groups = []
    for mark, (one, many, then) in words.items():
        group = [aspect for aspect in rest if _mark(aspect) == mark]
        if group:
            groups.append((mark, f"{len(group)} {many if group[1:] else one}{then}", group))
    return groups


def _titles(aspects: Sequence[AspectVerdict]) -> str:
    """What some aspects check, with their points: one or two, as many as fit on the line."""
    titles = [f"{aspect.title} ({number(aspect.points)})" for aspect in aspects[:_TITLES]]
    if len(", ".join(titles)) > _ROOM:
        del titles[1:]
    more = len(aspects) - len(titles)
    return ", ".join(titles) + f" and {more} more" * (more > 0)


def _indent(text: str, by: str, then: str = "") -> list[str]:
    wrapper = TextWrapper(
        88, initial_indent=by, subsequent_indent=then or by, break_long_words=False
    )
    return [*chain.from_iterable(map(wrapper.wrap, text.splitlines()))]


def table_html(verdict: Verdict, advice: str | None = None) -> str:
    """The verdict for a notebook or a page. All text from outside is escaped.

    `advice` is shown first.
    """
    colour = _GREEN if verdict.verdict == CORRECT else _RED
    parts = [f"<p><strong>{_html(headline(verdict))}</strong></p>"]
    if advice:
        parts.append(f"<p><strong>{_html(advice)}</strong></p>")
    if remark := _remark(verdict):
        parts.append(f"<p>{_html(remark)}</p>")
    if verdict.cause:
        parts.append(f"<p><strong>A known mistake.</strong> {_html(verdict.cause)}</p>")
    for text in filter(None, (verdict.other_problems, verdict.suspicion)):
        parts.append(f"<p>{_html(text)}</p>")
    if verdict.pointer:
        parts.append(_pointer_html(verdict.pointer))
    if verdict.note:
        parts.append(f"<p>{_html(verdict.note)}</p>")
    else:
        plan = _plan(verdict, advice)
        rows = "".join(_row(aspect, reasons) for aspect, reasons in plan.rows)
        rows += "".join(
            _cells(aspects[0], f"{told}: {_titles(aspects)}", sum(a.points for a in aspects), "")
            for _, told, aspects in plan.others
        )
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
    texts = [*map(_html, filter(None, reasons))]
    if texts and aspect.hint == reasons[-1]:
        texts[-1] = f"<em>Hint.</em> {texts[-1]}"
    precision = _precision(aspect)
    texts += [_WITH_HYPHEN.sub(r'<span style="white-space:nowrap">\g<0></span>', precision)]
    return _cells(aspect, aspect.title, aspect.points, "<br>".join(filter(None, texts)))


def _cells(aspect: AspectVerdict, title: str, points: float, told: str) -> str:
    """A row of the table, with the mark of an aspect."""
    word = {"✓": "passes", "✗": "fails", "–": "not checked yet"}[mark := _mark(aspect)]
    colour = {"✓": _GREEN, "✗": _RED}.get(mark)
    style = _BADGE.format(colour) if colour else "color:inherit"
    badge = f'<b role="img" aria-label="{word}" style="{style}">{mark}</b>'
    cells = (badge, _html(title), number(points), told)
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"
