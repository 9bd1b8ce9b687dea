"""What chapter 5 asks: does attention know order, and four ways to tell it where a token stands."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    compare,
    describe,
    dtypes_kept,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    part,
    plain,
    raises,
)
from autograder.engine.runs import (
    Array,
    Aspect,
    Draw,
    Exercise,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Step,
    Strided,
    Trial,
    call,
    module,
    tensor,
)
from autograder.engine.state import write

_HERE = "autograder.exercises.positional_encoding:"

# --- permutation_gap ----------------------------------------------------------------------------


def attends(scale: float) -> Callable:
    """softmax(scale · XXᵀ) X, which does not care about order."""
    return lambda x: (scale * x @ x.mT).softmax(-1) @ x


def numbered(places: Any) -> Callable:
    """The same, once each position has had its row of `places` added."""
    return lambda x: attends(0.5)(x + places[: x.shape[1]])


def running_mean() -> Callable:
    """The mean of each position and those before it."""
    return lambda x: x.cumsum(1) / (1.0 + x.new_ones(x.shape[1]).cumsum(0))[:, None]


def climbing() -> Callable:
    """x, raised at each step from one position to the next, the more the larger the sequence is."""
    return lambda x: x + x.abs().sum((1, 2), True) * x.new_ones(x.shape[1]).cumsum(0)[:, None]


def token_by_token(weight: Any) -> Callable:
    """Something that looks at each token alone; its output has a size of its own."""
    return lambda x: (x @ weight).tanh()


def in_heads(places: Any) -> Callable:
    """`numbered`, with the features split in two: the output is (B, n, 2, d/2)."""
    return lambda x: numbered(places)(x).unflatten(-1, (2, -1))


def attention_in_training(places: Any) -> Any:
    """`numbered` as a module in training mode."""
    from torch import nn

    class Numbered(nn.Module):
        def forward(self, x: Any) -> Any:
            return numbered(places)(x)

    return Numbered().train()


def _order(draw: Draw, n: int) -> Array:
    """A permutation that is not its own inverse: one that turns three places at least in a ring."""
    while True:
        p = draw.permutation(n)
        if (p[p] != np.arange(n)).any():
            return tensor(p)


def _ring(n: int) -> Array:
    """Each position takes the place before it, the first one the last: the largest gap that
    `climbing` has with it is a negative difference."""
    return tensor(np.roll(np.arange(n), 1))


def _growing(draw: Draw, *shape: int) -> Array:
    """Sequences of which the last is by far the largest."""
    return tensor(draw.normal(*shape) * (1.0 + np.arange(shape[0])[:, None, None]) ** 2)


def _double(draw: Draw, *shape: int) -> Array:
    return draw.tensor(*shape, dtype="float64")


def _gap_runs(draw: Draw) -> Sequence[Run]:
    def aware(n: int, d: int) -> Recipe:
        return Recipe(_HERE + "numbered", (_double(draw, n, d),))

    x = _double(draw, 1, 6, 3)
    return [
        call(aware(7, 4), _double(draw, 2, 5, 4), _order(draw, 5)),
        call(aware(4, 4), _double(draw, 5, 4, 4), _order(draw, 4)),
        call(Recipe(_HERE + "running_mean", ()), _double(draw, 4, 3, 5), _order(draw, 3)),
        call(permutation=_order(draw, 6), x=x, attention=aware(6, 3)),
        call(Recipe(_HERE + "climbing", ()), _growing(draw, 2, 6, 3), _ring(6)),
    ]


def _gap_none(draw: Draw) -> Sequence[Run]:
    same = Recipe(_HERE + "attends", (0.7,))
    alone = Recipe(_HERE + "token_by_token", (_double(draw, 4, 3),))
    return [
        call(same, _double(draw, 2, 5, 4), _order(draw, 5)),
        call(alone, _double(draw, 3, 6, 4), _order(draw, 6)),
        call(Recipe(_HERE + "running_mean", ()), _double(draw, 2, 4, 3), tensor(np.arange(4))),
    ]


def _gap_shapes(draw: Draw) -> Sequence[Run]:
    split = Recipe(_HERE + "in_heads", (_double(draw, 5, 6),))
    climb = Recipe(_HERE + "climbing", ())
    return [
        call(split, _double(draw, 2, 5, 6), _order(draw, 5)),
        call(climb, Strided(_growing(draw, 3, 9, 2)), _ring(9)),
    ]


def _gap_training(draw: Draw) -> Sequence[Run]:
    make = Recipe(_HERE + "attention_in_training")
    run = Run(()).then_apply(make, _double(draw, 5, 4))
    return [run.then(Previous(0), _double(draw, 2, 5, 4), _order(draw, 5))]


PERMUTATION_GAP = Exercise(
    "permutation_gap",
    "Does it know order?",
    ("attention", "x", "permutation"),
    (
        equals_reference(
            "attention that cares about order",
            0.95,
            "Permute the positions (axis 1) of the input and run; run and permute the positions of "
            "the output in the same way. The gap is the largest absolute difference of the two.",
            _gap_runs,
        ),
        equals_reference(
            "attention that does not",
            0.35,
            "What treats all positions alike has a gap of 0: the permuted input gives the "
            "permuted output.",
            _gap_none,
        ),
        equals_reference(
            "outputs of any shape (B, n, …)",
            0.25,
            "Only axis 1 is the positions'; what comes after it can be anything.",
            _gap_shapes,
        ),
        dtypes_kept(0.25, "Return a Python number: a tensor's .item().", _gap_runs),
        inputs_untouched(0.1, lambda draw: [*_gap_runs(draw), *_gap_none(draw)]),
        no_side_effects(0.1, lambda draw: [*_gap_runs(draw), *_gap_training(draw)]),
    ),
)

# --- sinusoidal_encoding ------------------------------------------------------------------------


def _table_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(6, 8),
        call(draw.integer(7, 9), 4),
        call(max_len=4, d_model=draw.integer(5, 6) * 2),
        call(8, 6, 10000.0),
    ]


def _table_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(7, 6, draw.number(20.0, 90.0)),
        call(5, 8, base=draw.number(300.0, 900.0)),
        call(6, 4, base=100),
    ]


def _table_odd(draw: Draw) -> Sequence[Run]:
    return [call(6, 7), call(5, 3, draw.number(50.0, 500.0)), call(4, 1), call(3, 9)]


def _table_ends(_: Draw) -> Sequence[Run]:
    return [call(1, 6), call(4, 2)]


def _on_circles(run: Run, record: Record) -> str | None:
    table = plain(record.value)
    args = dict(zip(("max_len", "d_model"), run.steps[0].args, strict=False)) | run.steps[0].kwargs
    if table is None or table.shape != (args["max_len"], args["d_model"]):
        return f"the result is {describe(record.value)}"
    radius = np.hypot(table[:, 0::2], table[:, 1::2])
    pos, i = np.unravel_index(np.abs(radius - 1).argmax(), radius.shape)
    if abs(radius[pos, i] - 1) > 1e-5:
        return (
            f"at position {pos}, columns {2 * i} and {2 * i + 1} are no sine and cosine of one "
            f"angle: their squares sum to {radius[pos, i] ** 2:.4g}"
        )
    return None


SINUSOIDAL_ENCODING = Exercise(
    "sinusoidal_encoding",
    "The table of sines and cosines",
    ("max_len", "d_model", "base"),
    (
        equals_reference(
            "one row per position",
            1.0,
            "Positions count from 0. Columns 2i and 2i + 1 have the same angle, "
            "pos / base^(2i/d_model): the even column is its sine, the odd one its cosine. The "
            "first pair turns by 1 radian per position, later ones ever more slowly.",
            _table_runs,
        ),
        has_property(
            "a sine and its cosine share their angle",
            0.5,
            "sin² + cos² is 1 in every pair of columns (2i, 2i + 1), at every position. The i in "
            "the exponent counts pairs, not columns.",
            _table_runs,
            _on_circles,
        ),
        equals_reference(
            "another base",
            0.5,
            "`base` stands where the paper has 10000.",
            _table_bases,
        ),
        equals_reference(
            "an odd d_model",
            0.5,
            "The last column is a sine without a cosine; its angle is as it would be with the "
            "cosine there, and d_model in the exponent stays the odd number.",
            _table_odd,
        ),
        equals_reference(
            "one position, two columns",
            0.25,
            "At position 0 all angles are 0: sines 0, cosines 1. The table keeps both its axes.",
            _table_ends,
        ),
        dtypes_kept(
            0.15,
            "The table is float32, whatever the angles were computed in.",
            _table_runs,
        ),
        no_side_effects(0.1, _table_runs),
    ),
)

# --- PositionalEncoding -------------------------------------------------------------------------


def fill(buffer: Any, numbers: Any) -> None:
    """Write other numbers into a buffer, where it lies."""
    write(buffer, numbers)


def _encoding_runs(draw: Draw) -> Sequence[Run]:
    return [
        module(6, 8).then(draw.tensor(2, 5, 6)),
        module(d_model=4, max_len=9).then(x=draw.tensor(3, 2, 4)),
        module(6, 6).then(draw.tensor(1, 4, 6)).then(draw.tensor(4, 3, 6)),
        module(8).then(draw.tensor(4, 4, 8), 0),
    ]


def _encoding_odd(draw: Draw) -> Sequence[Run]:
    return [
        module(5, 6).then(draw.tensor(2, 4, 5)),
        module(3, max_len=4).then(draw.tensor(1, 3, 3)),
    ]


def _encoding_offsets(draw: Draw) -> Sequence[Run]:
    model = module(6, 12)
    for offset in (3, 0, 7):
        model = model.then(draw.tensor(2, 4, 6), offset=offset)
    return [
        model,
        module(4, 10).then(draw.tensor(1, 1, 4), draw.integer(4, 8)),
        module(4, 10).then(draw.tensor(3, 2, 4), offset=draw.integer(1, 5)),
    ]


def _encoding_full(draw: Draw) -> Sequence[Run]:
    return [
        module(4, 5).then(draw.tensor(2, 5, 4)),
        module(4, 7).then(draw.tensor(1, 3, 4), offset=4),
        module(6, 3).then(draw.tensor(2, 1, 6)),
    ]


def _filled(model: Run, numbers: np.ndarray) -> Run:
    """The buffer `pe` (step 0) gets other numbers (step 1), which are to show in later calls."""
    kept = replace(model, steps=(Step(("pe",), {}, "get_buffer"),))
    return kept.then_apply(Recipe(_HERE + "fill"), Previous(0), tensor(numbers, "float32"))


def _encoding_buffer(draw: Draw) -> Sequence[Run]:
    """The table as it is made; then another one in its place."""
    table = replace(module(d_model=4, max_len=3), steps=(Step(("pe",), {}, "get_buffer"),))
    other = replace(module(6, 8), steps=(Step(("pe",), {}, "get_buffer"),))
    filled = _filled(module(d_model=4, max_len=5), draw.normal(5, 4))
    return [other, table, filled.then(draw.tensor(2, 3, 4), offset=1)]


def _encoding_moved(draw: Draw) -> Sequence[Run]:
    """A module without parameters, to be loaded with none; its buffer gets numbers that bfloat16
    cannot hold, goes there and back, and is added to an x that has not come along."""
    numbers = np.float32(1.0 + draw.integers(0, 7, 4, 6) / 8 + 1 / 512)
    run = _filled(module(6, 4, state={}), numbers)
    named = module(6, 4)  # no marks hang on it, but known mistakes differ there
    return [_there_and_back(model).then(_double(draw, 2, 3, 6)) for model in (run, named)]


def _there_and_back(model: Run) -> Run:
    moves = (Step((), {}, dtype) for dtype in ("bfloat16", "double"))
    return replace(model, steps=(*model.steps, *moves))


def _moves_along(trials: Sequence[Trial]) -> Finding:
    raised = trials[0].record.raised
    if raised and raised.during == "load":
        return Finding(False, "the module has parameters; expected none")
    if raised and "AttributeError" in raised.types:
        return Finding(False, "the module has no buffer called pe")
    return each(_has_moved)(trials[:1])


def _has_moved(trial: Trial) -> Finding:
    found = compare(trial.record.value, trial.expected.value)
    if found.passed or found.error is None:
        return found
    return replace(found, message="module.bfloat16() and module.double() do not reach the buffer")


def _encoding_long(draw: Draw) -> Sequence[Run]:
    n = draw.integer(33, 39)
    return [
        module(4, 8).then(draw.tensor(1, n, 4)),
        module(4, max_len=27).then(draw.tensor(2, 3, 4), offset=n),
        module(4, 16).then(draw.tensor(2, 1, 4), 16),
    ]


def _encoding_numbers(run: Run) -> Sequence[int]:
    step = run.steps[0]
    offset = step.kwargs.get("offset", step.args[1] if len(step.args) > 1 else 0)
    init = dict(zip(("d_model", "max_len"), run.init.args, strict=False)) | run.init.kwargs
    return offset + step.args[0].data.shape[1], init["max_len"]


_P, _CALLS = 0.25, 8


def _encoding_dropout(draw: Draw) -> Sequence[Run]:
    """Some calls in training mode and one in eval mode; with dropout 1 nothing is random."""
    x = tensor(draw.normal(2, 16, 8) + 4.0, "float32")  # no sum is near 0
    model = replace(module(8, 20, dropout=_P), training=True)
    for _ in range(_CALLS):
        model = model.then(x)
    model = replace(model, steps=(*model.steps, Step((), {}, "eval"))).then(x)
    certain = replace(module(6, 8, dropout=1.0), training=True)
    return [
        replace(model, random=True, seed=draw.integer(0, 10**6)),
        certain.then(draw.tensor(2, 3, 6)),
    ]


def _encoding_dropped(trial: Trial) -> Finding:
    if not trial.run.random:
        return compare(trial.record.value, trial.expected.value)
    whole = plain(trial.expected.value)
    outs = [plain(value) for value in trial.record.values[:_CALLS]]
    if any(out is None or out.shape != whole.shape for out in outs):
        return Finding(False, "the result does not have the shape of x")
    ratio = np.stack(outs) / whole
    dropped = np.abs(ratio) < 1e-6
    if not dropped.any():
        return Finding(False, f"in training mode with dropout {_P}, nothing of the sum is dropped")
    if (dropped[0] == dropped[1]).all():
        return Finding(False, "two calls in training mode drop the same numbers")
    share = float(dropped.mean())
    if abs(share - _P) > 0.06:
        return Finding(False, f"numbers dropped: expected {_P:.0%}, got {share:.0%}")
    off = float(np.abs(ratio[~dropped] * (1 - _P) - 1).max())
    if off > 1e-3:
        wanted = 1 / (1 - _P)
        return Finding(False, f"what stays is not the sum of x and pe times {wanted:.3g}")
    return Finding(True)


def _encoding_evaluated(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 3, 4)
    return [module(4, 6, 0.5).then(x).then(x), module(4, 6, dropout=1.0).then(x)]


def _encoding_wide(draw: Draw) -> Sequence[Run]:
    """In float64, where answers differ from each other in float32's last digit."""
    run = module(4, 6).then(_double(draw, 2, 3, 4))
    return [replace(run, random=True)]


