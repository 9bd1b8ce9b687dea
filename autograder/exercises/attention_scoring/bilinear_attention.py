"""`BilinearAttention`: bilinear attention."""

from collections.abc import Sequence

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects_of_a_module,
)
from autograder.engine.runs import Draw, Exercise, Run, Strided, module
from autograder.exercises.attention_scoring.shared import (
    QKV,
    all_finite,
    each_for_itself,
    fresh,
    has_parameters,
    one_changed,
    sized_tensors,
)


def _bilinear_shapes(query_size: int, key_size: int) -> dict[str, tuple]:
    return {"W": (query_size, key_size)}


def _bilinear(draw: Draw, *sizes: int, dtype: str = "float32", scale: float = 1.0) -> Run:
    return module(*sizes, state={"W": draw.tensor(*sizes, scale=scale, dtype=dtype)})


def _bilinear_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = sized_tensors(draw, 1, 4, 3, (2, 6, 4))
    first = sized_tensors(draw, 2, 3, 5, (4, 3, 2))
    return [
        _bilinear(draw, 4, 3).then(*first).then(*first),
        _bilinear(draw, 2, 6).then(value=value, key=key, query=query),
        _bilinear(draw, 7, 2).then(*sized_tensors(draw, 3, 2, 4, (7, 2, 3))),
    ]


def _bilinear_backward(draw: Draw) -> Sequence[Run]:
    """In float64; the product of the sizes is 16, whose fourth root is right in float32, too."""
    query, key, value = sized_tensors(draw, 1, 3, 2, (2, 8, 1), "float64")
    x = sized_tensors(draw, 2, 1, 3, (8, 2, 1), "float64")
    return [
        _bilinear(draw, 8, 2, dtype="float64", scale=0.5).then(*x),
        _bilinear(draw, 2, 8, dtype="float64", scale=0.5).then(value=value, key=key, query=query),
    ]


def _bilinear_square(draw: Draw) -> Sequence[Run]:
    return [
        _bilinear(draw, 3, 3).then(*sized_tensors(draw, 3, 3, 3, (3, 3, 3))),
        _bilinear(draw, 2, 2).then(*sized_tensors(draw, 2, 2, 2, (2, 2, 2))),
        _bilinear(draw, 5, 5).then(*sized_tensors(draw, 1, 2, 3, (5, 5, 2))),
    ]


def _bilinear_single(draw: Draw) -> Sequence[Run]:
    return [
        _bilinear(draw, 3, 2).then(*sized_tensors(draw, 2, 1, 5, (3, 2, 4))),
        _bilinear(draw, 2, 3).then(*sized_tensors(draw, 2, 4, 1, (2, 3, 2))),
        _bilinear(draw, 1, 3).then(*sized_tensors(draw, 1, 3, 4, (1, 3, 1))),
        _bilinear(draw, 3, 4).then(*map(Strided, sized_tensors(draw, 2, 3, 2, (3, 4, 5)))),
    ]


def _bilinear_fresh(draw: Draw) -> Sequence[Run]:
    size = draw.integer(4, 6)
    return [
        fresh(module(3, size).then(*sized_tensors(draw, 2, 1, 3, (3, size, 1)))),
        fresh(module(4, 2).then(*sized_tensors(draw, 1, 2, 3, (4, 2, 1)))),
    ]


def _bilinear_large(draw: Draw) -> Sequence[Run]:
    runs = []
    for dtype in ("float64", "float32"):
        x = sized_tensors(draw, 1, 2, 4, (3, 2, 1), dtype)
        runs.append(_bilinear(draw, 3, 2, dtype=dtype, scale=1e4).then(*x).with_gradients())
    return runs


def _bilinear_double(draw: Draw) -> Sequence[Run]:
    x = sized_tensors(draw, 2, 1, 3, (8, 2, 1), "float64")
    return [_bilinear(draw, 8, 2, dtype="float64", scale=0.5).then(*x)]


BILINEAR_ATTENTION = Exercise(
    "BilinearAttention",
    "Bilinear attention",
    QKV,
    (
        equals_reference(
            "output and weights",
            1.0,
            "query @ W @ keyᵀ is (B, n_q, n_k). Divide it by the fourth root of query_size "
            "times key_size, softmax over the keys, average the values.",
            _bilinear_runs,
        ),
        equals_reference(
            "as many of everything",
            0.35,
            "When queries and keys have one size, Wᵀ fits where W belongs. W's rows are for the "
            "features of the query, its columns for those of the key.",
            _bilinear_square,
        ),
        equals_reference(
            "one query, one key, a batch of one",
            0.25,
            "An axis of size 1 is still an axis: use no squeeze().",
            _bilinear_single,
        ),
        gradients_match(
            "gradients reach W and every input",
            0.6,
            "Use self.W itself, in torch, from start to end: .detach() and .data cut it off.",
            _bilinear_backward,
        ),
        has_property(
            "one parameter, W",
            0.15,
            "W is an nn.Parameter of shape (query_size, key_size): `__init__` as it is given.",
            _bilinear_fresh,
            has_parameters(_bilinear_shapes),
            looks=True,
            only_if_right=True,
        ),
        has_property(
            "scores of ±10,000, forward and backward",
            0.25,
            "torch.softmax subtracts the largest score for you; exp and a division do not.",
            _bilinear_large,
            all_finite,
            only_if_right=True,
        ),
        each_for_itself(
            0.15,
            lambda draw: one_changed(
                draw, _bilinear(draw, 2, 4, scale=0.3), sized_tensors(draw, 3, 3, 4, (2, 4, 5))
            ),
        ),
        dtypes_kept(0.1, "A float64 model with float64 inputs gives float64.", _bilinear_double),
        inputs_untouched(0.1, lambda draw: _bilinear_runs(draw)[1:]),
        no_side_effects_of_a_module(0.05, lambda draw: _bilinear_runs(draw)[1:2]),
    ),
)
