"""The warm process, as its owner sees it: started on first use, told what to fork, and ended.

TRUST BOUNDARY. Trusted code on both ends: the grader here, `warm` behind the socket. No student's
process inherits the socket, so orders come only from the grader, and from those of its own
processes to which it lends the warm process.
"""

import atexit
import json
import os
import select
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing import reduction
from typing import Protocol, TypedDict

from autograder.sandbox.device import Cpu, Device
from autograder.sandbox.isolation import ISOLATIONS


class Order(TypedDict):
    """What a warm process is told of a child: its walls, what it may use, and for how long."""

    limits: Mapping[str, float]
    layers: Sequence[str]
    folder: str | None
    gpu: Mapping[str, list[str]] | None
    seconds: float


class _Sent(Protocol):
    """A descriptor on its way to another process."""

    def detach(self) -> int:
        """The descriptor, there."""


class WarmProcess:
    """The process that forks this one's sandboxes; it always ends when this one does.

    The pipe whose closing makes the kernel kill it belongs to this process alone, and so does its
    control socket, unless it is lent.
    """

    lent = False  # by another process

    def __init__(self, isolation: str, device: Device):
        self.isolation = isolation
        self.proven = False  # whether one of its children has ever started
        self.said = tempfile.TemporaryFile()  # noqa: SIM115  (closed in close())
        self.lock = threading.Lock()
        self.control, control_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        life_end, self.life = os.pipe()
        ends = {"control": control_end.fileno(), "life": life_end}
        try:
            self.process = subprocess.Popen(
                ISOLATIONS[isolation].command(ends, device),
                stdin=subprocess.DEVNULL,
                stdout=self.said,
                stderr=self.said,
                pass_fds=tuple(ends.values()),
                env=ISOLATIONS[isolation].environment(device),  # a sandbox's first process keeps it
                cwd="/",
                start_new_session=True,
            )
            self.pidfd = os.pidfd_open(self.process.pid)
        except BaseException:
            self.control.close()
            os.close(self.life)
            raise
        finally:
            control_end.close()
            os.close(life_end)

    def order(self: "AnyWarm", order: Order, fds: Sequence[int]) -> None:
        """Request a child with these descriptors. Raises `OSError` if the process has ended."""
        with self.lock:
            socket.send_fds(self.control, [json.dumps(order).encode()], list(fds))

    def words(self) -> str:
        """What it and bubblewrap wrote to standard error."""
        if self.said.closed:
            return ""
        return os.pread(self.said.fileno(), 20_000, 0).decode("utf-8", "replace")

    @property
    def pid(self) -> int:
        return self.process.pid

    def gone(self, within: float | None = 0) -> bool:
        """Whether it has ended, or ends within some seconds; None waits until it has."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(within)
        return self.process.poll() is not None

    def __reduce__(self) -> tuple:
        """Passed to a process of ours that is about to start, it arrives as a `LentProcess`."""
        ends = reduction.DupFd(self.control.fileno()), reduction.DupFd(self.pidfd)
        return LentProcess, (self.isolation, self.pid, *ends)

    def close(self) -> None:
        """End it, and with it all its children."""
        if self.life >= 0:
            os.close(self.life)
            self.life = -1
            self.control.close()
            self.process.wait()
            os.close(self.pidfd)
            self.said.close()


class LentProcess:
    """A warm process that another process of ours has started: it takes our orders, too."""

    proven, lent = False, True

    def __init__(self, isolation: str, pid: int, control: _Sent, pidfd: _Sent):
        self.isolation, self.pid = isolation, pid
        self.control = socket.socket(fileno=control.detach())
        self.pidfd = pidfd.detach()  # a pidfd never refers to another process
        self.lock = threading.Lock()

    order = WarmProcess.order

    def words(self) -> str:
        return ""  # only its owner can read them

    def gone(self, within: float | None = 0) -> bool:
        if self.pidfd < 0:  # given back
            return True
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(None if within is None else 1000 * within))

    def close(self) -> None:
        """Give it back."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
            self.control.close()


AnyWarm = WarmProcess | LentProcess
_WARM: dict[tuple, AnyWarm] = {}  # by process, isolation, its program, mounts and number
_WARM_LOCK = threading.Lock()


def warm_process(isolation: str, device: Device | None = None, number: int = 0) -> AnyWarm:
    """This process's warm process, started if there is none. Raises `IsolationError`.

    There is a separate one for children on another device than the CPU, and for each number.
    """
    device = device or Cpu()
    key = _key(isolation, device, number)
    with _WARM_LOCK:
        found = _WARM.get(key)
        if found is None or found.gone():
            if found is not None:
                found.close()
            found = _WARM[key] = WarmProcess(isolation, device)
        return found


def _key(isolation: str, device: Device, number: int) -> tuple:
    return os.getpid(), isolation, ISOLATIONS[isolation].program(), device.mounts(), number


def borrow(lent: LentProcess) -> None:
    """Have another process's warm process fork this one's sandboxes, as long as it lives."""
    with _WARM_LOCK:
        _WARM[_key(lent.isolation, Cpu(), 0)] = lent


def end(found: AnyWarm) -> None:
    """End one of them; the next call of `warm_process` starts another."""
    with _WARM_LOCK:
        found.close()


@atexit.register
def close_warm_processes() -> None:
    """End the warm processes that this process has started."""
    with _WARM_LOCK:
        for key in [key for key in _WARM if key[0] == os.getpid()]:
            _WARM.pop(key).close()
