"""Inputs, parameters and properties that exercises of several chapters share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from autograder.student.authoring import (
    Array,
    Aspect,
    Draw,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Step,
    Trial,
    as_argument,
    describe,
    part,
    plain,
    tensor,
    wrong,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import Runs, numbers_of
from autograder.student.engine.compare import all_shaped, worst
from autograder.student.engine.runs import APPLY
from autograder.student.engine.simulated_device import TOO_MANY

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

State = dict[str, Array]
OUTPUT_AND_WEIGHTS = ("the output", "the weights")  # what attention returns

# --- inputs and parameters ----------------------------------------------------------------------


def qkv(
    draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    """Query, key and value, with scores of about ±√d_k."""
    shapes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    query, key, value = (draw.tensor(*batch, *shape, dtype=dtype) for shape in shapes)
    return query, key, value


def random_mask(draw: Draw, *shape: int) -> np.ndarray:
    """A boolean mask with at least one True and one False in every row."""
    mask = draw.integers(0, 1, *shape).astype(bool)
    for row in mask.reshape(-1, shape[-1]):
        row[draw.permutation(shape[-1])[:2]] = [True, False]
    return mask


def linear_state(
    draw: Draw,
    name: str,
    n_out: int,
    n_in: int,
    dtype: str = "float32",
    *,
    scale: float = 1.0,
    bias: float = 0.5,
) -> State:
    """Parameters of an `nn.Linear` called `name`."""
    return {
        f"{name}.weight": draw.tensor(n_out, n_in, scale=scale * n_in**-0.5, dtype=dtype),
        f"{name}.bias": draw.tensor(n_out, scale=bias, dtype=dtype),
    }


def transposed(x: Value) -> Value:
    """The same numbers as heads lie that were split off: positions apart, features together."""
    return x.swapaxes(-3, -2).contiguous().swapaxes(-3, -2)


def itself(thing: Value) -> Value:
    """The argument itself: as a step, makes it a result that later steps can use again."""
    return thing


def in_use(
    make: Callable[..., "nn.Module"],
    args: tuple,
    kwargs: Mapping | None,
    state: Mapping[str, "Tensor"] | None,
    training: bool,
    frozen: bool,
) -> "nn.Module":
    """A module as its caller may have it: one part in the other mode, a hook and, if `frozen`,
    gradients from the last step of its training and a parameter that is not trained."""
    import torch

    with torch.random.fork_rng(devices=[]):
        module = make(*args, **(kwargs or {}))
    for value in (state or {}).values():
        module.to(value.device)
    module.load_state_dict(state or {}, strict=state is not None)
    module.train(training)
    next(iter(module.children()), module).train(training != any(module.children()))
    module.register_forward_hook(lambda *args: None)
    parameters = [*module.parameters()] if frozen else []
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    for parameter in parameters[:1]:
        parameter.requires_grad_(False)
    return module


def used(run: Run, recipe: Recipe, *, frozen: bool = True) -> list[Run]:
    """The run with one more step, which makes the module of a recipe, `in_use`; in both modes."""
    make = Recipe(recipe.name), recipe.args, recipe.kwargs, recipe.state
    return [run.then_apply(as_argument(in_use), *make, t, frozen) for t in (True, False)]


def small_layer(d: int) -> "nn.Module":
    """A module with parts that takes each token to another of the same size."""
    from torch import nn

    return nn.Sequential(nn.Linear(d, d), nn.Dropout(0.0))


# --- models that write ---------------------------------------------------------------------------


def applied(function: Callable, *args: object) -> Run:
    """A run whose first step applies a function, so that later steps can use the result."""
    return Run((Step((as_argument(function), *args), {}, APPLY),))


def modes_kept(trial: Trial) -> Finding:
    """The logits show the modes: back to front in training, negative where a part is."""
    if trial.record.values[1] is None:
        return Finding(False, "the result is None")
    start = trial.run.steps[0].args[0].name
    given, wanted = plain(trial.record.value), numbers_of(trial.expected.value)
    if given is None or given.shape != wanted.shape:
        return Finding(False, f"afterwards, the model returns {describe(trial.record.value)}")
    if np.allclose(given, wanted, atol=1e-4):
        return Finding(True)
    if np.allclose(given, -wanted, atol=1e-4):
        modes = ("training", "eval") if start.endswith("part_in_training") else ("eval", "training")
        line = "one part of the model was in {} mode, and is now in {} mode".format(*modes)
        return Finding(False, line)
    mode = "training" if start.endswith(":in_training") else "eval"
    return Finding(False, f"the model came in {mode} mode and was not left in it")


def generator_for(ids: Value, seed: int) -> "Generator":
    """A generator on the device of the ids."""
    import torch

    return torch.Generator(device=ids.device).manual_seed(seed)


def in_training(model: "nn.Module") -> "nn.Module":
    """The model in training mode, except for one part of it."""
    model.train()
    getattr(model, "part", model).eval()
    return model


def part_in_training(model: "nn.Module") -> "nn.Module":
    """The model in eval mode, except for one part of it."""
    model.eval()
    model.part.train()
    return model


def sure(draw: Draw, B: int, n: int, vocab: int) -> tuple[Array, Array]:
    """Logits that give nearly everything to the token that comes, and ids: a loss below 0.001.

    In float64, since in float32 there are few digits left of so small a loss.
    """
    ids = draw.integers(0, vocab - 1, B, n)
    logits = draw.normal(B, n, vocab)
    np.put_along_axis(logits[:, :-1], ids[:, 1:, None], 14.0, axis=-1)
    return tensor(logits, "float64"), tensor(ids)


def summary_of(function: Value, summary: Callable[[Value, int], Value], seed: int) -> Value:
    """`summary(function, seed)`, so that known mistakes can be told apart.

    It carries no marks, since it is made where the answer runs.
    """
    try:
        return summary(function, seed)
    except Exception as error:  # noqa: BLE001  (an answer that cannot do this is judged elsewhere)
        return type(error).__name__


def summed_up(draw: Draw, summary: Callable[[Value, int], Value]) -> Run:
    """A run whose result does not depend on chance: a summary of what the answer draws."""
    run = Run((Step(("__call__",), {}, "__getattribute__"),))
    seed = draw.integer(0, 10**6)
    return run.then_apply(as_argument(summary_of), Previous(0), as_argument(summary), seed)


# --- properties ---------------------------------------------------------------------------------


def makes_nothing_larger(
    title: str, points: float, hint: str, runs: Runs, most: Callable[[Run], int]
) -> Aspect:
    """No tensor that is made on the way holds more numbers than `most(run)`, whatever becomes of
    it. The calls are made with tensors that pretend to be elsewhere, where all sizes are seen."""

    def limited(draw: Draw) -> list[Run]:
        return [replace(run, most=most(run), gradients=False, simulated=True) for run in runs(draw)]

    def judge(trials: Sequence[Trial]) -> Finding:
        return worst([_within(trial) for trial in trials])

    return Aspect(title, points, hint, limited, judge, only_if_right=True, forgeable=True)


def _within(trial: Trial) -> Finding:
    raised = trial.record.raised
    if raised is None or raised.types[0] != TOO_MANY:
        return Finding(True)
    line = raised.traceback.splitlines()[-1] if raised.traceback else "the call"
    return wrong(f"{line} {raised.message}; expected {trial.run.most} at most")


def no_peeking(run: Run, record: Record) -> str | None:
    """The logits of three calls `(2, 5, 6)` show what a new token at 4, then one at 2, changes."""
    results = [plain(value) for value in record.values]
    if not all_shaped(results, (2, 5, 6)):
        return f"the logits: expected shape (2, 5, 6), got {describe(record.value)}"
    for position, logits in zip((4, 2), results[1:], strict=True):
        moved = np.abs(logits - results[0]).max((0, 2))
        for i, far in enumerate(moved):
            if i < position and not far < 1e-5:
                return f"a new token at {position} changes the logits at {i} (by {far:.3g})"
            if i >= position and not far > 1e-4:
                return f"a new token at {position} leaves the logits at {i} unchanged"
    return None


def all_finite(run: Run, record: Record) -> str | None:
    """Output, weights and gradients are finite."""
    arrays = [plain(part(record.value, i)) for i in (0, 1)]
    arrays += map(plain, record.gradients.values())
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "an output, a weight or a gradient is missing or not finite"


_DROPPED = 1e-3  # a smaller share of a number counts as dropped


def wrong_share(ratio: np.ndarray, p: float, what: str, within: float) -> str | None:
    """What is wrong with the share that several calls in training mode drop, if anything.

    `ratio[i]` is what call i leaves of each number, divided by that number.
    """
    dropped = np.abs(ratio) < _DROPPED
    if not dropped.any():
        return f"in training mode with dropout {p}, no {what} is dropped"
    if (dropped[0] == dropped[1]).all():
        return f"two calls in training mode drop the same {what}s"
    share = float(dropped.mean())
    off = not abs(share - p) <= within
    return f"{what}s dropped: expected {p:.0%}, got {share:.0%}" if off else None


def wrong_factor(ratio: np.ndarray, p: float, what: str) -> str | None:
    """What is wrong with the factor by which the numbers that are kept grow, if anything."""
    kept, factor = ratio[~(np.abs(ratio) < _DROPPED)], 1 / (1 - p)
    if kept.size == 0:
        return f"in training mode every {what} is dropped"
    farthest = kept[np.argmax(np.abs(kept - factor))]
    if abs(farthest - factor) < 1e-3 * factor:
        return None
    wanted = f"1 / (1 − {p}) = {factor:.3g}"
    return f"the factor of a {what} that is kept: expected {wanted}, got {farthest:.3g}"


def attention_state(draw: Draw, d: int, bias: bool = True, dtype: str = "float32") -> State:
    """Random parameters for the four linear layers."""
    state = {f"W_{x}.weight": draw.tensor(d, d, scale=d**-0.5, dtype=dtype) for x in "qkvo"}
    biases = {f"W_{x}.bias": draw.tensor(d, dtype=dtype) for x in "qkvo"} if bias else {}
    return state | biases


def our_attention(d: int, num_heads: int, state: Mapping[str, Array], bias: bool = True) -> Recipe:
    kwargs = {"bias": bias}
    return Recipe(
        "attention_by_hand.blocks:MultiHeadAttention", (d, num_heads), kwargs, dict(state)
    )
