"""The panels of a figure, for screens that are too narrow for all of them side by side.

A figure of matplotlib's is cut where nothing of it stands, from top to bottom, and its parts are
shown one below the other. They are views of one file, which is loaded once. A panel that shares
the numbers or the label of an axis with one further left shows them as well: a view of these.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from math import cos, radians, sin
from pathlib import Path
from typing import NamedTuple

import numpy as np

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
TRANSFORM = re.compile(r"(\w+)\(([^)]*)\)")
NUMBER = re.compile(r"-?[\d.]+(?:e-?\d+)?")
EDGE = 2.0  # points

Named = dict[str | None, ET.Element]


class Box(NamedTuple):
    """A part of a picture, in points from its upper left corner."""

    left: float
    right: float
    top: float
    bottom: float


class Axis(NamedTuple):
    """The vertical axis of a panel: where it is, how many ticks it has, what is written at it."""

    panel: Box
    ticks: int
    words: list[str]
    numbers: Box | None
    label: Box | None


class Part(NamedTuple):
    """Some panels: their edges, how many, and what they show of a panel further left.

    Each such box moves to the right by so many points.
    """

    left: float
    right: float
    held: int
    borrowed: list[tuple[Box, float]]

    @property
    def start(self) -> float:
        return min([self.left, *(box.left + step for box, step in self.borrowed)])


def panels(path: Path, widest: float) -> list[Part]:
    """The parts of a figure.

    Neighbours share a part where they are no wider than `widest` together, or one is as small as
    a scale of colours.
    """
    root = ET.parse(path).getroot()
    figure = root.find(f"{SVG}g[@id='figure_1']")
    if figure is None:
        return []
    named = {e.get("id"): e for e in root.iter() if e.get("id")}
    axes = sorted(filter(None, (_axis(child, named) for child in figure)))
    parts: list[Part] = []
    for left, right in _columns(figure, named):
        panel = int(right - left > widest / 4)  # else letters, or a scale
        if parts and (not panel or not parts[-1].held or right - parts[-1].start <= widest):
            parts[-1] = parts[-1]._replace(right=right, held=parts[-1].held + panel)
        else:
            parts.append(Part(left, right, panel, _borrowed(axes, left, right)))
    return parts


def view(part: Part, address: str, size: tuple[int, int]) -> str:
    """A part of a picture, `size` CSS pixels large, as HTML."""
    whole, height = (length * 3 / 4 for length in size)
    wide = part.right - part.start + 2 * EDGE
    layers = ""
    for box, step in [(Box(part.left, part.right, 0, height), 0.0), *part.borrowed]:
        left, right = (box.left - EDGE) / whole, 1 - (box.right + EDGE) / whole
        top, bottom = (box.top - EDGE) / height, 1 - (box.bottom + EDGE) / height
        cut = f"; clip-path: inset({top:.2%} {right:.2%} {bottom:.2%} {left:.2%})"
        layers += (
            f'<img alt="" src="{address}" style="width: {whole / wide:.2%}; '
            f'left: {(step + EDGE - part.start) / wide:.2%}{cut if part.borrowed else ""}" '
            'loading="lazy" decoding="async" />'
        )
    room = f"width: {wide * 4 / 3:.0f}px; aspect-ratio: {wide * 4 / 3:.0f} / {size[1]}"
    return f'<span style="{room}">{layers}</span>'


def _axis(axes: ET.Element, named: Named) -> Axis | None:
    for axis in axes:
        ticks = [child for child in axis if child.get("id", "").startswith("ytick")]
        if ticks and (panel := _box(axes[:1], named)):
            numbers = [e for tick in ticks for e in tick if e.get("id", "").startswith("text")]
            label = [e for e in axis if e.get("id", "").startswith("text")]
            words = [use.get(HREF, "") for e in numbers for use in e.iter(f"{SVG}use")]
            return Axis(panel, len(ticks), words, _box(numbers, named), _box(label, named))
    return None


def _borrowed(axes: list[Axis], left: float, right: float) -> list[tuple[Box, float]]:
    """What the first panel of each row lacks, and how far to the left of it that is written."""
    rows = {(a.panel[2:], a.ticks): a for a in reversed(axes) if left <= a.panel.left <= right}
    found = []
    for row, axis in rows.items():
        lender = next(a for a in axes if (a.panel[2:], a.ticks) == row)
        if not axis.label and axis.words in ([], lender.words):
            lent = (lender.label, None if axis.words else lender.numbers)
            found += [(box, axis.panel.left - lender.panel.left) for box in lent if box]
    return found


def _columns(figure: ET.Element, named: Named) -> list[tuple[float, float]]:
    """From where to where each column of axes goes, with its letters; what overlaps is one."""
    columns: list[tuple[float, float]] = []
    for left, right, *_ in sorted(filter(None, (_box([child], named) for child in figure[1:]))):
        if columns and left <= columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], right)
        else:
            columns.append((left, right))
    return columns


def _box(elements: list[ET.Element], named: Named) -> Box | None:
    """What all shapes of these take up, together."""
    whole = (-np.inf, np.inf)
    shapes = [box for e in elements for box in _extents(e, np.eye(3), whole, named)]
    if not shapes:
        return None
    left, right, top, bottom = zip(*shapes, strict=True)
    return Box(min(left), max(right), min(top), max(bottom))


def _extents(
    element: ET.Element, outer: np.ndarray, clip: tuple[float, float], named: Named
) -> Iterator[Box]:
    """Where in the picture each shape is seen; cut off at the left and right edge of its panel."""
    if element.tag == f"{SVG}defs":
        return
    matrix = outer @ _matrix(element.get("transform", ""))
    if clipped := element.get("clip-path"):
        edge = named[clipped[5:-1]][0]
        left = float(edge.get("x", 0))
        clip = left, left + float(edge.get("width", 0))
    points = np.empty((0, 2))
    x, y, width, height = (float(element.get(n, 0)) for n in ("x", "y", "width", "height"))
    if element.tag == f"{SVG}use":
        yield from _extents(named[element.get(HREF, "")[1:]], matrix @ _moved(x, y), clip, named)
    elif element.tag == f"{SVG}path":
        points = np.reshape([float(n) for n in NUMBER.findall(element.get("d", ""))], (-1, 2))
    elif element.tag == f"{SVG}image":
        points = np.array([[x, y], [x + width, y + height]])
    xs, ys = matrix[:2, :2] @ points.T + matrix[:2, 2:]
    if xs.size and xs.max() >= clip[0] and xs.min() <= clip[1]:
        yield Box(max(xs.min(), clip[0]), min(xs.max(), clip[1]), ys.min(), ys.max())
    for child in element:
        yield from _extents(child, matrix, clip, named)


def _moved(x: float, y: float) -> np.ndarray:
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]])


def _matrix(transform: str) -> np.ndarray:
    matrix = np.eye(3)
    for name, arguments in TRANSFORM.findall(transform):
        a, *more = (float(n) for n in NUMBER.findall(arguments))
        b = more[0] if more else (a if name == "scale" else 0.0)
        if name == "translate":
            step = _moved(a, b)
        elif name == "scale":
            step = np.diag([a, b, 1.0])
        elif name == "rotate":
            turn = radians(a)
            step = np.array([[cos(turn), -sin(turn), 0], [sin(turn), cos(turn), 0], [0, 0, 1.0]])
        else:
            step = np.array([[a, more[1], more[3]], [b, more[2], more[4]], [0, 0, 1.0]])
        matrix = matrix @ step
    return matrix
