"""Watches from outside what a submission uses, and says when that is too much.

TRUST BOUNDARY. Trusted code of the warm process, for which `/proc` shows the processes of every
sandbox. It reads numbers that the kernel wrote, never what a student's process says, and looks
whether or not the judge is waiting. The cost of looking is bounded, so that no submission can keep
the warm process from serving others.

What the warm process holds, torch above all, is allowed besides. Shared pages count in proportion,
so a submission may have as much more than its limit, at most.

Where the kernel itself enforces the memory limit (`groups`), this only reports an excess sooner.
"""

import math
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

INTERVAL = 0.02  # seconds between two looks
DESCRIPTORS = 512  # of all processes together: each may be a pipe or a socket whose buffer is full
_REST = 1  # looks take at most half of the time
_SHARED = 16  # times the limit: no honest work shares that much among its processes
_WEIGHT = 1.25  # what one step of niceness costs
_NICEST = 19
_USED = re.compile(  # by `Watch`, of a process's status and of the sums of its maps
    rb"^(Threads|RssAnon|RssShmem|VmSwap|VmPTE|Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+)", re.MULTILINE
)
_MOST = 5000  # processes, so that every look ends


def family(pid: int) -> list[int]:
    """A process and all its descendants; orphans are children of the namespace's first process."""
    found = [pid]
    for parent in found:
        for thread in tasks_of(parent):
            with suppress(OSError), open(f"/proc/{parent}/task/{thread}/children") as children:
                found += map(int, children.read().split())
        if len(found) > _MOST:
            break
    return found


@dataclass
class Watch:
    """Watches a sandbox through its first process. `again` is when to look next, `given_mb` what
    this process has, which the sandbox's begin with."""

    pid: int
    limits: Mapping[str, float]
    again: float = 0.0
    niceness: int = 0
    given_mb: int = field(default_factory=lambda: _anonymous_kb(_status(os.getpid())) >> 10)

    def look(self) -> tuple[str, str] | None:
        """What it has used too much of: a reason for ending it, and text to complete “it …”."""
        began = time.monotonic()
        try:
            return self._excess()
        finally:
            ended = time.monotonic()
            self.again = ended + max(INTERVAL, _REST * (ended - began))

    def _excess(self) -> tuple[str, str] | None:
        pids, processes = family(self.pid), int(self.limits["processes"])
        if len(pids) > processes:
            return "crash", f"started more than {processes} processes"
        memory = int(self.limits["memory_mb"])
        most = self.given_mb + memory
        uses = [_status(pid) for pid in pids]
        used = sum(map(_anonymous_kb, uses)) >> 10  # pages that are shared count twice
        if used > most and (
            used > _SHARED * most or sum(map(_proportional_kb, pids, uses)) >> 10 > most
        ):
            return "memory", f"used more than {memory} MB of memory"
        if sum(map(_descriptors, pids)) > DESCRIPTORS:
            return "crash", f"had more than {DESCRIPTORS} files, pipes and sockets open"
        self._weigh(pids, sum(use.get("Threads", 1) for use in uses))
        return None

    def _weigh(self, pids: list[int], tasks: int) -> None:
        """Give many processes together the weight of one process of another submission.

        Children inherit it.

        This matters where there is no control group. Niceness cannot be lowered again.
        """
        busy = max(1, tasks - 1)  # the first one waits
        self.niceness = max(self.niceness, math.ceil(math.log(busy) / math.log(_WEIGHT)))
        if not self.niceness:
            return
        wanted = min(_NICEST, os.getpriority(os.PRIO_PROCESS, 0) + self.niceness)
        for pid in pids:
            for thread in tasks_of(pid):
                with suppress(OSError):  # ended meanwhile, or already nicer
                    os.setpriority(os.PRIO_PROCESS, int(thread), wanted)


def tasks_of(pid: int) -> list[str]:
    """The numbers of a process's threads; none once it has ended."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:  # gone meanwhile
        return []


def _numbers(path: str) -> dict[str, int]:
    """The lines of a file of /proc that hold a name and a number, of those that are used here."""
    with open(path, "rb") as lines:
        return {name.decode(): int(value) for name, value in _USED.findall(lines.read())}


def _status(pid: int) -> dict[str, int]:
    try:
        return _numbers(f"/proc/{pid}/status")
    except OSError:  # gone meanwhile
        return {}


def _anonymous_kb(use: Mapping[str, int]) -> int:
    """Its memory, private and shared; files it maps belong to the system."""
    return sum(use.get(name, 0) for name in ("RssAnon", "RssShmem", "VmSwap", "VmPTE"))


def _proportional_kb(pid: int, use: Mapping[str, int]) -> int:
    """The same, with shared pages counted in proportion."""
    try:
        rollup = _numbers(f"/proc/{pid}/smaps_rollup")
    except (FileNotFoundError, ProcessLookupError):  # gone meanwhile
        return 0
    except OSError:
        return _anonymous_kb(use)
    shares = sum(rollup.get(name, 0) for name in ("Pss_Anon", "Pss_Shmem", "SwapPss"))
    return shares + use.get("VmPTE", 0)


def _descriptors(pid: int) -> int:
    folder = f"/proc/{pid}/fd"
    try:
        return os.stat(folder).st_size or len(os.listdir(folder))  # a size since Linux 6.2
    except OSError:
        return 0
