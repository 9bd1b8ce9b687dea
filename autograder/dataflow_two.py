"""How data flow in the chapters of the second part, drawn as `dataflow` draws the first."""

from autograder.dataflow import SHAPES, Flow


def recurrent_decoder() -> None:
    """One step of a recurrent decoder that attends to the states of an encoder."""
    flow = Flow(5.0, 6.7)
    state = flow.box(0.8, 0.3, "state $s_{t-1}$", "query", width=1.3)
    memory = flow.box(2.6, 0.3, "memory $Z$", "key", width=1.5)
    token = flow.box(4.3, 0.3, "token", "plain", width=0.9)
    score = flow.box(1.6, 1.4, "additive score, softmax", width=2.6, new=True)
    flow.arrow(state.top, (state.x, score.bottom[1]), label=r"$(B,\ d_h)$")
    flow.arrow(
        (2.2, memory.top[1]), (2.2, score.bottom[1]), label=r"$(B,\ n,\ d_h)$", at=(2.26, 0.78)
    )
    table = flow.box(4.3, 1.4, "embedding", width=1.2)
    flow.arrow(token.top, table.bottom, label=r"$(B,)$")
    average = flow.box(1.6, 2.5, "weighted average", width=2.2, new=True)
    flow.arrow(score.top, average.bottom, label=r"weights $(B,\ n)$")
    flow.arrow((3.28, memory.top[1]), (3.28, 2.5), average.right)
    cell = flow.box(2.6, 3.6, "GRU cell", width=4.2)
    flow.arrow(average.top, (1.6, cell.bottom[1]), label=r"context $c_t\ (B,\ d_h)$")
    flow.arrow(table.top, (4.3, cell.bottom[1]))
    flow.text(4.22, 2.5, "$e_t$", ha="right", size=SHAPES)
    flow.arrow((0.2, state.top[1]), (0.2, 3.6), cell.left)
    made = flow.box(2.6, 4.6, "state $s_t$", "query", width=1.3)
    flow.arrow(cell.top, made.bottom, label=r"$(B,\ d_h)$")
    output = flow.box(2.6, 5.6, "linear layer", width=2.2)
    flow.arrow(made.top, output.bottom, label=r"$[s_t;\ c_t]$  $(B,\ 2\,d_h)$")
    flow.arrow(output.top, (2.6, 6.4), label=r"logits $(B,\ n_\mathrm{vocab})$")
