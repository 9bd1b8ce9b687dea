"""`training_step`: one step of training, with all that belongs to it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from attention_by_hand.exercises.language_model.gpt import gpt_state
from attention_by_hand.exercises.parameters import token_ids
from attention_by_hand.exercises.shared import applied
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Recipe,
    Record,
    Run,
    as_argument,
    tensor,
)
from autograder.student.engine.state import MEMORY, NUMBERS, SLOPES

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

EXERCISE = Declaration(
    "training_step",
    "One step of training",
    ("model", "optimizer", "ids", "step", "num_steps", "warm_up", "most", "max_norm"),
    allows=("next_token_loss",),
    uses=("GPT",),
    returns=("the loss", "the norm"),
)

_VOCAB, _LOOSE = 7, 1e4


def _ids(draw: Draw, B: int = 3, n: int = 5) -> Array:
    return token_ids(draw, B, n, _VOCAB, low=0)


def _gpt(draw: Draw, dropout: float = 0.0, scale: float = 1.0) -> Recipe:
    """A small GPT, whose gradients are longer than 1 unless `scale`, of its last norm, is small."""
    state = gpt_state(draw, _VOCAB, 6, 4, 1)
    state["norm.weight"] = tensor(scale * state["norm.weight"].data, "float32")
    state["norm.bias"] = tensor(scale * state["norm.bias"].data, "float32")
    return Recipe("attention_by_hand.blocks:GPT", (_VOCAB, 6, 4, 2, 1, dropout), {}, state)


def with_optimizer(
    model: "nn.Module", kind: str = "SGD", old: float = 0.0, train: bool = False
) -> tuple["nn.Module", "Optimizer"]:
    """The model and an optimizer of it, with two groups of parameters: matrices, which decay, and
    vectors. Gradients `old` are left from before."""
    import torch

    parameters = [*model.parameters()]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    if kind == "SGD":
        optimizer = torch.optim.SGD(groups, lr=7.0, momentum=0.5)
    else:
        optimizer = torch.optim.AdamW(groups, lr=7.0, betas=(0.9, 0.95), eps=1e-2)
    for parameter in parameters if old else []:
        parameter.grad = torch.full_like(parameter, old)
    return model.train(train), optimizer


def frozen(model: "nn.Module") -> "nn.Module":
    """The model, whose positions are not trained."""
    model.positions.weight.requires_grad_(False)
    return model


def spoilt(model: "nn.Module") -> "nn.Module":
    """The model with logits that are no numbers."""
    model.norm.bias.data.fill_(float("nan"))
    return model


def steep(model: "nn.Module") -> "nn.Module":
    """The model with finite logits, but a slope without end: that of a root at 0."""
    import torch

    model.root = torch.nn.Parameter(model.norm.bias.new_zeros(1))
    model.norm.register_forward_hook(lambda _norm, _inputs, result: result + model.root.sqrt())
    return model


def barred(model: "nn.Module") -> "nn.Module":
    """The model with a finite slope, but a loss without end: the second token has no chance."""
    model.register_forward_hook(
        lambda _model, ids, logits: logits.index_fill(-1, ids[0][0, 1:2], -float("inf"))
    )
    return model


def length_of(model: "nn.Module") -> float:
    """The length of all parameters: a number that says how many digits the others have."""
    return float(parameters_of(model).norm())


def parameters_of(model: "nn.Module") -> "Tensor":
    """All parameters in a row."""
    import torch

    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def state_of(model: "nn.Module", optimizer: "Optimizer") -> dict[str, object]:
    """What a step leaves behind, but for parameters."""
    rates = [float(group["lr"]) for group in optimizer.param_groups]
    return {"rates": rates, "steps of the optimizer": steps_of(model, optimizer)}


def steps_of(model: "nn.Module", optimizer: "Optimizer") -> int:
    """How many steps the optimizer remembers."""
    steps = [int(s["step"]) if "step" in s else 1 for s in optimizer.state.values()]
    return max(steps, default=0)


def mode_of(model: "nn.Module") -> bool:
    """Whether a model is in training mode."""
    return bool(model.training)


_MADE, _LENGTH = as_argument(with_optimizer), as_argument(length_of)
_NUMBERS = as_argument(parameters_of)
_LEFT, _STEPS = as_argument(state_of), as_argument(steps_of)


def _begun(model: Recipe, *how: object) -> Run:
    """A model with its optimizer, for the steps that follow."""
    return applied(with_optimizer, model, *how).then_apply(_LENGTH, Previous(0, (0,)))


def _changed_and_begun(function: Callable, model: Recipe, *how: object) -> Run:
    """The same, of a model that a function has changed: results of step 1."""
    made = applied(function, model).then_apply(_MADE, Previous(0), *how)
    return made.then_apply(_LENGTH, Previous(0))


def _stepped(run: Run, ids: Array, *settings: object, at: int = 0) -> Run:
    return run.then(Previous(at, (0,)), Previous(at, (1,)), ids, *settings)


def _numbers(run: Run, at: int = 0) -> Run:
    return run.then_apply(_NUMBERS, Previous(at, (0,)))


@EXERCISE.equals("the loss and the norm", 1.0)
def _results(draw: Draw) -> list[Run]:
    """The loss is that of the model as it was. The norm is the root of the sum of the squares of
    all gradients, before they are shortened."""
    named = _begun(_gpt(draw)).then(
        model=Previous(0, (0,)), optimizer=Previous(0, (1,)), ids=_ids(draw), step=2,
        num_steps=9, warm_up=3, most=0.5, max_norm=0.5,
    )  # fmt: skip
    return [
        _stepped(_begun(_gpt(draw)), _ids(draw), 1, 10, 4, 0.1),
        named,
        _stepped(_begun(_gpt(draw), "AdamW"), _ids(draw, 2, 6), 3, 8, 2, 0.2, _LOOSE),
        _stepped(_begun(_gpt(draw, 0.0, 0.05)), _ids(draw, 1, 2), 3, 8, 2, 0.2),
    ]


@EXERCISE.equals("the rate of every group", 1.0)
def _rates(draw: Draw) -> list[Run]:
    """The rate is the smaller of two, each times `most`: step / warm_up, and half a cosine that
    falls from 1 at step 0 to 0 at the last step. It belongs into all of optimizer.param_groups,
    before the step."""
    warm_up = draw.integer(4, 6)
    runs = []
    for step in (1, 2, warm_up, warm_up + 1, 14, 20):
        run = _stepped(_begun(_gpt(draw)), _ids(draw), step, 20, warm_up, 0.3)
        runs.append(run.then_apply(_LEFT, Previous(0, (0,)), Previous(0, (1,))))
    run = _stepped(_begun(_gpt(draw)), _ids(draw), 5, 6, 8, 0.3)  # a warm-up that never ends
    return [*runs, run.then_apply(_LEFT, Previous(0, (0,)), Previous(0, (1,)))]


@EXERCISE.equals("the parameters, after a gradient that was too long", 1.0)
def _clipped(draw: Draw) -> list[Run]:
    """All gradients are multiplied by the same number, so that their length together is max_norm
    and their direction stays. Then the optimizer takes its step, with the new rate."""
    return [
        _numbers(_stepped(_begun(_gpt(draw)), _ids(draw), 2, 9, 3, 0.4)),
        _numbers(_stepped(_begun(_gpt(draw)), _ids(draw, 2, 4), 4, 9, 3, 0.4, 0.25)),
    ]


@EXERCISE.equals("the parameters, after one that was not", 0.75)
def _short(draw: Draw) -> list[Run]:
    """A gradient that is shorter than max_norm stays as it is: it is not made longer."""
    return [
        _numbers(_stepped(_begun(_gpt(draw)), _ids(draw), 2, 9, 3, 0.02, _LOOSE)),
        _numbers(_stepped(_begun(_gpt(draw, 0.0, 0.05)), _ids(draw, 2, 4), 4, 9, 3, 0.2, 9.0)),
    ]


@EXERCISE.equals("gradients that are left from before", 0.5)
def _left_over(draw: Draw) -> list[Run]:
    """backward adds to what parameters have in .grad: clear that first."""
    run = _begun(_gpt(draw), "SGD", draw.number(0.5, 1.5))
    return [_numbers(_stepped(run, _ids(draw), 3, 9, 3, 0.1))]


@EXERCISE.equals("four steps in a row", 0.75)
def _four(draw: Draw) -> list[Run]:
    """Each step goes on from the one before: nothing is made anew, and no gradient is kept."""
    runs = []
    for kind in ("SGD", "AdamW"):
        run = _begun(_gpt(draw), kind)
        for step in range(1, 5):
            run = _stepped(run, _ids(draw), step, 6, 2, 0.05)
        runs.append(_numbers(run))
    return runs


@EXERCISE.equals("a loss or a gradient that is not finite", 0.75)
def _overflow(draw: Draw) -> list[Run]:
    """A step with such a gradient makes every parameter NaN, and the optimizer's memory, too.
    Leave it out where the loss or the norm is not finite; both come back as they are."""
    # Whether the rate is set where no step is taken is left to the answer.
    runs = []
    for change, kind in (
        (spoilt, "SGD"), (spoilt, "AdamW"), (steep, "SGD"), (barred, "SGD")
    ):  # fmt: skip
        run = _changed_and_begun(change, _gpt(draw), kind)
        run = _stepped(run, _ids(draw), 3, 9, 2, 0.2, at=1)
        run = run.then_apply(_STEPS, Previous(1, (0,)), Previous(1, (1,)))
        runs.append(_numbers(run, at=1))
    return runs


@EXERCISE.equals("a part that is not trained", 0.35)
def _frozen(draw: Draw) -> list[Run]:
    """A parameter without requires_grad has no gradient, and stays."""
    run = _changed_and_begun(frozen, _gpt(draw))
    return [_numbers(_stepped(run, _ids(draw), 3, 9, 2, 0.2, at=1), at=1)]


@EXERCISE.equals("the mode is the caller's", 0.15, only_if_right=True, forgeable=True)
def _modes(draw: Draw) -> list[Run]:
    """Whoever trains puts the model into training mode once, before the loop: leave it as it is."""
    runs = []
    for train in (True, False):
        run = _stepped(_begun(_gpt(draw), "SGD", 0.0, train), _ids(draw), 3, 9, 2, 0.2)
        runs.append(run.then_apply(as_argument(mode_of), Previous(0, (0,))))
    return runs


EXERCISE.keeps_dtypes(0.1, "Both are floats, not tensors: .item() takes the number out.", _results)
EXERCISE.leaves_inputs_alone(0.1, _results)


def _others_changed(run: Run, record: Record) -> str | None:
    allowed = {MEMORY, NUMBERS, SLOPES}
    left = [effect for effect in record.side_effects if effect not in allowed]
    return f"the call changed {', '.join(left)}" if left else None


EXERCISE.holds(
    "leaves global state alone",
    0.05,
    _others_changed,
    "A step changes parameters and gradients, and nothing else: no generator is seeded, no setting "
    "switched.",
    _results,
    only_if_right=True,
    forgeable=True,
)
EXERCISE.follows_its_inputs(_results)
