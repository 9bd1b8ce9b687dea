"""What comes back is data whose cost has a bound: the gate before the verdict, and the limits."""

import ast
import itertools
import json
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook

import solutions
from autograder.gradebook.local_pool import LocalPool
from autograder.judge import verdicts as judge
from autograder.judge.allowance import LimitExceeded, limit_computing
from autograder.judge.job import Job, Options
from autograder.judge.judge_file import verdicts_on
from autograder.judge.judgement import UNUSABLE
from autograder.notebook import names
from autograder.notebook.rebuild import rebuild
from autograder.student.engine.gate import ITEMS, NUMBERS, admit
from autograder.student.engine.records import record_from, record_tree
from autograder.student.engine.runs import (
    Array,
    RaisedException,
    Record,
    StridedArray,
    call,
    tensor,
)
from autograder.student.engine.state import STATE
from autograder.student.engine.values import MANY, MAX_ITEMS, TooLarge, WireError, decode, encode
from autograder.student.engine.verdict import MEMORY, TIMEOUT
from autograder.student.engine.words import describe

RUN = call(tensor(np.ones((2, 3))), scale=1.0)
RIGHT = Record((tensor(np.ones((2, 3))),))
MILLIONS = tensor(np.zeros(4_000_000, np.uint8))


def admitted(*values: object, **more: object) -> Record:
    return admit(Record(values, **more), RUN, RIGHT)


# --- the gate -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        tensor(np.ones((2, 3))), tensor(np.zeros((500, 600))), np.float64(1).item(), None, "text",
        [tensor(np.zeros(3)), (1, 2.5, {"a": [True]})], [0.5] * 1000, Array(np.zeros((0, 5))),
    ],
    ids=str,
)  # fmt: skip
def test_results_of_other_shapes_kinds_and_lengths_pass_as_they_are(value):
    assert repr(admitted(value).values) == repr((value,))


def test_what_is_too_large_to_compare_is_told_in_words():
    told = describe(admitted(MILLIONS).value)
    assert told == "a tensor of shape (4000000,) (uint8), too large to compare"
    assert describe(admitted([0] * (ITEMS + 999)).value).endswith(
        f"{ITEMS + 999}, too large to compare"
    )


