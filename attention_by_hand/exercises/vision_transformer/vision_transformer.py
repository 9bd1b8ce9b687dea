"""`VisionTransformer`: an encoder that reads patches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.dropped import dropped_once
from attention_by_hand.exercises.parameters import norm_state, prefixed
from attention_by_hand.exercises.shared import State, linear_state
from attention_by_hand.exercises.vision_transformer.parameters import (
    block_state,
    images,
    projection_state,
)
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    Step,
    StridedArray,
    as_argument,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of

EXERCISE = Declaration(
    "VisionTransformer",
    "The whole of ViT",
    ("images",),
    forbids=("transformer",),
    allows=("PatchEmbedding",),
    uses=("ViTBlock",),
)

Sizes = Sequence[int]  # the seven arguments of the class, without dropout


BIG = (
    3.0  # the size of what goes into the first block, with which the norm's eps is too small to see
)


def vit_state(draw: Draw, sizes: Sizes, dtype: str = "float32", scale: float = BIG) -> State:
    """Parameters of the model; `scale` is the size of what goes into the first block."""
    size, patch, channels, classes, d, _, num_layers = sizes
    number = 1 + (size // patch) ** 2
    state = prefixed("patches", projection_state(draw, channels, patch, d, dtype))
    state = {name: tensor(scale * array.data, dtype) for name, array in state.items()}
    state |= {
        "cls_token": draw.tensor(1, 1, d, scale=scale, dtype=dtype),
        "positions": draw.tensor(1, number, d, scale=scale, dtype=dtype),
    }
    for i in range(num_layers):
        state |= prefixed(f"blocks.{i}", block_state(draw, d, 4 * d, dtype))
    state |= norm_state(draw, "norm", d, dtype)
    return state | linear_state(draw, "head", classes, d, dtype)


def _model(
    draw: Draw, *sizes: int, dtype: str = "float32", scale: float = BIG, **kwargs: object
) -> Run:
    return module(*sizes, state=vit_state(draw, sizes, dtype, scale), **kwargs)


def _images(draw: Draw, B: int, run: Run, dtype: str = "float32") -> Array:
    """Images that the model of a run can read."""
    size, _, channels, *_ = (*run.constructor.args, *run.constructor.kwargs.values())
    return images(draw, B, channels, size, size, dtype=dtype)


_NAMES = (
    "image_size", "patch_size", "channels", "num_classes", "d_model", "num_heads", "num_layers",
)  # fmt: skip


@EXERCISE.equals("the logits", 1.8)
def _runs(draw: Draw) -> list[Run]:
    """Put the class token in front of the patches, add the positions to all of them, go through the
    blocks, normalise, and let head score the classes from the class token alone."""
    sizes = (4, 2, 2, 5, 6, 3, 1)
    named = module(**dict(zip(_NAMES, sizes, strict=True)), state=vit_state(draw, sizes))
    run, other = _model(draw, 6, 2, 3, 4, 8, 2, 2), _model(draw, 4, 2, 1, 3, 4, 1, 3)
    return [
        run.then(_images(draw, 2, run)).then(_images(draw, 3, run)),
        named.then(images=_images(draw, 1, named)),
        other.then(_images(draw, 3, other)),
    ]


@EXERCISE.equals("one patch, one pixel a patch, one class, one feature", 0.45)
def _ends(draw: Draw) -> list[Run]:
    """Whatever the sizes are, there is one position more than there are patches."""
    cases = (
        (2, (3, 3, 2, 4, 4, 2, 1)),
        (2, (2, 1, 1, 3, 4, 2, 1)),
        (3, (4, 2, 2, 1, 4, 4, 1)),
        (2, (4, 2, 1, 3, 1, 1, 1)),
        (1, (9, 1, 1, 2, 3, 1, 1)),
    )
    runs = [(B, _model(draw, *sizes)) for B, sizes in cases]
    strided = _model(draw, 4, 2, 2, 3, 4, 2, 1)
    return [
        *(run.then(_images(draw, B, run)) for B, run in runs),
        strided.then(StridedArray(_images(draw, 2, strided))),
    ]


@EXERCISE.equals("without blocks: the class token's own way", 0.45)
def _bare(draw: Draw) -> list[Run]:
    """With num_layers = 0 nothing has looked at the patches: the logits are head of norm of the
    class token and its position, the same for every image."""
    runs = _model(draw, 4, 2, 1, 4, 6, 2, 0), _model(draw, 6, 3, 2, 3, 5, 1, 0)
    return [run.then(_images(draw, 3, run)) for run in runs]


@EXERCISE.equals("the norm's eps is 1e-6", 0.3)
def _faint(draw: Draw) -> list[Run]:
    """norm has an eps of 1e-6, not torch's 1e-5: nn.LayerNorm takes it as an argument. It shows
    where the vectors are small."""
    runs = [_model(draw, 4, 2, 1, 4, 6, 2, 0, scale=scale) for scale in (1e-2, 1e-3)]
    return [run.then(_images(draw, 2, run)) for run in runs]


def _both_sizes(run: Run) -> Sequence[int]:
    size = run.constructor.args[0]
    others = {*run.steps[0].args[0].data.shape[2:]} - {size}
    return (*others, size) if len(others) == 1 else (size,)


@EXERCISE.raises("images of another size", 0.25, ValueError, naming=_both_sizes)
def _refused(draw: Draw) -> list[Run]:
    """patches raises the ValueError, if every image goes through it as it is."""
    run = _model(draw, 6, 2, 1, 3, 4, 2, 1)
    return [
        run.then(images(draw, 2, 1, 8, 8)),
        run.then(images(draw, 1, 1, 4, 9)),
    ]


@EXERCISE.equals("dropout on the sum, and inside the blocks", 0.3)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts once on the sum with the positions, and every block gets the same p. With p = 1
    in training the norm gets zeros."""
    runs = [_model(draw, 4, 2, 1, 3, 6, 2, n, dropout=1.0) for n in (0, 2)]
    sizes = (4, 2, 1, 3, 6, 2, 1)
    runs.append(module(*sizes, 1.0, state=vit_state(draw, sizes)))
    return [run.in_training().then(_images(draw, 2, run)) for run in runs]


