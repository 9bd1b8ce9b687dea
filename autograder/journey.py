"""One token on its way through a small encoder: *you are here*, and what its neighbours weigh.

The numbers are in `one_token`; `benchmarks/one_token.py` made them.
"""

from dataclasses import dataclass

from autograder import plots
from autograder.dataflow import SHAPES, Flow
from autograder.one_token import MADE, TEXTS

HEAD = 1  # the one whose weights are shown
QUIET = "#5E5E5E"


@dataclass(frozen=True)
class Step:
    """A step: what it is called, the chapters that are about it, and what it gives."""

    name: str
    chapters: tuple[int, ...]
    stage: str
    kind: str = "plain"
    by_word: bool = False  # one number for each word, of one head


STEPS = (
    Step("embedding", (5,), "embedding"),
    Step("+ position", (5,), "input", "position"),
    Step(r"query $q$", (2,), "query", "query"),
    Step(r"scores $q \cdot k_j\,/\,\sqrt{d_k}$", (2,), "scores", "key", by_word=True),
    Step("mask", (4,), "masked", "key", by_word=True),
    Step("softmax", (1, 4), "weights", "key", by_word=True),
    Step(r"average of $v_j$", (1, 3), "average", "value"),
    Step(r"$\times\ W^O$", (3,), "attended", "value"),
    Step("add & norm", (6,), "norm1"),
    Step("feed-forward", (6,), "thought"),
    Step("add & norm", (6,), "norm2"),
    Step("kind of word", (), "output"),
)


def numbers(step: Step, text: str) -> list[float | None]:
    """What a step gives for the token: a vector, the heads side by side, or a number a word."""
    found = TEXTS[text]["stages"][step.stage]
    if step.by_word:
        return found[HEAD]
    if isinstance(found[0], list):
        return [number for head in found for number in head]
    return found


def said(number: float | None) -> str:
    """A number to two decimal places, with a true minus sign; None is −∞."""
    if number is None:
        return "−∞"
    return f"{number + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def likeliest(text: str) -> tuple[str, float]:
    """The kind of word that the model takes the token for, and with what probability."""
    found = TEXTS[text]["stages"]["output"]
    return MADE["kinds"][found.index(max(found))], max(found)


def here(chapter: int, text: str = "she sings well .") -> None:
    """The way of *well* through the encoder, and its numbers at what the chapter is about.

    Chapter 7 is about all of it.
    """
    shown = [chapter == 7 or chapter in step.chapters for step in STEPS]
    words = TEXTS[text]["words"]
    headed = next((i for i, s in reversed([*enumerate(STEPS)]) if s.by_word and shown[i]), None)
    heights = [0.42 if on else 0.31 for on in shown]
    flow = Flow(5.2, 0.66 + sum(heights) + (0.3 if headed is not None else 0.0))
    columns = [2.42 + 0.6 * i for i in range(5)]
    flow.text(1.05, 0.2, f"“{words[TEXTS[text]['place']]}”", weight="bold")
    y, below = 0.42, (1.05, 0.32)
    for i, (step, on, height) in enumerate(zip(STEPS, shown, heights, strict=True)):
        centre = y + height / 2
        box = flow.box(
            1.05,
            centre,
            step.name,
            step.kind if on else "plain",
            width=1.9,
            height=height - (0.1 if on else 0.09),
            new=on and chapter != 7,
            size=SHAPES if on else SHAPES - 0.5,
        )
        flow.arrow(below, box.bottom, head=False)
        below = box.top
        y += height
        if not on:
            continue
        if step.stage == "output":
            kind, probability = likeliest(text)
            flow.text(columns[0] - 0.26, centre, f"{kind}, {probability:.2f}", ha="left")
            continue
        found = numbers(step, text)
        for place, number in zip(columns, found, strict=False):
            flow.text(place + 0.24, centre, said(number), ha="right", size=SHAPES)
        if step.stage in ("query", "average"):  # between the heads
            bar = (columns[1] + columns[2]) / 2
            flow.axes.plot((bar, bar), (centre - 0.13, centre + 0.13), color=QUIET, lw=1.0)
        if not step.by_word:
            shape = "$(2,\\ 2)$" if step.stage in ("query", "average") else "$(4,)$"
            flow.text(columns[-1] + 0.24, centre, shape, ha="right", size=SHAPES, color=QUIET)
        if i == headed:
            for place, word in zip(columns, words, strict=True):
                flow.text(place + 0.24, y + 0.12, word, ha="right", size=SHAPES, style="italic")
            y += 0.3


def bottleneck() -> None:
    """Above, a sentence handed on from word to word; below, each word looks at all of them."""
    flow = Flow(5.0, 5.0)
    words = ("she", "sings", "well", "today")
    places = [0.5 + 0.9 * i for i in range(4)]
    flow.text(0.1, 4.8, "handed on from word to word", ha="left", weight="bold")
    flow.text(0.1, 2.1, "every word looks at all", ha="left", weight="bold")
    states, reached = [], []
    for x, word in zip(places, words, strict=True):
        token = flow.box(x, 3.0, word, "plain", width=0.82, height=0.36)
        states.append(flow.box(x, 3.75, "", "key", width=0.4, height=0.4, new=word == words[-1]))
        flow.arrow(token.top, states[-1].bottom)
        token = flow.box(x, 0.3, word, "plain", width=0.82, height=0.36)
        reached.append(flow.box(x, 1.6, "", "key", width=0.4, height=0.4, new=word == "well"))
        for other, asks in zip(places, words, strict=True):
            lw, colour = (2.4, plots.BLUE) if asks == "well" else (0.6, QUIET)
            flow.arrow(token.top, (other, reached[-1].bottom[1]), head=False, lw=lw, color=colour)
    for one, other in zip(states, states[1:], strict=False):
        flow.arrow(one.right, other.left, lw=2.0)
    flow.arrow(states[-1].right, (3.95, 3.75), lw=2.0)
    flow.text(4.02, 3.75, "to the\nsecond\nnetwork", ha="left", size=SHAPES)
    flow.text(places[-1], 4.25, "one vector for all of it", ha="center", size=SHAPES)
    flow.text(3.6, 1.6, "one vector\nfor each", ha="left", size=SHAPES)


def neighbours() -> None:
    """*well* among its neighbours, in two sentences: a thick line is a large weight."""
    flow = Flow(5.0, 4.5)
    for text, floor in zip(TEXTS, (2.4, 0.1), strict=True):
        found = TEXTS[text]
        words = [word for word in found["words"] if not word.startswith("⟨")]
        places = [0.5 + 1.0 * i for i in range(len(words))]
        x = places[found["place"]]
        kind, probability = likeliest(text)
        asks = flow.box(x, floor + 1.75, "", "query", width=1.75, new=True)
        flow.text(x, floor + 1.75, f"$\\it{{well}}$: {kind} {probability:.2f}", size=SHAPES)
        for place, word, weight in zip(
            places, words, found["stages"]["weights"][HEAD], strict=False
        ):
            below = flow.box(place, floor + 0.4, word, "plain", width=0.8, height=0.36)
            end = (x + 0.2 * (place - x), asks.bottom[1])
            flow.arrow(below.top, end, head=False, color=plots.BLUE, lw=0.8 + 11 * weight)
            flow.text(place, floor + 0.08, f"{weight:.2f}", size=SHAPES)
