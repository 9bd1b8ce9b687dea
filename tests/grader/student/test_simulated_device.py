"""The device that only pretends: what a GPU would refuse fails on it, and nothing else does."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.judge.reference import known_mistakes, records, reference
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine import simulated_device
from autograder.student.engine.aspects import on_the_inputs_device
from autograder.student.engine.probe import probe
from autograder.student.engine.records import record_from, record_tree
from autograder.student.engine.runs import Run, Trial, call, module, tensor
from autograder.student.engine.simulated_device import ELSEWHERE, NotOnTheCpu, OnTwoDevices
from autograder.student.engine.verdict import WRONG, decide

TITLE = "runs on the device of its inputs"
NUMBERS = torch.tensor([[1.0, -2.0, 0.5, 3.0], [0.0, 4.0, -1.0, 2.0], [5.0, 1.0, 1.0, -3.0]])


def there() -> torch.Tensor:
    return simulated_device.move_tensor(NUMBERS.clone())


def on_the_cpu(value: Any) -> Any:
    """The numbers of a tensor, wherever it says it is."""
    with simulated_device.simulate_device():
        return value.cpu() if isinstance(value, torch.Tensor) else value


REFUSED: dict[str, tuple[type, Callable[[torch.Tensor], Any]]] = {
    "a table without a device": (OnTwoDevices, lambda x: x + torch.arange(4)),
    "a tensor from numbers": (OnTwoDevices, lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0])),
    "a mask of the CPU": (OnTwoDevices, lambda x: x.masked_fill(torch.ones(4).bool(), 0.0)),
    "a choice by a mask of the CPU": (OnTwoDevices, lambda x: torch.where(torch.ones(4) > 0, x, x)),
    "a product": (OnTwoDevices, lambda x: x @ torch.ones(4, 2)),
    "a linear layer that was not moved": (OnTwoDevices, nn.Linear(4, 2)),
    "rows of a table of the CPU": (OnTwoDevices, lambda x: torch.ones(9)[x.long().abs()]),
    "a lookup of tokens of the CPU": (OnTwoDevices, lambda x: F.embedding(torch.tensor([1]), x)),
    "joined": (OnTwoDevices, lambda x: torch.cat([x, torch.ones(1, 4)])),
    "stacked, single numbers": (OnTwoDevices, lambda x: torch.stack([x.sum(), torch.tensor(1.0)])),
    "attention under a mask of the CPU": (
        OnTwoDevices,
        lambda x: F.scaled_dot_product_attention(x, x, x, torch.ones(3, 3).bool()),
    ),
    "NumPy's array": (NotOnTheCpu, lambda x: x.numpy()),
    "a function of NumPy": (NotOnTheCpu, np.exp),
    "NumPy's asarray": (NotOnTheCpu, np.asarray),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_gpu_refuses_fails(what):
    error, function = REFUSED[what]
    with simulated_device.simulate_device(), pytest.raises(error):
        function(there())


def _in_place(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros(3, 4, device=x.device)
    made[:, 1] = x[:, 0]
    made += 1
    return made.mul_(x)


def _into(x: torch.Tensor) -> torch.Tensor:
    return torch.add(x, x, out=torch.empty_like(x))


def _slopes(x: torch.Tensor) -> torch.Tensor:
    x = x.detach().requires_grad_()
    (x.softmax(-1) * x).sum().backward()
    return x.grad


def _without_gradients(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return torch.cat([x, x @ x.mT @ x])[1:] + 1


def _made_there(x: torch.Tensor) -> torch.Tensor:
    layer = nn.Linear(4, 2).to(x.device)
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    weight = nn.Parameter(torch.ones(4, 2, device=x.device))
    return copy.deepcopy(layer)(x) + x @ weight


ACCEPTED: dict[str, Callable[[torch.Tensor], Any]] = {
    "made there": lambda x: x + torch.arange(4, device=x.device) + x.new_ones(4),
    "from numbers": lambda x: x * torch.tensor([1.0, 2.0, 3.0, 4.0], device=x.device),
    "new_tensor": lambda x: x + x.new_tensor([1.0, 2.0, 3.0, 4.0]),
    "as_tensor": lambda x: x + torch.as_tensor([1, 2, 3, 4], device=x.device),
    "moved": lambda x: x + torch.ones(4).to(x.device) + torch.ones(4).to(x),
    "moved by type": lambda x: x + torch.ones(4).type_as(x),
    "single numbers of the CPU": lambda x: torch.where(x > 0, x * torch.tensor(2.0), 0.0),
    "indices of the CPU": lambda x: x[torch.tensor([2, 0])][torch.tensor([True, False])],
    "numbers read one by one": lambda x: torch.tensor([x.sum(), x.mean()]),
    "a number": lambda x: float(x.max()) + x[0, 1].item() + (1.0 if (x > 2).any() else 0.0),
    "lists": lambda x: torch.tensor(x.tolist()),
    "brought home": lambda x: torch.from_numpy(x.cpu().numpy()) + torch.ones(4),
    "copied to the CPU": lambda x: torch.zeros(3, 4).copy_(x),
    "filled": lambda x: torch.zeros(3).fill_(x.max()),
    "a sum of products": lambda x: torch.einsum("ij,kj->ik", x, x),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "the best": lambda x: x.topk(2).indices,
    "in place": _in_place,
    "into another": _into,
    "gradients": _slopes,
    "without gradients": _without_gradients,
    "modules": _made_there,
    "words": lambda x: len(f"{x.max():.2f} {x}") > 0,
}  # fmt: skip


@pytest.mark.parametrize("what", ACCEPTED)
def test_what_a_gpu_accepts_gives_the_numbers_of_the_cpu(what):
    expected = ACCEPTED[what](NUMBERS.clone())
    with simulated_device.simulate_device():
        found = ACCEPTED[what](there())
    torch.testing.assert_close(on_the_cpu(found), expected)


def _other_data(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    y.data = x[:1]
    return y


# What the simulation cannot follow, or does not answer: it says nothing about these.
UNKNOWN: dict[str, Callable[[torch.Tensor], Any]] = {
    "is_cuda": lambda x: x if x.is_cuda else x + torch.ones(4),
    "forward mode": lambda x: torch.func.jvp(lambda y: y * 2, (x,), (torch.ones_like(x),)),
    "get_device": lambda x: torch.ones(4).to(x.get_device()) + x,
    "a shape changed in place": lambda x: x.clone().unsqueeze_(0) + torch.ones(4),
    "other data": _other_data,
    "nested tensors": lambda x: torch.nested.nested_tensor([x]),
    "a device by name": lambda x: x + torch.ones(4).cuda(),
    "a tensor of a type": lambda x: x + torch.cuda.FloatTensor([1.0, 2.0, 3.0, 4.0]),
}


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
@pytest.mark.parametrize("what", UNKNOWN)
def test_what_could_not_be_tried_costs_nothing(what):
    record, passed, _ = _judged(UNKNOWN[what], call(tensor(NUMBERS.numpy())))
    assert record.raised is not None
    assert passed


# --- as an aspect ---------------------------------------------------------------------------------


def _judged(answer: Any, run: Run) -> tuple:
    """The record of an answer, whether it passes, and what is said if not."""
    aspect = on_the_inputs_device(0.05, lambda draw: [run])
    (made,) = aspect.runs(None)
    record = record_from(record_tree(probe(answer, made)))
    right = probe(_twice if run.init is None else _Kept, made)
    finding = aspect.judge([Trial(made, record, right, ("x",))])
    return record, finding.passed, finding.message


def _twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class _Kept(nn.Module):
    """Adds a buffer, or a plain attribute."""

    def __init__(self, registered: bool = True):
        super().__init__()
        self.table = torch.ones(4)
        if registered:
            del self.table
            self.register_buffer("table", torch.ones(4))
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.weight + self.table


def test_a_record_tells_where_the_results_are():
    run = call(tensor(NUMBERS.numpy()))
    record, passed, _ = _judged(lambda x: (x * 2, {"n": 1}, [torch.ones(2), x]), run)
    assert record.values == ((ELSEWHERE, None, ["cpu", ELSEWHERE]),)
    assert passed  # it is no tuple that is expected: other aspects say so


def test_the_line_that_would_fail_is_told():
    def answer(x):
        table = torch.arange(4)
        return x * 2 + table

    _, passed, message = _judged(answer, call(tensor(NUMBERS.numpy())))
    line = answer.__code__.co_firstlineno + 2
    assert not passed
    assert f"on a GPU, line {line} would fail (return x * 2 + table): " in message
    assert "On the CPU is a tensor of shape (4,)" in message


def _where_there_is_a_gpu(x):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return x * 2 + torch.zeros(4, device=device)


def _on_a_gpu_alone(x):
    table = torch.zeros(4)
    if x.device.type == "cuda":
        table = table.cuda()
    return x * 2 + table


@pytest.mark.parametrize("answer", [_where_there_is_a_gpu, _on_a_gpu_alone])
def test_whoever_asks_for_a_gpu_is_told_to_ask_the_inputs(answer, monkeypatch):
    """The simulated device is no GPU: such an answer fails on it, and must be told why."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    _, passed, message = _judged(answer, call(tensor(NUMBERS.numpy())))
    assert not passed
    assert "On the CPU is a tensor of shape (4,)" in message
    hint = on_the_inputs_device(0.05, lambda draw: []).hint
    assert "Ask x.device, not torch.cuda.is_available() or whether its type is cuda" in hint


