"""Runs student code in bubblewrap and lets out values, nothing else.

TRUST BOUNDARY. This side is trusted; the process behind the two pipes is hostile. Whatever it sends
is bounded in size and time, decoded by `values.decode` (no pickle, no import), rebuilt field by
field, and may still be forged: it decides nothing. A process that breaks the protocol is killed.

What runs inside sees the system's libraries, the interpreter, its packages and the student's side
of `autograder`, all read-only, and a /tmp of its own. It has no network, no capabilities, its own
process ids, and dies as a whole: killing the namespace's first process kills all that it started.
A warm process, itself in bubblewrap, forks one such child per submission; `warm` says how.
"""

import atexit
import contextlib
import importlib.util
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np

from autograder.engine.records import record_from, run_tree
from autograder.engine.runs import Record, Run
from autograder.engine.values import MAX_BYTES, Array, decode, encode
from autograder.grader.sandbox import groups, seccomp, warm, watch, worker
from autograder.grader.sandbox.watch import family as _family
from autograder.grader.student_side import student_side

ISOLATIONS = ("bwrap", "none")
_COURSE = "/course"  # where the student's side is mounted
_MASKED = ("autograder", "solutions")  # packages that a site-packages folder may hold
_FRAME_LIMIT = MAX_BYTES + (16 << 20)
_CONTROL = re.compile(
    r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
)
_OUTPUTS = 400  # a cell's outputs
_MIMES = (
    "text/plain", "text/html", "text/markdown", "text/latex",
    "image/png", "image/jpeg", "image/svg+xml", "application/json",
)  # fmt: skip
_ENVIRONMENT = {
    "HOME": "/tmp", "USER": "student", "LOGNAME": "student", "LANG": "C.UTF-8", "TZ": "UTC",
    "PATH": "/usr/bin:/bin", "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "IPYTHONDIR": "/tmp/.ipython", "ATTENTION_DEVICE": "cpu",
}  # fmt: skip


@dataclass(frozen=True)
class Limits:
    """What a submission may use. `*_seconds` are wall clock except `cpu_seconds`, by process.

    `cell_seconds` is for a cell, `probe_seconds` for all calls of an exercise, `total_seconds` for
    a submission; `output_bytes` for a cell; `restarts` is how often a process may die.
    """

    memory_mb: int = 4096
    cell_seconds: float = 60.0
    probe_seconds: float = 20.0
    total_seconds: float = 900.0
    start_seconds: float = 60.0
    cpu_seconds: int = 600
    processes: int = 64
    file_mb: int = 64
    tmp_mb: int = 256
    output_bytes: int = 4 << 20
    restarts: int = 12


class IsolationError(RuntimeError):
    """Student code cannot be isolated on this machine. The message says what to do."""


