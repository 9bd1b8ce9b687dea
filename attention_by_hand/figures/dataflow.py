"""Pictures of how data flow: tensors as tinted boxes, steps as white ones, shapes at the arrows.

All are read from below, as the field draws them, and are so narrow that a phone shows them whole.
A letter or a word says what each box is; the tint only repeats it.
"""

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from attention_by_hand import plots

WORDS, SHAPES = 12.0, 11.0  # sizes of letters, in points
TINTS = {
    "query": ("#CFE5F5", plots.BLUE),
    "key": ("#FBE3B5", "#8F6200"),
    "value": ("#CDEBDF", "#00694D"),
    "position": ("#F4DDE9", "#8E3F6D"),
    "step": ("#FFFFFF", plots.BLACK),
    "plain": ("#ECECE8", "#5E5E5E"),
}
Point = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A box that has been drawn: its centre and its size, in inches."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> Point:
        return self.x, self.y + self.height / 2

    @property
    def bottom(self) -> Point:
        return self.x, self.y - self.height / 2

    @property
    def left(self) -> Point:
        return self.x - self.width / 2, self.y

    @property
    def right(self) -> Point:
        return self.x + self.width / 2, self.y


class Flow:
    """A drawing of `width` by `height` inches; places are in inches from its lower left corner."""

    def __init__(self, width: float, height: float):
        self.figure: Figure = plt.figure(figsize=(width, height))
        self.figure.set_layout_engine("none")  # every place is given
        self.axes: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(0, height))
        self.axes.axis("off")

    def box(
        self,
        x: float,
        y: float,
        words: str,
        kind: str = "step",
        *,
        width: float = 1.2,
        height: float = 0.42,
        new: bool = False,
        zorder: float = 3,
        size: float = WORDS,
    ) -> Box:
        """A tensor or a step, its centre at (x, y); what is `new` has a thick edge."""
        fill, edge = TINTS[kind]
        rounding = 0.09 if kind == "step" else 0.02
        self.axes.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle=f"round,pad=0,rounding_size={rounding}",
                facecolor=fill,
                edgecolor=plots.VERMILLION if new else edge,
                linewidth=2.6 if new else 1.1,
                zorder=zorder,
            )
        )
        self.text(x, y, words, zorder=zorder + 0.1, size=size)
        return Box(x, y, width, height)

    def plus(self, x: float, y: float) -> Box:
        """A sum of what comes in."""
        self.axes.add_patch(Circle((x, y), 0.15, fc="#FFFFFF", ec=plots.BLACK, lw=1.1, zorder=3))
        self.text(x, y, "$+$", size=14, zorder=4)
        return Box(x, y, 0.3, 0.3)

    def text(self, x: float, y: float, words: str, **how: Any) -> None:
        """Words at a place; centred, unless `how` says something else."""
        style: dict[str, Any] = {"ha": "center", "va": "center", "size": WORDS, "zorder": 5}
        self.axes.text(x, y, words, **style | how)

    def arrow(
        self,
        *points: Point,
        label: str = "",
        at: Point | None = None,
        ha: str = "left",
        color: str = plots.BLACK,
        head: bool = True,
        lw: float = 1.3,
    ) -> None:
        """A line through the points with a head at its end, and beside it what flows along.

        The label stands right of the last piece, half-way, unless `at` says where.
        """
        xs, ys = zip(*points, strict=True)
        style: dict[str, Any] = {"color": color, "lw": lw, "zorder": 2}
        if not head:
            self.axes.plot(xs, ys, **style)
        else:
            self.axes.plot(xs[:-1], ys[:-1], **style)
            self.axes.annotate(
                "",
                points[-1],
                points[-2],
                arrowprops={
                    "arrowstyle": "-|>,head_width=0.22,head_length=0.4",
                    "color": color,
                    "lw": lw,
                    "shrinkA": 0,
                    "shrinkB": 0,
                },
                zorder=2,
            )
        if label:
            x, y = at or ((xs[-1] + xs[-2]) / 2 + 0.08, (ys[-1] + ys[-2]) / 2)
            self.text(x, y, label, ha=ha, size=SHAPES)

    def frame(self, left: float, bottom: float, right: float, top: float, words: str = "") -> None:
        """A dashed line around what belongs together, named in its upper left corner."""
        self.axes.plot(
            (left, right, right, left, left),
            (bottom, bottom, top, top, bottom),
            color=plots.GREY,
            lw=1.1,
            ls=(0, (4, 3)),
            zorder=1,
        )
        if words:
            self.text(left + 0.08, top - 0.16, words, ha="left", color="#5E5E5E", size=SHAPES)


