"""The panels of a figure, for screens that are too narrow for all of them side by side.

A figure of matplotlib's is cut where nothing of it stands, from top to bottom, and its parts are
shown one below the other. They are views of one file, which is loaded once.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from math import cos, radians, sin
from pathlib import Path

import numpy as np

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
TRANSFORM = re.compile(r"(\w+)\(([^)]*)\)")
NUMBER = re.compile(r"-?[\d.]+(?:e-?\d+)?")
EDGE = 2.0  # points

Interval = tuple[float, float]
Named = dict[str | None, ET.Element]


def panels(path: Path, widest: float) -> list[tuple[Interval, int]]:
    """Left and right edge, in points, of each part, and how many panels side by side it has.

    Neighbours share a part where they are no wider than `widest` together, or one is as small as
    a scale of colours.
    """
    root = ET.parse(path).getroot()
    figure = root.find(f"{SVG}g[@id='figure_1']")
    if figure is None:
        return []
    named = {e.get("id"): e for e in root.iter() if e.get("id")}
    parts: list[tuple[Interval, int]] = []
    for left, right in _columns(figure, named):
        panel = int(right - left > widest / 4)  # else letters, or a scale
        if parts and (not panel or not parts[-1][1] or right - parts[-1][0][0] <= widest):
            parts[-1] = (parts[-1][0][0], right), parts[-1][1] + panel
        else:
            parts.append(((left, right), panel))
    return [((left - EDGE, right + EDGE), held) for (left, right), held in parts]


def _columns(figure: ET.Element, named: Named) -> list[Interval]:
    """From where to where each column of axes goes, with its letters; what overlaps is one."""
    columns: list[Interval] = []
    all_shapes = (_extents(child, np.eye(3), (-np.inf, np.inf), named) for child in figure[1:])
    for left, right in sorted(_whole(shapes) for shapes in map(list, all_shapes) if shapes):
        if columns and left <= columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], right)
        else:
            columns.append((left, right))
    return columns


def _whole(intervals: list[Interval]) -> Interval:
    return min(left for left, _ in intervals), max(right for _, right in intervals)


def _extents(
    element: ET.Element, outer: np.ndarray, clip: Interval, named: Named
) -> Iterator[Interval]:
    """From where to where, across the picture, each shape is seen."""
    if element.tag == f"{SVG}defs":
        return
    matrix = outer @ _matrix(element.get("transform", ""))
    if clipped := element.get("clip-path"):
        edge = named[clipped[5:-1]][0]
        left = float(edge.get("x", 0))
        clip = left, left + float(edge.get("width", 0))
    xs: list[float] = []
    if element.tag == f"{SVG}use":
        moved = matrix @ _moved(float(element.get("x", 0)), float(element.get("y", 0)))
        yield from _extents(named[element.get(HREF, "")[1:]], moved, clip, named)
    elif element.tag == f"{SVG}path":
        points = np.reshape([float(n) for n in NUMBER.findall(element.get("d", ""))], (-1, 2))
        xs = [*(matrix[0, :2] @ points.T + matrix[0, 2])]
    elif element.tag == f"{SVG}image":
        left = float(element.get("x", 0))
        edges = left, left + float(element.get("width", 0))
        xs = [matrix[0, 0] * x + matrix[0, 2] for x in edges]
    if xs and max(xs) >= clip[0] and min(xs) <= clip[1]:
        yield max(min(xs), clip[0]), min(max(xs), clip[1])
    for child in element:
        yield from _extents(child, matrix, clip, named)


def _moved(x: float, y: float) -> np.ndarray:
    return np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]])


def _matrix(transform: str) -> np.ndarray:
    """The matrix of an SVG `transform`."""
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
