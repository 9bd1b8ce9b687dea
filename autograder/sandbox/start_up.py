"""Waits for a process to start: on a busy machine that may take long without being a failure.

TRUST BOUNDARY. Only processes that have not yet run any student's code are waited for in this way:
one that has could pretend to make progress.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress

MOST = 10  # the longest wait, as a multiple of that for a process that does nothing


class Waiting:
    """Patience with some processes: `seconds`, and as many again whenever they have worked."""

    def __init__(self, seconds: float, processes: Callable[[], Iterable[int]]):
        self.seconds, self.processes = seconds, processes
        self.started = time.monotonic()
        self.deadline, self.work = self.started + seconds, work_of(processes())

    def left(self) -> float:
        """Seconds until the deadline, which `again` may move."""
        return max(0.0, self.deadline - time.monotonic())

    def again(self) -> bool:
        """Whether to keep waiting: they have worked, and the whole has not taken too long."""
        now, work = time.monotonic(), work_of(self.processes())
        if work == self.work or now - self.started >= MOST * self.seconds:
            return False
        self.deadline, self.work = now + self.seconds, work
        return True


def work_of(processes: Iterable[int]) -> tuple[int, int]:
    """What some processes have done so far: page faults, and clock ticks on a processor."""
    faults = ticks = 0
    for pid in processes:
        with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
            faults += int(fields[7]) + int(fields[9])
            ticks += int(fields[11]) + int(fields[12])
    return faults, ticks
