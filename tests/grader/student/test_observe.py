"""The observer: whatever an answer runs is seen, by whatever way; what it may run is not."""

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import autograder
from attention_by_hand import blocks
from autograder.student.engine import code_origin
from autograder.student.engine.observe import Observer, hand_out
from autograder.student.engine.probe import probe
from autograder.student.engine.ready_made import TAKEN_OFF, is_forbidden
from autograder.student.engine.runs import Recipe, call, module, tensor

X = torch.linspace(-1, 1, 64).reshape(2, 4, 8)
NORM, FUSED = "normalisation", "attention"


def seen(action: Callable[[], Any], *patterns: str) -> set[str]:
    """The names that an action gets on record."""
    observer = Observer(patterns)
    with observer.watching():
        action()
    return set(observer.seen)


def norm() -> torch.Tensor:
    return F.layer_norm(X, [8])


class Quietly(nn.LayerNorm):
    pass


WAYS = {
    "by its name": norm,
    "by torch's own name": lambda: torch.layer_norm(X, [8]),
    "from torch's operators": lambda: torch.ops.aten.native_layer_norm(X, [8], None, None, 1e-5),
    "by a string": lambda: exec("F.layer_norm(X, [8])", {"F": F, "X": X}),
    "by a name in a variable": lambda: getattr(F, "_".join(["layer", "norm"]))(X, [8]),
    "as a partial": functools.partial(F.layer_norm, X, [8]),
    "a module": lambda: nn.LayerNorm(8)(X),
    "a module that one inherits from": lambda: Quietly(8)(X),
    "within a larger module": lambda: nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)(X),
    "vectorised": lambda: torch.vmap(lambda x: F.layer_norm(x, [8]))(X),
    "differentiated": lambda: torch.func.vjp(lambda x: F.layer_norm(x, [8]), X),
    "in a thread": lambda: [t := threading.Thread(target=norm), t.start(), t.join()],
    "in a pool": lambda: list(ThreadPoolExecutor(2).map(lambda _: norm(), range(3))),
}
MADE_FIRST = {  # which takes a while: not whenever tests are collected
    "traced": lambda: functools.partial(torch.jit.trace(lambda x: F.layer_norm(x, [8]), X), X),
    "compiled": lambda: torch.compile(norm, backend="eager"),
}


@pytest.mark.filterwarnings("ignore:Dynamo:UserWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", [*WAYS, *MADE_FIRST])
def test_an_operation_is_seen_by_whatever_way_it_is_called(name):
    way = MADE_FIRST[name]() if name in MADE_FIRST else WAYS[name]
    assert any("layer_norm" in name for name in seen(way, NORM))


def test_the_fused_attention_is_seen_though_torchs_functions_are_not_watched():
    def hidden() -> None:
        with torch._C.DisableTorchFunction():
            F.scaled_dot_product_attention(X, X, X)

    assert "torch.ops.aten._safe_softmax" in seen(hidden, FUSED)


BACKWARD = {
    "grad": lambda x: torch.autograd.grad(x.exp().sum(), x),
    "a method": lambda x: x.exp().sum().backward(),
    "a function": lambda x: torch.autograd.backward(x.exp().sum()),
    "vjp": lambda x: torch.func.vjp(torch.exp, x)[1](x),
    "jacobian": torch.func.jacrev(torch.exp),
    "forward": lambda x: torch.func.jvp(torch.exp, (x,), (x,)),
}


@pytest.mark.parametrize("way", BACKWARD.values(), ids=BACKWARD.keys())
def test_automatic_differentiation_is_seen_by_whatever_way_it_is_called(way):
    x = torch.ones(3, requires_grad=True)
    assert seen(lambda: way(x), "autograd")
    assert not seen(lambda: x.exp() * x, "autograd")


ANY_BLOCK = "attention_by_hand.blocks.*"
LAYER = blocks.EncoderLayer(8, 2, 8).eval()
BLOCKS = {
    "EncoderLayer.forward": lambda: LAYER(X),
    "MultiHeadAttention.forward": lambda: LAYER.self_attn(X, X, X),
    "_Layer._think": lambda: LAYER._think(X),
    "softmax": lambda: blocks.softmax(np.zeros(3)),
    "fused_attention": lambda: blocks.fused_attention(X, X, X),
}


@pytest.mark.parametrize(("name", "use"), BLOCKS.items(), ids=BLOCKS.keys())
def test_a_block_counts_under_the_name_that_was_called(name, use):
    assert seen(use, ANY_BLOCK, NORM, FUSED) == {f"attention_by_hand.blocks.{name}"}
    assert not seen(use, ANY_BLOCK, NORM, FUSED, f"!attention_by_hand.blocks.{name}")


