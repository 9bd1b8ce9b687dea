"""`ArithmeticCoder`: a model and a text to bits, and back."""

from attention_by_hand.exercises.language_model.counting import same, varied
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Previous,
    Recipe,
    Run,
    Trial,
    describe,
    module,
    wrong,
)
from autograder.student.engine.aspects import compare

EXERCISE = Declaration("ArithmeticCoder", "From bits to a file", ("ids",))

NINE = [2, 3, 2, 0]  # by `varied(4, 13)` 9 bits, of which the last is 0


def _text(draw: Draw, vocab: int, n: int) -> list[int]:
    return [int(token) for token in draw.integers(0, vocab - 1, n)]


def _encoded(model: Recipe, ids: list[int]) -> Run:
    return module(model).then_method("encode", ids)


def _decoded(model: Recipe, bits: str, length: int) -> Run:
    return module(model).then_method("decode", bits, length)


def _bits(draw: Draw, n: int) -> str:
    return "".join(map(str, draw.integers(0, 1, n)))


@EXERCISE.equals("bits, where the shares stay", 0.8)
def _steady(draw: Draw) -> list[Run]:
    """Begin with the numbers from 0 to 1. For each token move the lower end up by the shares of all
    ids below it, and make the interval narrower by its own share; both are parts of the interval so
    far. Then write down the smallest of the shortest strings that stay within it."""
    return [
        _encoded(same(3, 1, 2), _text(draw, 3, 6)),
        _encoded(same(3, 1, 2), [2, 0, 1]),
        _encoded(same(1, 5, 2, 4), _text(draw, 4, 6)),
        _encoded(same(1, 5, 2, 4), [3, 3]),  # up to the end
        _encoded(same(7, 2), _text(draw, 2, 9)),
        module(same(1, 5, 2, 4)).then_method("encode", ids=_text(draw, 4, 9)),
    ]


@EXERCISE.equals("bits, where the shares depend on what comes before", 0.5)
def _depending(draw: Draw) -> list[Run]:
    """Ask the model again for each token, and give it the tokens before that one, all of them, and
    no other: the receiver has no other, either."""
    return [
        _encoded(varied(4, 13), _text(draw, 4, 5)),
        _encoded(varied(4, 13), _text(draw, 4, 8)),
        _encoded(varied(4, 13), NINE),
        _encoded(varied(3, 101), _text(draw, 3, 7)),
    ]


def _few(trial: Trial) -> Finding:
    bits, fewest = trial.record.value, trial.expected.value
    if not isinstance(bits, str) or set(bits) - {"0", "1"}:
        return wrong(f"expected a string of 0 and 1, got {describe(bits)}")
    if len(bits) != len(fewest):
        return wrong(f"expected {len(fewest)} bits, got {len(bits)}")
    return Finding(True)


@EXERCISE.aspect("as many bits as it takes", 0.4, _few)
def _numbers_of_bits(draw: Draw) -> list[Run]:
    """Try 0 bits, 1 bit, 2 bits, … until a string names an interval of which both ends are within
    the text's. It may end where the text's ends. Zeros count, in front and behind."""
    return [
        _encoded(same(4, 2, 1, 1), _text(draw, 4, 7)),
        _encoded(same(4, 2, 1, 1), [0, 0, 0]),
        _encoded(same(1, 1), _text(draw, 2, 9)),
        _encoded(same(12, 3, 1), _text(draw, 3, 9)),
        _encoded(same(12, 3, 1), [0, 0, 0]),
        _encoded(same(1, 6, 1), _text(draw, 3, 8)),
        _encoded(varied(5, 29), _text(draw, 5, 10)),
        _encoded(varied(5, 29), [0, 0, 3, 3, 0]),
        _encoded(varied(5, 29), [2, 2, 2, 3, 0]),
        _encoded(same(2, 1, 1), [1]),
    ]


