"""A control group for each submission, where this process may create one.

TRUST BOUNDARY. Trusted code of the judging process, before a student's code runs: it moves the
sandbox's two processes, and so all that they start, into the group. Inside the sandbox, no control
group can be seen or written to.

The kernel then enforces the submission's memory limit, including memory in sockets, pipes and page
tables, and its limit on processes, which it does not otherwise enforce for root; and it divides
processor time among submissions, however many processes each has. Each of the three controllers is
used where it is available. Without them, `watch` and the limits of each process stand alone.
"""

import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

_NAME = "autograder"
_KILLED = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
CONTROLLERS = ("cpu", "memory", "pids")
_SWAP = ("memory.memsw.limit_in_bytes", "memory.swap.max")  # not every kernel counts swap


@dataclass(frozen=True)
class Place:
    """The folder in which groups of a controller can be created, and the hierarchy's version."""

    folder: Path
    version: int


class Group:
    """The control groups of a submission, by controller; empty where none can be created."""

    def __init__(self, pids: Sequence[int], memory_mb: int, processes: int):
        self.folders: dict[str, Path] = {}
        name = f"{_NAME}-{os.getpid()}-{time.monotonic_ns()}"  # new, so it counts only what is ours
        for controller, place in places_here().items():
            folder = place.folder / name
            try:
                folder.mkdir(exist_ok=True)  # version 2 has one folder for all controllers
                self.folders[controller] = folder
                for file, value in _settings(controller, place, memory_mb, processes).items():
                    if file not in _SWAP or (folder / file).exists():
                        (folder / file).write_text(value)
                for pid in pids:
                    (folder / "cgroup.procs").write_text(str(pid))
            except OSError:
                _remove(self.folders.pop(controller, None))
        self._events: BinaryIO | None = None

    def out_of_memory(self) -> bool:
        """Whether the kernel has killed any process for lack of memory."""
        for file in ("memory.oom_control", "memory.events"):
            with suppress(OSError, KeyError):  # asked after each reply, so it stays open
                self._events = self._events or (self.folders["memory"] / file).open("rb")
        if self._events is None:
            return False
        found = _KILLED.search(os.pread(self._events.fileno(), 4096, 0))
        return found is not None and int(found[1]) > 0

    def close(self) -> None:
        """Remove the groups; all their processes have ended, or are about to."""
        if self._events is not None:
            self._events.close()
            self._events = None
        deadline = time.monotonic() + 1.0
        for folder in dict.fromkeys(self.folders.values()):
            while not _remove(folder) and time.monotonic() < deadline:
                time.sleep(0.005)
        self.folders = {}


def _settings(controller: str, place: Place, memory_mb: int, processes: int) -> Mapping[str, str]:
    if controller == "pids":
        return {"pids.max": str(processes + 1)}  # so that the watch can see one too many
    size = str(memory_mb << 20)
    if controller == "memory" and place.version == 1:
        return {"memory.limit_in_bytes": size, "memory.memsw.limit_in_bytes": size}
    if controller == "memory":
        return {"memory.max": size, "memory.swap.max": "0", "memory.oom.group": "1"}
    return {}  # by default all groups have the same weight


def _remove(folder: Path | None) -> bool:
    """Remove a group. False if a process is still in it."""
    try:
        if folder is not None:
            folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@cache
def places_here() -> dict[str, Place]:
    """Where groups can be created, by controller; removes what killed graders left there."""
    try:
        own = Path("/proc/self/cgroup").read_text()
        mounts = Path("/proc/self/mountinfo").read_text()
    except OSError:
        return {}
    found = places(own, mounts)
    for folder in {place.folder for place in found.values()}:
        for left in folder.glob(f"{_NAME}-*-*"):
            if not Path("/proc", left.name.split("-")[1]).exists():
                _remove(left)
    return {name: place for name, place in found.items() if _has(name, place)}


def places(own: str, mounts: str) -> dict[str, Place]:
    """The places, from what the kernel reports about this process's own groups and the mounts.

    In version 1, inside our own group; in version 2, where a group with processes cannot have
    limited subgroups, beside our own.
    """
    roots: dict[str, tuple[str, Path]] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, at = before.split()[3:5]
        if kind == "cgroup2":
            roots.setdefault("", (root, Path(at)))
        elif kind == "cgroup":
            for name in options.split(" ")[-1].split(","):
                roots.setdefault(name, (root, Path(at)))
    found = {}
    for line in sorted(own.splitlines()):  # version 2, if present, comes first
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            if name not in roots or (name and name not in CONTROLLERS):
                continue
            root, folder = roots[name]
            inside = os.path.relpath(path, root)
            if inside.startswith(".."):  # the mount does not show it
                continue
            if name:
                found[name] = Place((folder / inside), 1)
            else:
                beside = folder if inside == "." else (folder / inside).parent
                found |= {controller: Place(beside, 2) for controller in CONTROLLERS}
    return found


def _has(controller: str, place: Place) -> bool:
    """Whether groups there have a controller; in version 2 it may have to be enabled first."""
    if place.version == 1:
        return os.access(place.folder, os.W_OK)
    switches = place.folder / "cgroup.subtree_control"
    with suppress(OSError):
        if controller in switches.read_text().split():
            return True
        switches.write_text(f"+{controller}")
        return True
    return False
