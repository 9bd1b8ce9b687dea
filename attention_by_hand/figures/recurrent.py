"""How data flow in the chapters of the second part, drawn as `dataflow` draws the first."""

from itertools import pairwise
from typing import Any

from matplotlib.patches import Circle

from attention_by_hand import plots
from attention_by_hand.figures import dataflow
from attention_by_hand.figures.dataflow import WORDS

SHAPES = 11.6  # points: 12 pixels on a phone of 390


class Flow(dataflow.Flow):
    """A drawing whose letters a phone shows a little larger."""

    def text(self, x: float, y: float, words: str, size: float = WORDS, **how: Any) -> None:
        """Words at a place, none smaller than `SHAPES`."""
        super().text(x, y, words, size=max(size, SHAPES), **how)


def recurrent_decoder() -> None:
    """One step of a recurrent decoder that attends to the states of an encoder."""
    flow = Flow(5.0, 6.7)
    state = flow.box(0.8, 0.3, "state $s_{t-1}$", "query", width=1.3)
    memory = flow.box(2.72, 0.3, "memory $Z$", "key", width=1.85)
    token = flow.box(4.3, 0.3, "token", "plain", width=0.9)
    hidden, gathered = r"$(B,\ d_\mathrm{hidden})$", r"$(B,\ d_\mathrm{memory})$"
    rows = r"$(B,\ n,\ d_\mathrm{memory})$"
    score = flow.box(1.75, 1.4, "additive score, softmax", width=2.5, new=True)
    flow.arrow(state.top, (state.x, score.bottom[1]), label=hidden)
    flow.arrow((2.2, memory.top[1]), (2.2, score.bottom[1]), label=rows)
    table = flow.box(4.3, 1.4, "embedding", width=1.2)
    flow.arrow(token.top, table.bottom, label=r"$(B,)$")
    average = flow.box(1.75, 2.5, "weighted average", width=2.2, new=True)
    flow.arrow(score.top, average.bottom, label=r"weights $(B,\ n)$")
    flow.arrow((3.55, memory.top[1]), (3.55, 2.5), average.right)
    cell = flow.box(2.7, 3.6, "GRU cell", width=4.0)
    flow.arrow(average.top, (average.x, cell.bottom[1]), label=f"context $c_t$ {gathered}")
    flow.arrow(table.top, (4.3, cell.bottom[1]))
    flow.text(4.22, 2.5, "$e_t$", ha="right", size=SHAPES)
    flow.arrow((0.36, state.top[1]), (0.36, 3.6), cell.left)
    made = flow.box(2.6, 4.6, "state $s_t$", "query", width=1.3)
    flow.arrow((made.x, cell.top[1]), made.bottom, label=hidden)
    output = flow.box(2.6, 5.6, "linear layer", width=2.2)
    flow.arrow(made.top, output.bottom, label=hidden)
    flow.arrow((average.x, 3.0), (0.12, 3.0), (0.12, 5.6), output.left)
    flow.text(0.2, 5.78, f"$c_t$ {gathered}", ha="left", size=SHAPES)
    flow.arrow(output.top, (2.6, 6.4), label=r"logits $(B,\ n_\mathrm{vocab})$")


def one_vector_or_all() -> None:
    """An encoder and a decoder, unrolled: one state is handed over, or the decoder looks at all."""
    flow = Flow(5.0, 4.75)
    source, target = ("the", "bank", "is", "muddy"), ("das", "Ufer", "…")
    reads = [0.42 + 0.66 * i for i in range(len(source))]
    writes = [3.42 + 0.62 * i for i in range(len(target))]
    for floor, title in (
        (2.75, "1  One vector holds the sentence"),
        (0.05, "2  The writer looks at every state"),
    ):
        looks = title.startswith("2")
        flow.text(0.1, floor + (2.25 if looks else 1.85), title, ha="left", weight="bold")
        states = []
        for x, word in zip(reads, source, strict=True):
            flow.text(x, floor + 0.15, word, style="italic")
            new = word == source[-1] and not looks
            states.append(flow.box(x, floor + 0.8, "", "key", width=0.36, height=0.36, new=new))
            flow.arrow((x, floor + 0.3), states[-1].bottom)
        written = []
        for x, word in zip(writes, target, strict=True):
            written.append(flow.box(x, floor + 0.8, "", "query", width=0.36, height=0.36))
            flow.text(x, floor + 0.15, word, style="italic")
            flow.arrow(written[-1].bottom, (x, floor + 0.3))
        for one, other in pairwise([*states, *written]):
            over = one is states[-1]
            flow.arrow(one.right, other.left, lw=2.6 if over and not looks else 1.3)
        if looks:
            for state, weight in zip(states, (0.05, 0.5, 0.05, 0.4), strict=True):
                ends = (state.x, written[1].x), (state.top[1], floor + 1.75)
                flow.axes.plot(*ends, color=plots.BLUE, lw=0.8 + 8 * weight, zorder=2)
            flow.arrow((written[1].x, floor + 1.75), written[1].top, color=plots.BLUE, lw=2.0)
            flow.text(written[1].x, floor + 1.92, "weighted average", size=SHAPES)
        else:
            high = floor + 1.35
            way = (states[3].x, states[3].x, states[1].x, states[1].x)
            heights = (states[3].top[1], high, high, states[1].top[1])
            flow.axes.plot(way, heights, "--", color=plots.GREY, lw=1.3)
            flow.text(states[2].x, high + 0.17, "muddy comes too late", size=SHAPES)
            flow.text(writes[1], floor + 1.25, "knows one vector", size=SHAPES)


def gru() -> None:
    """A gated unit: the gates are read off state and input, and mix the old state and a new one."""
    flow = Flow(5.0, 5.5)
    old = flow.box(0.8, 0.3, "$h_{t-1}$", "query", width=0.9)
    new = flow.box(3.0, 0.3, "input $x_t$", "plain", width=1.2)
    gates = flow.box(2.6, 1.35, "two gates, from 0 to 1", width=2.3)
    proposal = flow.box(2.6, 3.2, r"proposal $\tilde h_t$", width=2.3)
    mixed = flow.box(1.9, 4.3, r"$z\, h_{t-1} + (1 - z)\, \tilde h_t$", width=3.2, new=True)
    flow.arrow(old.top, (old.x, mixed.bottom[1]), color=plots.VERMILLION, lw=3.4)
    flow.arrow((old.x, gates.y), gates.left)
    flow.arrow(new.top, (new.x, gates.bottom[1]))
    flow.axes.add_patch(Circle((2.0, 2.3), 0.15, fc="#FFFFFF", ec=plots.BLACK, lw=1.1, zorder=3))
    flow.text(2.0, 2.3, r"$\times$", size=14, zorder=4)
    flow.arrow((2.0, gates.top[1]), (2.0, 2.15), label="reset $r$")
    flow.arrow((old.x, 2.3), (1.85, 2.3))
    flow.arrow((2.0, 2.45), (2.0, proposal.bottom[1]))
    flow.arrow(new.right, (4.0, new.y), (4.0, proposal.y), proposal.right)
    flow.arrow((2.6, proposal.top[1]), (2.6, mixed.bottom[1]))
    flow.arrow(gates.right, (4.3, gates.y), (4.3, mixed.y), mixed.right)
    flow.text(4.37, 2.5, "update\n$z$", ha="left", size=SHAPES)
    made = flow.box(1.9, 5.2, "$h_t$", "query", width=0.9)
    flow.arrow(mixed.top, made.bottom)
