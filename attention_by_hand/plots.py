"""The book's style for figures, heat maps of weights, and explorable figures.

The colours are those of Okabe and Ito (2008), which colour-blind readers can tell apart; figures
have an opaque, nearly white background, so that they stay readable on a dark page.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

BLACK, BLUE, VERMILLION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
ORANGE, PURPLE, SKY, GREY = "#E69F00", "#CC79A7", "#56B4E9", "#767676"
PAPER = "#FCFCFA"

STYLE: Any = {  # the type of its names is matplotlib's own
    "figure.figsize": (5.8, 3.6),
    "figure.facecolor": PAPER,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.labelsize": 12,
    "axes.prop_cycle": cycler(color=[BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK]),
    "grid.color": "#E4E4E0",
    "grid.linewidth": 0.8,
    "font.size": 12,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "image.cmap": "Blues",
    "mathtext.fontset": "dejavuserif",  # as large as the words beside it
    "svg.hashsalt": "attention-by-hand",
}


def use_style() -> None:
    """Apply the book's style; in a notebook, figures become SVG that is identical on every run."""
    plt.rcParams.update(STYLE)
    try:
        from IPython import get_ipython
        from matplotlib_inline.backend_inline import set_matplotlib_formats
    except ImportError:
        return
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None})


def heatmap(
    ax: Axes,
    weights: np.ndarray,
    title: str = "",
    *,
    queries: Sequence[str] | str = "query",
    keys: Sequence[str] | str = "key",
    largest: float | None = None,
    numbers: bool | str = False,
) -> AxesImage:
    """Draw weights `(n_q, n_k)`, one row per query, white for 0; returns the image.

    `queries` and `keys` are either the axis labels or one tick label per row and column.
    `largest` is the weight that is drawn darkest (default: the largest in `weights`); with
    `numbers`, each cell shows its weight to two decimal places, or in the format that it names.
    """
    largest = float(weights.max()) if largest is None else largest
    image = ax.imshow(weights, vmin=0.0, vmax=largest, aspect="auto", interpolation="nearest")
    ax.grid(False)
    ax.set_title(title)
    for labels, axis in ((queries, ax.yaxis), (keys, ax.xaxis)):
        if isinstance(labels, str):
            axis.set_label_text(labels)
        else:
            axis.set_ticks(range(len(labels)), labels=list(labels))
    if numbers:
        form = numbers if isinstance(numbers, str) else ".2f"
        for (row, column), weight in np.ndenumerate(weights):
            colour = "white" if weight > 0.6 * largest else "black"
            ax.text(column, row, f"{weight:{form}}", ha="center", va="center", color=colour)
    return image


@dataclass(frozen=True)
class Frame:
    """One panel of a hand-written SVG: maps data to pixels and draws the axes.

    `x` and `y` are the data limits; `left`, `right`, `top`, `bottom` the panel's edges in pixels.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    left: int
    right: int
    top: int
    bottom: int

    def point(self, x: float, y: float) -> tuple[float, float]:
        """The pixel coordinates of a data point, rounded to a tenth."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return (
            round(float(self.left + across * (self.right - self.left)), 1),
            round(float(self.bottom - up * (self.bottom - self.top)), 1),
        )

    def path(self, x: Sequence[float], y: Sequence[float]) -> str:
        """The `d` of an SVG path through the points."""
        return "M" + "L".join("{} {}".format(*self.point(a, b)) for a, b in zip(x, y, strict=True))

    def axes(self, x_ticks: Sequence[float], y_ticks: Sequence[float], y_label: str) -> str:
        """The axes with their tick labels, and the y label above the panel."""
        parts = [
            f'<path d="M{self.left} {self.top}V{self.bottom}H{self.right}" fill="none" '
            'stroke="currentColor" opacity="0.6"/>',
            f'<text x="{self.left - 6}" y="{self.top - 10}">{escape(y_label)}</text>',
        ]
        for tick in x_ticks:
            across, _ = self.point(tick, self.y[0])
            place = f'x="{across}" y="{self.bottom + 20}" text-anchor="middle"'
            parts.append(f"<text {place}>{_signed(tick)}</text>")
        for tick in y_ticks:
            _, down = self.point(self.x[0], tick)
            parts.append(
                f'<text x="{self.left - 6}" y="{down + 5}" text-anchor="end">{_signed(tick)}</text>'
            )
        return "".join(parts)


def _signed(number: float) -> str:
    return f"{number:g}".replace("-", "−")


class Explorable:
    """A figure that readers can manipulate: a still SVG and the data for its script."""

    def __init__(self, html: str):
        self.html = html

    def _repr_html_(self) -> str:
        return self.html


def explorable(name: str, title: str, description: str, still: str, data: Mapping) -> Explorable:
    """Wrap a still SVG and its data for `explorables/<name>.js`, which makes it interactive.

    Without JavaScript, the still and its `description` remain. In `still`, an SVG element, the
    parts that the script changes carry `data-part`; `data` must be JSON: plain numbers, lists,
    strings.
    """
    payload = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return Explorable(
        f'<figure class="explorable" data-explorable="{escape(name)}">'
        f"<figcaption><p><strong>{escape(title)}</strong> {escape(description)}</p></figcaption>"
        f'{still}<div data-part="controls"></div>'
        f'<script type="application/json">{payload}</script></figure>'
    )


use_style()
