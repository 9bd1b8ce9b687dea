"""Runs student code in bubblewrap and lets nothing out but values.

TRUST BOUNDARY. This side is trusted; the process behind the two pipes is hostile. Whatever it sends
is bounded in size and time, decoded by `values.decode` (no pickle, no import), rebuilt field by
field, and may still be forged: it decides nothing. A process that breaks the protocol is killed.

What runs inside sees the system's libraries, the interpreter, its packages and the student's side
of `autograder`, all read-only, and a /tmp of its own. It has no network and no capabilities, only
its own process ids, and it dies as a whole: killing the namespace's first process kills all others.
A warm process, itself in bubblewrap, forks one such child per submission; `warm` says how.
"""

import contextlib
import json
import os
import pickle
import select
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import NoReturn, TypeVar

from autograder.sandbox import groups, walls, warm, worker
from autograder.sandbox.bubblewrap import IsolationError, why_not_up
from autograder.sandbox.clock import BEHIND, Clock, usage_of
from autograder.sandbox.device import require
from autograder.sandbox.isolation import isolation_called
from autograder.sandbox.launcher import AnyWarm, Order, end, warm_process
from autograder.sandbox.limits import Limits
from autograder.sandbox.outputs import TOO_LARGE, Output, outputs_from
from autograder.sandbox.process_end import ProcessDied, SandboxLost, lost_the_gpu, read_status
from autograder.sandbox.start_up import Waiting
from autograder.sandbox.watch import family
from autograder.student.engine.arrays import Value
from autograder.student.engine.records import record_from
from autograder.student.engine.runs import Record, Run
from autograder.student.engine.values import MAX_BYTES, MAX_HEAD, Array, decode, head_of

_OUTPUTS = 32 << 20
_FRAME_LIMIT = MAX_BYTES + (16 << 20)

Read = TypeVar("Read")
Patience = Clock | Waiting


@dataclass(frozen=True)
class _First:
    """The first process of a sandbox: its pid here, and a pidfd, which is never reused."""

    pid: int | None = None
    pidfd: int | None = None


