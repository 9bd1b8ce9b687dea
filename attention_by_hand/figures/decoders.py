"""Pictures of how data flow through a decoder alone: its block, the whole of GPT, shared keys.

Drawn with `dataflow`, read from below.
"""

from attention_by_hand import plots
from attention_by_hand.figures.dataflow import SHAPES, Box, Flow

STREAM = r"$(B,\ n,\ d_\mathrm{model})$"


def block() -> None:
    """GPT-2's block: the residual stream, and two sublayers that read it through a norm."""
    flow = Flow(4.9, 6.5)
    x, side = 0.75, 3.0
    flow.text(x, 0.15, "$X_l$", size=14)
    below = (x, 0.32)
    parts = (
        (("norm", "plain", 1.25), ("self-attention", "step", 2.0)),
        (
            ("norm", "plain", 3.65),
            (r"linear, to $4\,d_\mathrm{model}$", "step", 4.3),
            ("GELU", "step", 4.85),
            ("linear, back", "step", 5.4),
        ),
    )
    for number, sublayer in enumerate(parts):
        start = sublayer[0][2] - 0.45
        plus = flow.plus(x, sublayer[-1][2])
        flow.arrow(below, plus.bottom, color=plots.VERMILLION, lw=3.4)
        flow.arrow((x, start), (side, start), (side, sublayer[0][2] - 0.21))
        last: Box | None = None
        for words, kind, y in sublayer:
            box = flow.box(side, y, words, kind, width=2.05, height=0.4)
            if last is not None:
                flow.arrow(last.top, box.bottom)
            last = box
        assert last is not None  # no sublayer is empty
        flow.arrow(last.left, plus.right)
        below = plus.top
        if number == 0:
            flow.text(x + 0.12, 0.55, STREAM, ha="left", size=SHAPES)
            mask = flow.box(side, 2.85, "causal mask $(n,\\ n)$", "plain", width=2.05, height=0.4)
            flow.arrow(mask.bottom, last.top)
    flow.arrow(below, (x, 6.05), color=plots.VERMILLION, lw=3.4)
    flow.text(x, 6.3, "$X_{l+1}$", size=14)
    flow.text(x + 0.35, 6.1, STREAM, ha="left", size=SHAPES)


def gpt() -> None:
    """The whole: two tables, a stack of blocks, a norm, and the first table once more."""
    flow = Flow(4.9, 5.9)
    x = 1.6
    flow.text(x, 0.15, "ids", size=13)
    table = flow.box(x, 0.95, r"rows of $E$", "plain", width=1.7)
    flow.arrow((x, 0.3), table.bottom, label=r"$(B,\ n)$")
    plus = flow.plus(x, 1.6)
    flow.arrow(table.top, plus.bottom)
    rows = r"rows $0 \dots n - 1$" + "\n" + r"of $E^\mathrm{pos}$"
    places = flow.box(3.75, 1.6, rows, "position", width=1.7, height=0.62)
    flow.arrow(places.left, plus.right)
    cards = [
        flow.box(x + 0.1 - 0.1 * i, 2.75 - 0.09 * i, "", width=2.1, height=0.55, zorder=3 + i)
        for i in range(3)
    ]
    flow.text(cards[-1].x, cards[-1].y, "block", zorder=9)
    flow.text(x + 1.25, 2.7, r"$N\,\times$", ha="left", size=SHAPES)
    flow.arrow(plus.top, (x, cards[-1].bottom[1]), label=STREAM)
    norm = flow.box(x, 3.75, "norm", "plain", width=1.7)
    flow.arrow((x, cards[0].top[1]), norm.bottom, label=STREAM)
    scores = flow.box(x, 4.55, r"$\times\ E^\top$", "plain", width=1.7, new=True)
    flow.arrow(norm.top, scores.bottom)
    flow.arrow(scores.top, (x, 5.4), label=r"$(B,\ n,\ n_\mathrm{vocab})$")
    flow.text(x, 5.62, "logits: row $t$ is about token $t + 1$", size=SHAPES)
    flow.arrow(table.left, (0.25, table.y), (0.25, scores.y), scores.left, color=plots.VERMILLION)
    flow.text(0.36, 3.2, "the same\ntable", ha="left", color=plots.VERMILLION, size=SHAPES)


def shared_keys() -> None:
    """Eight query heads over eight, two and one sets of keys and values."""
    flow = Flow(4.9, 3.9)
    rows = (("multi-head", 8, 2.95), ("grouped", 2, 1.65), ("multi-query", 1, 0.35))
    for name, sets, y in rows:
        flow.text(0.1, y + 0.27, name, ha="left")
        for h in range(8):
            at = 1.75 + 0.4 * h
            flow.box(at, y + 0.55, "$q$", "query", width=0.32, height=0.34)
            to = 1.75 + 0.4 * ((h // (8 // sets)) * (8 // sets) + (8 // sets - 1) / 2)
            flow.arrow((at, y + 0.38), (to, y + 0.17), head=False, lw=1.0)
        for g in range(sets):
            to = 1.75 + 0.4 * (g * (8 // sets) + (8 // sets - 1) / 2)
            words = "$k$" if sets == 8 else "$k,\\ v$"
            flow.box(to, y, words, "key", width=0.32 if sets == 8 else 0.75, height=0.34)


def induction() -> None:
    """A token is told what came before it; a later one finds it by that, and copies it."""
    flow = Flow(5.0, 4.3)
    words = ("the", "well", "is", "deep", ".", "the", "well")
    places = [0.42 + 0.6 * i for i in range(len(words))]
    tokens = [
        flow.box(x, 0.3, word, "plain", width=0.54, height=0.36)
        for x, word in zip(places, words, strict=True)
    ]
    key = flow.box(1.62, 1.55, "$is$: I came\nafter $well$", "key", width=1.3, height=0.56)
    query = flow.box(4.02, 2.55, "who came\nafter $well$?", "query", width=1.3, height=0.56)
    flow.arrow(tokens[2].top, (tokens[2].x, key.bottom[1]), color=plots.GREY)
    flow.arrow(tokens[1].top, (tokens[1].x, 0.95), (1.45, 0.95), (1.45, key.bottom[1]),
               color=plots.BLUE, lw=2.4)  # fmt: skip
    flow.text(0.84, 0.95, "1", weight="bold", color=plots.BLUE)
    flow.text(2.4, 1.55, "first layer", ha="left", size=SHAPES, color="#5E5E5E")
    flow.arrow(tokens[6].top, (tokens[6].x, query.bottom[1]), color=plots.GREY)
    flow.arrow(key.top, (key.x, query.y), query.left, color=plots.VERMILLION, lw=2.4)
    flow.text(2.45, 2.75, "2", weight="bold", color=plots.VERMILLION)
    flow.text(2.0, 2.35, "second layer", ha="left", size=SHAPES, color="#5E5E5E")
    answer = flow.box(4.02, 3.9, "$is$", "value", width=0.54, height=0.36)
    flow.arrow(query.top, answer.bottom, color=plots.VERMILLION, lw=2.4)
    flow.text(3.84, 3.27, "3", weight="bold", color=plots.VERMILLION)
    flow.text(3.6, 3.9, "comes next:", ha="right", size=SHAPES)
