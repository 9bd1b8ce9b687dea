"""Records as plain trees, to send to the judge or to store in a file; runs, to tell them apart."""

from collections.abc import Mapping
from dataclasses import replace

from autograder.student.engine.arrays import Value
from autograder.student.engine.runs import RaisedException, Record, Run, Step
from autograder.student.engine.values import Array, WireError


def run_tree(run: Run) -> dict[str, object]:
    """A run as a tree that `values.encode` takes."""
    flags = [run.training, run.gradients, run.seed, run.random]
    if run.simulated:
        flags += [True, run.most] if run.most else [True]
    return {
        "steps": [_step_tree(step) for step in run.steps],
        "init": run.init and _step_tree(run.init),
        "state": run.state and dict(run.state),
        "flags": flags,
    }


def _step_tree(step: Step) -> Mapping[str, object]:
    tree = {"args": tuple(step.args), "kwargs": dict(step.kwargs), "method": step.method}
    return tree if step.into is None else {**tree, "into": step.into}


def record_tree(record: Record) -> dict[str, object]:
    """A record as a tree that `values.encode` takes."""
    raised = record.raised
    return {
        "values": tuple(record.values),
        "raised": raised and [list(raised.types), raised.message, raised.traceback, raised.during],
        "gradients": dict(record.gradients),
        "changed": dict(record.changed),
        "side_effects": list(record.side_effects),
        "operations": dict(record.operations),
        **({"rounding": record.rounding} if record.rounding else {}),
    }


def on_device(record: Record, device: str) -> Record:
    """A record made on the CPU, relabelled for another device, which sets its tolerances."""
    kind = device.partition(":")[0]

    def move(value: Value) -> Value:
        if isinstance(value, Array):
            return replace(value, device=kind) if value.kind == "torch" else value
        if isinstance(value, tuple | list):
            return type(value)(move(item) for item in value)
        if isinstance(value, Mapping):
            return {name: move(item) for name, item in value.items()}
        return value

    if kind == "cpu":
        return record
    return replace(record, values=move(record.values), gradients=move(record.gradients))


def record_from(tree: Value) -> Record:
    """The record that a tree describes; hostile trees raise a `WireError`, never another type."""
    try:
        raised = tree["raised"]
        if raised is not None:
            types, message, traceback, during = raised
            types = tuple(map(_text, types)) or ("Exception",)
            raised = RaisedException(types, *map(_text, (message, traceback, during)))
        values, gradients, changed = tree["values"], tree["gradients"], tree["changed"]
        fits = (isinstance(values, tuple), isinstance(gradients, dict), isinstance(changed, dict))
        if not all(fits):
            raise WireError("not a record")
        effects = tuple(map(_text, tree["side_effects"]))
        ran = tree.get("operations", {})  # records on file have none
        operations = {name: _text(place) for name, place in ran.items()}
        rounding = float(tree.get("rounding", 0.0))
        return Record(values, raised, gradients, changed, effects, operations, rounding)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise WireError(f"not a record ({error})") from None


def _text(value: Value) -> str:
    """A text, which nothing else is made into: it might take long."""
    if type(value) is not str:
        raise WireError("not a text")
    return value
