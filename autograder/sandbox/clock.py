"""What a sandbox is charged for: its own time, which neighbours and load do not lengthen.

TRUST BOUNDARY. Trusted code of the judging process. It reads numbers that the kernel wrote. Threads
of a sandbox that wait for each other save nothing: all their computing time is charged.
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from autograder.sandbox.watch import tasks_of

BEHIND = 30  # the wall clock's limit, as a multiple: for a load of so many processes per core
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK = 0.5  # seconds between two looks, at most

Usage = tuple[float, float, float]  # seconds: by the clock, of computing, of waiting for a core


class Clock:
    """Ends at `seconds` of a sandbox's own time: what it computes, or does not wait for a core.

    `read` gives the usage so far. Behind it stands a limit by the wall clock alone.
    """

    def __init__(self, seconds: float, read: Callable[[], Usage]):
        self.seconds, self.read, self.used = seconds, read, 0.0
        self.last = read()
        self.end = self.last[0] + BEHIND * seconds
        self.next = self.last[0] + min(_LOOK, seconds)

    def left(self) -> float:
        """Seconds until one has to ask whether to wait `again`; none when it is time to."""
        return max(0.0, self.next - time.monotonic())

    def again(self) -> bool:
        """Whether there is time left."""
        left = self.seconds - self.charge()
        self.next = self.last[0] + max(0.01, min(_LOOK, left))
        return left > 0 and self.last[0] < self.end

    def charge(self) -> float:
        """The time used so far. What ends between two looks takes its own times with it."""
        now = self.read()
        passed, computed, waited = (
            max(0.0, n - before) for n, before in zip(now, self.last, strict=True)
        )
        self.used, self.last = self.used + max(computed, passed - waited), now
        return self.used


def usage_of(processes: Iterable[int]) -> Usage:
    """The usage of some processes and their threads, and of children that have ended."""
    computed = waited = 0.0
    for pid in processes:
        with suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            computed += sum(map(int, f.read().rpartition(")")[2].split()[11:15])) / _TICKS
        for task in tasks_of(pid):
            with suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat") as numbers:
                waited += int(numbers.read().split()[1]) / 1e9
    return time.monotonic(), computed, waited