_ONCE = 4.0  # what dropout with p = 0.5 leaves of 1 + 1, unless it leaves 0


def numbers_left(model: Value, images: Value) -> list[float]:
    """What goes into the first block in training, where it is called, but for 0 and `_ONCE`."""
    seen: list[float] = []
    look = model.blocks[0].register_forward_pre_hook
    look(lambda _, inputs: seen.extend(inputs[0].detach().flatten().tolist()))
    model.train()(images)
    return sorted({round(number, 2) for number in seen} - {0.0, _ONCE})


@EXERCISE.equals("dropout on the patches: once, on the sum", 0.05, forgeable=True)
def _dropped_once(draw: Draw) -> list[Run]:
    """Dropout acts once, after the positions have been added, on the patches as on the class token:
    where patches and positions are 1 and p = 0.5, each number becomes 0 or 4."""
    sizes = (4, 2, 1, 3, 8, 2, 1)
    state = vit_state(draw, sizes)
    ones = {"cls_token": (1, 1, 8), "positions": (1, 5, 8), "patches.projection.bias": (8,)}
    state |= {name: tensor(np.ones(shape), "float32") for name, shape in ones.items()}
    state["patches.projection.weight"] = tensor(np.zeros((8, 1, 2, 2)), "float32")
    run = module(*sizes, dropout=0.5, state=state)
    run = replace(run, steps=(Step((True,), {}, "train"),))
    look = as_argument(numbers_left)
    return [run.then_apply(look, Previous(0), images(draw, 12, 1, 4, 4))]


