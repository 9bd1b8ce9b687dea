"""`PatchEmbedding`: each patch as one vector."""

from collections.abc import Sequence

from attention_by_hand.exercises.vision_transformer.parameters import images, projection_state
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Record,
    Run,
    StridedArray,
    describe,
    module,
    plain,
)

EXERCISE = Declaration("PatchEmbedding", "Each patch as a vector", ("images",))


def _embedding(
    draw: Draw, size: int, patch: int, channels: int, d: int, dtype: str = "float32"
) -> Run:
    state = projection_state(draw, channels, patch, d, dtype)
    return module(size, patch, channels, d, state=state)


def _images(draw: Draw, B: int, channels: int, size: int, dtype: str = "float32") -> Array:
    return images(draw, B, channels, size, size, dtype=dtype)


@EXERCISE.equals("a vector of each patch, row by row", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """The convolution gives (B, d_model, rows, columns). Join the last two axes, rows first, and
    only then exchange the result with the features."""
    state = projection_state(draw, 2, 3, 5)
    named = module(image_size=6, patch_size=3, channels=2, d_model=5, state=state)
    return [
        _embedding(draw, 6, 2, 3, 5).then(_images(draw, 2, 3, 6)).then(_images(draw, 3, 3, 6)),
        named.then(images=_images(draw, 1, 2, 6)),
        _embedding(draw, 8, 4, 1, 4).then(_images(draw, 2, 1, 8)),
    ]


@EXERCISE.equals("one patch, one pixel, one feature, many patches", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """A patch may be the whole image or a single pixel. Equal sizes hide swapped axes."""
    return [
        _embedding(draw, 4, 4, 3, 6).then(_images(draw, 2, 3, 4)),
        _embedding(draw, 3, 1, 2, 4).then(_images(draw, 2, 2, 3)),
        _embedding(draw, 4, 2, 2, 1).then(_images(draw, 1, 2, 4)),
        _embedding(draw, 4, 2, 4, 4).then(_images(draw, 4, 4, 4)),
        _embedding(draw, 9, 1, 1, 2).then(_images(draw, 1, 1, 9)),
        _embedding(draw, 6, 3, 2, 3).then(StridedArray(_images(draw, 2, 2, 6))),
    ]


def _not_their_number(run: Run, record: Record) -> str | None:
    size, patch = run.constructor.args[:2]
    wanted, got = (size // patch) ** 2, record.value
    whole = type(got) is int or (isinstance(got, Array) and got.data.dtype.kind in "iu")
    number = plain(got)
    right = number is not None and number.shape == () and float(number) == wanted
    if right and not whole:
        return f"num_patches: expected a whole number, {wanted}, got {describe(got)}"
    return None if right else f"num_patches: expected {wanted}, got {describe(got)}"


@EXERCISE.holds("the attribute num_patches", 0.2, _not_their_number)
def _attribute(draw: Draw) -> list[Run]:
    """A model needs to know how many positions there are before it sees an image. It is a whole
    number."""
    cases = (6, 2, 3, 5), (8, 2, 1, 4), (5, 5, 2, 3), (4, 1, 1, 2)
    return [_embedding(draw, *c).then_method("__getattribute__", "num_patches") for c in cases]


def _both_sizes(run: Run) -> Sequence[int]:
    """The size that the module is for, and the side that is not that long, if it is one."""
    size = run.constructor.args[0]
    others = {*run.steps[0].args[0].data.shape[2:]} - {size}
    return (*others, size) if len(others) == 1 else (size,)


@EXERCISE.raises("images of another size", 0.4, ValueError, naming=_both_sizes)
def _refused(draw: Draw) -> list[Run]:
    """The convolution would take images of any size, and the positions would not fit: raise a
    ValueError with the size of the image and image_size. Either side may be wrong."""
    run = _embedding(draw, 6, 2, 3, 4)
    return [
        run.then(_images(draw, 2, 3, 8)),
        run.then(_images(draw, 1, 3, 4)),
        run.then(images(draw, 1, 3, 6, 8)),
        run.then(images(draw, 1, 3, 4, 6)),
        run.then(images(draw, 1, 3, 8, 6)),
        run.then(images(draw, 1, 3, 6, 4)),
        _embedding(draw, 9, 3, 1, 4).then(images(draw, 1, 1, 9, 10)),
        _embedding(draw, 6, 2, 1, 4).then(images(draw, 2, 1, 4, 9)),
    ]


def _parts_of_a_size(run: Run) -> Sequence[int]:
    return (*run.constructor.args, *run.constructor.kwargs.values())[:2]


@EXERCISE.raises(
    "a patch_size that does not divide image_size", 0.25, ValueError, naming=_parts_of_a_size
)
def _unbuilt(draw: Draw) -> list[Run]:
    """Raise the ValueError when the module is built, with both numbers."""
    return [
        module(7, 2, 1, 4).then(_images(draw, 1, 1, 7)),
        module(image_size=10, patch_size=4, channels=2, d_model=3).then(_images(draw, 1, 2, 10)),
        module(2, 3, 1, 4).then(_images(draw, 1, 1, 2)),
    ]


@EXERCISE.gradients("gradients reach the images and the projection", 0.35)
def _gradients(draw: Draw) -> list[Run]:
    """One kernel reads all patches, and learns from all of them."""
    return [
        _embedding(draw, 4, 2, 2, 3, "float64").then(_images(draw, 2, 2, 4, "float64")),
        _embedding(draw, 3, 3, 1, 2, "float64").then(_images(draw, 2, 1, 3, "float64")),
    ]


@EXERCISE.keeps_dtypes(0.2)
def _double(draw: Draw) -> list[Run]:
    """A float64 module gives float64, a float32 module float32."""
    run = _embedding(draw, 4, 2, 2, 3, "float64").then(_images(draw, 1, 2, 4, "float64"))
    return [run, module(4, 2, 2, 3).then(_images(draw, 1, 2, 4)).at_random(draw)]


EXERCISE.leaves_inputs_alone(0.1, _runs)
EXERCISE.leaves_state_alone(0.1, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs)