@EXERCISE.equals("tokens from bits", 0.7)
def _read(draw: Draw) -> list[Run]:
    """The bits name a number. Look in which token's piece of the interval it lies; go on with that
    piece, and ask the model with that token as well. A piece holds its lower end."""
    return [
        _decoded(same(3, 1, 2), _bits(draw, 40), 8),
        _decoded(varied(4, 13), _bits(draw, 50), 9),
        _decoded(varied(3, 101), _bits(draw, 60), 7),
        _decoded(same(2, 1, 1), "10", 1),
        _decoded(same(2, 1, 1), "1110011", 4),
        module(same(4, 2, 1, 1)).then_method("decode", length=5, bits="1" + _bits(draw, 24)),
        _decoded(same(1, 1), "0" + _bits(draw, 9), 10),
        _decoded(same(1, 1), "111", 3),
    ]


def _back(trial: Trial) -> Finding:
    bits, ids = trial.record.values
    if not isinstance(bits, str) or len(bits) > len(trial.expected.values[0]) + 2:
        return wrong(f"encode: expected a string of few bits, got {describe(bits)}")
    return compare(ids, trial.expected.value)


@EXERCISE.aspect("there and back", 0.4, _back)
def _and_back(draw: Draw) -> list[Run]:
    """decode(encode(ids), len(ids)) is ids."""
    texts = [
        (same(3, 1, 2), _text(draw, 3, 8)),
        (varied(4, 13), _text(draw, 4, 12)),
        (varied(4, 13), NINE),
        (varied(6, 29), _text(draw, 6, 9)),
    ]
    return [_encoded(m, ids).then_method("decode", Previous(0), len(ids)) for m, ids in texts]


@EXERCISE.equals("no tokens, one token, a single id", 0.3)
def _ends(draw: Draw) -> list[Run]:
    """A text without tokens takes no bits, and so does one of which every token is certain. No bits
    name all numbers from 0 to 1."""
    return [
        _encoded(same(3, 1, 2), []),
        _decoded(same(3, 1, 2), "", 0),
        _decoded(varied(4, 13), _bits(draw, 7), 0),
        _encoded(same(5), [0, 0, 0]),
        _decoded(same(5), "", 3),
        *(_encoded(varied(4, 13), [token]) for token in range(4)),
        _decoded(varied(4, 13), _bits(draw, 5), 1),
    ]


@EXERCISE.equals("rare tokens", 0.4)
def _rare(draw: Draw) -> list[Run]:
    """A token with a share of one in a million takes 20 bits. No share may be rounded, to 0 or to
    the 53 bits of a float."""
    common, rare = same(1, 2**20 - 2, 1), same(2**30, 1, 3)
    return [
        _encoded(common, [1, 0, 1, 2, 1]),
        _encoded(common, [2, 2]),
        _encoded(common, [2, 2, *_text(draw, 3, 3)]),
        _encoded(rare, [0, 0, 1, 0, 2]),
        _decoded(common, "0" * 19 + _bits(draw, 60), 4),
        _decoded(common, "1" * 20 + _bits(draw, 40), 3),
        _decoded(rare, "1" * 29 + _bits(draw, 60), 3),
    ]


@EXERCISE.equals("long texts", 0.3)
def _long(draw: Draw) -> list[Run]:
    """A float has 53 bits, and after as many the interval is lost in rounding; after 1,074 its
    length is 0. Python's integers, and the fractions made of them, have as many digits as it
    takes."""
    return [
        _encoded(varied(4, 13), _text(draw, 4, 120)),
        _encoded(same(3, 1, 2), _text(draw, 3, 90)),
        _encoded(same(2**30, 1, 3), [1] * 21 + [2] * 21),  # 1,228 bits
        _decoded(varied(4, 13), _bits(draw, 300), 110),
        _decoded(same(3, 1, 2), _bits(draw, 250), 100),
    ]


EXERCISE.leaves_inputs_alone(0.1, _steady, _depending)
EXERCISE.leaves_state_alone(0.1, _depending, _read, of_a_module=True)
