"""Inputs and properties that several exercises of the chapter share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from autograder.student.authoring import Array, Aspect, Draw, Record, Run, part, plain, tensor
from autograder.student.engine.aspects import Runs, has_property, not_rows_of_one, numbers_of
from autograder.student.engine.compare import all_shaped


def qkv_arrays(draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int) -> tuple:
    """Query, key and value for NumPy, with scores of about ±√d_k."""
    return (
        draw.normal(*batch, n_q, d_k),
        draw.normal(*batch, n_k, d_k),
        draw.normal(*batch, n_k, d_v),
    )


def sized_tensors(
    draw: Draw, B: int, n_q: int, n_k: int, sizes: Sequence[int], dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    """Query, key and value with a feature size each, for a module."""
    shapes = zip((n_q, n_k, n_k), sizes, strict=True)
    query, key, value = (draw.tensor(B, n, size, dtype=dtype) for n, size in shapes)
    return query, key, value


def large_scores(draw: Draw, n_q: int, n_k: int, d: int) -> Sequence[tuple[np.ndarray, np.ndarray]]:
    """Queries and keys with scores of 10⁴ ± 1, of −10⁴ ± 1, and of anything up to about ±10⁴."""
    level = np.sqrt(1e4 / d)
    query, key = level + 0.01 * draw.normal(n_q, d), level + 0.01 * draw.normal(n_k, d)
    uneven = (
        np.linspace(0.02, 1.5, n_q)[:, None] * level
    )  # some rows lie far below the largest score
    return [
        (query, key),
        (-query, key),
        (70 * draw.normal(n_q, d), 70 * draw.normal(n_k, d)),
        (uneven * np.ones(d), key),
    ]


def score_of_minus_infinity(draw: Draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query, key and value with one key whose score is −inf for every query."""
    query, key, value = qkv_arrays(draw, 3, 5, 4, 2)
    query[:, 0] = np.abs(query[:, 0]) + 0.5
    key[2, 0] = -np.inf
    return query, key, value


def outputs_and_weights(record: Record, *shape: int) -> list[tuple[np.ndarray, ...]] | None:
    """Output and weights of each step; None unless all the weights have this shape, and all the
    outputs one shape with the same rows. An answer may return anything."""
    outputs, weights = ([plain(part(value, i)) for value in record.values] for i in (0, 1))
    shapes = {out if out is None else out.shape for out in outputs}
    first = next(iter(shapes), None)
    if len(shapes) != 1 or first is None or first[:-1] != shape[:-1]:
        return None
    if not all_shaped(outputs, first) or not all_shaped(weights, shape):
        return None
    return [*zip(outputs, weights, strict=True)]


def rows_sum_to_one(run: Run, record: Record) -> str | None:
    return not_rows_of_one(part(record.value, 1))


def one_changed(draw: Draw, start: Run, inputs: Sequence[Array]) -> list[Run]:
    """Three calls: unchanged; with query 1 of sequence 1 changed; with its key 2 and value 2."""
    query, key, value = (array.data.copy() for array in inputs)
    query[1, 1] = query[1, 1] + draw.uniform(1.0, 2.0, query.shape[-1])
    key[1, 2] = key[1, 2] + draw.uniform(0.5, 1.0, key.shape[-1])
    value[1, 2] = value[1, 2] + 100.0
    other_query, *others = (tensor(array, "float32") for array in (query, key, value))
    run = start.then(*inputs).then(other_query, *inputs[1:])
    return [run.then(inputs[0], *others)]


def _sees_its_own(run: Run, record: Record) -> str | None:
    outputs = [plain(part(value, 0)) for value in record.values]
    arrays = run.steps[0].args
    shape = (*arrays[0].data.shape[:2], arrays[2].data.shape[-1])
    if not all_shaped(outputs, shape):
        return f"the output does not have the shape {shape}"
    by_query, by_pair = (np.abs(output - outputs[0]).max(-1) for output in outputs[1:])
    elsewhere = np.delete(by_query.ravel(), shape[1] + 1)
    if not elsewhere.max() < 1e-5:
        return "changing one query changed the output of another"
    if not by_query[1, 1] > 1e-3:
        return "changing a query left its own output unchanged"
    if not np.delete(by_pair, 1, axis=0).max() < 1e-5:
        return "changing a key and its value changed the output of another sequence of the batch"
    if not by_pair[1].min() > 1e-3:
        return "changing a key and its value left an output of their sequence unchanged"
    return None


def do_not_mix(points: float, runs: Runs) -> Aspect:
    return has_property(
        "queries and sequences do not mix",
        points,
        "A query's output depends on the query and on all keys and values of its own sequence, and "
        "on nothing else. The softmax runs over the keys of one query.",
        runs,
        _sees_its_own,
        only_if_right=True,
    )


def fresh(run: Run) -> Run:
    """A module as its constructor makes it, with random parameters, which show in the gradients."""
    return replace(run, random=True).with_gradients()


def has_parameters(shapes: Callable[..., Mapping[str, tuple]]) -> Callable:
    """Judges the parameters that the module reports, and by their gradients that they are used."""

    def holds(run: Run, record: Record) -> str | None:
        wanted = shapes(*run.constructor.args)
        given = {
            name.removeprefix("parameter "): plain(gradient)
            for name, gradient in record.gradients.items()
            if name.startswith("parameter ")
        }
        if given.keys() != wanted.keys():
            return f"the parameters are {', '.join(sorted(given)) or 'none'}"[:200]
        for name, shape in wanted.items():
            slope = given[name]
            if slope is None:
                return f"no gradient reaches {name}"
            if slope.shape != shape:
                return f"{name}: expected shape {shape}, got {slope.shape}"
        return rows_sum_to_one(run, record)

    return holds


def permutes(run: Run, record: Record) -> str | None:
    """The rows of the first call's x, permuted in the second call, permute the results."""
    x, moved_x = (numbers_of(step.args[0]) for step in run.steps)
    first, second = (a.reshape(-1, *a.shape[-2:])[0] for a in (x, moved_x))
    order = [int(np.flatnonzero((first == row).all(-1))[0]) for row in second]
    pairs = outputs_and_weights(record, *x.shape[:-1], len(order))
    if pairs is None:
        return "expected (output, weights) with a row for each row of x"
    (out, weights), (moved, moved_weights) = pairs
    if not np.allclose(moved, out[..., order, :], rtol=1e-4, atol=1e-5):
        return "permuting the rows of x does not permute the rows of the output"
    if not np.allclose(moved_weights, weights[..., order, :][..., order], rtol=1e-4, atol=1e-5):
        return "permuting the rows of x does not permute the rows and columns of the weights"
    return None


QKV = ("query", "key", "value")
