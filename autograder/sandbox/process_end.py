"""How a process in a sandbox ends.

TRUST BOUNDARY. What is read here comes from the warm process and the kernel, not from inside.
"""

import signal
from collections.abc import Sequence

from autograder.student.engine.runs import Record


class ProcessDied(Exception):
    """The process has ended. `reason` is timeout, memory or crash; `detail` completes “it …”.

    `records` holds those of the runs that came back before.
    """

    def __init__(self, reason: str, detail: str, records: Sequence[Record] = ()):
        super().__init__(f"{reason}: it {detail}")
        self.reason, self.detail, self.records = reason, detail, records


class SandboxLost(RuntimeError):
    """The warm process ended through no fault of the code in the sandbox. Try again."""


def read_status(status: int, cpu_seconds: float) -> tuple[str, str]:
    """The reason and the detail for an exit status, a signal being negative."""
    number = max(0, -status)
    if number == signal.SIGKILL:
        return "memory", "was killed, most likely because memory ran out"
    if number == signal.SIGXCPU:
        return "timeout", f"used more than {cpu_seconds} s of computing time"
    try:
        return "crash", f"ended its process ({signal.Signals(number).name})"
    except ValueError:
        return "crash", f"ended its process (exit status {status})"


def lost_the_gpu(record: Record) -> bool:
    """Whether a run failed in such a way that its process can use no GPU any more.

    An index that is out of range does that. An answer that says so falsely costs its own process.
    """
    raised = record.raised
    return raised is not None and (
        "AcceleratorError" in raised.types or raised.message.startswith("CUDA error")
    )