def test_an_array_counts_as_often_as_it_is_referred_to():
    half = tensor(np.zeros(NUMBERS // 2, np.uint8))
    kinds = [type(part) for part in admitted([half] * 1000).value]
    assert kinds[:2] == [Array, Array] and {*kinds[3:]} == {TooLarge}


def test_rows_without_numbers_count():
    assert isinstance(admitted(Array(np.zeros((30_000_000, 0)))).value, TooLarge)


def test_what_only_goes_in_does_not_come_back():
    assert describe(admitted(StridedArray(MILLIONS)).value) == "an object of type StridedArray"


def test_gradients_only_of_what_was_asked_for():
    slopes = {"0": MILLIONS, "parameter w": Array(np.ones(2)), "7.mask": Array(np.ones(2))}
    right = Record(RIGHT.values, gradients={"0": Array(np.ones((2, 3)))})
    assert admit(Record(gradients=slopes), RUN, right).gradients == {}
    found = admit(Record(gradients=slopes), RUN.with_gradients(), right).gradients
    assert found.keys() == {"0", "parameter w"} and isinstance(found["0"], TooLarge)
    many = Record(gradients={f"parameter {i}": None for i in range(1000)})
    assert len(admit(many, RUN.with_gradients(), right).gradients) < 50


def test_names_and_texts_are_bounded():
    found = admitted(
        *[None] * 1000,
        raised=RaisedException(("E" * 9000,) * 1000, "m" * 10**6, "t" * 10**6, "d" * 10**6),
        changed={str(i): None for i in range(1000)} | {"0.scale": None},
        side_effects=("made up",) * 1000 + STATE[:1],
        operations={f"{i}" * 1000: "at" * 10**5 for i in range(1000)},
    )
    assert len(found.values) <= 2 and found.changed.keys() == {"", "0.scale"}
    assert found.side_effects == ("global state", STATE[0])
    assert len(repr(found)) < 30_000


# --- the wire -------------------------------------------------------------------------------------


def test_a_message_holds_so_many_values():
    with pytest.raises(WireError):
        decode(encode([[0] * 1000] * (MAX_ITEMS // 1000)))
    with pytest.raises(WireError):  # the message has the array once
        decode(encode([MILLIONS] * 20))


def test_what_an_answer_gives_is_cut_so_that_it_can_be_read():
    record = Record(([[[1.0] * 1000] * 100], [MILLIONS] * 20, "x"))
    read = record_from(decode(encode({"records": [record_tree(record)] * 3}, MANY))["records"][2])
    assert len(read.values) == 3


def test_texts_are_texts():
    tree = record_tree(Record(raised=RaisedException(("E",), "m")))
    tree["raised"][0] = [{"a": [Array(np.zeros(3))] * 1000}]
    with pytest.raises(WireError):
        record_from(tree)


def test_a_string_of_a_class_of_its_own_is_sent_as_a_plain_one():
    class Endless(str):
        def __getitem__(self, part):
            return self

    assert len(encode(Endless("x" * 10**6))) < 10_000


# --- reading --------------------------------------------------------------------------------------


def test_each_cell_is_parsed_once(monkeypatch):
    read, parse = Counter(), ast.parse
    monkeypatch.setattr(names.ast, "parse", lambda text: read.update([text]) or parse(text))
    release = new_notebook(cells=[new_code_cell("x = 1", id="first")])
    for number in range(25):
        metadata = {"nbgrader": {"grade_id": f"f{number}", "solution": True, "grade": False}}
        cell = new_code_cell("raise NotImplementedError", id=f"f{number}", metadata=metadata)
        release.cells.append(cell)
    cells = [f"a{i} = [" + "0, " * 7_000 + "]" for i in range(25)]
    handed = {"cells": [{"cell_type": "code", "source": s, "metadata": {}} for s in cells]}
    rebuild(release, json.loads(json.dumps(handed)))
    assert {read[source] for source in cells} == {1}


# --- limits ---------------------------------------------------------------------------------------


def test_time_that_runs_out_is_told():
    why = r"took more than 0\.2 s of computing time"
    with pytest.raises(LimitExceeded, match=why) as told, limit_computing(0.2):
        while True:
            try:
                for _ in itertools.count():
                    pass
            except Exception:  # noqa: BLE001, S110  (nothing that catches errors catches it)
                pass
    assert told.value.reason == TIMEOUT
    assert signal.getitimer(signal.ITIMER_PROF) == (0, 0)


def test_memory_that_runs_out_is_told():
    why = "took more than 64 MB of memory"
    with pytest.raises(LimitExceeded, match=why) as told, limit_computing(60, 64):
        np.ones(64 << 20)
    assert told.value.reason == MEMORY
    assert np.ones(16 << 20).all()  # the limit is lifted


def stubborn(_: Job) -> None:
    """Stands in for a judge that cannot be interrupted: it is busy in C."""
    from autograder.judge import allowance

    allowance._GRACE = 0
    with limit_computing(0.5):
        max(itertools.repeat(0))


def test_a_judge_that_dies_of_its_limit_ends_in_a_judgement_and_not_in_a_retry():
    release = json.dumps(new_notebook(cells=[new_code_cell("x = 1", id="first")])).encode()
    job = Job("tiny", release, b"{}", None, None, {}, Options())
    ((_, outcome),) = LocalPool(1).run(iter([("ann", job)]), stubborn)
    assert outcome.judgement.status == UNUSABLE
    assert "s of computing time outside the sandbox" in outcome.judgement.reason


@pytest.mark.needs_torch
def test_the_verdicts_on_a_submission_have_a_limit_together(monkeypatch):
    path = Path(solutions.__file__).parent / "kernel_regression.py"
    monkeypatch.setattr(judge, "TOTAL", 0.0)
    verdicts = verdicts_on(path, ["softmax", "gaussian_scores"])
    assert {each.verdict for each in verdicts.values()} == {TIMEOUT}
    assert "s of computing time outside the sandbox" in verdicts["softmax"].aspects[0].message