def _double_stays(run: Run, record: Record) -> str | None:
    dtype = getattr(record.value, "dtype", describe(record.value))
    return None if dtype == "float64" else f"x is float64, the result {dtype}"


POSITIONAL_ENCODING = Exercise(
    "PositionalEncoding",
    "Positions as a module",
    ("x", "offset"),
    (
        equals_reference(
            "each position gets its row",
            0.75,
            "Row p of the table is added to token p of every sequence. Positions run along axis 1 "
            "of x, not along the batch; the table (n, d_model) broadcasts over the batch.",
            _encoding_runs,
        ),
        equals_reference(
            "an odd d_model",
            0.15,
            "The table has one sine more than cosines, as in sinusoidal_encoding.",
            _encoding_odd,
        ),
        equals_reference(
            "an offset",
            0.35,
            "With an offset the first token of x stands at position `offset`: take n rows from "
            "there on.",
            _encoding_offsets,
        ),
        equals_reference(
            "as long as the table",
            0.25,
            "The last row may be used: offset + n = max_len still fits.",
            _encoding_full,
        ),
        raises(
            "more positions than the table has",
            0.25,
            "Raise ValueError where offset + n is above max_len, and name these two numbers.",
            _encoding_long,
            ValueError,
            naming=_encoding_numbers,
        ),
        Aspect(
            "the buffer pe",
            0.25,
            "register_buffer keeps a tensor under a name. The table is (max_len, d_model), without "
            "a batch axis.",
            _encoding_buffer,
            each(lambda trial: compare(trial.record.value, trial.expected.value)),
        ),
        Aspect(
            "no parameters, and it moves with the module",
            0.25,
            "A plain attribute stays behind when the module changes dtype or device, a parameter "
            "is trained; a buffer moves along and is not.",
            _encoding_moved,
            _moves_along,
        ),
        Aspect(
            "dropout in training",
            0.25,
            "nn.Dropout acts on the sum of x and the encoding.",
            _encoding_dropout,
            each(_encoding_dropped),
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.15,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _encoding_evaluated,
        ),
        gradients_match(
            "gradients flow back to x",
            0.15,
            "The encoding is added to x: the gradient of x is that of the output, untouched.",
            lambda draw: [*_encoding_runs(draw)[:2], *_encoding_offsets(draw)[1:]],
        ),
        has_property(
            "dtype",
            0.05,
            "float64 in, float64 out.",
            _encoding_wide,
            _double_stays,
            only_if_right=True,
        ),
        inputs_untouched(0.1, lambda d: [*_encoding_runs(d), *_encoding_offsets(d)]),
        no_side_effects(0.05, _encoding_runs),
    ),
)