def test_to_build_a_block_or_a_layer_is_to_run_nothing():
    build = [lambda: blocks.EncoderLayer(8, 2, 8), lambda: nn.TransformerEncoderLayer(8, 2, 8)]
    assert not any(seen(make, ANY_BLOCK, "transformer", NORM) for make in build)


def test_what_a_block_calls_back_is_the_answers_own():
    assert "torch.nn.functional.layer_norm" in seen(
        lambda: LAYER._through(X, lambda x: F.layer_norm(x, [8]), nn.Identity()),
        NORM,
        "!attention_by_hand.blocks.*",
    )


def test_what_is_handed_to_an_answer_may_run_what_it_likes():
    recipe = Recipe("attention_by_hand.blocks:EncoderLayer", (8, 2, 8), {}, None)
    run = call(recipe, tensor(X.numpy()))
    record = probe(lambda layer, x: layer(x), run, "cpu", (NORM, FUSED))
    assert record.raised is None and not record.operations
    assert probe(lambda layer, x: layer.norm1(x), run, "cpu", (NORM, FUSED)).operations


class Given(nn.Module):
    """A layer of an exercise, once `handing_out` has registered it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        return self.norm(x)

    def through(self, function, x):
        return function(x)


@pytest.fixture
def handing_out(monkeypatch) -> Iterator[Observer]:
    """An observer of a run in which `Given` is a class of the course."""
    module = sys.modules[__name__]
    monkeypatch.setattr(code_origin, "_is_own", lambda thing, where: thing is Given)
    before = dict(code_origin._KNOWN)
    code_origin._register(module, code_origin.Owner.COURSE)
    yield Observer((NORM,))
    code_origin._KNOWN.clear()
    code_origin._KNOWN.update(before)


def test_what_the_course_computes_itself_is_its_own_where_it_was_handed_out(handing_out):
    layer = Given()
    with handing_out.watching():
        layer(X)
        assert handing_out.seen
        handing_out.seen.clear()
        hand_out(layer)
        layer(X)
    assert not handing_out.seen


@pytest.mark.parametrize("function", [lambda x: F.layer_norm(x, [8]), nn.LayerNorm(8)])
def test_what_is_handed_to_the_course_is_the_answers(handing_out, function):
    layer = Given()
    with handing_out.watching():
        hand_out(layer)
        layer.through(function, X)
    assert "torch.nn.functional.layer_norm" in handing_out.seen


def test_the_courses_code_with_other_globals_is_the_answers(handing_out):
    layer = Given()
    own = FunctionType(Given.forward.__code__, dict(globals()))
    with handing_out.watching():
        hand_out(layer)
        own(layer, X)
    assert "torch.nn.functional.layer_norm" in handing_out.seen


def test_a_module_that_is_filled_later_is_looked_at_again(monkeypatch):
    module = ModuleType("attention_by_hand.blocks.filled_later")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    code_origin.register_course()
    exec("def later(f, x):\n    return f(x)", vars(module))
    code_origin.register_again(module.__name__)
    found = seen(lambda: module.later(F.gelu, X), ANY_BLOCK)
    del code_origin._KNOWN[id(module.later.__code__)]
    assert found == {"attention_by_hand.blocks.later"}


def test_gradients_that_the_probe_takes_through_what_was_handed_out_are_no_answers():
    recipe = Recipe("attention_by_hand.blocks:EncoderLayer", (8, 2, 8), {}, None)
    run = call(recipe, tensor(X.numpy())).with_gradients()
    record = probe(lambda layer, x: layer(x), run, "cpu", (NORM, FUSED, "autograd"))
    assert record.gradients["1"] is not None and not record.operations


class Late(tuple):
    def __getitem__(self, which):
        return (norm(),)[which]


class LateText(Exception):
    def __str__(self):
        return str(norm().sum())


class LateGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad * norm().sum()


class LateKey(dict):
    def items(self):
        return [("a", norm())]


def hooked(x: torch.Tensor) -> torch.Tensor:
    made = x * 1
    if made.requires_grad:
        made.register_hook(lambda grad: grad * norm().sum())
    return made


def unpacked(x: torch.Tensor) -> torch.Tensor:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t * norm().sum()):
        return x * x


class LateLoad(nn.Module):
    def load_state_dict(self, state):
        norm()


def failing(x: torch.Tensor) -> None:
    raise LateText


LATE = {
    "when it is read": lambda x: Late((None,)),
    "when its keys are read": lambda x: LateKey(),
    "when its error is read": failing,
    "in its backward pass": LateGradient.apply,
    "in a hook": hooked,
    "where a tensor that was kept is needed": unpacked,
}


@pytest.mark.parametrize("answer", LATE.values(), ids=LATE.keys())
def test_what_runs_after_the_call_is_seen(answer):
    run = call(tensor(X.numpy())).with_gradients()
    record = probe(answer, run, "cpu", (NORM,))
    assert "torch.nn.functional.layer_norm" in record.operations


def test_what_runs_while_parameters_are_loaded_is_seen():
    record = probe(LateLoad, module(state={}).then_method("train"), "cpu", (NORM,))
    assert "torch.nn.functional.layer_norm" in record.operations


def test_texts_and_numbers_of_classes_of_ones_own_are_what_they_hold():
    class Text(str):
        def __str__(self):
            return "another"

    class Number(float):
        def __float__(self):
            return 2.0

    record = probe(lambda: (Text("a"), Number(1.0)), call())
    assert record.value == ("a", 1.0) and [*map(type, record.value)] == [str, float]


def test_a_module_that_an_answer_makes_up_hides_nothing(monkeypatch):
    made_up = ModuleType("attention_by_hand.exercises.masking.made_up")
    exec("def run(action):\n    action()", made_up.__dict__)  # noqa: S102
    monkeypatch.setitem(sys.modules, made_up.__name__, made_up)
    assert seen(lambda: made_up.run(norm), NORM)


def test_a_module_that_another_thread_is_importing_is_waited_for(monkeypatch, tmp_path):
    """Else it would be listed half, or while it changes, and a right answer judged as a crash."""
    reached, go = threading.Event(), threading.Event()
    monkeypatch.setitem(sys.modules, "gate", SimpleNamespace(reached=reached, go=go))
    (tmp_path / "half_there.py").write_text(
        "import gate\ngate.reached.set()\ngate.go.wait(60)\ndef last(): pass\n"
    )
    monkeypatch.setattr(autograder, "__path__", [*autograder.__path__, str(tmp_path)])
    name = "autograder.half_there"
    with ThreadPoolExecutor(2) as threads:
        imported = threads.submit(importlib.import_module, name)
        assert reached.wait(60)
        looked = threads.submit(code_origin.register_course)
        wait([looked], timeout=0.5)  # if it does not wait, it is done by now
        go.set()
        looked.result()
        known = code_origin._KNOWN.get(id(imported.result().last.__code__))
    monkeypatch.delitem(sys.modules, name)
    assert known is not None


class Importing(dict):
    """The modules, while another thread imports one."""

    def __reversed__(self):
        raise RuntimeError("dictionary changed size during iteration")


def test_modules_that_cannot_be_compared_now_are_listed(monkeypatch):
    module = ModuleType("autograder.student.engine.made_up")
    exec("def inside(): pass", vars(module))
    name = module.__name__
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(code_origin, "_LATEST", code_origin._LATEST)
    monkeypatch.setattr(code_origin, "sys", SimpleNamespace(modules=Importing(sys.modules)))
    code_origin.register_course()
    assert id(module.inside.__code__) in code_origin._KNOWN
    del code_origin._KNOWN[id(module.inside.__code__)]


def test_a_module_is_found_although_another_has_gone(monkeypatch):
    monkeypatch.setattr(code_origin, "_LATEST", code_origin._LATEST)
    went, came = ModuleType("autograder.went"), ModuleType("autograder.student.engine.came")
    exec("def inside(): pass", vars(came))
    sys.modules[went.__name__] = went
    code_origin.register_course()
    del sys.modules[went.__name__]
    monkeypatch.setitem(sys.modules, came.__name__, came)
    code_origin.register_course()
    assert code_origin._KNOWN.pop(id(came.inside.__code__), None) is not None


def test_a_module_that_changes_while_it_is_listed_is_listed(monkeypatch):
    module = ModuleType("autograder.changing")

    def meanwhile(_: object, where: ModuleType) -> bool:
        setattr(where, f"new_{len(vars(where))}", None)
        return False

    monkeypatch.setattr(code_origin, "_is_own", meanwhile)
    code_origin._register(module, code_origin.Owner.LIBRARY)
    assert hasattr(module, "new_5")


def test_the_place_is_the_answers_line():
    def answer(x: torch.Tensor) -> torch.Tensor:
        return nn.LayerNorm(8)(x)

    observer = Observer((NORM,))
    with observer.watching():
        answer(X)
    assert observer.seen["torch.nn.functional.layer_norm"].endswith("return nn.LayerNorm(8)(x)")
    assert ", in answer: " in observer.seen["torch.nn.functional.layer_norm"]


def test_hooks_that_an_answer_takes_off_are_missed():
    assert seen(torch._C._pop_torch_function_stack, NORM) == {TAKEN_OFF}
    assert seen(lambda: torch._C._pop_torch_dispatch_stack(None), NORM) == {TAKEN_OFF}
    assert is_forbidden(TAKEN_OFF, (NORM,))


def test_afterwards_nothing_is_watched():
    before = threading.getprofile()
    with pytest.raises(ZeroDivisionError):
        seen(lambda: 1 // 0, NORM)
    assert torch._C._len_torch_function_stack() == torch._C._len_torch_dispatch_stack() == 0
    assert threading.getprofile() is before