def _few_vanish(run: Run, record: Record) -> str | None:
    if not run.random:  # carries no marks, but tells known mistakes apart
        return None
    if len(run.steps) > 1:
        return _none_skipped(run, record)
    logits, classes = plain(record.value), run.constructor.args[3]
    B = run.steps[0].args[0].data.shape[0]
    if logits is None or logits.shape != (B, classes):
        return f"the logits: expected shape {(B, classes)}, got {describe(record.value)}"
    if classes == run.constructor.args[4]:  # the head hands on what the norm gives
        return dropped_once(logits)
    # Where all of the class token is dropped, the norm gives its bias.
    state = {name: numbers_of(array) for name, array in run.parameters.items()}
    nothing = state["head.weight"] @ state["norm.bias"] + state["head.bias"]
    vanished = float((np.abs(logits - nothing).max(-1) < 1e-4).mean())
    if vanished > 0.2:
        return f"the whole class token is dropped in {vanished:.0%} of the images"
    return "all images drop the same numbers" if np.ptp(logits, axis=0).max() < 1e-4 else None


def _none_skipped(run: Run, record: Record) -> str | None:
    """A block's dropout takes numbers, and not what it adds to a whole image."""
    x, y = numbers_of(run.steps[1].args[1]), plain(record.value)
    if y is None or y.shape != x.shape:
        return f"what a block returns: expected shape {x.shape}, got {describe(record.value)}"
    skipped = (np.abs(y - x) < 1e-6).all((1, 2)).any()
    return "in training, a block leaves a whole image as it is" if skipped else None


def skips(block: Value, x: Value) -> bool:
    """Whether a block in training leaves a whole image as it is."""
    return any(bool(((block(x) - x).abs() < 1e-6).flatten(1).all(1).any()) for _ in range(12))


@EXERCISE.holds("each number is dropped on its own", 0.15, _few_vanish, only_if_right=True)
def _drawn(draw: Draw) -> list[Run]:
    """nn.Dropout(p) drops every number with probability p, and divides the others by 1 − p."""
    run = _model(draw, 4, 2, 1, 3, 8, 2, 0, dropout=0.5).in_training()
    whole = run.then(_images(draw, 60, run)).at_random(draw)
    block = _model(draw, 4, 2, 1, 3, 8, 2, 1, dropout=0.5).in_training()
    block = block.then_method("get_submodule", "blocks.0")
    x = draw.tensor(48, 4, 8)
    told = block.then_apply(as_argument(skips), Previous(0), x)
    sizes = (4, 2, 1, 8, 8, 2, 0)
    state, alike = vit_state(draw, sizes), {"head.weight": np.eye(8), "head.bias": np.zeros(8)}
    alike |= {"cls_token": np.ones((1, 1, 8)), "positions": np.ones((1, 5, 8))}
    alike |= {"norm.weight": np.ones(8), "norm.bias": np.zeros(8)}
    state |= {name: tensor(array, "float32") for name, array in alike.items()}
    once = module(*sizes, dropout=0.5, state=state).in_training()
    once = once.then(_images(draw, 60, run)).at_random(draw)
    return [whole, block.then_apply(Previous(0), x).at_random(draw), once, told]


EXERCISE.draws_anew()


@EXERCISE.equals("no dropout in eval mode", 0.3)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    sizes = (4, 2, 1, 3, 6, 2, 1)
    runs = _model(draw, *sizes, dropout=1.0), _model(draw, *sizes).in_training()
    return [run.then(_images(draw, 2, run)) for run in runs]


@EXERCISE.gradients("gradients reach the images and every parameter", 0.7)
def _gradients(draw: Draw) -> list[Run]:
    """The class token and the positions are parameters, not buffers: they are learnt like all
    others. Through attention, every pixel counts."""
    runs = (
        _model(draw, 4, 2, 1, 3, 4, 2, 1, dtype="float64"),
        _model(draw, 2, 1, 2, 2, 3, 1, 2, dtype="float64"),
    )
    return [run.then(_images(draw, 2, run, "float64")) for run in runs]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 model gives float64, a float32 model float32."""
    run = _model(draw, 4, 2, 1, 3, 4, 2, 1, dtype="float64")
    new = module(4, 2, 1, 3, 4, 2, 1)
    return [
        run.then(_images(draw, 1, run, "float64")),
        new.then(_images(draw, 1, new)).at_random(draw),
    ]


EXERCISE.leaves_inputs_alone(0.1, _runs)
EXERCISE.leaves_state_alone(0.05, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _dropped)