class WorkerDied(Exception):
    """The process has ended. `reason` is timeout, memory or crash; `detail` completes “it …”."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: it {detail}")
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class _First:
    """The first process of a sandbox: its pid here, and a pidfd, which is never reused."""

    pid: int | None = None
    pidfd: int | None = None


class SandboxLost(RuntimeError):
    """The warm process ended through no fault of the code in the sandbox. Try again."""


class _Warm:
    """The process that forks this one's sandboxes; it ends when this one does, in any case.

    Its control socket belongs to this process alone, and so does the pipe whose closing makes the
    kernel kill it.
    """

    def __init__(self, isolation: str):
        self.isolation = isolation
        self.proven = False  # whether one of its children has ever started
        self.said = tempfile.TemporaryFile()  # noqa: SIM115  (closed in close())
        self.lock = threading.Lock()
        self.control, control_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        life_end, self.life = os.pipe()
        try:
            self.process = subprocess.Popen(
                self._command(control_end.fileno(), life_end),
                stdin=subprocess.DEVNULL,
                stdout=self.said,
                stderr=self.said,
                pass_fds=(control_end.fileno(), life_end),
                env=_ENVIRONMENT,  # the sandbox's first process keeps its initial environment
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            self.control.close()
            os.close(self.life)
            raise
        finally:
            control_end.close()
            os.close(life_end)

    def _command(self, control: int, life: int) -> list[str]:
        config: dict[str, Any] = {"control": control, "life": life}
        if self.isolation == "none":
            root = Path(worker.__file__).resolve().parents[3]
            config |= {"course": str(root), "readable": [], "isolated": False}
            return [sys.executable, "-I", "-B", warm.__file__, json.dumps(config)]
        bwrap = _bwrap()
        mounts, readable = _mounts()
        config |= {"course": _COURSE, "readable": readable, "isolated": True}
        options = [*_NAMESPACES, *mounts]
        for name, value in _ENVIRONMENT.items():
            options += ["--setenv", name, value]
        program = [sys.executable, "-I", "-B", f"{_COURSE}/warm.py", json.dumps(config)]
        return [bwrap, *options, "--", *program]

    def order(self, order: Mapping[str, Any], fds: Sequence[int]) -> None:
        """Request a child with these descriptors. Raises `OSError` if the process has ended."""
        with self.lock:
            socket.send_fds(self.control, [json.dumps(order).encode()], list(fds))

    def words(self) -> str:
        """What it and bubblewrap wrote to standard error."""
        if self.said.closed:
            return ""
        return os.pread(self.said.fileno(), 20_000, 0).decode("utf-8", "replace")

    def gone(self) -> bool:
        return self.process.poll() is not None

    def close(self) -> None:
        """End it, and with it all its children."""
        if self.life >= 0:
            os.close(self.life)
            self.life = -1
            self.control.close()
            self.process.wait()
            self.said.close()


_WARM: dict[tuple, _Warm] = {}  # by process, isolation, and bubblewrap's path
_WARM_LOCK = threading.Lock()


def _warm_process(isolation: str) -> _Warm:
    """This process's warm process, started if there is none. Raises `IsolationError`."""
    key = (os.getpid(), isolation, _bwrap() if isolation != "none" else None)
    with _WARM_LOCK:
        found = _WARM.get(key)
        if found is None or found.gone():
            if found is not None:
                found.close()
            found = _WARM[key] = _Warm(isolation)
        return found


@atexit.register
def close_warm_processes() -> None:
    """End the warm processes that this process has started."""
    with _WARM_LOCK:
        for key in [key for key in _WARM if key[0] == os.getpid()]:
            _WARM.pop(key).close()