def test_a_result_on_the_cpu_is_told():
    _, passed, message = _judged(lambda x: (x * 2).cpu(), call(tensor(NUMBERS.numpy())))
    assert not passed
    assert message.startswith("on a GPU, the result would be on the CPU")


def test_an_error_that_is_caught_does_not_count():
    def answer(x):
        try:
            return x + torch.ones(4)
        except RuntimeError:
            return x + torch.ones(4, device=x.device)

    assert _judged(answer, call(tensor(NUMBERS.numpy())))[1]


def test_parameters_and_buffers_move_and_plain_attributes_stay():
    x = tensor(NUMBERS.numpy())
    assert _judged(_Kept, module(True).then(x))[1]
    _, passed, message = _judged(_Kept, module(False).then(x))
    assert not passed
    assert "shape (4,)" in message


def test_modules_that_are_shared_stay_shared():
    layer = nn.Linear(3, 3)
    both = nn.ModuleList([layer, nn.Linear(3, 3)])
    both[1].weight = layer.weight
    simulated_device.move_module(both)
    assert both[1].weight is layer.weight
    assert isinstance(layer.weight, nn.Parameter)


def test_an_answer_that_takes_the_modes_off_leaves_nothing_behind():
    def answer(x):
        torch._C._pop_torch_dispatch_stack(None)
        torch._C._push_on_torch_function_stack(torch.overrides.BaseTorchFunctionMode())
        return torch.ones(3)

    heights = torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
    _judged(answer, call(tensor(NUMBERS.numpy())))
    now = torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()
    assert now == heights
    assert torch.ones(2).tolist() == [1.0, 1.0]


