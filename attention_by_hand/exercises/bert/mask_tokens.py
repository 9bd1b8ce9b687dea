"""`mask_tokens`: blanks to fill in."""

from collections.abc import Sequence

import numpy as np

from attention_by_hand.exercises.bert.masking_inputs import (
    IGNORED,
    NAMES,
    Pair,
    Settings,
    hardly_varies,
    in_draws,
    scattered,
    summary,
    unlike,
    unlike_fates,
    wrong_form,
)
from attention_by_hand.exercises.shared import generator_for, summed_up
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    StridedArray,
    as_argument,
    call,
    describe,
    tensor,
)
from autograder.student.engine.aspects import numbers_of

EXERCISE = Declaration(
    "mask_tokens",
    "Blanks to fill in",
    ("ids", "mask_id", "vocab_size", "special_ids", "probability", "generator"),
    returns=NAMES,
)

_CALLS = 24


def _ids(draw: Draw, B: int, n: int, low: int, high: int) -> Array:
    return tensor(draw.integers(low, high, B, n))


def _both_kept(given: Settings, pairs: Sequence[Pair]) -> str | None:
    special = [*given["special_ids"]]
    for ids, inputs, labels in pairs:
        chosen = labels != IGNORED
        if not chosen.any() or chosen[~np.isin(ids, special)].all():
            share = "no" if not chosen.any() else "every"
            return f"{share} token has a label, with probability {given['probability']}"
        if (labels[chosen] != ids[chosen]).any():
            at = tuple(map(int, np.argwhere(chosen & (labels != ids))[0]))
            return f"the label at {at}: expected {ids[at]:.0f}, the true id, got {labels[at]:.0f}"
        if (inputs[~chosen] != ids[~chosen]).any():
            at = tuple(map(int, np.argwhere(~chosen & (inputs != ids))[0]))
            return f"the input at {at}, not chosen: expected {ids[at]:.0f}, got {inputs[at]:.0f}"
    return None


@EXERCISE.aspect("labels where chosen, inputs as before elsewhere", 1.0, in_draws(_both_kept))
def _runs(draw: Draw) -> list[Run]:
    """Labels hold the true id of every token that was chosen, also of those that are not masked,
    and −100 elsewhere. Tokens that were not chosen are the same in the inputs."""
    middle = {"mask_id": 3, "vocab_size": 50, "probability": 0.5}
    return [
        call(_ids(draw, 20, 30, 4, 49), 3, 50, (), 0.5).at_random(draw),
        call(ids=_ids(draw, 30, 20, 0, 49), special_ids=[3, 0], **middle).at_random(draw),
        call(StridedArray(_ids(draw, 20, 30, 4, 49)), 3, 50, probability=0.4).at_random(draw),
        summed_up(draw, summary),
    ]


def _share(given: Settings, pairs: Sequence[Pair]) -> str | None:
    for ids, _, labels in pairs:
        usual = ~np.isin(ids, [*given["special_ids"]])
        chosen = labels != IGNORED
        if "more" in (scattered(chosen, 0), scattered(chosen, 1)):
            return "many tokens are chosen together: expected every token to be drawn on its own"
        line = unlike("tokens chosen", chosen[usual], given["probability"])
        if line:
            return line
    return None


@EXERCISE.aspect("a share `probability` is chosen", 0.5, in_draws(_share), only_if_right=True)
def _shares(draw: Draw) -> list[Run]:
    """Compare a random number from 0 to 1 with the probability, for every token; 15 % if nothing
    else is said. The share counts tokens that are not special."""
    ids = _ids(draw, 60, 80, 5, 49)
    return [
        call(ids, 3, 50).at_random(draw),
        call(_ids(draw, 60, 60, 5, 49), 3, 50, (7, 8), 0.5).at_random(draw),
        call(_ids(draw, 60, 30, 4, 9), 3, 10, probability=draw.number(0.7, 0.9)).at_random(draw),
    ]


def _apart(given: Settings, pairs: Sequence[Pair]) -> str | None:
    first, second, *others = (labels != IGNORED for _, _, labels in pairs)
    if others and hardly_varies([first, second, *others]):
        return (
            f"the number of tokens chosen of {first.size} hardly varies from call to call: "
            "expected every token to be drawn on its own"
        )
    if (first == second).all():
        return "two calls choose the same tokens"
    for axis, one, all_of_them in ((1, "a sequence", "sequences"), (0, "a position", "positions")):
        how = scattered(first, axis)
        if how != "independent":
            return (
                f"the number of tokens chosen in {one} varies {how} from one to the next than it "
                f"does where each is drawn on its own, as if {all_of_them} were drawn as a whole"
                if how == "more"
                else f"the number of tokens chosen in {one} hardly varies: expected every token to "
                "be drawn on its own"
            )
    return None


