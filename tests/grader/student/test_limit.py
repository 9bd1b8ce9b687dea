"""`check` ends an answer that does not end, on one line that says where and in which call."""

import signal
import threading
import time
from importlib import import_module

import pytest
from kernels import run_cells

from autograder.student.check import check, verdict_on
from autograder.student.engine.verdict import TIMEOUT
from autograder.student.limit import VARIABLE, Limit, seconds_allowed

LIMIT = import_module("autograder.student.limit")


ENDLESS = {
    "a loop": "while True:\n        scores = scores + 1",
    "one that swallows": "while True:\n        try: scores = scores + 1\n        except: pass",
    "sleep": "import time; time.sleep(10**6)",
}


@pytest.mark.share(6)
@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_in_a_notebook_an_endless_answer_is_one_line_with_place_and_call(body):
    _, checked = run_cells(
        f"%env {VARIABLE}=1\nfrom autograder import check\n"
        f"def softmax(scores, axis=-1):\n    {body}",
        "check(softmax)",
    )
    (error,) = checked.outputs
    (line,) = "\n".join(error["traceback"]).splitlines()
    after = f"{LIMIT.WAITING} s" if "sleep" in body else "1 s of computing"
    assert line.startswith(f"AssertionError: softmax: stopped after {after} in line ")
    assert body.splitlines()[0] in line and "for scores of shape (3, 5)" in line
    assert VARIABLE in line


def test_a_students_interrupt_is_one_line_too():
    _, checked = run_cells(
        "from autograder import check\nimport signal, time\n"
        "def softmax(scores, axis=-1):\n    signal.raise_signal(signal.SIGINT); time.sleep(60)",
        "check(softmax)",
    )
    (error,) = checked.outputs
    assert error["ename"] == "KeyboardInterrupt"
    (line,) = "\n".join(error["traceback"]).splitlines()
    assert "softmax was stopped in line 4, in softmax: " in line and "(3, 5)" in line


def test_without_signals_as_in_a_thread_or_on_windows_a_loop_ends_as_well(monkeypatch):
    def softmax(scores, axis=-1):
        while True:
            scores = scores + 1

    monkeypatch.setenv(VARIABLE, "0.5")
    found = []
    thread = threading.Thread(target=lambda: found.append(verdict_on(softmax, "softmax")))
    thread.start()
    thread.join()
    monkeypatch.delattr(signal, "pthread_kill")  # Windows has none
    found.append(verdict_on(softmax, "softmax"))
    assert [verdict.verdict for verdict in found] == [TIMEOUT, TIMEOUT]


def test_the_call_is_the_one_that_did_not_end(monkeypatch):
    calls = []

    def softmax(scores, axis=-1):
        calls.append(scores.shape)
        while len(calls) > 2:
            pass
        return scores

    monkeypatch.setenv(VARIABLE, "0.5")
    with pytest.raises(AssertionError) as caught:
        check(softmax)
    assert f"for scores of shape {calls[-1]}" in str(caught.value)


@pytest.mark.parametrize("told", ["soon", "-1", "nan"])
def test_a_limit_that_is_none_is_told(monkeypatch, told):
    monkeypatch.setenv(VARIABLE, told)
    with pytest.raises(ValueError, match=VARIABLE):
        check(lambda scores, axis=-1: scores, "softmax")


def test_the_limit_is_above_the_graders_and_0_means_none(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert seconds_allowed() > LIMIT.SECONDS
    monkeypatch.setenv(VARIABLE, "0")
    assert seconds_allowed() == float("inf")
    with Limit(seconds_allowed(), spin.__code__):
        pass


def spin(limit: Limit) -> None:
    while not limit.reached:
        pass


def rest(times: int) -> None:
    """In short waits: where a shell has had interrupts ignored, no longer one can be ended."""
    for _ in range(times):
        threading.Event().wait(0.01)


def test_an_answer_that_a_busy_machine_keeps_waiting_goes_on(monkeypatch):
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    monkeypatch.setattr(LIMIT, "WAITING", float("inf"))
    with Limit(0.01, rest.__code__) as limit:
        rest(30)
    assert not limit.reached


def test_an_answer_that_waits_for_long_is_interrupted_though_it_computes_nothing(monkeypatch):
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    with pytest.raises(KeyboardInterrupt), Limit(0.01, rest.__code__) as limit:
        rest(10**9)
    assert limit.reached == f"{LIMIT.WAITING * 0.01:g} s"


def test_what_would_come_late_comes_before_the_block_is_left():
    with pytest.raises(KeyboardInterrupt), Limit(0.05, spin.__code__) as limit:
        try:
            spin(limit)
        finally:
            limit.stop()
    assert limit.reached


def test_outside_the_call_and_in_a_debugger_nothing_is_interrupted(monkeypatch):
    with Limit(0.01, spin.__code__) as outside:
        threading.Event().wait(0.2)
    monkeypatch.setattr(LIMIT, "_DEBUGGERS", (__file__,))
    with Limit(
        0.01, test_outside_the_call_and_in_a_debugger_nothing_is_interrupted.__code__
    ) as held:
        threading.Event().wait(0.2)
    assert not outside.reached and not held.reached
