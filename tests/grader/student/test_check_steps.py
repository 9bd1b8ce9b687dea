"""A class that is written method by method: each step has a check, which needs no later step."""

import inspect

import pytest

from autograder.bank import banks
from autograder.notebook.stubs import clear
from autograder.student.check import check, verdict_on
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import CORRECT, MISSING, WRONG
from solutions import transformer as right

STEPS = ["embed", "encode", "decode"]
MISTAKES = {
    "embed": ["model_root_forgotten", "positions_from_one", "sum_without_dropout"],
    "encode": ["padding_seen_by_the_encoder", "causal_encoder", "memory_not_normalised"],
    "decode": ["no_causal_mask", "padding_seen_by_the_decoder", "decoder_without_layers"],
}  # fmt: skip


def written(*methods: str) -> type:
    """The model of a student who has written these methods so far."""
    whole = inspect.getsource(right.Transformer)
    scope = vars(right) | {"__name__": "__main__"}
    exec(clear(whole), scope)
    model = scope["Transformer"]
    for method in methods:
        setattr(model, method, getattr(right.Transformer, method))
    for name, method in vars(model).items():
        if inspect.isfunction(method) and name in STEPS:
            copy = type(method)(method.__code__, scope, name, method.__defaults__)
            copy.__qualname__ = f"Transformer.{name}"
            setattr(model, name, copy)
    return model


def test_the_steps_of_the_transformer():
    assert find_exercise("Transformer")[1].steps() == STEPS
    assert find_exercise("EncoderLayer")[1].steps() == []


@pytest.mark.parametrize("number", range(3))
def test_a_step_passes_before_the_next_is_written(number, capsys):
    model = written(*STEPS[: number + 1])
    check(getattr(model, STEPS[number]))
    assert f"Transformer.{STEPS[number]}: " in capsys.readouterr().out
    for step in STEPS[number + 1 :]:
        with pytest.raises(AssertionError, match=f"Transformer.{step}"):
            check(getattr(model, step))
        assert "Not written yet" in capsys.readouterr().out


@pytest.mark.parametrize("step", STEPS)
def test_a_mistake_is_named_at_its_step_and_not_before(step):
    for name in MISTAKES[step]:
        wrong = banks("transformer")["Transformer"].mistakes[name]
        for other in STEPS[: STEPS.index(step) + 1]:
            verdict = verdict_on(wrong, "Transformer", other)
            assert (verdict.verdict == CORRECT) == (other != step), (name, other)
            assert other != step or (verdict.verdict == WRONG and verdict.mistake and verdict.cause)


def test_what_is_no_step_is_told(capsys):
    assert verdict_on(None, "Transformer", "embed").verdict == MISSING
    with pytest.raises(ValueError, match="no exercise is called 'forward'"):
        check(right.Transformer.forward)
    with pytest.raises(ValueError, match="no exercise is called 'encode'"):
        check(type("Other", (), {"encode": lambda self: None}).encode, "encode")
