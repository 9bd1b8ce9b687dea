"""Pictures of how data flow through an encoder: the whole of BERT, of ViT, and a layer of BLIP.

Drawn with `dataflow`, read from below.
"""

from attention_by_hand import plots
from attention_by_hand.figures.dataflow import SHAPES, Flow

STREAM = r"$(B,\ n,\ d_\mathrm{model})$"


def bert() -> None:
    """Three rows and a norm, a stack of layers without a mask, and two uses of what comes out."""
    flow = Flow(5.0, 7.4)
    x = 1.75
    flow.text(x, 0.15, "ids with blanks", size=13)
    table = flow.box(x, 0.95, r"rows of $E$", "plain", width=1.5)
    flow.arrow((x, 0.3), table.bottom, label=r"$(B,\ n)$")
    plus = flow.plus(x, 1.6)
    flow.arrow(table.top, plus.bottom)
    places = flow.box(3.95, 1.35, r"rows of $E^\mathrm{pos}$", "position", width=1.5)
    segments = flow.box(3.95, 1.9, r"rows of $E^\mathrm{seg}$", "position", width=1.5)
    for box, y in ((places, 1.53), (segments, 1.67)):
        flow.arrow(box.left, (2.75, box.y), (2.75, y), (x + 0.14, y))
    norm = flow.box(x, 2.25, "norm", "plain", width=1.5, height=0.36)
    flow.arrow(plus.top, norm.bottom)
    flow.frame(0.3, 2.72, 4.75, 5.3)
    flow.text(4.65, 2.9, r"$N\,\times$, no mask", ha="right", size=SHAPES)
    below = norm.top
    for y, words in ((3.3, "self-attention"), (4.5, "linear, GELU, linear")):
        part = flow.box(x, y, words, width=1.95)
        flow.arrow(below, part.bottom, label=STREAM if y < 4 else "", at=(x + 0.08, 2.58))
        add = flow.box(x, y + 0.55, "add & norm", "plain", width=1.95, height=0.36)
        flow.arrow(part.top, add.bottom)
        side, low = 0.52, y - 0.36
        flow.arrow((x, low), (side, low), (side, add.y), add.left, color=plots.VERMILLION, lw=2.4)
        below = add.top
    flow.arrow(below, (x, 5.6), (0.95, 5.6), (0.95, 5.83), label=STREAM, at=(x + 0.08, 5.44))
    flow.arrow((x, 5.6), (3.6, 5.6), (3.6, 5.83))
    words = "linear, GELU,\nnorm, " + r"$\times\ E^\top$"
    fills = flow.box(0.98, 6.12, words, width=1.7, height=0.56, new=True)
    flow.text(3.6, 6.15, "a vector for each\ntoken, for the task")
    flow.arrow((0.95, fills.top[1]), (0.95, 6.85))
    flow.text(1.2, 7.1, r"logits, read at the gaps", size=SHAPES)


def vit() -> None:
    """Patches of an image, a class token in front, a stack of blocks, one row that is read."""
    flow = Flow(5.0, 8.1)
    x = 2.1
    flow.text(x, 0.15, "image", size=13)
    cut = flow.box(x, 0.85, "patches, linear", width=1.95, new=True)
    flow.arrow((x, 0.3), cut.bottom, label=r"$(B,\ C,\ s,\ s)$")
    first = flow.box(x, 1.75, "class token first", "plain", width=1.95, new=True)
    flow.arrow(cut.top, first.bottom, label=r"$(B,\ g^2,\ d_\mathrm{model})$")
    token = flow.box(4.15, 1.3, "$c$", "value", width=0.6)
    flow.arrow(token.top, (4.15, first.y), first.right)
    plus = flow.plus(x, 2.4)
    flow.arrow(first.top, plus.bottom)
    places = flow.box(4.15, 2.4, r"$E^\mathrm{pos}$", "position", width=0.9)
    flow.arrow(places.left, plus.right)
    flow.frame(0.3, 2.82, 4.75, 6.35)
    flow.text(4.65, 3.0, r"$N\,\times$, no mask", ha="right", size=SHAPES)
    below = plus.top
    for y, words in ((3.4, "self-attention"), (5.05, "linear, GELU, linear")):
        norm = flow.box(x, y, "norm", "plain", width=1.95, height=0.36)
        part = flow.box(x, y + 0.55, words, width=1.95)
        add = flow.plus(x, y + 1.05)
        flow.arrow(below, norm.bottom)
        flow.arrow(norm.top, part.bottom)
        flow.arrow(part.top, add.bottom)
        side, low = 0.62, y - 0.3
        flow.arrow((x, low), (side, low), (side, add.y), add.left, color=plots.VERMILLION, lw=2.4)
        below = add.top
    row = flow.box(x, 6.85, "class token's row, norm", width=2.3, new=True)
    flow.arrow(below, row.bottom, label=r"$(B,\ 1 + g^2,\ d_\mathrm{model})$", at=(x + 0.08, 6.51))
    head = flow.box(x, 7.5, "linear", width=1.3, height=0.36)
    flow.arrow(row.top, head.bottom)
    flow.arrow(head.top, (x, 7.84))
    flow.text(x, 7.97, r"logits $(B,\ \mathrm{classes})$", size=SHAPES)