# --- shift_matrix -------------------------------------------------------------------------------


def _shift_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(1, 6),
        call(draw.integer(2, 4), 8),
        call(offset=draw.integer(5, 9), d_model=4),
        call(draw.integer(2, 3), 10, 10000.0),
    ]


def _shift_back(draw: Draw) -> Sequence[Run]:
    return [call(-draw.integer(1, 3), 6), call(offset=-draw.integer(4, 9), d_model=4), call(0, 8)]


def _shift_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(2, 6, draw.number(20.0, 90.0)),
        call(3, 8, base=draw.number(300.0, 900.0)),
    ]


def _shift_pair(draw: Draw) -> Sequence[Run]:
    return [call(draw.integer(1, 6), 2), call(-1, 2)]


def _shift_chains(draw: Draw) -> Sequence[Run]:
    a, b = draw.integer(2, 5), draw.integer(6, 9)
    return [call(a, 6).then(b, 6).then(a + b, 6).then(-a, 6), call(b, 4).then(-a, 4).then(b - a, 4)]


def _shifts_add_up(run: Run, record: Record) -> str | None:
    d = run.steps[0].args[1]
    matrices = [plain(value) for value in record.values]
    if any(m is None or m.shape != (d, d) or not np.isfinite(m).all() for m in matrices):
        return f"the result is {describe(record.value)}"
    first, second, both = matrices[:3]
    a, b = (step.args[0] for step in run.steps[:2])
    if np.abs(first @ second - both).max() > 1e-5:
        return f"a shift by {a} and one by {b} are not a shift by {a + b}"
    if np.abs(first @ first.T - np.eye(d)).max() > 1e-5:
        return "the matrix changes lengths: M Mᵀ is not the identity"
    back = matrices[3] if len(matrices) > 3 else first.T
    return None if np.abs(back - first.T).max() < 1e-5 else "the way back is not the transpose"