@EXERCISE.aspect("each token on its own", 0.4, in_draws(_apart), only_if_right=True)
def _independent(draw: Draw) -> list[Run]:
    """Draw a random number for every token of the batch: neither one for a sequence or a position,
    nor a fixed number of tokens for each sequence."""
    ids = _ids(draw, 80, 40, 4, 49)
    one = (ids, 3, 50, (), draw.number(0.3, 0.4))
    return [call(*one).then(*one).at_random(draw), _often(draw, 0.4)]


def _often(draw: Draw, probability: float) -> Run:
    few = (_ids(draw, 20, 8, 4, 49), 3, 50, (), probability)
    run = call(*few)
    for _ in range(_CALLS - 1):
        run = run.then(*few)
    return run.at_random(draw)


EXERCISE.draws_anew(with_torchs=True)


def _fates(given: Settings, pairs: Sequence[Pair]) -> str | None:
    mask_id, vocab = given["mask_id"], given["vocab_size"]
    if len(pairs) == _CALLS and hardly_varies([inputs == mask_id for _, inputs, _ in pairs]):
        return "the number of chosen tokens that become mask_id hardly varies from call to call"
    for ids, inputs, labels in pairs:
        if (labels == IGNORED).all():
            return "no token is chosen"
        line = unlike_fates(ids, inputs, labels, mask_id, vocab)
        if line:
            return line
        masked = inputs == mask_id
        if given["probability"] == 1.0 and {scattered(masked, 0), scattered(masked, 1)} != {
            "independent"
        }:
            return "what becomes of a token depends on its neighbours: expected it to be drawn"
    return None


@EXERCISE.aspect("80 % masked, 10 % random, 10 % as they are", 0.75, in_draws(_fates))
def _many(draw: Draw) -> list[Run]:
    """Draw once more for every chosen token: below 0.8 it becomes mask_id, in the next tenth a
    random id, and in the last tenth it stays, though its label asks for it."""
    return [
        call(_ids(draw, 40, 60, 4, 99), 3, 100, (), 0.5).at_random(draw),
        call(_ids(draw, 240, 300, 7, 7), 3, 100, (), 1.0).at_random(draw),  # sees 81 % and 9 %
        _often(draw, 1.0),
    ]


def _even(given: Settings, pairs: Sequence[Pair]) -> str | None:
    mask_id, vocab = given["mask_id"], given["vocab_size"]
    for ids, inputs, labels in pairs:
        if (labels == IGNORED).any():
            return "with probability 1, some token has no label"
        drawn = inputs != mask_id
        if "more" in (scattered(drawn, 0), scattered(drawn, 1)):
            return "what becomes of a token depends on its neighbours: expected it to be drawn"
        strange = inputs[drawn & ((inputs < 0) | (inputs >= vocab))]
        if strange.size:
            return f"the input {strange[0]:.0f} is neither mask_id nor an id from 0 to {vocab - 1}"
        others = 0.1 * (vocab - 1 - (mask_id < vocab)) / vocab
        line = unlike("tokens that become another id", drawn & (inputs != ids), others)
        if line:
            return line
        for token in range(vocab):
            chance = 0.1 / vocab + 0.8 * (token == mask_id)
            line = unlike(f"tokens that become {token}", (inputs == token)[ids != token], chance)
            if line:
                return line
        if scattered((inputs == 0) & (ids != 0), 1) == "more":
            return "tokens of a sequence become the same random id: expected a draw for each"
    return None


@EXERCISE.aspect("random ids from 0 … vocab_size − 1, all alike", 0.4, in_draws(_even))
def _every_id(draw: Draw) -> list[Run]:
    """torch.randint(vocab_size, …) draws from 0 to vocab_size − 1, one for each token. All ids may
    be drawn: the true one, mask_id and the special ones, too."""
    return [
        call(_ids(draw, 60, 60, 1, 5), 9, 6, (), 1.0).at_random(draw),
        call(tensor(np.zeros((60, 60), np.int64)), 1, 2, (), 1.0).at_random(draw),
        call(_ids(draw, 60, 60, 2, 3), 4, 5, [0, 1], 1.0).at_random(draw),
    ]


