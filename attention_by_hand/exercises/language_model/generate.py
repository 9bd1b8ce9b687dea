"""`generate`: writing on, token by token."""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.language_model.writing import (
    real_model,
    same_chances,
    sure_model,
    torn_model,
    with_generator,
)
from attention_by_hand.exercises.shared import (
    applied,
    in_training,
    itself,
    modes_kept,
    part_in_training,
    used,
)
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    as_argument,
    call,
    describe,
    plain,
    tensor,
)
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped

EXERCISE = Declaration(
    "generate",
    "Writing on",
    ("model", "ids", "max_new_tokens", "temperature", "top_k", "top_p", "generator"),
    allows=("next_token_probabilities",),
    uses=("GPT",),
)


_CHANCES = np.array([0.45, 0.3, 0.15, 0.1])
_SEEDED = as_argument(with_generator)


def _ids(draw: Draw, B: int, n: int, vocab: int = 17) -> Array:
    return tensor(draw.integers(0, vocab - 1, B, n))


@EXERCISE.equals("one token after another", 1.2)
def _runs(draw: Draw) -> list[Run]:
    """model(ids)[:, -1] scores the next token. Draw it, append it, and call the model again with
    everything so far, max_new_tokens times. Return the given tokens and the new ones."""
    return [
        call(sure_model(draw), _ids(draw, 2, 3), 4),
        call(model=sure_model(draw), ids=_ids(draw, 1, 1), max_new_tokens=5),
        call(sure_model(draw, 4), _ids(draw, 3, 2, 4), 3, 1.0, None, None, None),
        call(sure_model(draw, 1), _ids(draw, 2, 2, 1), 3),
        call(real_model(draw), _ids(draw, 3, 2, 9), 4, 0.0),
    ]


@EXERCISE.equals("more tokens than the context holds", 0.75)
def _cropped(draw: Draw) -> list[Run]:
    """Give the model the last model.context_size tokens of what is written, no more. The result has
    all of them."""
    return [
        call(sure_model(draw, context=4), _ids(draw, 2, 3), 6),
        call(sure_model(draw, context=5), _ids(draw, 2, 9), 3),
        call(sure_model(draw, context=1), _ids(draw, 1, 2), 4),
        call(sure_model(draw, context=6), _ids(draw, 2, 6), 2),
        call(real_model(draw), _ids(draw, 2, 4, 9), 7, 0.0),
        call(sure_model(draw, context=70), _ids(draw, 1, 66), 8),
    ]


@EXERCISE.equals("temperature, top_k and top_p are passed on", 0.6)
def _passed_on(draw: Draw) -> list[Run]:
    """Each of these leaves one token only: a temperature of 0 or near it, a top_k of 1, a top_p
    that is next to nothing."""
    return [
        call(torn_model(draw), _ids(draw, 2, 3), 4, 0.0),
        call(torn_model(draw), _ids(draw, 2, 3), 4, 0.005),
        call(torn_model(draw), _ids(draw, 2, 2), 5, top_k=1),
        call(torn_model(draw), _ids(draw, 3, 2), 4, 1.0, None, 0.01),
        call(torn_model(draw), _ids(draw, 2, 3), 4, temperature=0.0, top_k=3, top_p=0.9),
        # Of the two that top_k leaves, one has 60 %. Before top_k, it has 45 %.
        call(same_chances(draw, _CHANCES), _ids(draw, 2, 2), 3, top_k=2, top_p=0.5),
    ]


def _passed_on_again(draw: Draw) -> list[Run]:
    """Each leaves the likeliest token only; with what a call before it had, several are left."""
    run, model = Run(()), same_chances(draw, _CHANCES)
    for how in ({"top_k": 4, "top_p": 0.4}, {"top_k": 2, "top_p": 0.5}):
        run = run.then(model, _ids(draw, 4, 2), 6, **how)
    run = run.then(model, _ids(draw, 4, 2), 6, 0.0)
    return [replace(run, steps=(*run.steps, *run.steps[1::-1]))]


EXERCISE.called_again(_passed_on_again)


@EXERCISE.equals("no new tokens, and one", 0.25)
def _ends(draw: Draw) -> list[Run]:
    """With max_new_tokens = 0 the given tokens come back."""
    return [
        call(sure_model(draw), _ids(draw, 2, 3), 0),
        call(sure_model(draw), _ids(draw, 2, 3), 1),
        call(sure_model(draw, context=4), _ids(draw, 4, 7), 1),
        call(sure_model(draw), _ids(draw, 4, 4), 3).as_views(),
    ]


_ROWS = 1500  # a share is then off by 0.05 once in 10⁴ times