SHIFT_MATRIX = Exercise(
    "shift_matrix",
    "A step is a rotation",
    ("offset", "d_model", "base"),
    (
        equals_reference(
            "a shift forwards",
            1.25,
            "Write sin(a + b) and cos(a + b) with the addition theorems: the pair (sin, cos) at "
            "p + offset is a 2 × 2 matrix times the pair at p, and the angle in it is offset times "
            "the pair's frequency. The matrices stand along the diagonal.",
            _shift_runs,
        ),
        equals_reference(
            "a shift backwards, and none",
            0.5,
            "A negative offset turns the other way; offset 0 gives the identity.",
            _shift_back,
        ),
        has_property(
            "shifts add up",
            0.5,
            "Rotations chain: M(a) M(b) = M(a + b), the inverse is the transpose.",
            _shift_chains,
            _shifts_add_up,
            only_if_right=True,
        ),
        equals_reference(
            "another base",
            0.25,
            "`base` stands where the paper has 10000.",
            _shift_bases,
        ),
        equals_reference(
            "a single pair",
            0.25,
            "With d_model = 2 there is one frequency, 1 radian per position.",
            _shift_pair,
        ),
        dtypes_kept(0.15, "The matrix is float32, like the table.", _shift_runs),
        no_side_effects(0.1, _shift_runs),
    ),
)