# --- how large a tensor may be --------------------------------------------------------------------


def sized(most: int) -> Run:
    return Run(call(tensor(np.ones((6, 5)))).steps, simulated=True, most=most)


MAKES = {  # how many numbers the largest tensor holds that is made of six rows of five
    "nothing": (lambda x: x, 0),
    "as many": (lambda x: x + 1, 30),
    "a table": (lambda x: (x @ x.T).sum(), 36),
    "a table inside einsum": (lambda x: torch.einsum("id,jd,jc->ic", x, x, x), 36),
    "a table that is only a view": (lambda x: x[:, None].expand(6, 9, 5)[0], 0),
    "a table by broadcasting": (lambda x: (x[:, None] * x).sum(-1), 180),
    "made from its device": (lambda x: torch.ones(50, device=x.device).sum(), 50),
}


@pytest.mark.parametrize("what", MAKES)
def test_a_tensor_that_holds_more_numbers_than_a_run_allows_ends_the_call(what):
    make, most = MAKES[what]
    for allowed in {most, 200} - {0}:
        assert probe(make, sized(allowed)).raised is None
    if most:
        raised = probe(make, sized(most - 1)).raised
        assert raised.types[0] == simulated_device.TOO_MANY
        assert f"of {most} numbers" in raised.message


def test_the_limit_is_that_of_one_run():
    def large(x):
        return x @ x.T

    assert probe(large, sized(5)).raised is not None
    assert probe(large, sized(0)).values == (ELSEWHERE,)


# --- in the exercises -----------------------------------------------------------------------------

EXERCISES = [(slug, exercise) for slug in chapters() for exercise in exercises_of(slug)]


def test_every_exercise_that_gets_tensors_has_the_aspect():
    """The others get no tensor and no device, or are written in NumPy, or are counterexamples."""
    without = {
        exercise.name
        for _, exercise in EXERCISES
        if TITLE not in {aspect.title for aspect in exercise.aspects}
    }
    numpy = {e.name for e in exercises_of("kernel_regression")} - {"KernelRegression"}
    numpy |= {"simple_attention", "multi_head_numpy"}
    no_tensors = {"sinusoidal_encoding", "shift_matrix", "relative_positions"}
    no_tensors |= {"byte_pair_merges", "byte_pair_encode", "ArithmeticCoder"}
    bugs = {exercise.name for _, exercise in EXERCISES if exercise.name.startswith("bug_in_")}
    assert without == numpy | no_tensors | bugs


def test_it_takes_a_small_share_and_the_sum_stays():
    for _, exercise in EXERCISES:
        for aspect in exercise.aspects:
            assert aspect.points > 0
            assert aspect.title != TITLE or aspect.points <= 0.06
        assert round(exercise.points * 2, 6).is_integer(), exercise.name


@pytest.mark.parametrize("device", [None, "cpu"])
def test_a_mistake_keeps_its_name_whether_or_not_it_follows_its_inputs(device):
    slug, name = "attention_scoring", "scaled_dot_product_attention"

    def unscaled(query, key, value):
        zeros = torch.zeros(query.shape, dtype=query.dtype, device=device or query.device)
        weights = torch.softmax((query + zeros) @ key.mT, -1)
        return weights @ value, weights

    exercise = find_exercise(name)[1]
    runs = exercise.runs(b"a seed")
    known = partial(known_mistakes, slug, name, runs)
    expected = records(reference(slug, name), runs)
    verdict = decide(exercise, runs, records(unscaled, runs), expected, known)
    assert (verdict.verdict, verdict.mistake) == (WRONG, "not_scaled")


def test_what_is_right_but_for_the_device_is_named_and_loses_little():
    slug, name = "masking", "padding_mask"

    def to_the_cpu(lengths, max_len=None):
        mask = reference(slug, name)(lengths, max_len)
        return mask.cpu()

    exercise = find_exercise(name)[1]
    runs = exercise.runs(b"a seed")
    known = partial(known_mistakes, slug, name, runs)
    expected = records(reference(slug, name), runs)
    verdict = decide(exercise, runs, records(to_the_cpu, runs), expected, known)
    assert (verdict.mistake, verdict.score) == ("left_on_the_cpu", exercise.points - 0.05)