def _as_likely_as_it_should(run: Run, record: Record) -> str | None:
    ids, step = plain(record.value), run.steps[-1]
    rows, new = step.args[1].data.shape[0], step.args[2]
    if ids is None or ids.shape != (rows, 1 + new):
        return f"the result: expected shape ({rows}, {1 + new}), got {describe(record.value)}"
    logits = numbers_of(step.args[0].args[0])[0] / step.kwargs.get("temperature", 1.0)
    chances = np.exp(logits - logits.max())
    k = step.kwargs.get("top_k")
    if k is not None:
        chances[np.argsort(-chances)[k:]] = 0.0
    chances /= chances.sum()
    if "top_p" in step.kwargs:
        falling = np.argsort(-chances)
        chances[falling[1 + int((chances[falling].cumsum() < step.kwargs["top_p"]).sum()) :]] = 0.0
        chances /= chances.sum()
    for place in range(1, 1 + new):
        shares = np.array([(ids[:, place] == token).mean() for token in range(len(chances))])
        off = int(np.abs(shares - chances).argmax())
        if abs(shares[off] - chances[off]) > 0.06:
            return (
                f"new token number {place}: expected {off} in {chances[off]:.0%} of the rows, "
                f"got {shares[off]:.0%}"
            )
    same = (ids[:, 1] == ids[:, 2]).mean() if new > 1 else 0.0
    by_chance = float((chances**2).sum())
    if new > 1 and abs(same - by_chance) > 0.08:
        return f"two tokens in a row are equal in {same:.0%} of the rows; expected {by_chance:.0%}"
    return None


@EXERCISE.holds("drawn at random, with the right chances", 0.75, _as_likely_as_it_should)
def _drawn(draw: Draw) -> list[Run]:
    """torch.multinomial draws a token for each row, with the probabilities that you give it. Rows
    and steps are drawn independently of each other."""
    start = tensor(np.zeros((_ROWS, 1), dtype=np.int64))
    model = same_chances(draw, _CHANCES[draw.permutation(4)])
    return [
        call(model, start, 2).at_random(draw),
        call(model, start, 1, temperature=0.5).at_random(draw),
        call(model, start, 1, temperature=2.0, top_k=3).at_random(draw),
        call(model, start, 1, top_p=0.7).at_random(draw),
    ]


EXERCISE.draws_anew(with_torchs=True)


def _drawn_with_it(run: Run, record: Record) -> str | None:
    results = [plain(value) for value in record.values[2:]]
    rows, n = run.steps[2].args[1].data.shape
    if not all_shaped(results, (rows, n + 6)):
        return f"the result: expected shape ({rows}, {n + 6}), got {describe(record.value)}"
    first, again, other = results
    if not (first == other).all():
        return "two generators with the same seed: expected the same tokens, got others"
    if (first == again).all():
        return "two calls with one generator: expected other tokens the second time"
    return None


@EXERCISE.holds("a generator", 0.4, _drawn_with_it, only_if_right=True)
def _generator(draw: Draw) -> list[Run]:
    """Pass generator on to torch.multinomial. The same seed then gives the same text, and the next
    call goes on where this one has stopped."""
    seed, model, ids = draw.integer(0, 10**6), torn_model(draw), _ids(draw, 8, 3)
    run = applied(with_generator, model, seed).then_apply(_SEEDED, model, seed)
    for made in (0, 0, 1):
        run = run.then(Previous(made, (0,)), ids, 6, generator=Previous(made, (1,)))
    return [run]


@EXERCISE.equals("writes in eval mode", 0.35)
def _in_training(draw: Draw) -> list[Run]:
    """Dropout must not act while writing, whatever mode the model comes in."""
    real = applied(in_training, real_model(draw, dropout=0.6))
    return [
        applied(in_training, sure_model(draw)).then(Previous(0), _ids(draw, 2, 3), 4),
        applied(part_in_training, sure_model(draw)).then(Previous(0), _ids(draw, 2, 3), 4),
        real.then(Previous(0), _ids(draw, 4, 2, 9), 4, 0.0),
    ]


@EXERCISE.aspect("restores each module's mode", 0.25, modes_kept, only_if_right=True)
def _modes(draw: Draw) -> list[Run]:
    """A part of a model in training may be in eval mode, frozen. Remember the mode of each of
    model.modules(), and restore each."""
    runs = []
    for start in (in_training, itself, part_in_training):
        run = applied(start, sure_model(draw)).then(Previous(0), _ids(draw, 2, 3), 3)
        runs.append(run.then_apply(Previous(0), _ids(draw, 2, 2)))
    return runs


@EXERCISE.equals("without gradients", 0.1, only_if_right=True)
def _no_gradients(draw: Draw) -> list[Run]:
    """Under torch.no_grad() or torch.inference_mode(), the model keeps nothing for a backward pass
    that never comes."""
    return [call(sure_model(draw, strict=True), _ids(draw, 2, 3), 4)]


EXERCISE.keeps_dtypes(0.1, "Token ids are long.", _runs)
EXERCISE.leaves_inputs_alone(0.1, _runs, _cropped)


def _with_generator(draw: Draw) -> list[Run]:
    run = applied(with_generator, torn_model(draw), draw.integer(0, 10**6))
    model, generator = Previous(0, (0,)), Previous(0, (1,))
    return [run.then(model, _ids(draw, 2, 3), 4, generator=generator)]


def _in_use(draw: Draw) -> list[Run]:
    runs = []
    for run in used(Run(()), sure_model(draw)):
        seeded = run.then_apply(_SEEDED, Previous(0), draw.integer(0, 10**6))
        generator = Previous(1, (1,))
        runs.append(seeded.then(Previous(0), _ids(draw, 2, 3), 4, generator=generator))
    return runs


EXERCISE.leaves_state_alone(0.15, _with_generator, _in_use)
EXERCISE.follows_its_inputs(_runs, _cropped, _in_training)
