"""What the probe sees beside the values, where an answer has put something in its way."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from attention_by_hand.exercises.residual_layernorm.residual import linear
from autograder.student.engine.aspects import no_side_effects_of_a_module
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import Trial, call, made_by, module, tensor
from autograder.student.engine.state import (
    FORM,
    FROZEN,
    MEMORY,
    MODES,
    NUMBERS,
    GlobalState,
    parameters_of,
)


class Shy(nn.Module):
    """A module that names none of its parts, and has a mode for whoever asks."""

    def __init__(self):
        super().__init__()
        self.part, self.twin = nn.Linear(2, 2), nn.Linear(2, 2)
        self.part.again = self.twin

    def modules(self):
        return iter(())

    def named_parameters(self, *args, **kwargs):
        return iter(())


def test_modes_are_seen_whatever_a_class_makes_of_them():
    module = Shy()
    state = GlobalState()
    state.watch(module)
    assert len(state.modes) == 3 and state.differences() == ()
    module.twin.training = False
    assert state.differences() == (MODES,)


def test_parameters_are_found_whatever_a_class_makes_of_them():
    names = [name for name, _ in parameters_of(Shy())]
    assert names == [name for name, _ in nn.Module.named_parameters(Shy(), remove_duplicate=False)]
    assert len(names) == 6


def swapped(x):
    """Write into x's memory, then give x other memory with the old numbers."""
    kept = x.clone()
    x.zero_()
    x.data = kept
    return x + 1


def set_elsewhere(x):
    kept = x.clone()
    x.mul_(2.0)
    x.set_(kept)
    return x + 1


def written_and_put_back(x):
    kept = x.clone()
    x.zero_()
    x.copy_(kept)
    return x + 1


@pytest.mark.parametrize(
    ("answer", "told"), [(swapped, True), (set_elsewhere, True), (written_and_put_back, False)]
)
def test_memory_is_seen_where_it_was(answer, told):
    record = probe(answer, call(tensor([1.0, 2.0], "float32")))
    assert record.raised is None and not record.changed
    assert (MEMORY in record.side_effects) == told


def test_of_an_array_written_into_both_are_told():
    def doubled(x):
        x *= 2.0
        return x

    record = probe(doubled, call(np.array([1.0, 2.0])))
    assert record.changed.keys() == {"0.0"} and record.side_effects == (MEMORY,)


@pytest.mark.parametrize(
    ("name", "said", "change", "back", "told"),
    [
        (
            "torch.is_grad_enabled",
            lambda: True,
            lambda: torch.set_grad_enabled(False),
            lambda: torch.set_grad_enabled(True),
            "torch's grad mode",
        ),
        (
            "torch.get_default_dtype",
            lambda: torch.float32,
            lambda: torch.set_default_dtype(torch.float64),
            lambda: torch.set_default_dtype(torch.float32),
            "torch's default dtype",
        ),
        (
            "numpy.geterr",
            dict,
            lambda: np.seterr(divide="raise"),
            lambda: np.seterr(divide="warn"),
            "NumPy's error handling",
        ),
        (
            "torch.Tensor.numpy",
            lambda *args: np.zeros(3),
            lambda: torch.manual_seed(3),
            lambda: None,
            "torch's random state",
        ),
    ],
)
def test_what_is_patched_afterwards_hides_nothing(name, said, change, back, told, monkeypatch):
    torch.manual_seed(17)  # whoever seeded last, it was not with 3
    state = GlobalState()
    monkeypatch.setattr(name, said)
    change()
    found = state.differences()
    back()
    assert found == (told,)


