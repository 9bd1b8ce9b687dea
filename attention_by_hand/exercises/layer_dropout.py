"""Where a layer drops numbers, made visible: in its feed-forward part, and before a sublayer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attention_by_hand.exercises.parameters import layer_state
from autograder.student.authoring import (
    Array,
    Draw,
    Previous,
    Record,
    Run,
    Step,
    as_argument,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped


def inner_dropout(
    draw: Draw, attentions: Sequence[str], *others: Array, inside: float = 1.0, **kwargs: Any
) -> list[Run]:
    """Attention adds nothing; the feed-forward part adds linear2's one column everywhere, times
    `inside`, which the activation leaves as it is. `kwargs` are the layer's other arguments."""
    d = 4
    state = layer_state(draw, d, 1, attentions)
    for name in attentions:
        for which in ("weight", "bias"):
            full = f"{name}.W_o.{which}"
            state[full] = tensor(np.zeros_like(state[full].data))
    state["linear1.weight"] = tensor(np.zeros((1, d)), "float32")
    state["linear1.bias"] = tensor(np.full(1, inside), "float32")
    state["linear2.weight"] = tensor(draw.uniform(1.0, 2.0, d, 1), "float32")
    state["linear2.bias"] = tensor(np.zeros(d), "float32")
    run = module(d, 2, 1, 0.5, **kwargs, state=state).in_training()
    x = draw.tensor(2, 20, d)
    run = run.then(x, *others).then(x, *others)
    return [run.at_random(draw)]


def both_dropouts(run: Run, record: Record) -> str | None:
    x, column = numbers_of(run.steps[0].args[0]), numbers_of(run.parameters["linear2.weight"])[:, 0]
    column = column * numbers_of(run.parameters["linear1.bias"])
    results = [plain(value) for value in record.values]
    if not all_shaped(results, x.shape):
        return f"the result: expected shape {x.shape}, got {describe(record.value)}"
    added = np.stack([(y - x) / column for y in results])  # in eval mode, 1 everywhere
    sizes = np.unique(np.round(added[np.abs(added) > 1e-3], 2))
    if not sizes.size or np.ptp(sizes) > 0.1 or not (np.abs(added) < 1e-3).any():
        return "with dropout 0.5, the feed-forward output is not dropped half of the time"
    if abs(sizes.mean() - 4.0) > 0.1:
        return (
            "with dropout 0.5, the factor of what is kept of the feed-forward output: expected 4, "
            f"from two dropouts in a row, got {sizes.mean():.3g}"
        )
    gone = (
        (np.abs(added) < 1e-3).all(-1).mean()
    )  # with one hidden unit, dropping it drops everything
    if abs(gone - 0.5) > 0.35:
        return f"the unit inside the feed-forward is dropped {gone:.0%} of the time, with p = 50 %"
    return None if not np.allclose(added[0], added[1]) else "two calls drop the same numbers"


_FIRST = ("W_q", "W_k", "W_v", "linear1", "sublayer")  # what reads, of a sublayer


def farthest_read(layer: Value, *inputs: Value) -> float:
    """How far, in training, what the sublayers read is from the inputs and from what the norms
    give, where these parts are called; 0 where some norm is not."""
    whole, found = [*inputs], [0.0]

    def look(_: object, read: tuple) -> None:
        alike = [x for x in whole if x.shape == read[0].shape]
        distances = (float((read[0] - x).detach().abs().max()) for x in alike)
        found.append(min(distances, default=0.0))

    norms = {name for name, _ in layer.named_modules() if name.startswith("norm")}
    for name, part in layer.named_modules():
        if name in norms:
            part.register_forward_hook(lambda _, inputs, output: whole.append(output))
            part.register_forward_hook(lambda *_, name=name: norms.discard(name))
        if name.rpartition(".")[2] in _FIRST:
            part.register_forward_pre_hook(look)
    layer.train()(*inputs)
    return 0.0 if norms else max(found)


def read_in_training(run: Run, *inputs: Array) -> Run:
    """A run that makes this visible: 0 where no sublayer reads what was dropped."""
    in_training = replace(run, steps=(Step((True,), {}, "train"),))
    return in_training.then_apply(as_argument(farthest_read), Previous(0), *inputs)