# --- relative_positions -------------------------------------------------------------------------


def _distance_runs(draw: Draw) -> Sequence[Run]:
    n = draw.integer(4, 6)
    return [call(n, n, n - 1), call(3, 3, 5), call(n_q=5, n_k=5, max_distance=draw.integer(5, 7))]


def _distance_cut(draw: Draw) -> Sequence[Run]:
    return [call(6, 6, 2), call(7, 7, draw.integer(3, 4)), call(5, 5, max_distance=1)]


def _distance_chunk(draw: Draw) -> Sequence[Run]:
    return [
        call(2, 6, 8),
        call(1, draw.integer(4, 7), 7),
        call(3, 8, 2),
        call(n_q=5, n_k=2, max_distance=6),
    ]


def _distance_ends(_: Draw) -> Sequence[Run]:
    return [call(3, 4, 0), call(1, 1, 2), call(1, 1, 0)]


RELATIVE_POSITIONS = Exercise(
    "relative_positions",
    "How far apart?",
    ("n_q", "n_k", "max_distance"),
    (
        equals_reference(
            "as many queries as keys",
            0.75,
            "Query i, key j: the distance is i − j, positive where the key lies in the past. Raise "
            "it by max_distance so that it counts from 0.",
            _distance_runs,
        ),
        equals_reference(
            "farther apart than max_distance",
            0.5,
            "Cut the distance to −max_distance … max_distance on both sides, before raising it.",
            _distance_cut,
        ),
        equals_reference(
            "more keys than queries, and fewer",
            0.5,
            "The last query stands at the last key's position, as with a causal mask: query row r "
            "stands at position r + n_k − n_q.",
            _distance_chunk,
        ),
        equals_reference(
            "no distance, one position",
            0.1,
            "With max_distance 0 there is a single row in the table: all entries are 0.",
            _distance_ends,
        ),
        dtypes_kept(0.15, "Indices are integers: dtype torch.long.", _distance_runs),
    ),
)

