"""What the tests of the sandbox share: small limits, short ways to say what a cell gave."""

import os
import signal

import pytest

from autograder.sandbox.host import ProcessDied, Sandbox
from autograder.sandbox.launcher import warm_process
from autograder.sandbox.limits import Limits

SMALL = Limits(cell_seconds=20.0, probe_seconds=2.0, memory_mb=1024, tmp_mb=64, file_mb=16)


def errors(outputs: list[dict]) -> list[str]:
    return [output["ename"] for output in outputs if output["output_type"] == "error"]


def printed(outputs: list[dict]) -> str:
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream")


def value_of(worker: Sandbox, expression: str) -> str:
    outputs = worker.execute(f"print({expression})")
    assert not errors(outputs), outputs
    return printed(outputs).strip()


def how_it_dies(source: str, limits: Limits = SMALL, seconds: float | None = None) -> ProcessDied:
    with Sandbox(limits=limits) as own, pytest.raises(ProcessDied) as death:
        own.execute(source, seconds)
    return death.value


def who_forks(job: str) -> int:
    """Stands in for a judge: returns its warm process, having killed an earlier one if told to."""
    if job == "killed":
        warm = warm_process("bwrap")
        os.kill(warm.pid, signal.SIGKILL)
        assert warm.gone(within=60)  # until then, it may still fork
    with Sandbox(limits=SMALL) as own:
        assert value_of(own, "6 * 7") == "42"
        return own._warm.pid
