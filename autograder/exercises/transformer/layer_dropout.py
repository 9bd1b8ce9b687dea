"""Dropout inside a layer's feed-forward part."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autograder.engine.aspects import describe, plain
from autograder.engine.runs import Array, Draw, Record, Run, module, tensor
from autograder.exercises.transformer.parameters import layer_state, training


def inner_dropout(draw: Draw, attentions: Sequence[str], *others: Array) -> Sequence[Run]:
    """Attention adds nothing; the feed-forward adds linear2's one column to every position."""
    d = 4
    state = layer_state(draw, d, 1, attentions)
    for name in attentions:
        for kind in ("weight", "bias"):
            full = f"{name}.W_o.{kind}"
            state[full] = tensor(np.zeros_like(state[full].data))
    state["linear1.weight"] = tensor(np.zeros((1, d)), "float32")
    state["linear1.bias"] = tensor(np.ones(1), "float32")
    state["linear2.weight"] = tensor(draw.uniform(1.0, 2.0, d, 1), "float32")
    state["linear2.bias"] = tensor(np.zeros(d), "float32")
    run = training(module(d, 2, 1, 0.5, norm_first=True, state=state))
    x = draw.tensor(2, 20, d)
    run = run.then(x, *others).then(x, *others)
    return [replace(run, random=True, seed=draw.integer(0, 10**6))]


def both_dropouts(run: Run, record: Record) -> str | None:
    x, column = plain(run.steps[0].args[0]), plain(run.state["linear2.weight"])[:, 0]
    results = [plain(value) for value in record.values]
    if any(y is None or y.shape != x.shape for y in results):
        return f"the result is {describe(record.value)}"
    added = np.stack([(y - x) / column for y in results])  # in eval mode, 1 everywhere
    sizes = np.unique(np.round(added[np.abs(added) > 1e-3], 2))
    if not sizes.size or np.ptp(sizes) > 0.1 or not (np.abs(added) < 1e-3).any():
        return "with dropout 0.5, what the feed-forward adds is not dropped half of the time"
    if abs(sizes.mean() - 4.0) > 0.1:
        return (
            f"with dropout 0.5, what is left of the feed-forward is {sizes.mean():.3g} times its "
            "size; two dropouts in a row make it 4 times"
        )
    gone = (np.abs(added) < 1e-3).all(-1).mean()  # one unit inside: its dropout takes all with it
    if abs(gone - 0.5) > 0.35:
        return f"the unit inside the feed-forward is dropped {gone:.0%} of the time, with p = 50 %"
    return None if not np.allclose(added[0], added[1]) else "two calls drop the same numbers"