# --- relative_position_scores -------------------------------------------------------------------

_KEY, _BOTH = "relative_key", "relative_key_query"


def _qka(
    draw: Draw, n_q: int, n_k: int, far: int, d_k: int = 4, batch: tuple = (2, 3), **dtype: str
) -> tuple[Array, Array, Array]:
    return (
        draw.tensor(*batch, n_q, d_k, **dtype),
        draw.tensor(*batch, n_k, d_k, **dtype),
        draw.tensor(2 * far + 1, d_k, **dtype),
    )


def _scores_of(mode: str) -> Callable[[Draw], Sequence[Run]]:
    def runs(draw: Draw) -> Sequence[Run]:
        query, key, table = _qka(draw, 5, 5, 6, 3, (1, 2))
        return [
            call(*_qka(draw, 4, 4, 3), mode),
            call(mode=mode, distance_embedding=table, key=key, query=query),
            call(*_qka(draw, 3, 3, 4, 5, (3, 1)), mode),
        ]

    return runs


def _scores_chunk(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qka(draw, 2, 5, 6), _KEY),
        call(*_qka(draw, 1, 4, 5), _BOTH),
        call(*map(Strided, _qka(draw, 4, 2, 4)), _BOTH),
    ]


def _scores_far(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qka(draw, 6, 6, 2, 3), _KEY),
        call(*_qka(draw, 7, 7, 2), _BOTH),
        call(*_qka(draw, 3, 3, 0), _BOTH),
    ]


def _scores_gradients(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qka(draw, 4, 4, 2), _KEY),
        call(*_qka(draw, 5, 5, 6), _BOTH),
    ]


def _scores_unknown(draw: Draw) -> Sequence[Run]:
    inputs = _qka(draw, 3, 3, 2)
    return [call(*inputs, "relative_query"), call(*inputs, mode="absolute"), call(*inputs, "")]


def _scores_double(draw: Draw) -> Sequence[Run]:
    inputs = _qka(draw, 4, 4, 2, dtype="float64")
    return [call(*inputs, _KEY), call(*inputs, _BOTH)]


RELATIVE_POSITION_SCORES = Exercise(
    "relative_position_scores",
    "Distances in the scores",
    ("query", "key", "distance_embedding", "mode"),
    (
        equals_reference(
            "relative_key",
            1.0,
            "Look up a_{i−j} for every pair, (n_q, n_k, d_k), and multiply it with q_i. The "
            "content score q_i·k_j is not part of this, and nothing is divided by √d_k yet.",
            _scores_of(_KEY),
        ),
        equals_reference(
            "relative_key_query",
            1.0,
            "The same, plus k_j·a_{i−j}: the same vector a_{i−j}, this time with the key.",
            _scores_of(_BOTH),
        ),
        equals_reference(
            "another number of keys than of queries",
            0.5,
            "The last query stands at the last key's position, so row r is position r + n_k − n_q.",
            _scores_chunk,
        ),
        equals_reference(
            "farther apart than the table reaches",
            0.5,
            "The table has 2·max_distance + 1 rows; whatever is farther takes the last one on its "
            "side. A negative index would count from the table's end, without an error.",
            _scores_far,
        ),
        gradients_match(
            "gradients to query, key and table",
            0.5,
            "A row of the table is used by many pairs and gathers the gradients of all of them.",
            _scores_gradients,
        ),
        raises(
            "an unknown mode",
            0.25,
            'Raise ValueError for anything but "relative_key" and "relative_key_query".',
            _scores_unknown,
            ValueError,
        ),
        dtypes_kept(0.15, "float64 in, float64 out.", _scores_double),
        inputs_untouched(0.1, _scores_of(_BOTH)),
    ),
)

# --- rotary_embedding ---------------------------------------------------------------------------


def _rotary_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(5, 6)),
        call(draw.tensor(2, 3, 4, 8)),
        call(x=draw.tensor(3, 6, 4)),
        call(draw.tensor(4, 4, 4), 10000.0, 0),
    ]


def _rotary_offsets(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 6), offset=draw.integer(2, 5)),
        call(draw.tensor(1, 2, 1, 4), offset=draw.integer(6, 9)),
        call(draw.tensor(4, 4), 10000.0, 3),
    ]


