"""`equivariance_gap`: which changes move the answer."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from attention_by_hand.exercises.shared import State, linear_state, used
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Trial,
    as_argument,
    call,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import compare
from autograder.student.engine.runs import made_by

if TYPE_CHECKING:
    from torch import Tensor, nn

EXERCISE = Declaration(
    "equivariance_gap", "Which changes move the answer", ("model", "images", "changes")
)

# --- changes, of images and of answers ------------------------------------------------------------


def same(x: Value) -> Value:
    """Nothing is done."""
    return x


def shifted(by: int, axis: int = -1) -> Callable:
    """All moved along an axis; what leaves on one side comes in on the other."""
    return lambda x: x.roll(by, axis)


def mirrored(x: Value) -> Value:
    """Left for right."""
    return x.flip(-1)


def turned(x: Value) -> Value:
    """A quarter turn."""
    return x.rot90(1, (-2, -1))


def scaled(by: float) -> Callable:
    """Every number times another."""
    return lambda x: by * x


SAME, MIRRORED, TURNED = (as_argument(f) for f in (same, mirrored, turned))


def _shift(by: int, axis: int = -1) -> Recipe:
    return made_by(shifted, by, axis)


FOUR = (
    (made_by(shifted, 2), SAME),
    (made_by(shifted, 1, -2), SAME),
    (MIRRORED, SAME),
    (TURNED, SAME),
)

# --- models ---------------------------------------------------------------------------------------


def classifier(numbers: int, classes: int) -> "nn.Module":
    """Scores of classes, by one hidden layer on all numbers of an image."""
    from torch import nn

    return nn.Sequential(
        nn.Flatten(), nn.Linear(numbers, 4), nn.Tanh(), nn.Dropout(0.0), nn.Linear(4, classes)
    )


def _classifier(
    draw: Draw, numbers: int, classes: int = 3, dtype: str = "float32", bias: float = 0.5
) -> Recipe:
    state = linear_state(draw, "1", 4, numbers, dtype)
    state |= linear_state(draw, "4", classes, 4, dtype, bias=bias)
    return made_by(classifier, numbers, classes, state=state)


def mapped(padding: Literal["zeros", "circular"], mean: bool) -> "nn.Module":
    """A map of two channels, by a convolution; with `mean`, its mean over all places."""
    from torch import nn

    class Map(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 2, 3, padding=1, padding_mode=padding)

        def forward(self, images: "Tensor") -> "Tensor":
            found = self.conv(images).tanh()
            return found.mean((-2, -1)) if mean else found

    return Map()


def _map(
    draw: Draw, padding: str = "circular", mean: bool = False, dtype: str = "float32"
) -> Recipe:
    weight, bias = draw.tensor(2, 1, 3, 3, dtype=dtype), draw.tensor(2, dtype=dtype)
    return made_by(mapped, padding, mean, state={"conv.weight": weight, "conv.bias": bias})


def brightness(offset: float, scale: float) -> "nn.Module":
    """Three numbers from each image's left half, all raised by the same amount."""
    from torch import nn

    class Brightness(nn.Module):
        def forward(self, images: "Tensor") -> "Tensor":
            left = images[..., : images.shape[-1] // 2].flatten(1).mean(1, keepdim=True)
            return offset + scale * left * left.new_ones(3).cumsum(0)

    return Brightness()


def _images(draw: Draw, B: int, side: int, C: int = 1, dtype: str = "float32") -> Array:
    return draw.tensor(B, C, side, side, dtype=dtype)


@EXERCISE.equals("answers that should stay", 1.1)
def _classes(draw: Draw) -> list[Run]:
    """Above: the answers to the changed images against what h makes of the answers to the images as
    they are. Below: the same for two different images, over all pairs, none of an image with
    itself. Squares are added up over the numbers of an answer and averaged over images or pairs;
    the root comes last."""
    return [
        call(_classifier(draw, 16), _images(draw, 4, 4), FOUR),
        call(changes=FOUR[:1], images=_images(draw, 2, 4), model=_classifier(draw, 16)),
        call(_classifier(draw, 72, 5), _images(draw, 3, 6, 2), FOUR[1:]),
        call(_classifier(draw, 16, 1), _images(draw, 40, 4), FOUR[::2]),
    ]


@EXERCISE.equals("answers that should move along", 0.6)
def _maps(draw: Draw) -> list[Run]:
    """A map of the image should move with it: h says what should become of the answers to the
    images as they are. g and h get whole batches. An answer may have several axes; its length is
    taken over all of them."""
    changes = (
        (_shift(1), _shift(1)),
        (_shift(1), _shift(-1)),
        (_shift(2, -2), SAME),
        (SAME, _shift(1, 1)),  # of an answer, the channels
        (MIRRORED, MIRRORED),
        (TURNED, TURNED),
        (made_by(scaled, 2.0), made_by(scaled, -0.5)),
    )
    return [
        call(_map(draw, "zeros"), _images(draw, 3, 4), changes),
        call(_map(draw, "zeros"), _images(draw, 2, 5), changes[4:]),
        call(_map(draw), _images(draw, 4, 4), changes[::-1]),
    ]


@EXERCISE.equals("0 where all goes as it should", 0.4)
def _exact(draw: Draw) -> list[Run]:
    """A convolution that goes round the edge moves along with any shift, and its mean stays."""
    shifts = ((_shift(1), _shift(1)), (_shift(-2, -2), _shift(-2, -2)))
    nothing = ((SAME, SAME), (made_by(scaled, 1.0), SAME))
    double = "float64"
    return [
        call(_map(draw, dtype=double), _images(draw, 3, 5, dtype=double), shifts),
        call(_map(draw, mean=True, dtype=double), _images(draw, 3, 5, dtype=double), FOUR[:2]),
        call(_classifier(draw, 16), _images(draw, 3, 4), nothing),
    ]


def _alike(draw: Draw, B: int, side: int) -> Array:
    """The same image several times."""
    return tensor(np.repeat(draw.normal(1, 1, side, side), B, axis=0), "float32")


@EXERCISE.equals("answers that are all equal", 0.3)
def _ends(draw: Draw) -> list[Run]:
    """0 divided by 0 is NaN. Where nothing goes astray, the gap is 0, whatever it is compared with;
    where something does although all answers are equal, it is infinite."""
    blind = made_by(brightness, 2.0, 0.0)
    return [
        call(blind, _images(draw, 3, 4), FOUR[:2]),
        call(made_by(brightness, 0.0, 1.0), _alike(draw, 2, 4), ((SAME, SAME), FOUR[0])),
        call(blind, _images(draw, 2, 4), ((SAME, made_by(scaled, 2.0)), (SAME, SAME))),
    ]


@EXERCISE.equals("answers that have much in common", 0.25)
def _offset(draw: Draw) -> list[Run]:
    """What all answers share drops out. Take the differences first, then their squares: a mean of
    squares less the square of a mean loses its digits. And nothing small is to be added below,
    nor to be taken for 0."""
    return [
        call(made_by(brightness, 400.0, 1.0), _images(draw, 5, 4), FOUR),
        call(made_by(brightness, 1000.0, 1.0), _images(draw, 30, 4), FOUR[:1]),
        call(made_by(brightness, 0.0, 1e-9), _images(draw, 4, 4), FOUR),
        call(_classifier(draw, 16, bias=30.0), _images(draw, 4, 4), FOUR[2:]),
    ]


def _number(run: Run) -> Sequence[int]:
    return [run.steps[0].args[1].data.shape[0]]


@EXERCISE.raises("a batch of one", 0.2, ValueError, naming=_number)
def _one(draw: Draw) -> list[Run]:
    """One image has no other to be compared with: raise ValueError and name the number of
    images."""
    return [call(_classifier(draw, 16), _images(draw, 1, 4), FOUR)]


def of_two_modes() -> "nn.Module":
    """A model whose scale shows the modes: of itself, of a part, and of a part of a part."""
    from torch import nn

    class Part(nn.Module):
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = factor

        def forward(self, x: "Tensor") -> "Tensor":
            return x * self.factor if self.training else x

    class Whole(Part):
        def __init__(self) -> None:
            super().__init__(7.0)
            self.first, self.second = Part(3.0), nn.Sequential(Part(-5.0))

        def forward(self, images: "Tensor") -> "Tensor":
            x = self.second(self.first(images.flatten(1)) ** 3)
            return super().forward(x)

    return Whole()


def in_modes(model: "nn.Module", whole: bool, first: bool, second: bool) -> "nn.Module":
    """The model with each part in a mode of its own."""
    model.training = whole
    model.first.training, model.second[0].training = first, second
    return model


def noisy(numbers: int) -> "nn.Module":
    """A classifier in training, that draws and counts there."""
    from torch import nn

    layers = nn.Flatten(), nn.BatchNorm1d(numbers), nn.Dropout(0.5), nn.Linear(numbers, 3)
    return nn.Sequential(*layers)


def trained(model: "nn.Module") -> "nn.Module":
    """The same model, as in training."""
    return model.train()


def _measured_and_left(trial: Trial) -> Finding:
    """The gaps, and then what the model answers in the modes in which it is left."""
    gaps, after = (
        compare(trial.record.values[i], trial.expected.values[i])
        for i in (1, len(trial.run.steps) - 1)
    )
    if not gaps.passed:
        line = f"a model that came in training mode: {gaps.message}"
        return replace(gaps, message=line, step=1)
    message = "the model was not left in the modes in which it came"
    return after if after.passed else replace(after, message=message, step=1)


@EXERCISE.aspect("in eval mode, and left in the modes in which it came", 0.4, _measured_and_left)
def _modes(draw: Draw) -> list[Run]:
    """Measure in eval mode: in training, dropout alone makes two answers differ. Afterwards, put
    every part back into its own mode: model.train() would switch on parts that were off."""
    runs = []
    for modes in (
        (True, True, True),
        (True, False, True),
        (False, True, False),
        (True,) * 2 + (False,),
    ):
        images = _images(draw, 3, 4)
        run = Run(()).then_apply(as_argument(in_modes), made_by(of_two_modes), *modes)
        runs.append(run.then(Previous(0), images, FOUR[:3]).then_apply(Previous(0), images))
    images = _images(draw, 4, 4)
    state: State = {
        "1.weight": draw.tensor(16), "1.bias": draw.tensor(16), "1.running_mean": draw.tensor(16),
        "1.running_var": tensor(draw.uniform(0.5, 2.0, 16), "float32"),
        "1.num_batches_tracked": tensor(np.array(3)), **linear_state(draw, "3", 3, 16),
    }  # fmt: skip
    run = Run(()).then_apply(as_argument(trained), made_by(noisy, 16, state=state))
    run = run.then(Previous(0), images, FOUR)
    return [*runs, run.then(Previous(0), images, FOUR)]


def _reached(run: Run, record: Record) -> str | None:
    slope = plain(record.gradients.get("1"))
    return "a gradient reaches the images" if slope is not None else None


EXERCISE.holds(
    "the result has no gradient",
    0.2,
    _reached,
    "A measurement is not learnt from: without torch.no_grad, its graph keeps what every layer has "
    "computed, for every change.",
    lambda draw: [call(_classifier(draw, 16), _images(draw, 3, 4), FOUR).with_gradients()],
    only_if_right=True,
)


@EXERCISE.keeps_dtypes(0.25)
def _double(draw: Draw) -> list[Run]:
    """float64 answers give float64 gaps, float32 answers float32 ones, in one tensor."""
    double = _classifier(draw, 16, dtype="float64")
    return [
        call(double, _images(draw, 3, 4, dtype="float64"), FOUR),
        call(_classifier(draw, 16), _images(draw, 3, 4), FOUR[:1]),
    ]


EXERCISE.leaves_inputs_alone(0.1, _classes, _maps)


def _in_use(draw: Draw) -> list[Run]:
    runs = used(Run(()), _classifier(draw, 16))
    return [run.then(Previous(0), _images(draw, 2, 4), FOUR) for run in runs]


EXERCISE.leaves_state_alone(0.1, _classes, _in_use)


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """The images may be a part of a larger tensor, or of a transposed one."""
    return [call(_map(draw, "zeros"), _images(draw, 3, 4), ((_shift(1), _shift(1)),)).as_views()]


EXERCISE.follows_its_inputs(_classes, _maps)