# --- one attention ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """What the boxes and arrows of one attention are called in a chapter."""

    query: str = "$Q$"
    key: str = "$K$"
    value: str = "$V$"
    score: str = r"$QK^\top\,/\,\sqrt{d_k}$"
    output: str = "output"
    query_shape: str = r"$(n_q,\ d_k)$"
    key_shape: str = r"$(n_k,\ d_k)$"
    value_shape: str = r"$(n_k,\ d_v)$"
    output_shape: str = r"$(n_q,\ d_v)$"


NUMBERS = Names(
    query="query $x$",
    key="keys $x_i$",
    value="values $y_i$",
    score=r"$-\frac{1}{2}\,((x - x_i)\,w)^2$",
    output=r"estimate $\hat{y}(x)$",
    query_shape=r"$(n_q,)$",
    key_shape=r"$(n_k,)$",
    value_shape=r"$(n_k,)$",
    output_shape=r"$(n_q,)$",
)

UNSCALED = Names(score=r"$QK^\top$")


def attention(names: Names | None = None, *, mask: bool = False) -> None:
    """Queries, keys and values become scores, weights and an average; with `mask`, some hidden."""
    names = names or Names()
    lift = 0.95 if mask else 0.0
    flow = Flow(4.8, 4.45 + lift)
    query = flow.box(0.85, 0.3, names.query, "query", width=1.25)
    key = flow.box(2.3, 0.3, names.key, "key", width=1.25)
    value = flow.box(4.05, 0.3, names.value, "value", width=1.25)
    score = flow.box(1.575, 1.2, names.score, width=2.5, height=0.5)
    flow.arrow(query.top, (query.x, score.bottom[1]), label=names.query_shape)
    flow.arrow(key.top, (key.x, score.bottom[1]), label=names.key_shape)
    below = score
    if mask:
        below = flow.box(1.575, 2.15, r"$-\infty$ where not allowed", width=2.5, new=True)
        flow.arrow(score.top, below.bottom, label=r"scores $(n_q,\ n_k)$")
        table = flow.box(3.45, 2.15, "mask", "plain", width=0.7)
        flow.arrow(table.left, below.right)
    softmax = flow.box(1.575, 2.1 + lift, "softmax over the keys", width=2.5)
    flow.arrow(below.top, softmax.bottom, label=r"scores $(n_q,\ n_k)$")
    average = flow.box(2.6, 3.1 + lift, "weighted average", width=3.6)
    words = r"weights $(n_q,\ n_k)$" + "\neach row sums to 1"
    flow.arrow(softmax.top, (softmax.x, average.bottom[1]), label=words)
    flow.arrow(value.top, (value.x, average.bottom[1]), label=names.value_shape, at=(4.13, 0.76))
    output = flow.box(2.6, 4.0 + lift, names.output, "value", width=2.0)
    flow.arrow(average.top, output.bottom, label=names.output_shape)


# --- the pictures of single chapters ------------------------------------------------------------


def self_attention() -> None:
    """One sequence, three projections of it, and an attention among them."""
    flow = Flow(4.8, 4.35)
    rows = flow.box(2.35, 0.3, "$X$", "plain", width=4.1)
    core = flow.box(2.35, 3.1, "scaled dot-product attention", width=4.1)
    columns = ((0.8, "query", "Q", "k"), (2.35, "key", "K", "k"), (3.9, "value", "V", "v"))
    for x, kind, letter, length in columns:
        projected = flow.box(x, 1.2, rf"$\times\ W^{letter}$", width=1.0, new=True)
        tensor = flow.box(x, 2.05, f"${letter}$", kind, width=1.0)
        shape = r"$(n,\ d_\mathrm{model})$" if letter == "Q" else ""
        flow.arrow((x, rows.top[1]), projected.bottom, label=shape)
        flow.arrow(projected.top, tensor.bottom)
        flow.arrow(tensor.top, (x, core.bottom[1]), label=rf"$(n,\ d_{length})$")
    output = flow.box(2.35, 4.05, "output", "value", width=2.0)
    flow.arrow(core.top, output.bottom, label=r"$(n,\ d_v)$")


