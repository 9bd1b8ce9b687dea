"""`ViTBlock`: a layer of ViT."""

from typing import Any

import numpy as np

from attention_by_hand.exercises.dropped import named
from attention_by_hand.exercises.layer_dropout import both_dropouts
from attention_by_hand.exercises.shared import State, wrong_factor, wrong_share
from attention_by_hand.exercises.vision_transformer.parameters import block_state
from autograder.student.authoring import (
    Declaration,
    Draw,
    Record,
    Run,
    Strided,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped
from autograder.student.engine.runs import made_by

EXERCISE = Declaration(
    "ViTBlock",
    "A layer of ViT",
    ("x",),
    forbids=("transformer",),
    given=("PackedAttention",),
    uses=("DropPath",),
)


def _block(draw: Draw, d: int, heads: int, d_ff: int, dtype: str = "float32", **kwargs: Any) -> Run:
    return module(d, heads, d_ff, state=block_state(draw, d, d_ff, dtype), **kwargs)


@EXERCISE.equals("two sublayers, each behind a norm", 1.4)
def _runs(draw: Draw) -> list[Run]:
    """The first sublayer is attn, on norm1 of x; the second is linear1, GELU, linear2, on norm2 of
    what the first has made. What a sublayer gives is added to x itself: the sum is not
    normalised."""
    named = module(d_model=6, num_heads=3, d_ff=5, state=block_state(draw, 6, 5))
    return [
        _block(draw, 8, 2, 12).then(draw.tensor(2, 5, 8)),
        named.then(x=draw.tensor(1, 4, 6)),
        _block(draw, 4, 1, 7).then(draw.tensor(3, 2, 4)).then(draw.tensor(1, 3, 4)),
    ]


@EXERCISE.equals("one feature, one position, many, small inputs", 0.2)
def _ends(draw: Draw) -> list[Run]:
    """Equal sizes hide swapped axes. What passes on the residual path is not changed at all."""
    silent = block_state(draw, 4, 6)  # both sublayers give 0, and x passes as it is
    last = [f"{layer}.{part}" for layer in ("attn.proj", "linear2") for part in ("weight", "bias")]
    silent |= {name: tensor(0 * silent[name].data, "float32") for name in last}
    return [
        _block(draw, 6, 2, 4).then(draw.tensor(3, 1, 6)),
        _block(draw, 1, 1, 2).then(draw.tensor(2, 3, 1)),
        _block(draw, 4, 4, 4).then(draw.tensor(4, 4, 4)),
        # In float64: a norm of two features magnifies rounding where they are almost equal.
        _block(draw, 2, 1, 1, "float64").then(draw.double(1, 66, 2)),
        _block(draw, 6, 2, 4).then(Strided(draw.tensor(2, 3, 6))),
        module(4, 2, 6, state=silent).then(draw.tensor(2, 3, 4, scale=1e-3)),
    ]


@EXERCISE.equals("the exact GELU", 0.3)
def _activated(draw: Draw) -> list[Run]:
    """GELU is x·Φ(x), with Φ the normal distribution function. The tanh formula only comes near
    it."""
    runs = []
    for d, d_ff in ((4, 16), (6, 9)):
        state = block_state(draw, d, d_ff, "float64")
        state["linear1.weight"] = draw.double(d_ff, d, scale=1.5)
        runs.append(module(d, 2, d_ff, state=state).then(draw.double(2, 3, d)))
    return runs


@EXERCISE.equals("the norms' eps is 1e-6", 0.2)
def _faint(draw: Draw) -> list[Run]:
    """Both norms of ViT's block have an eps of 1e-6, not torch's 1e-5. It shows where the inputs
    are small."""
    runs = []
    for scale in (1e-2, 1e-3):
        state = block_state(draw, 6, 5)
        for which in ("weight", "bias"):
            full = f"attn.proj.{which}"
            state[full] = tensor(scale * state[full].data, "float32")
        runs.append(module(6, 2, 5, state=state).then(draw.tensor(2, 3, 6, scale=scale)))
    return runs


@EXERCISE.equals("dropout = 1 leaves x alone", 0.3)
def _dropped(draw: Draw) -> list[Run]:
    """attn drops its own output, and dropout what linear2 gives. With p = 1 in training, nothing is
    added to x."""
    positional = module(6, 2, 5, 1.0, state=block_state(draw, 6, 5))
    return [
        run.in_training().then(draw.tensor(2, 3, 6))
        for run in (_block(draw, 6, 2, 5, dropout=1.0), positional)
    ]


_D, _N = 4, 20


def _thinking(draw: Draw) -> State:
    """Attention adds nothing; linear2 adds its one column everywhere, 20 times."""
    state = block_state(draw, _D, 1)
    shapes = {"attn.proj.weight": (_D, _D), "attn.proj.bias": _D, "linear1.weight": (1, _D)}
    numbers = {name: np.zeros(shape) for name, shape in shapes.items()}
    numbers |= {"linear1.bias": np.full(1, 20.0), "linear2.bias": np.zeros(_D)}
    numbers["linear2.weight"] = draw.uniform(1.0, 2.0, _D, 1)
    return state | {name: tensor(data, "float32") for name, data in numbers.items()}


def _inside(draw: Draw) -> list[Run]:
    state, x = _thinking(draw), draw.tensor(2, _N, _D)
    run = module(_D, 2, 1, 0.5, state=state).in_training()
    over = made_by(over_column, x, state["linear2.weight"])
    return [run.then(x).then(x).at_random(draw), named(run, draw, over, x)]


def over_column(x: Any, column: Any) -> Any:
    """Divides what is added to x by what linear2 adds without dropout."""
    return lambda result: (result - plain(x)) / (20.0 * numbers_of(column)[:, 0])


def _both_dropouts(run: Run, record: Record) -> str | None:
    return both_dropouts(run, record) if run.random else None  # the other one is for names


EXERCISE.holds(
    "dropout inside the feed-forward layer, and behind it",
    0.25,
    _both_dropouts,
    "There are two: one between the GELU and linear2, one behind linear2.",
    _inside,
    only_if_right=True,
)
EXERCISE.draws_anew()


def _branches(draw: Draw) -> State:
    """Parameters with which attention adds its bias, in the first half of the features, and the
    feed-forward adds its own, in the second half."""
    state, half = block_state(draw, _D, 3), np.arange(_D) < _D // 2
    numbers = {
        "attn.proj.weight": np.zeros((_D, _D)),
        "attn.proj.bias": draw.uniform(1.0, 2.0, _D) * half,
        "linear2.weight": np.zeros((_D, 3)),
        "linear2.bias": draw.uniform(1.0, 2.0, _D) * ~half,
    }
    return state | {name: tensor(data, "float32") for name, data in numbers.items()}


def over_branches(x: Any, first: Any, second: Any) -> Any:
    """Divides what is added to x by what is added without dropout."""
    return lambda result: (result - plain(x)) / (numbers_of(first) + numbers_of(second))


def paths_dropped(x: Any, first: Any, second: Any) -> Any:
    """The same for one feature of each branch, a token of two numbers."""
    ratio = over_branches(x, first, second)
    return lambda result: ratio(result)[..., :: _D // 2]


def _added(run: Run, record: Record) -> np.ndarray | str:
    """What is added to x, as a multiple of what is added without dropout, or what is wrong."""
    x = numbers_of(run.steps[0].args[0])
    results = [plain(value) for value in record.values]
    if not all_shaped(results, x.shape):
        return f"the result: expected shape {x.shape}, got {describe(record.value)}"
    biases = (run.parameters[f"{layer}.bias"] for layer in ("attn.proj", "linear2"))
    return over_branches(run.steps[0].args[0], *biases)(np.stack(results))


def _once_each(run: Run, record: Record) -> str | None:
    if not run.random:  # carries no marks, but tells known mistakes apart
        return None
    ratio = _added(run, record)
    if isinstance(ratio, str):
        return ratio
    p = run.constructor.kwargs["dropout"]
    for part, what in ((ratio[..., : _D // 2], "attention"), (ratio[..., _D // 2 :], "linear2")):
        gone = np.abs(part) < 1e-3
        if gone.any() and (gone.all(-1) == gone.any(-1)).all():
            return f"of what {what} gives, whole tokens are dropped: expected single numbers"
        problem = wrong_share(part, p, "number", 0.12) or wrong_factor(part, p, "number")
        if problem:
            return f"of what {what} gives: {problem}"
    return None


@EXERCISE.holds("what a sublayer gives is dropped once", 0.25, _once_each, only_if_right=True)
def _drawn(draw: Draw) -> list[Run]:
    """attn has already applied dropout to what it returns; after linear2 you have to. Every number
    is drawn independently.
    """
    state, x = _branches(draw), draw.tensor(4, 24, _D)
    run = module(_D, 2, 3, dropout=0.3, state=state).in_training()
    over = made_by(over_branches, x, state["attn.proj.bias"], state["linear2.bias"])
    return [run.then(x).then(x).at_random(draw), named(run, draw, over, x)]


EXERCISE.draws_anew()


@EXERCISE.equals("drop_path = 1 leaves x alone", 0.3)
def _no_path(draw: Draw) -> list[Run]:
    """Stochastic depth acts on what is added to x, in both places. With p = 1 in training, nothing
    is."""
    positional = module(6, 2, 5, 0.0, 1.0, state=block_state(draw, 6, 5))
    return [
        run.in_training().then(draw.tensor(2, 3, 6))
        for run in (_block(draw, 6, 2, 5, drop_path=1.0), positional)
    ]


def _both_paths(run: Run, record: Record) -> str | None:
    if not run.random:  # carries no marks, but tells known mistakes apart
        return None
    ratio = _added(run, record)
    if isinstance(ratio, str):
        return ratio
    if np.ptp(ratio, axis=2).max() > 0.02:
        return "one image's tokens are not all treated alike"
    p, images = run.constructor.kwargs["drop_path"], ratio.mean(2)  # (calls, B, features)
    both = images[..., 0], images[..., -1]
    for part, what in zip(both, ("attention", "the feed-forward network"), strict=True):
        problem = wrong_share(part, p, "image", 0.2) or wrong_factor(part, p, "image")
        if problem:
            return f"of what {what} adds: {problem}"
    first, second = (np.abs(part) < 1e-3 for part in both)
    if (first == second).all():
        return "both branches of an image are dropped together, or neither is"
    chance = p * p
    found = float((first & second).mean())
    if abs(found - chance) > 0.15:
        return f"both branches of an image dropped: expected {chance:.0%}, got {found:.0%}"
    return None


@EXERCISE.holds("each branch of each image is drawn anew", 0.4, _both_paths, only_if_right=True)
def _paths(draw: Draw) -> list[Run]:
    """drop_path draws whenever it is called: call it for each of the two branches. What it gets is
    what the branch adds, not the sum."""
    state, x = _branches(draw), draw.tensor(160, 2, _D)
    run = module(_D, 2, 3, drop_path=0.4, state=state).in_training()
    over = made_by(paths_dropped, x, state["attn.proj.bias"], state["linear2.bias"])
    return [run.then(x).then(x).at_random(draw), named(run, draw, over, x)]


EXERCISE.draws_anew()


@EXERCISE.equals("nothing is dropped in eval mode", 0.15)
def _evaluated(draw: Draw) -> list[Run]:
    """The modules follow model.eval(); F.dropout has to be told which mode it is in. Unless they
    are given, nothing is dropped in training, either."""
    runs = _block(draw, 6, 2, 5, dropout=1.0, drop_path=1.0), _block(draw, 6, 2, 5).in_training()
    return [run.then(draw.tensor(2, 3, 6)) for run in runs]


@EXERCISE.gradients("gradients reach x and every parameter", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """Every part contributes: attn, two linear layers, two norms, and the residual path."""
    # In float64, where terms that cancel do so to the last digit.
    return [
        _block(draw, 4, 2, 3, "float64").then(draw.double(2, 3, 4)),
        _block(draw, 3, 1, 2, "float64").then(draw.double(1, 2, 3)),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 block with float64 inputs gives float64, a float32 block float32."""
    run = _block(draw, 4, 2, 3, "float64").then(draw.double(1, 3, 4))
    return [run, module(4, 2, 3).then(draw.tensor(1, 3, 4)).at_random(draw)]


EXERCISE.leaves_inputs_alone(0.1, _runs)
EXERCISE.leaves_state_alone(0.05, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _dropped)