def blip() -> None:
    """A picture that becomes a memory, and a layer of the text side with a way past the picture."""
    flow = Flow(5.0, 6.75)
    x, left = 3.3, 0.75
    flow.text(left, 0.15, "picture", size=13)
    encoder = flow.box(left, 1.0, "encoder", width=1.2)
    flow.arrow((left, 0.3), encoder.bottom)
    memory = flow.box(left, 2.15, "memory $M$", "value", width=1.2)
    shape = r"$(B,\ n_k,\ d_\mathrm{enc})$"
    flow.arrow(encoder.top, memory.bottom, label=shape)
    flow.text(x, 0.15, "words", size=13)
    flow.frame(1.8, 0.72, 4.85, 5.95)
    below, sums = (x, 0.3), []
    for y, words in (
        (1.35, "self-attention"),
        (3.05, "cross-attention"),
        (4.75, "linear, GELU, linear"),
    ):
        new = words == "cross-attention"
        part = flow.box(x, y, words, width=1.95, new=new)
        flow.arrow(below, part.bottom, label=STREAM if y < 2 else "", at=(x + 0.08, 0.52))
        add = flow.box(x, y + 0.6, "add & norm", "plain", width=1.95, height=0.36, new=new)
        flow.arrow(part.top, add.bottom)
        side, low = 2.05, y - 0.36
        flow.arrow((x, low), (side, low), (side, add.y), add.left, color=plots.VERMILLION, lw=2.4)
        below = add.top
        sums.append(add)
    flow.arrow(
        memory.top, (left, 3.05), (x - 0.975, 3.05), label="$K$, $V$", at=(left + 0.08, 3.22)
    )
    start, end, way = sums[0].top[1] + 0.22, sums[1].top[1] + 0.22, 4.55
    flow.axes.plot((x, way, way, x), (start, start, end, end), "--", color=plots.BLACK, lw=1.3)
    flow.arrow(below, (x, 6.35), label=STREAM, at=(x + 0.08, 6.12))
    flow.text(x, 6.53, "to the next layer", size=SHAPES)


def two_trainings() -> None:
    """The same layers twice: under a head that fills gaps, and under the output layers of tasks."""
    flow = Flow(5.0, 5.9)
    places = [0.55 + 0.85 * i for i in range(5)]
    for floor, gap, title in (
        (3.2, "[MASK]", "1  Pre-train, on any text"),
        (0.0, "well", "2  Fine-tune, on labelled texts"),
    ):
        first = gap == "[MASK]"
        flow.text(0.1, floor + 2.52, title, ha="left", weight="bold")
        layers = flow.box(2.25, floor + 0.95, "$N$ layers", "value", width=4.2, height=0.5)
        for x, word in zip(places, ("[CLS]", "the", gap, "is", "deep"), strict=True):
            token = flow.box(x, floor + 0.25, word, "plain", width=0.78, height=0.34)
            flow.arrow(token.top, (x, layers.bottom[1]))
        heads = ((places[2], 1.3, "MLM head", "well"),) if first else (
            (places[0], 0.98, "classifier", "friendly?"),
            (places[2] + 0.42, 2.95, "tagger", ""),
        )  # fmt: skip
        for x, width, head, says in heads:
            box = flow.box(x, floor + 1.6, head, width=width, height=0.38, new=not first)
            reads = places[1:] if head == "tagger" else [places[2] if first else places[0]]
            for place in reads:
                flow.arrow((place, layers.top[1]), (place, box.bottom[1]))
            tags = ("article", "noun", "verb", "adj.") if head == "tagger" else (says,)
            for place, tag in zip(reads, tags, strict=True):
                flow.arrow((place, box.top[1]), (place, floor + 2.02))
                flow.text(place, floor + 2.14, tag, size=SHAPES, style="italic")
        if first:
            flow.arrow(layers.right, (4.62, layers.y), (4.62, 0.95), (4.35, 0.95),
                       color=plots.VERMILLION, lw=2.4)  # fmt: skip
            flow.text(4.52, 3.0, "parameters", ha="right", size=SHAPES, color=plots.VERMILLION)
