"""How data flow in the chapters of the second part, drawn as `dataflow` draws the first."""

from attention_by_hand.figures.dataflow import SHAPES, Flow


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