def multi_head() -> None:
    """Projections, a split into heads, an attention in each, a merge, and one more projection."""
    flow = Flow(5.0, 6.75)
    columns = ((0.8, "query", "Q", "q"), (2.35, "key", "K", "k"), (3.9, "value", "V", "k"))
    split = flow.box(2.5, 2.3, r"split: $H$ heads, $d_k = d_\mathrm{model}/H$", width=4.5)
    cards = [
        flow.box(2.62 - 0.12 * i, 3.55 - 0.1 * i, "", width=3.9, height=0.62, zorder=3 + i)
        for i in range(3)
    ]
    flow.text(cards[-1].x, cards[-1].y, "attention, once in each head", zorder=9)
    for x, kind, letter, length in columns:
        tensor = flow.box(x, 0.3, kind, kind, width=0.9)
        projected = flow.box(x, 1.25, rf"$\times\ W^{letter}$", width=0.9)
        shape = rf"$(n_{length},\ d_\mathrm{{model}})$"
        flow.arrow(tensor.top, projected.bottom, label=shape)
        flow.arrow(projected.top, (x, split.bottom[1]), label=shape)
        flow.arrow((x, split.top[1]), (x, cards[-1].bottom[1]), label=rf"$(H,\ n_{length},\ d_k)$")
    merge = flow.box(2.5, 4.65, "merge: the heads side by side", width=4.5)
    flow.arrow((2.5, cards[0].top[1]), merge.bottom, label=r"$(H,\ n_q,\ d_k)$")
    mixed = flow.box(2.5, 5.55, r"$\times\ W^O$", width=0.9)
    flow.arrow(merge.top, mixed.bottom, label=r"$(n_q,\ d_\mathrm{model})$")
    output = flow.box(2.5, 6.45, "output", "value", width=1.6)
    flow.arrow(mixed.top, output.bottom, label=r"$(n_q,\ d_\mathrm{model})$")


def cache() -> None:
    """New tokens are projected; their keys and values join those that are kept."""
    flow = Flow(5.0, 5.3)
    tokens = flow.box(2.5, 0.3, "new tokens", "plain", width=1.6)
    flow.text(3.42, 0.3, r"$(t,\ d_\mathrm{model})$", ha="left", size=SHAPES)
    attend = flow.box(2.5, 4.05, r"attention in each head, merge, $\times\ W^O$", width=4.6)
    columns = ((0.65, "query", "$q$", "Q"), (2.2, "key", "$k$", "K"), (3.8, "value", "$v$", "V"))
    for x, kind, letter, name in columns:
        made = flow.box(x, 1.6, letter, kind, width=0.62)
        flow.arrow(tokens.top, (2.5, 0.75), (x, 0.75), made.bottom)
        flow.text(x + 0.08, 1.07, rf"$\times\ W^{name}$", ha="left", size=SHAPES)
        if kind == "query":
            flow.arrow(made.top, (x, attend.bottom[1]), label=r"$(H,\ t,\ d_k)$", at=(0.73, 2.2))
            continue
        flow.arrow(made.top, (x, 2.59), label=r"$(H,\ t,\ d_k)$")
        flow.box(x - 0.72, 2.8, f"kept ${name}$", "plain", width=0.84)
        joined = flow.box(x, 2.8, "new", kind, width=0.6, new=True)
        flow.arrow(joined.top, (x, attend.bottom[1]), label=r"$(H,\ T+t,\ d_k)$")
    output = flow.box(2.5, 5.0, "output", "value", width=1.6)
    flow.arrow(attend.top, output.bottom, label=r"$(t,\ d_\mathrm{model})$")


def positions() -> None:
    """The three places at which a position can enter attention."""
    flow = Flow(4.8, 6.75)
    token = flow.box(2.4, 0.3, "embedding", "plain", width=1.5)
    plus = flow.plus(2.4, 1.05)
    flow.arrow(token.top, plus.bottom, label=r"$(n,\ d_\mathrm{model})$")
    table = flow.box(0.95, 1.05, r"1  $\mathrm{PE}_p$", "position", width=1.3, new=True)
    flow.arrow(table.right, plus.left)
    boxes = []
    for x, kind, letter in ((0.85, "query", "Q"), (2.4, "key", "K"), (3.95, "value", "V")):
        made = flow.box(x, 2.15, f"${letter}$", kind, width=0.9)
        flow.arrow(plus.top, (2.4, 1.45), (x, 1.45), made.bottom)
        flow.text(x + 0.08, 1.7, rf"$\times\ W^{letter}$", ha="left", size=SHAPES)
        boxes.append(made)
    query, key, value = boxes
    turn = flow.box(1.625, 2.95, r"3  rotate: $R_p$", "position", width=2.5, new=True)
    product = flow.box(1.625, 3.75, r"$QK^\top$", width=2.5)
    for box in (query, key):
        flow.arrow(box.top, (box.x, turn.bottom[1]))
        flow.arrow((box.x, turn.top[1]), (box.x, product.bottom[1]), label=r"$(n,\ d_k)$")
    total = flow.plus(1.625, 4.4)
    flow.arrow(product.top, total.bottom)
    distance = flow.box(3.2, 4.4, "2  distance", "position", width=1.35, new=True)
    flow.arrow(distance.left, total.right)
    softmax = flow.box(1.625, 5.15, r"divide by $\sqrt{d_k}$, softmax", width=2.5)
    flow.arrow(total.top, softmax.bottom)
    flow.text(1.4, 4.75, "scores $(n,\\ n)$", ha="right", size=SHAPES)
    average = flow.box(2.4, 6.0, "weighted average", width=4.0)
    flow.arrow(softmax.top, (1.625, average.bottom[1]), label="weights $(n,\\ n)$")
    flow.arrow(value.top, (3.95, average.bottom[1]), label=r"$(n,\ d_v)$", at=(4.03, 2.6))
    flow.arrow(average.top, (2.4, 6.6), label=r"$(n,\ d_v)$")


