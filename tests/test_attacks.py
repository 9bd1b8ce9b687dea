"""The corpus of attacks, each tried through the judge, and as notebooks through a class's grading.

An attack in `attacks/` is a file that can be handed in as it is. The comments at its top say what
it tries, which layer stops it (`by`), the verdicts that it may end with, and, where it looks for
something, the words that the verdict must hold (`says`; `|` separates alternatives) or must not
(`never`). `most` is what it earns at most, `seconds` how long a call may take.
"""

import json
import os
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.grading import sandbox
from autograder.grading.judge import judge_file
from autograder.grading.sandbox import Limits, Worker

HERE = Path(__file__).parent / "attacks"
ATTACKS = sorted(path.stem for path in HERE.glob("*.py"))
RIGHT = HERE.parent.parent / "solutions" / "kernel_regression.py"
CANARY = "attack-canary"


def declared(name: str) -> dict[str, str]:
    """What the top of an attack says of it."""
    lines = (HERE / f"{name}.py").read_text(encoding="utf-8").splitlines()
    pairs = [re.fullmatch(r"# (\w+): (.+)", line) for line in lines]
    return {pair[1]: pair[2] for pair in pairs if pair}


def limits(said: dict[str, str]) -> Limits:
    seconds = float(said.get("seconds", 20))
    small = {"memory_mb": 1024, "tmp_mb": 32, "file_mb": 8, "processes": 20, "restarts": 2}
    return Limits(
        cell_seconds=seconds, probe_seconds=seconds, output_bytes=1 << 20, cpu_seconds=60, **small
    )


def words(result: dict) -> str:
    """All that a result says, as it is printed, with the marks of JSON undone."""
    return json.dumps(result, ensure_ascii=False)


@pytest.fixture(scope="module", autouse=True)
def outside() -> Iterator[list[socket.socket]]:
    """What attacks look for outside: servers that listen, a variable in the environment."""
    os.environ["AUTOGRADER_ATTACK_SECRET"] = "not for students"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tcp.bind(("127.0.0.1", 47655))
            tcp.listen()
        except OSError:  # somebody listens there already: as good
            pass
        unix.bind("\0autograder-attack")
        unix.listen()
        yield [tcp, unix]
    del os.environ["AUTOGRADER_ATTACK_SECRET"]


@pytest.fixture(scope="module")
def warm() -> sandbox._Warm:
    """The process that forks all sandboxes of this module."""
    with Worker() as first:
        first.wait_until_up()
    return sandbox._warm_process("bwrap")


def nothing_remains(warm: sandbox._Warm) -> bool:
    """Whether the warm process is alone again, within a moment; bubblewrap's two stand above it."""
    deadline = time.monotonic() + 10
    while len(sandbox._family(warm.process.pid)) > 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    return len(sandbox._family(warm.process.pid)) == 3


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_as_declared(name, warm):
    said = declared(name)
    result = judge_file(HERE / f"{name}.py", seed=b"a seed", limits=limits(said))
    ((_, found),) = result["exercises"].items()
    assert found["verdict"] in said["verdict"].split(), words(result)
    assert found["score"] <= float(said.get("most", 0)) < found["points"]
    if "says" in said:
        assert any(text in words(result) for text in said["says"].split("|")), words(result)
    assert said.get("never", "\x1b") not in words(result)
    assert len(words(result)) < 100_000
    assert not warm.gone() and sandbox._warm_process("bwrap") is warm
    assert not Path("/tmp", CANARY).exists()
    assert nothing_remains(warm)


def test_after_all_of_them_a_right_answer_is_right():
    result = judge_file(RIGHT, exercises=["softmax"], seed=b"a seed")
    assert result["score"] == result["points"] == 3


def test_every_attack_says_what_it_tries():
    assert len(ATTACKS) > 60
    for name in ATTACKS:
        assert {"tries", "by", "verdict"} <= declared(name).keys(), name
        assert "correct" not in declared(name)["verdict"]