class Worker:
    """A process that executes cells and probes what they define. A context manager.

    A warm process, shared by all workers of this process, forks it in the background; the first
    request waits until it has started. `layers` is for tests, which leave one out. Raises
    `IsolationError` if it cannot be isolated, `ValueError` for an unknown isolation.
    """

    def __init__(
        self,
        isolation: str = "bwrap",
        limits: Limits | None = None,
        device: str = "cpu",
        layers: Collection[str] = warm.LAYERS,
    ):
        if isolation not in ISOLATIONS:
            raise ValueError(f"isolation is one of {', '.join(ISOLATIONS)}, not {isolation!r}")
        if isolation != "none" and device != "cpu":  # a verdict of "crash" would be a lie
            raise IsolationError(
                f"the sandbox lets no {device} in: use --device cpu or --isolation none"
            )
        self.limits = limits or Limits()
        self.isolation, self.device = isolation, device
        self.landlock = False
        self._count, self._up, self._first = 0, False, _First()
        self._group: groups.Group | None = None
        self._limited = isolation != "none" and warm.LIMITS in layers
        self._folder: tempfile.TemporaryDirectory | None = None
        if isolation == "none":
            self._folder, layers = tempfile.TemporaryDirectory(prefix="autograder-"), ["limits"]
        order = {
            "limits": asdict(self.limits),
            "layers": list(layers),
            "folder": self._folder and self._folder.name,
            "seconds": self.limits.total_seconds + self.limits.start_seconds,
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

    def _ordered(self, order: Mapping[str, Any], fds: Sequence[int]) -> _Warm:
        """The warm process that took the order; if it fails to start, the first request says so."""
        found = _warm_process(self.isolation)
        try:
            found.order(order, fds)
        except OSError:  # it has ended meanwhile
            found.process.wait()
            found = _warm_process(self.isolation)
            with contextlib.suppress(OSError):
                found.order(order, fds)
        return found

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what can be asked ---

    def execute(
        self, source: str, seconds: float | None = None, module: str = "__main__"
    ) -> list[dict[str, Any]]:
        """Run a cell; return its outputs in nbformat's form, an exception being one of them.

        `module` is the value of `__name__` inside. Raises `WorkerDied`.
        """
        code = np.frombuffer(source.encode("utf-8", "replace"), np.uint8)
        reply = self._ask(
            {"op": "execute", "source": code, "module": module},
            self.limits.cell_seconds if seconds is None else seconds,
        )
        limit = 4 * self.limits.output_bytes + (1 << 20)  # a character is at most four bytes
        return self._read(lambda packed: _outputs(packed, limit), reply.get("outputs"))

    def probe(self, name: str, run: Run, seconds: float | None = None) -> Record | None:
        """Make one run of the object called `name`; None where it is not defined."""
        records = self.probe_all(name, [run], seconds)
        return records and records[0]

    def probe_all(
        self,
        name: str,
        runs: Sequence[Run],
        seconds: float | None = None,
        instead: Mapping[str, str] | None = None,
        watch: Sequence[str] = (),
    ) -> list[Record] | None:
        """Make some runs in one message, all within `seconds`. Raises `WorkerDied`.

        Operations that match the patterns in `watch` are recorded (see `Observer`).

        `instead` names blocks of the course ("autograder.blocks:…") that replace, for these runs,
        the student's objects of those names.
        """
        trees = [run_tree(run) for run in runs]
        reply = self._ask(
            {"op": "probe", "name": name, "runs": trees, "device": self.device}
            | {"instead": dict(instead or {}), "watch": list(watch)},
            self.limits.probe_seconds if seconds is None else seconds,
        )
        return self._read(lambda trees: _records(trees, len(runs)), reply.get("records"))

    def wait_until_up(self) -> None:
        """Wait until the process can take a request.

        Raises `IsolationError`; or `SandboxLost`, to try again with another warm process, if this
        one has started others before: then the machine can isolate, and only this start failed.
        """
        if self._up:
            return
        deadline, lost = time.monotonic() + self.limits.start_seconds, False
        try:
            self._first = _First(*self._told(deadline))
            hello = self._receive(deadline)
            problem = hello.get("error")
        except TimeoutError:
            problem, lost = f"it took more than {self.limits.start_seconds:g} s", True
        except (WorkerDied, SandboxLost, OSError) as death:
            problem = getattr(death, "detail", str(death))
            lost = not isinstance(death, WorkerDied)
        if problem is not None:
            words = self._warm.words() if self._gone() else ""
            self.close()
            if self._warm.proven and lost:
                with _WARM_LOCK:
                    self._warm.close()
                raise SandboxLost(f"the sandbox did not start: {problem}")
            raise IsolationError(_why_not_up(words, str(problem)))
        self._warm.proven = True
        if self._limited:  # no student's code has run yet
            memory = self.limits.memory_mb + self.limits.tmp_mb
            pids = _family(self._first.pid)
            self._group = groups.Group(pids, memory, self.limits.processes)
        self.landlock, self._up = hello.get("landlock") is True, True

    def _told(self, deadline: float) -> tuple[int, int]:
        """The child's process id, as seen from here, and a pidfd, from the warm process."""
        self._report.settimeout(max(0.01, deadline - time.monotonic()))
        message, fds, _, _ = socket.recv_fds(self._report, warm.MESSAGE, 1, socket.MSG_CMSG_CLOEXEC)
        if not fds:
            raise OSError("the warm process has ended")
        known = Path(f"/proc/self/fdinfo/{fds[0]}").read_text()
        return int(known.partition("\nPid:")[2].split()[0]), fds[0]

    def _gone(self) -> bool:
        """Whether the warm process has ended, or does so within half a second."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._warm.process.wait(0.5)
        return self._warm.gone()

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.wait_until_up()
        self._count += 1
        deadline = time.monotonic() + seconds
        try:
            self._send(encode(request | {"id": self._count}), deadline)
            return self._receive(deadline)
        except TimeoutError:
            if self._out_of_memory():  # it waits for a process that was killed
                self._die("memory", self._too_much_memory())
            self._die("timeout", f"did not end within {seconds:g} s")

    def _read(self, reader: Any, value: Any) -> Any:
        try:
            return reader(value)
        except Exception:  # noqa: BLE001  (hostile data: any failure is the sender's)
            self._die("crash", "sent back something that is not an answer")

    # --- the pipes ---

    def _send(self, message: bytes, deadline: float) -> None:
        view = memoryview(worker.FRAME.pack(len(message)) + message)
        while view:
            self._wait(self._requests, select.POLLOUT, deadline)
            try:
                view = view[os.write(self._requests, view[: 1 << 20]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._die(*self._post_mortem())

    def _receive(self, deadline: float) -> dict[str, Any]:
        (size,) = worker.FRAME.unpack(self._take(worker.FRAME.size, deadline))
        if size > _FRAME_LIMIT:
            self._die("crash", "sent back more than it may")
        message = self._take(size, deadline)
        try:
            reply = decode(message)
            fits = isinstance(reply, dict) and reply.get("id") == self._count
        except Exception:  # noqa: BLE001  (hostile data: any failure is the sender's)
            fits = False
        if not fits:
            self._die("crash", "sent back something that is not an answer")
        if reply.get("out_of_memory") is True or self._out_of_memory():
            self._die("memory", self._too_much_memory())
        return reply

    def _take(self, size: int, deadline: float) -> bytes:
        taken = bytearray()
        while len(taken) < size:
            self._wait(self._replies, select.POLLIN, deadline)
            try:
                part = os.read(self._replies, min(size - len(taken), 1 << 20))
            except BlockingIOError:
                continue
            if not part:
                self._die(*self._post_mortem())
            taken += part
        return bytes(taken)

    def _wait(self, fd: int, event: int, deadline: float) -> None:
        """Wait for a pipe. Raises `TimeoutError`."""
        poll = select.poll()
        poll.register(fd, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(1000 * left):
            raise TimeoutError

    # --- its end ---

    def _out_of_memory(self) -> bool:
        """Whether the kernel has killed any of its processes, not only the one that answers."""
        return self._group is not None and self._group.out_of_memory()

    def _too_much_memory(self) -> str:
        return f"used more than {self.limits.memory_mb} MB of memory"

    def _die(self, reason: str, detail: str) -> Any:
        self.close()
        raise WorkerDied(reason, detail)

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
        number = max(0, -status)
        if number == signal.SIGKILL:
            return "memory", "was killed, most likely because memory ran out"
        if number == signal.SIGXCPU:
            return "timeout", f"used more than {self.limits.cpu_seconds} s of computing time"
        try:
            return "crash", f"ended its process ({signal.Signals(number).name})"
        except ValueError:
            return "crash", f"ended its process (exit status {status})"

    def close(self) -> None:
        """Kill the process with all that it started, and wait until all of it has ended."""
        if self._requests < 0:
            return
        if self._first.pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                if self.isolation == "none":
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


def _why_not_up(words: str, otherwise: str) -> str:
    last = words.strip().splitlines()[-1].strip() if words.strip() else otherwise
    if not any(word in last for word in ("namespace", "uid map", "Operation not permitted")):
        return f"the sandbox did not start: {last}"
    return (
        f"bubblewrap cannot make a sandbox here ({last}). User namespaces must be allowed: "
        "sudo sysctl -w kernel.unprivileged_userns_clone=1 "
        "kernel.apparmor_restrict_unprivileged_userns=0"
    )


# --- the sandbox's walls ---


def _bwrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise IsolationError(
            "bubblewrap is missing: sudo apt-get install bubblewrap "
            "(or, for files that you trust, --isolation none)"
        )
    return found


# The warm process is root of bubblewrap's user namespace, so that it can make namespaces for its
# children; it needs the second capability to map a user in them, and the third to see how much of a
# child's memory is shared with others. A child has none of these.
_NAMESPACES = (
    "--unshare-user", "--unshare-all", "--uid", "0", "--gid", "0", "--hostname", "sandbox",
    "--new-session", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETFCAP",
    "--cap-add", "CAP_SYS_PTRACE",
    "--clearenv", "--chdir", "/tmp",
)  # fmt: skip


@cache
def _mounts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """bubblewrap's options for what is visible inside, and the paths that are readable there."""
    options = ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    options += ["--size", str(16 << 20), "--tmpfs", "/tmp"]  # first: this may all lie in /tmp
    readable: list[str] = [_COURSE]

    def show(path: str | Path, at: str | None = None) -> None:
        at = at or str(path)
        options.extend(["--ro-bind", str(path), at])
        readable.append(at)

    show("/usr")
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            show(name)
    for name in ("/etc/ld.so.cache", "/etc/fonts", "/etc/alternatives", "/etc/localtime"):
        if os.path.exists(name):
            show(name)
    for prefix in dict.fromkeys(_prefixes()):
        if prefix.is_relative_to("/usr"):
            continue
        for name in ("bin", "lib", "lib64", "pyvenv.cfg"):  # nothing else beside them
            if (prefix / name).exists():
                show(prefix / name)
    for site in map(Path, sys.path):
        shown = any(site.is_relative_to(path) for path in readable)
        if site.name in ("site-packages", "dist-packages") and site.is_dir() and not shown:
            show(site)
    for folder in _hidden():
        if any(folder.is_relative_to(path) for path in readable):
            options += ["--size", "4096", "--tmpfs", str(folder), "--remount-ro", str(folder)]
    for name, path in student_side().items():
        show(path, f"{_COURSE}/autograder/{name}")
        cached = Path(importlib.util.cache_from_source(path)) if path.suffix == ".py" else None
        if cached and cached.exists():
            show(cached, f"{_COURSE}/autograder/__pycache__/{cached.name}")
    for module in (warm, watch, worker, seccomp):
        show(module.__file__, f"{_COURSE}/{module.__name__.rpartition('.')[2]}.py")
    for path in _font_lists():
        options += ["--ro-bind", str(path), f"/tmp/.cache/matplotlib/{path.name}"]
    options += ["--remount-ro", "/"]
    return tuple(options), tuple(readable)


def _prefixes() -> list[Path]:
    """Where the interpreter and its environment live, under every name that they have."""
    prefixes = [Path(sys.base_prefix), Path(sys.prefix), Path(sys.base_exec_prefix)]
    executable = Path(sys.executable)
    prefixes.append(executable.resolve().parent.parent)
    return [p for prefix in prefixes for p in (prefix, prefix.resolve())]


def _hidden() -> list[Path]:
    """Folders of this project that would be visible if they were installed as packages."""
    sites = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    sites |= {path for path in sys.path if path}
    folders = {Path(site).resolve() / name for site in sites for name in _MASKED}
    for name in _MASKED:
        spec = PathFinder.find_spec(name)
        folders |= {
            Path(path).resolve() for path in (spec and spec.submodule_search_locations) or ()
        }
    return sorted(folder for folder in folders if folder.is_dir())


def _font_lists() -> list[Path]:
    """matplotlib's list of the fonts here: without it, each submission would search for them."""
    cache_folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return sorted(Path(cache_folder, "matplotlib").glob("fontlist-*.json"))


# --- what comes out, rebuilt ---


def _records(trees: Any, count: int) -> list[Record] | None:
    if trees is None:
        return None
    if not isinstance(trees, list) or len(trees) != count:
        raise ValueError("not as many records as runs")
    return [record_from(tree) for tree in trees]


def _outputs(packed: Any, limit: int) -> list[dict[str, Any]]:
    if not isinstance(packed, Array) or packed.data.dtype != np.uint8 or packed.data.size > limit:
        raise ValueError("not a cell's outputs")
    return [_output(output) for output in json.loads(packed.data.tobytes())[:_OUTPUTS]]


def _output(output: dict[str, Any]) -> dict[str, Any]:
    kind = output["output_type"]
    if kind == "stream":
        name = "stderr" if output["name"] == "stderr" else "stdout"
        return {"output_type": kind, "name": name, "text": clean(output["text"])}
    if kind == "error":
        lines = [clean(line) for line in output["traceback"]]
        name, value = clean(output["ename"]), clean(output["evalue"])
        return {"output_type": kind, "ename": name, "evalue": value, "traceback": lines}
    if kind not in ("display_data", "execute_result"):
        raise ValueError("an unknown kind of output")
    data = {
        mime: _mime_text(mime, output["data"][mime]) for mime in _MIMES if mime in output["data"]
    }
    shown = {"output_type": kind, "data": data, "metadata": {}}
    if kind == "execute_result":
        count = output["execution_count"]
        shown["execution_count"] = count if type(count) is int else None
    return shown


def _mime_text(mime: str, value: Any) -> str:
    text = clean(value)
    if mime == "application/json":
        json.loads(text)
    return text


def clean(text: Any) -> str:
    """Text from inside, fit for a file or a terminal: no lone surrogates, no control characters."""
    if not isinstance(text, str):
        raise ValueError("not a text")
    text = text.encode("utf-8", "replace").decode()
    return _CONTROL.sub("", text)