def sublayers() -> None:
    """One sublayer in two orders: post-norm, left, and pre-norm, right."""
    flow = Flow(4.8, 4.6)
    orders = {
        "post-norm": (1.05, (("F", 1.35), ("+", 2.3), ("norm", 3.15))),
        "pre-norm": (3.45, (("norm", 1.35), ("F", 2.2), ("+", 3.15))),
    }
    for title, (x, parts) in orders.items():
        flow.text(x, 4.42, title, weight="bold")
        below = (x, 0.42)
        flow.text(x, 0.3, "$x$", size=14)
        for name, y in parts:
            if name == "+":
                part = flow.plus(x, y)
                around = ((x, 0.8), (x + 0.95, 0.8), (x + 0.95, y), part.right)
                flow.arrow(*around, color=plots.VERMILLION, lw=3.4)
            else:
                kind = "plain" if name == "norm" else "step"
                part = flow.box(x, y, "$F$" if name == "F" else name, kind, width=1.2)
            flow.arrow(below, part.bottom)
            below = part.top
        flow.arrow(below, (x, 3.95))
        flow.text(x, 4.08, "$y$", size=14)


def transformer() -> None:
    """The whole: an encoder, a decoder, and the memory between them; with the parts' chapters."""
    flow = Flow(5.2, 7.95)
    stacks: dict[float, tuple[str, str, dict[str, str]]] = {
        1.25: ("source", "n_s", {"self-attention": "3", "feed-forward": "6"}),
        3.85: (
            "target, shifted",
            "n_t",
            {"self-attn., no future": "4", "cross-attention": "", "feed-forward": "6"},
        ),
    }
    ends: dict[float, Point] = {}
    for x, (name, length, sublayers) in stacks.items():
        flow.text(x, 0.15, name)
        table = flow.box(x, 0.85, r"embed, $\times\ \sqrt{d_\mathrm{model}}$", width=1.75)
        flow.arrow((x, 0.28), table.bottom, label=rf"$(B,\ {length})$")
        plus = flow.box(x, 1.45, "+ position", "position", width=1.75, height=0.36)
        flow.arrow(table.top, plus.bottom)
        numbered = [(plus, "5")]
        below, y = plus.top, 1.8
        shape = rf"$(B,\ {length},\ d_\mathrm{{model}})$"
        flow.frame(x - 1.1, 1.95, x + 1.2, 1.95 + 1.5 * len(sublayers) + 0.05)
        flow.text(x + 1.12, 2.13, r"$N\,\times$", ha="right", size=SHAPES)
        for sublayer, chapter in sublayers.items():
            bridge = sublayer == "cross-attention"
            part = flow.box(x, y + 0.72, sublayer, width=1.85, new=bridge)
            norm = flow.box(x, y + 1.27, "add & norm", "plain", width=1.85, height=0.34)
            flow.arrow(
                below,
                part.bottom,
                label=shape if below == plus.top else "",
                at=(x + 0.08, y + 0.04),
            )
            flow.arrow(part.top, norm.bottom)
            numbered += [(part, chapter), (norm, "6")]
            side = x - 1.02
            flow.arrow((x, y + 0.32), (side, y + 0.32), (side, norm.y), norm.left, color=plots.GREY)
            if bridge:
                ends[0.0] = part.left
                flow.text(x + 0.1, y + 0.27, r"queries: $Y W^Q$", ha="left", size=SHAPES)
            below, y = norm.top, y + 1.5
        for box, chapter in numbered:
            flow.text(box.right[0] + 0.13, box.y, chapter, size=SHAPES, color=plots.GREY)
        ends[x] = below
    start, end = ends[1.25], ends[0.0]
    flow.arrow(start, (1.25, start[1] + 0.3), (2.6, start[1] + 0.3), (2.6, end[1]), end, lw=2.4)
    flow.text(1.25, start[1] + 0.82, r"memory $Z$, $(B,\ n_s,\ d_\mathrm{model})$:", size=SHAPES)
    flow.text(1.25, start[1] + 0.56, r"keys $Z W^K$, values $Z W^V$", size=SHAPES)
    top = ends[3.85]
    logits = flow.box(3.85, top[1] + 0.65, "the table, transposed", width=2.0)
    flow.arrow(top, logits.bottom)
    flow.arrow(
        logits.top, (3.85, logits.top[1] + 0.45), label=r"logits $(B,\ n_t,\ n_\mathrm{vocab})$",
        at=(3.77, logits.top[1] + 0.25), ha="right",
    )  # fmt: skip