def _rotary_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(4, 6), draw.number(20.0, 90.0)),
        call(draw.tensor(2, 5, 8), base=draw.number(300.0, 900.0), offset=1),
    ]


def _rotary_ends(draw: Draw) -> Sequence[Run]:
    return [call(draw.tensor(2, 1, 6)), call(draw.tensor(3, 2)), call(draw.tensor(1, 1, 2))]


def _rotary_shifted(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 5, 8)
    shifts = [draw.integer(1, 9), draw.integer(10, 40)]
    run = call(x)
    for shift in shifts:
        run = run.then(x, offset=shift)
    return [run]


def _rotary_distances(run: Run, record: Record) -> str | None:
    """All dot products between rotated rows, q and k in one, are the same wherever they start."""
    x = plain(run.steps[0].args[0])
    rotated = [plain(value) for value in record.values]
    if any(r is None or r.shape != x.shape for r in rotated):
        return f"the result is {describe(record.value)}"
    tables = [r @ r.swapaxes(-2, -1) for r in rotated]
    scale = np.linalg.norm(x, axis=-1).max() ** 2
    for step, table in zip(run.steps[1:], tables[1:], strict=True):
        off = np.abs(table - tables[0]).max() / scale
        if not off < 1e-5:
            shift = step.kwargs["offset"]
            return f"shifting all positions by {shift} changes a dot product by {off * scale:.2g}"
    unchanged = np.abs(rotated[0] - x).max() < 1e-3
    return "nothing is rotated" if unchanged else None


def _rotary_lengths(run: Run, record: Record) -> str | None:
    step = run.steps[0]
    x, turned = plain(step.args[0] if step.args else step.kwargs["x"]), plain(record.value)
    if turned is None or turned.shape != x.shape:
        return f"the result is {describe(record.value)}"
    before, after = (np.hypot(a[..., 0::2], a[..., 1::2]) for a in (x, turned))
    off = np.abs(after - before).max()
    return None if off < 1e-5 else f"a pair (2i, 2i + 1) changes its length by {off:.2g}"


def _rotary_gradients(draw: Draw) -> Sequence[Run]:
    return [*_rotary_runs(draw)[:2], *_rotary_offsets(draw)[:1]]


def _rotary_dtypes(draw: Draw) -> Sequence[Run]:
    """Angles may be computed in float32, so results differ in its last digits."""
    double, half = _double(draw, 2, 4, 6), draw.tensor(3, 4, dtype="bfloat16")
    return [replace(call(x, offset=2), random=True) for x in (double, half)]


def _rotary_dtype_kept(trial: Trial) -> Finding:
    found, wanted = trial.record.value, trial.expected.value
    if getattr(found, "dtype", None) != wanted.dtype:
        return Finding(False, f"x is {wanted.dtype}, the result {describe(found)}")
    numbers, right = plain(found), plain(wanted)
    if numbers.shape != right.shape:
        return Finding(False, f"the result is {describe(found)}")
    within = 1e-5 if wanted.dtype == "float64" else 0.1
    off = np.abs(numbers - right).max()
    return Finding(bool(off < within), f"the result is off by {off:.2g}", float(off), within)


ROTARY_EMBEDDING = Exercise(
    "rotary_embedding",
    "Rotate by position",
    ("x", "base", "offset"),
    (
        equals_reference(
            "each pair turns by its angle",
            1.25,
            "Positions run along the last axis but one. Pair (2i, 2i + 1), neighbours, is a point "
            "(u, v) that goes to (u cos θ − v sin θ, u sin θ + v cos θ), θ = pos · base^(−2i/d).",
            _rotary_runs,
        ),
        equals_reference(
            "an offset",
            0.5,
            "The first row of x stands at position `offset`.",
            _rotary_offsets,
        ),
        has_property(
            "the dot product depends on the distance only",
            0.75,
            "Rotate two vectors by the same angle more and the angle between them stays. Shifting "
            "all positions must leave every dot product as it was.",
            _rotary_shifted,
            _rotary_distances,
            only_if_right=True,
        ),
        has_property(
            "lengths stay as they are",
            0.25,
            "A rotation moves a pair (2i, 2i + 1) along a circle.",
            lambda d: [*_rotary_runs(d), *_rotary_offsets(d)],
            _rotary_lengths,
            only_if_right=True,
        ),
        equals_reference(
            "another base",
            0.25,
            "`base` stands where the paper has 10000.",
            _rotary_bases,
        ),
        equals_reference(
            "one position, one pair",
            0.1,
            "Position 0 stays as it is. With d = 2 there is one pair, turning by 1 radian.",
            _rotary_ends,
        ),
        gradients_match(
            "gradients flow back to x",
            0.5,
            "The gradient is rotated back. NumPy, .data and .detach() cut it off.",
            _rotary_gradients,
        ),
        Aspect(
            "dtype",
            0.25,
            "The result has x's dtype: bring cosines and sines to it before multiplying.",
            _rotary_dtypes,
            each(_rotary_dtype_kept),
            only_if_right=True,
        ),
        inputs_untouched(0.1, lambda d: [*_rotary_runs(d), *_rotary_offsets(d)]),
        no_side_effects(0.05, _rotary_runs),
    ),
)

