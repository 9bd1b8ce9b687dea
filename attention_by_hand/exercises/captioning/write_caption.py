"""`write_caption`: a caption for each picture, always the likeliest token."""

import numpy as np

from attention_by_hand.exercises.captioning.fake_captioners import captioning, prompt
from attention_by_hand.exercises.shared import (
    applied,
    in_training,
    itself,
    modes_kept,
    part_in_training,
    used,
)
from autograder.student.authoring import Declaration, Draw, Previous, Run, call, tensor

EXERCISE = Declaration(
    "write_caption",
    "A caption for each picture",
    ("model", "images", "prompt_ids", "eos_id", "max_len"),
)


@EXERCISE.equals("the likeliest token at every step", 1.4)
def _runs(draw: Draw) -> list[Run]:
    """Encode the pictures, and begin every caption with the prompt. model.decode(ids, memory)[:,
    -1] scores the next token; append the best one, and decode again with everything written so far.
    The captions that are returned begin with the prompt."""
    named, images = captioning(draw, (5,), eos_id=3)
    written = {"prompt_ids": tensor([5, 4]), "eos_id": 3, "max_len": 9}
    return [
        call(*captioning(draw, (6, 6, 6)), prompt(draw, 2), 2, 10),
        call(model=named, images=images, **written),
        call(*captioning(draw, (4, 4), vocab=6, eos_id=0, pad_id=5), tensor([1]), 0, max_len=7),
        call(*captioning(draw, (8, 8)), prompt(draw, 3), 2, 12),
    ]


@EXERCISE.equals("captions that end at different times", 0.8)
def _uneven(draw: Draw) -> list[Run]:
    """A caption keeps its eos and has model.pad_id from there on, while the others are continued.
    Keep track of which are finished."""
    return [
        call(*captioning(draw, (3, 7, 5)), prompt(draw, 2), 2, 11),
        call(*captioning(draw, (7, 2, 5, 3), pad_id=4, eos_id=3), tensor([5, 6]), 3, 10),
        call(*captioning(draw, (4, 99, 3)), prompt(draw, 1), 2, 6),
        call(*captioning(draw, (99, 4), pad_id=8, eos_id=7), tensor([1, 2, 3]), 7, 9),
        call(*captioning(draw, (3, 5, 4)), prompt(draw, 2), 2, 9).as_views(),
    ]


@EXERCISE.equals("max_len, one picture, eos at once", 0.5)
def _ends(draw: Draw) -> list[Run]:
    """A caption has at most max_len tokens, those of the prompt included; eos may be the first that
    is written. An eos in the prompt finishes nothing."""
    return [
        call(*captioning(draw, (99, 99)), prompt(draw, 2), 2, 6),
        call(*captioning(draw, (99,)), prompt(draw, 1), 2, 2),
        call(*captioning(draw, (99, 99, 5)), prompt(draw, 4), 2, 5),
        call(*captioning(draw, (2, 2)), prompt(draw, 2), 2, 9),
        call(*captioning(draw, (4, 5)), prompt(draw, 2), 2, 6),
        call(*captioning(draw, (1,)), prompt(draw, 1), 2, 8),
        call(*captioning(draw, (66,)), prompt(draw, 1), 2, 70),
        call(*captioning(draw, (2,) * 70), prompt(draw, 1), 2, 5),
        call(*captioning(draw, (6, 4)), tensor([2, draw.integer(3, 8)]), 2, 9),
    ]


@EXERCISE.equals("a prompt as long as max_len, and longer", 0.3, only_if_right=True)
def _cut(draw: Draw) -> list[Run]:
    """Then nothing is written: the prompt comes back for every picture, cut to max_len."""
    return [
        call(*captioning(draw, (9, 9)), prompt(draw, 4), 2, 4),
        call(*captioning(draw, (9, 9, 9)), prompt(draw, 5), 2, 3),
        call(*captioning(draw, (9,)), prompt(draw, 2), 2, 1),
    ]


@EXERCISE.equals("stops when all captions are finished", 0.4, only_if_right=True)
def _stopped(draw: Draw) -> list[Run]:
    """Once every caption has its eos, there is no reason to call model.decode again."""
    first, second = (captioning(draw, ends, impatient=True) for ends in ((3, 4), (2, 2, 2)))
    return [call(*first, prompt(draw, 2), 2, 14), call(*second, prompt(draw, 1), 2, max_len=14)]


@EXERCISE.equals("looks at the pictures once", 0.4, only_if_right=True)
def _once(draw: Draw) -> list[Run]:
    """The memory does not change while a caption is written: call model.encode once, before the
    first token, and pass its result to every model.decode."""
    return [
        call(*captioning(draw, (5, 4), once=True), prompt(draw, 2), 2, 9),
        call(*captioning(draw, (4,), once=True), prompt(draw, 1), 2, 9),
    ]


@EXERCISE.equals("writes in eval mode", 0.4)
def _in_training(draw: Draw) -> list[Run]:
    """Dropout must not act while a caption is written, neither in encode nor in decode, whatever
    mode the model comes in."""
    runs = []
    for start in (in_training, part_in_training):
        model, images = captioning(draw, (6, 5))
        runs.append(applied(start, model).then(Previous(0), images, prompt(draw, 2), 2, 8))
    return runs


@EXERCISE.aspect("restores each module's mode", 0.25, modes_kept, only_if_right=True)
def _modes(draw: Draw) -> list[Run]:
    """A part of a model in training may be in eval mode, frozen. Remember the mode of each of
    model.modules(), and restore each."""
    runs = []
    for start in (in_training, itself, part_in_training):
        model, images = captioning(draw, (4, 3))
        run = applied(start, model).then(Previous(0), images, prompt(draw, 2), 2, 7)
        runs.append(run.then_apply(Previous(0), images, tensor(np.full((2, 2), 4))))
    return runs


@EXERCISE.equals("without gradients", 0.15, only_if_right=True)
def _no_gradients(draw: Draw) -> list[Run]:
    """Under torch.no_grad() or torch.inference_mode(), the model keeps nothing for a backward pass
    that never comes: neither in encode nor in decode."""
    return [call(*captioning(draw, (6, 5), strict=True), prompt(draw, 2), 2, 8)]


EXERCISE.keeps_dtypes(0.1, "Token ids are long.", _runs)
EXERCISE.leaves_inputs_alone(0.15, _runs, _uneven)


def _in_use(draw: Draw) -> list[Run]:
    model, images = captioning(draw, (5, 4))
    rest: tuple[object, ...] = images, prompt(draw, 2), 2, 7
    return [run.then(Previous(0), *rest) for run in used(Run(()), model)]


EXERCISE.leaves_state_alone(0.15, _runs, _in_use)
EXERCISE.follows_its_inputs(_runs, _uneven, _in_training)