DRAWS = {
    "a number of NumPy's": np.random.rand,
    "a normal number of NumPy's": lambda: np.random.randn(3),
    "many of NumPy's": lambda: np.random.rand(2000),
    "a sample of Python's, as a type checker takes it": lambda: random.sample(range(10**6), 9),
    "many of Python's": lambda: [random.random() for _ in range(2000)],
    "numbers of torch's": lambda: torch.rand(2000),
    "a permutation of torch's": lambda: torch.randperm(50),
    "from all of them": lambda: (np.random.rand(), random.random(), nn.Linear(2, 2)),
    "under another seed, put back": lambda: _forked(lambda: torch.manual_seed(0)),
}
NUMPYS, PYTHONS, TORCHS = (f"{whose} random state" for whose in ("NumPy's", "Python's", "torch's"))
SEEDS = {
    "NumPy's": (lambda: np.random.seed(0), {NUMPYS}),
    "NumPy's, before drawing": (lambda: (np.random.seed(0), np.random.rand(2000)), {NUMPYS}),
    "NumPy's, by chance": (np.random.seed, {NUMPYS}),
    "NumPy's by a state": (
        lambda: np.random.set_state(np.random.RandomState(3).get_state()),
        {NUMPYS},
    ),
    "NumPy's to where it was": (
        lambda: (state := np.random.get_state(), np.random.rand(5), np.random.set_state(state)),
        set(),
    ),
    "Python's": (lambda: random.seed(0), {PYTHONS}),
    "Python's, before drawing": (lambda: (random.seed(0), random.random()), {PYTHONS}),
    "Python's by a state": (lambda: random.setstate(random.Random(5).getstate()), {PYTHONS}),
    "torch's": (lambda: torch.manual_seed(0), {TORCHS}),
    "torch's, before drawing": (lambda: (torch.manual_seed(0), torch.rand(2000)), {TORCHS}),
    "torch's, by chance": (torch.seed, {TORCHS}),
    "torch's by a state": (
        lambda: torch.set_rng_state(torch.Generator().manual_seed(3).get_state()),
        {TORCHS},
    ),
}


def _forked(change):
    with torch.random.fork_rng(devices=[]):
        change()


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_drawing_is_no_side_effect(draw, seed):
    answer = lambda x: (draw(), x)[1]  # noqa: E731
    assert probe(answer, replace(call(1.0).then(2.0), seed=seed)).side_effects == ()


@pytest.mark.parametrize(("change", "told"), SEEDS.values(), ids=SEEDS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_seeding_is_told_from_drawing(change, told, seed):
    answer = lambda x: (np.random.rand(seed), change(), x)[2]  # noqa: E731
    assert set(probe(answer, replace(call(1.0), seed=seed)).side_effects) == told


def test_a_module_may_draw_its_parameters_and_not_seed():
    class Draws(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Linear(2, 2)

        def forward(self, x):
            return x

    class Seeds(Draws):
        def __init__(self):
            torch.manual_seed(0)
            super().__init__()

    runs = [module().then(1.0)]
    aspect = no_side_effects_of_a_module(1.0, lambda draw: runs)
    for answer, fine in ((Draws, True), (Seeds, False)):
        trials = [Trial(run, probe(answer, run)) for run in runs]
        assert aspect.judge(trials).passed == fine


def around(at_construction=lambda part: None, in_a_call=lambda part: None):
    """The class of a module that does something to the one that it is given."""

    class Around(nn.Module):
        def __init__(self, part):
            super().__init__()
            self.part = part
            at_construction(part)

        def forward(self, x):
            in_a_call(self.part)
            return self.part(x)

    return Around


def _halve(part):
    with torch.no_grad():
        part.weight /= 2


@pytest.mark.parametrize("when", ["at_construction", "in_a_call"])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda part: None, ()),
        (_halve, (NUMBERS,)),
        (lambda part: part.requires_grad_(False), (FROZEN,)),
        (lambda part: part.register_buffer("seen", torch.zeros(1)), (NUMBERS, FORM)),
        (lambda part: part.register_forward_hook(lambda *given: None), (FORM,)),
        (lambda part: part.train(not part.training), (MODES,)),
    ],
    ids=["nothing", "halved", "frozen", "a buffer", "a hook", "the other mode"],
)
def test_what_becomes_of_a_module_that_another_is_built_with_is_seen(when, change, told):
    state = {f"part.{name}": tensor(np.ones(n), "float32") for name, n in [("bias", 3)]}
    state["part.weight"] = tensor(np.ones((3, 3)), "float32")
    if (when, told) == ("at_construction", (NUMBERS, FORM)):
        state["part.seen"] = tensor(np.zeros(1), "float32")
    run = module(made_by(linear, 3), state=state).then(tensor(np.ones((2, 3)), "float32"))
    record = probe(around(**{when: change}), run.in_training())
    assert record.raised is None and record.side_effects == told


def test_a_module_that_is_kept_is_one_for_all_calls_and_is_watched_throughout():
    layer, seen = replace(made_by(linear, 2), kept=True), []

    def answer(given, x):
        seen.append(given)
        if len(seen) == 2:
            given.train()
        return x

    run = call(layer, tensor(np.ones(2))).then(layer, tensor(np.ones(2)))
    record = probe(answer, run.then(layer, tensor(np.zeros(2))))
    assert seen[0] is seen[1] is seen[2]
    assert record.side_effects == (MODES,)