# --- rotary_attention ---------------------------------------------------------------------------


def _qkv(draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int) -> tuple:
    shapes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    return tuple(draw.tensor(*batch, *shape) for shape in shapes)


def _turning_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _qkv(draw, 3, 3, 6, 4, 2)
    return [
        call(*_qkv(draw, 4, 4, 4, 6, 2, 3)),
        call(value=value, key=key, query=query),
        call(*_qkv(draw, 5, 5, 8, 3)),
    ]


def _turning_chunk(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qkv(draw, 2, 5, 4, 2, 2)),
        call(*_qkv(draw, 1, draw.integer(3, 6), 6, 4, 1, 2)),
        call(*_qkv(draw, 4, 2, 4, 4)),
    ]


def _turning_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qkv(draw, 4, 4, 6, 2), draw.number(20.0, 90.0)),
        call(*_qkv(draw, 2, 5, 4, 2), base=draw.number(300.0, 900.0)),
    ]


def _turning_shown(draw: Draw) -> Sequence[Run]:
    query, key, _ = _qkv(draw, 4, 6, 4, 6, 2)
    values = tensor(np.stack([np.eye(6)] * 2), "float32")
    return [call(query, key, values)]


def _output_is_weights(run: Run, record: Record) -> str | None:
    output, weights = (plain(part(record.value, i)) for i in (0, 1))
    if output is None or weights is None or output.shape != (2, 4, 6) or weights.shape != (2, 4, 6):
        return "the result is not (output, weights)"
    off = np.abs(output - weights).max()
    sums = np.abs(weights.sum(-1) - 1).max()
    if not (off < 1e-5 and sums < 1e-5):
        return "with one-hot values the output must show the weights, and it does not"
    return None


def _turning_gradients(draw: Draw) -> Sequence[Run]:
    return [call(*_qkv(draw, 3, 4, 4, 2, 2)), call(*_qkv(draw, 3, 3, 6, 4))]


def _turning_large(draw: Draw) -> Sequence[Run]:
    query, key, value = _qkv(draw, 2, 4, 4, 3)
    return [call(tensor(query.data * 1e4, "float32"), key, value)]


def _turning_finite(run: Run, record: Record) -> str | None:
    arrays = [plain(part(record.value, i)) for i in (0, 1)]
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "an output or a weight is not finite"


ROTARY_ATTENTION = Exercise(
    "rotary_attention",
    "Attention that turns",
    ("query", "key", "value", "base"),
    (
        equals_reference(
            "as many queries as keys",
            1.0,
            "Rotate queries and keys, each by its own position; then scaled dot-product attention "
            "as ever. The values are averaged as they came.",
            _turning_runs,
        ),
        equals_reference(
            "more keys than queries, and fewer",
            0.5,
            "The last query stands at the last key's position: the queries' offset is n_k − n_q.",
            _turning_chunk,
        ),
        has_property(
            "values are left alone",
            0.25,
            "Rotated values would carry the positions of keys into the output.",
            _turning_shown,
            _output_is_weights,
        ),
        equals_reference(
            "another base", 0.25, "`base` belongs to queries and keys.", _turning_bases
        ),
        gradients_match(
            "gradients to query, key and value",
            0.25,
            "Nothing is detached on the way.",
            _turning_gradients,
        ),
        has_property(
            "scores of ±10,000",
            0.15,
            "torch.softmax subtracts the largest score for you.",
            _turning_large,
            _turning_finite,
            only_if_right=True,
        ),
        inputs_untouched(0.1, _turning_runs),
    ),
)

EXERCISES = (
    PERMUTATION_GAP,
    SINUSOIDAL_ENCODING,
    POSITIONAL_ENCODING,
    SHIFT_MATRIX,
    RELATIVE_POSITIONS,
    RELATIVE_POSITION_SCORES,
    ROTARY_EMBEDDING,
    ROTARY_ATTENTION,
)