class Sandbox:
    """A process that executes cells and probes what they define. A context manager.

    A warm process, shared by all sandboxes of this process, forks it in the background; the first
    request waits until it has started. `layers` is for tests, which leave one out. Raises
    `IsolationError` if it cannot be isolated, `ValueError` for an unknown isolation.
    """

    def __init__(
        self,
        isolation: str = "bwrap",
        limits: Limits | None = None,
        device: str = "cpu",
        layers: Collection[str] = walls.LAYERS,
    ):
        self.isolation, self._enclosed = isolation, isolation_called(isolation).encloses
        self.device = require(device)  # or else verdicts of "crash" would be false
        self.limits = limits or Limits()
        self.landlock = False
        self._count, self._up, self._first = 0, False, _First()
        self._room, self._heads = _FRAME_LIMIT, MAX_HEAD  # bytes left for a request's replies
        self._left = _OUTPUTS  # bytes left for the outputs of all cells
        self.used = 0.0  # seconds of its own time, in all requests
        self._group: groups.Group | None = None
        self._limited = self._enclosed and walls.LIMITS in layers
        self._folder: tempfile.TemporaryDirectory | None = None
        if not self._enclosed:
            self._folder, layers = tempfile.TemporaryDirectory(prefix="autograder-"), ["limits"]
        order: Order = {
            "limits": asdict(self.limits),
            "layers": list(layers),
            "folder": self._folder.name if self._folder else None,
            "gpu": self.device.order,
            "seconds": BEHIND * (self.limits.total_seconds + self.limits.start_seconds),
        }
        request_end, self._requests = os.pipe()
        self._replies, reply_end = os.pipe()
        self._report, report_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._warm = self._ordered(order, (request_end, reply_end, report_end.fileno()))
        except BaseException:
            os.close(self._requests)
            os.close(self._replies)
            self._report.close()
            raise
        finally:
            os.close(request_end)
            os.close(reply_end)
            report_end.close()
        os.set_blocking(self._requests, False)
        os.set_blocking(self._replies, False)

    def _ordered(self, order: Order, fds: Sequence[int]) -> AnyWarm:
        """The warm process that took the order; if it fails to start, the first request says so."""
        found = warm_process(self.isolation, self.device)
        try:
            found.order(order, fds)
        except OSError:  # it has ended meanwhile
            found.gone(None)
            found = warm_process(self.isolation, self.device)
            with contextlib.suppress(OSError):
                found.order(order, fds)
        return found

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- requests ---

    def execute(
        self, source: str, seconds: float | None = None, module: str = "__main__"
    ) -> list[Output]:
        """Run a cell; return its outputs in nbformat's form, an exception being one of them. Once
        all outputs together are too large, an output says so instead.

        `module` is the value of `__name__` inside. Raises `ProcessDied`.
        """
        text = source.encode("utf-8", "replace").decode()
        request = {"op": "execute", "source": text, "module": module}
        reply = next(self._ask(request, self.limits.cell_seconds if seconds is None else seconds))
        limit = 4 * self.limits.output_bytes + (1 << 20)  # a character is at most four bytes
        packed = reply.get("outputs")
        self._left -= packed.data.size if isinstance(packed, Array) else 0
        if self._left < 0:
            return [TOO_LARGE]
        return self._read(lambda packed: outputs_from(packed, limit), packed)

    def hand_out(
        self,
        pieces: Sequence[tuple[str, bytes]],
        names: Mapping[str, Sequence[str]],
        seconds: float,
    ) -> None:
        """Define blocks of the course (see `block_code`). Raises `ProcessDied`."""
        request = {"op": "blocks", "pieces": pieces, "names": dict(names)}
        next(self._ask(request, seconds))

    def probe(self, name: str, run: Run, seconds: float | None = None) -> Record | None:
        """Make one run of the object called `name`; None where it is not defined."""
        records = self.probe_all(name, [run], seconds)
        return records[0] if records else None

    def probe_all(
        self,
        name: str,
        runs: Sequence[Run],
        seconds: float | None = None,
        instead: Mapping[str, str] | None = None,
        watch: Sequence[str] = (),
    ) -> list[Record] | None:
        """Make some runs within `seconds`, or those up to the loss of a GPU. Raises `ProcessDied`.

        Operations that match the patterns in `watch` are recorded (see `Observer`). `instead` names
        blocks ("course.blocks:…") that replace the student's objects of those names meanwhile.
        """
        device = self.device.name if any(run.simulated for run in runs) else "cpu"
        where = {"name": name, "device": device, "watch": list(watch)}
        more = {"runs": [*runs], "instead": dict(instead or {})}
        request = {"op": "probe", **where, **more}
        replies = self._ask(request, self.limits.probe_seconds if seconds is None else seconds)
        records: list[Record] = []
        try:
            for reply in islice(replies, len(runs)):
                if reply.get("record", 0) is None and not records:
                    return None
                records.append(self._read(record_from, reply.get("record")))
                if self.device.can_be_lost and lost_the_gpu(records[-1]):
                    break
        except ProcessDied as death:
            raise ProcessDied(death.reason, death.detail, records) from None
        return records

    def point(self, name: str, budget: float, seconds: float) -> str | None:
        """Where the object called `name` goes astray, in words that it may have forged.

        `budget` is how long this may take. Raises `ProcessDied`.
        """
        request = {"op": "point", "name": name, "device": self.device.name, "budget": budget}
        reply = next(self._ask(request, seconds))
        told = reply.get("pointer")
        return told if isinstance(told, str) else None

    def wait_until_up(self) -> None:
        """Wait until the process can take a request, as long as its start makes progress.

        Raises `IsolationError`; or `SandboxLost`, to try again with another warm process, if this
        one has started others before: then the machine can isolate, and only this start failed. A
        lent one is assumed to have started others.
        """
        if self._up:
            return
        seconds, lost = self.limits.start_seconds, False
        started = time.monotonic()
        try:
            self._first = _First(*self._told(Waiting(seconds, self._starting)))
            hello = self._receive(Waiting(seconds, self._starting))
            problem = hello.get("error")
        except TimeoutError:
            took = time.monotonic() - started
            problem, lost = f"it took {took:.0f} s, and made no more progress", True
        except (ProcessDied, SandboxLost, OSError) as death:
            problem = getattr(death, "detail", str(death))
            lost = not isinstance(death, ProcessDied)
        if problem is not None:
            words = self._warm.words() if self._warm.gone(0.5) else ""
            self.close()
            if lost and (self._warm.proven or self._warm.lent):
                end(self._warm)
                raise SandboxLost(f"the sandbox did not start: {problem}")
            raise IsolationError(why_not_up(words, str(problem)))
        self._warm.proven = True
        if self._limited:  # no student's code has run yet
            memory = self.limits.memory_mb + self.limits.tmp_mb
            pids = family(self._first.pid) if self._first.pid else ()
            self._group = groups.Group(pids, memory, self.limits.processes)
        self.landlock, self._up = hello.get("landlock") is True, True

    def _starting(self) -> list[int]:
        """The processes whose work shows progress: the sandbox's; before it exists, the warm one's
        and bubblewrap's two. The warm one's descendants, later in the list, are other sandboxes."""
        started = self._first.pid
        return family(started) if started else family(self._warm.pid)[:3]

    def _told(self, waiting: Waiting) -> tuple[int, int]:
        """The child's process id, as seen from here, and the pidfd that the warm process sends."""
        while True:
            self._report.settimeout(max(0.01, waiting.left()))
            try:
                _, fds, _, _ = socket.recv_fds(
                    self._report, warm.MESSAGE, 1, socket.MSG_CMSG_CLOEXEC
                )
                break
            except TimeoutError:
                if not waiting.again():
                    raise
        if not fds:
            raise OSError("the warm process has ended")
        known = Path(f"/proc/self/fdinfo/{fds[0]}").read_text()
        return int(known.partition("\nPid:")[2].split()[0]), fds[0]

    def _ask(self, request: worker.Request, seconds: float) -> Iterator[dict[str, Value]]:
        """Send a request; the replies to it, all within `seconds` of the sandbox's own time and
        together of limited size."""
        self.wait_until_up()
        self._count, self._room, self._heads = self._count + 1, _FRAME_LIMIT, MAX_HEAD
        clock = Clock(seconds, lambda: usage_of(family(self._first.pid) if self._first.pid else ()))
        try:
            self._send(pickle.dumps(request | {"id": self._count}, 5), clock)
            while True:
                yield self._receive(clock)
        except TimeoutError:
            if self._out_of_memory():  # it waits for a process that was killed
                self._die("memory", self._too_much_memory())
            self._die("timeout", f"did not end within {seconds:g} s")
        finally:
            self.used += clock.charge()

    def _read(self, reader: Callable[[Value], Read], value: Value) -> Read:
        try:
            return reader(value)
        except Exception:  # noqa: BLE001  (hostile data: any failure is the sender's)
            self._die("crash", "sent back something that is not an answer")

    # --- the pipes ---

    def _send(self, message: bytes, patience: Patience) -> None:
        view = memoryview(worker.FRAME.pack(len(message)) + message)
        while view:
            self._wait(self._requests, select.POLLOUT, patience)
            try:
                view = view[os.write(self._requests, view[: 1 << 20]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._die(*self._post_mortem())

    def _receive(self, patience: Patience) -> dict[str, Value]:
        (size,) = worker.FRAME.unpack(self._take(worker.FRAME.size, patience))
        self._room -= size
        if self._room < 0:
            self._die("crash", "sent back more than it may")
        message = self._take(size, patience)
        try:
            self._heads -= head_of(message)
            reply: Value = decode(message) if self._heads >= 0 else None
            fits = isinstance(reply, dict) and reply.get("id") == self._count
        except Exception:  # noqa: BLE001  (hostile data: any failure is the sender's)
            fits = False
        if not fits:
            self._die("crash", "sent back something that is not an answer")
        if reply.get("out_of_memory") is True or self._out_of_memory():
            self._die("memory", self._too_much_memory())
        return reply

    def _take(self, size: int, patience: Patience) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            try:
                part = os.read(self._replies, min(size - len(taken), 1 << 20))
            except BlockingIOError:
                self._wait(self._replies, select.POLLIN, patience)
                continue
            if not part:
                self._die(*self._post_mortem())
            taken += part
        return bytes(taken)

    def _wait(self, fd: int, event: int, patience: Patience) -> None:
        """Wait for a pipe. Raises `TimeoutError`."""
        poll = select.poll()
        poll.register(fd, event)
        while not (left := patience.left()) or not poll.poll(1000 * left):
            if not patience.again():
                raise TimeoutError

    # --- its end ---

    def _out_of_memory(self) -> bool:
        """Whether the kernel has killed any of its processes, not only the one that answers."""
        return self._group is not None and self._group.out_of_memory()

    def _too_much_memory(self) -> str:
        return f"used more than {self.limits.memory_mb} MB of memory"

    def _die(self, reason: str, detail: str) -> NoReturn:
        self.close()
        raise ProcessDied(reason, detail)

    def _post_mortem(self) -> tuple[str, str]:
        """Why a pipe has closed, according to the warm process and the kernel.

        Raises `SandboxLost` if what runs inside did not cause it.
        """
        self._report.settimeout(5)
        try:
            told = self._report.recv(warm.MESSAGE)
        except TimeoutError:
            return "crash", "closed its connection to the judge"
        except OSError:
            told = b""
        if not told:
            self.close()
            raise SandboxLost("the warm process has ended")
        end = json.loads(told)
        status = end["status"]
        if end["excess"]:
            reason, detail = end["excess"]
            return reason, detail
        if end["overdue"]:
            return "timeout", "ran past its deadline"
        if self._out_of_memory():
            return "memory", self._too_much_memory()
        if status is None:  # no process inside can kill the first one
            self.close()
            raise SandboxLost("the sandbox was killed from outside")
        return read_status(status, self.limits.cpu_seconds)

    def close(self) -> None:
        """Kill the process with all that it started, and wait until all of it has ended."""
        if self._requests < 0:
            return
        if self._first.pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                if not self._enclosed and self._first.pid:
                    os.killpg(self._first.pid, signal.SIGKILL)
                signal.pidfd_send_signal(self._first.pidfd, signal.SIGKILL)
            poll = select.poll()
            poll.register(self._first.pidfd, select.POLLIN)
            poll.poll(10_000)  # a namespace's first process ends last
            os.close(self._first.pidfd)
        if self._group:
            self._group.close()
        self._report.close()  # the warm process kills it if we did not, and reaps it
        for fd in (self._requests, self._replies):
            os.close(fd)
        self._requests, self._first = -1, _First()
        if self._folder:
            self._folder.cleanup()