def _spared(given: Settings, pairs: Sequence[Pair]) -> str | None:
    for ids, inputs, labels in pairs:
        special = np.isin(ids, [*given["special_ids"]])
        touched = special & ((labels != IGNORED) | (inputs != ids))
        if touched.any():
            at = tuple(map(int, np.argwhere(touched)[0]))
            return f"the token at {at}, {ids[at]:.0f}, is special, and was chosen"
        if given["probability"] == 1.0 and (labels == IGNORED)[~special].any():
            at = tuple(map(int, np.argwhere((labels == IGNORED) & ~special)[0]))
            return f"the token at {at} is not special: expected it to be chosen, with probability 1"
    return None


@EXERCISE.aspect("special tokens are never chosen", 0.5, in_draws(_spared), only_if_right=True)
def _special(draw: Draw) -> list[Run]:
    """A token whose id is in special_ids gets no label and stays as it is. With probability 1, all
    others are chosen. special_ids may be any collection, an empty one as well."""
    return [
        call(_ids(draw, 10, 20, 0, 9), 3, 10, (0, 2), 1.0).at_random(draw),
        call(_ids(draw, 10, 20, 0, 9), 3, 10, [9, 3, 4], 1.0).at_random(draw),
        call(_ids(draw, 10, 20, 0, 9), 3, 10, special_ids=(7,), probability=1.0).at_random(draw),
        call(_ids(draw, 10, 20, 0, 9), 3, 10, special_ids=(5,), probability=1.0).at_random(draw),
        call(_ids(draw, 10, 20, 0, 9), 3, 10, (), 1.0).at_random(draw),
        call(_ids(draw, 40, 20, 0, 4), 1, 5, (1, 2), 0.5).at_random(draw),
    ]


@EXERCISE.equals("nothing left to chance", 0.3)
def _sure(draw: Draw) -> list[Run]:
    """With probability 0, or where every token is special, nothing is chosen; with probability 1
    and a single id, everything is known beforehand."""
    zeros = tensor(np.zeros((3, 4), np.int64))
    return [
        call(zeros, 0, 1, (), 1.0),
        call(_ids(draw, 2, 5, 0, 9), 3, 10, (), 0.0),
        call(_ids(draw, 3, 4, 0, 2), 1, 3, (0, 1, 2), 1.0),
        call(_ids(draw, 1, 1, 4, 9), 3, 10, probability=0.0),
        call(tensor([[0]]), 0, 1, probability=1.0),
    ]


def _drawn_with_it(run: Run, record: Record) -> str | None:
    results = [v for v in record.values if isinstance(v, tuple | list)]
    shape = run.steps[-1].args[0].data.shape
    misfit = next(filter(None, (wrong_form(v, shape) for v in results)), None)
    if misfit or len(results) != 3:
        return misfit or f"expected (inputs, labels), got {describe(record.value)}"
    first, second, again = ([numbers_of(x) for x in result] for result in results)
    if any((a != b).any() for a, b in zip(first, again, strict=True)):
        return "two generators with the same seed: expected the same result, got another one"
    if all((a == b).all() for a, b in zip(first, second, strict=True)):
        return "two calls with one generator: expected other draws the second time"
    return None


_GENERATOR = as_argument(generator_for)


@EXERCISE.holds("a generator", 0.4, _drawn_with_it, only_if_right=True)
def _generator(draw: Draw) -> list[Run]:
    """Pass generator to every function that draws. The same seed then gives the same blanks, and
    the next call goes on where this one has stopped."""
    seed, ids = draw.integer(0, 10**6), _ids(draw, 10, 20, 4, 999)
    run = Run(()).then_apply(_GENERATOR, ids, seed).then_apply(_GENERATOR, ids, seed)
    for made in (0, 0, 1):
        run = run.then(ids, 3, 1000, (), 0.5, generator=Previous(made))
    return [run.at_random(draw)]


EXERCISE.keeps_dtypes(0.1, "Token ids are long, and so are labels.", _sure)
EXERCISE.leaves_inputs_alone(0.1, _sure, lambda draw: _special(draw)[:2])


def _seeded(draw: Draw) -> list[Run]:
    ids = _ids(draw, 4, 30, 4, 49)
    run = Run(()).then_apply(_GENERATOR, ids, draw.integer(0, 10**6))
    return [run.then(ids, 3, 50, (7,), 0.5, Previous(0)).at_random(draw)]


EXERCISE.leaves_state_alone(0.05, _seeded)
EXERCISE.follows_its_inputs(_sure, lambda draw: _special(draw)[:2])
