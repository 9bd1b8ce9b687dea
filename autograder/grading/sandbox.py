"""Runs student code in bubblewrap and lets values out, nothing else.

TRUST BOUNDARY. This side is trusted; the process behind the two pipes is hostile. Whatever it sends
is bounded in size and time, decoded by `values.decode` (no pickle, no import), rebuilt field by
field, and may still be a lie: it decides nothing. A process that breaks the protocol is killed.

What runs inside sees the system's libraries, the interpreter, its packages and the student's side
of `autograder`, all read-only, and a /tmp of its own. It has no network, no capabilities, its own
process ids, and dies as a whole: killing the namespace's first process kills all that it started.
"""

import contextlib
import importlib.util
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import numpy as np

from autograder.exercises.declaration import Record, Run
from autograder.grading import worker
from autograder.grading.student_side import student_side
from autograder.records import record_from, run_tree
from autograder.values import MAX_BYTES, Array, decode, encode

ISOLATIONS = ("bwrap", "none")
_COURSE = "/course"  # where the student's side is mounted
_MASKED = ("autograder", "solutions")  # packages that a site-packages folder may hold
_POLL = 0.1  # seconds between two looks at what the sandbox uses
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
    a submission; `output_bytes` for a cell; `restarts` is how often a process may come to grief.
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
    """Student code cannot be isolated on this machine. The text says what to do."""


class WorkerDied(Exception):
    """The process is gone. `reason` is timeout, memory or crash; `detail` completes “it …”."""

    def __init__(self, reason: str, detail: str):
        super().__init__(f"{reason}: it {detail}")
        self.reason, self.detail = reason, detail


class Worker:
    """A process that executes cells and probes what they define. A context manager.

    It starts at once and in the background; the first request waits until it is up. The thread that
    makes it must live as long as it does (the kernel ties the sandbox's life to that thread's).
    Raises `IsolationError` where it cannot be isolated, `ValueError` for an unknown isolation.
    """

    def __init__(self, isolation: str = "bwrap", limits: Limits | None = None, device: str = "cpu"):
        if isolation not in ISOLATIONS:
            raise ValueError(f"isolation is one of {', '.join(ISOLATIONS)}, not {isolation!r}")
        if isolation != "none" and device != "cpu":  # a verdict of "crash" would be a lie
            raise IsolationError(
                f"the sandbox lets no {device} in: --device cpu, or --isolation none"
            )
        self.limits = limits or Limits()
        self.isolation, self.device = isolation, device
        self.landlock = False
        self._count, self._up, self._said = 0, False, ""
        self._first: int | None = None  # a pidfd of the namespace's first process
        self._watched = time.monotonic()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115  (closed in close())
        self._folder: tempfile.TemporaryDirectory | None = None
        request_end, self._requests = os.pipe()
        self._replies, reply_end = os.pipe()
        self._info, info_end = os.pipe()
        inside = [request_end, reply_end, info_end]
        try:
            self._process = subprocess.Popen(
                self._command(request_end, reply_end, info_end),
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=inside,
                env=_ENVIRONMENT,  # the sandbox's first process keeps what it was started with
                cwd=self._folder.name if self._folder else "/",
                start_new_session=True,
            )
        except BaseException:
            for fd in (self._requests, self._replies, self._info):
                os.close(fd)
            raise
        finally:
            for fd in inside:
                os.close(fd)
        os.set_blocking(self._requests, False)
        os.set_blocking(self._replies, False)

    def _command(self, requests: int, replies: int, info: int) -> list[str]:
        config: dict[str, Any] = {"requests": requests, "replies": replies}
        config["limits"] = asdict(self.limits)
        if self.isolation == "none":
            self._folder = tempfile.TemporaryDirectory(prefix="autograder-")
            root = Path(worker.__file__).resolve().parents[2]
            config |= {"course": str(root), "readable": []}
            return [sys.executable, "-I", "-B", worker.__file__, json.dumps(config)]
        mounts, readable = _mounts(self.limits.tmp_mb)
        config |= {"course": _COURSE, "readable": readable}
        bwrap = _bwrap()
        options = ["--info-fd", str(info), *_namespaces(bwrap), *mounts]
        for name, value in _ENVIRONMENT.items():
            options += ["--setenv", name, value]
        program = [sys.executable, "-I", "-B", f"{_COURSE}/worker.py", json.dumps(config)]
        return [bwrap, *options, "--", *program]

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what can be asked ---

    def execute(
        self, source: str, seconds: float | None = None, module: str = "__main__"
    ) -> list[dict[str, Any]]:
        """Run a cell; its outputs in nbformat's form, an exception being an output like any other.

        `module` is what `__name__` says inside. Raises `WorkerDied`.
        """
        code = np.frombuffer(source.encode("utf-8", "replace"), np.uint8)
        reply = self._ask(
            {"op": "execute", "source": code, "module": module},
            self.limits.cell_seconds if seconds is None else seconds,
        )
        limit = 4 * self.limits.output_bytes + (1 << 20)  # a character is at most four bytes
        return self._read(lambda packed: _outputs(packed, limit), reply.get("outputs"))

    def probe(self, name: str, run: Run, seconds: float | None = None) -> Record | None:
        """Make one run of what `name` stands for; None where it stands for nothing."""
        records = self.probe_all(name, [run], seconds)
        return records and records[0]

    def probe_all(
        self, name: str, runs: Sequence[Run], seconds: float | None = None
    ) -> list[Record] | None:
        """Make some runs, in one message, within `seconds` together. Raises `WorkerDied`."""
        trees = [run_tree(run) for run in runs]
        reply = self._ask(
            {"op": "probe", "name": name, "runs": trees, "device": self.device},
            self.limits.probe_seconds if seconds is None else seconds,
        )
        return self._read(lambda trees: _records(trees, len(runs)), reply.get("records"))

    def wait_until_up(self) -> None:
        """Wait until the process can take a request. Raises `IsolationError`."""
        if self._up:
            return
        try:
            hello = self._receive(time.monotonic() + self.limits.start_seconds)
        except TimeoutError:
            self.close()
            raise IsolationError(f"the sandbox did not start: {self._said}") from None
        except WorkerDied as death:
            raise IsolationError(self._why_not_up(death)) from None
        self.landlock, self._up = hello.get("landlock") is True, True
        if self.isolation != "none":
            self._first = os.pidfd_open(json.loads(os.read(self._info, 4096))["child-pid"])

    def _ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self.wait_until_up()
        self._count += 1
        deadline = time.monotonic() + seconds
        try:
            self._send(encode(request | {"id": self._count}), deadline)
            return self._receive(deadline)
        except TimeoutError:
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
        """Wait for a pipe, keeping an eye on what the sandbox uses. Raises `TimeoutError`."""
        poll = select.poll()
        poll.register(fd, event)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready = poll.poll(1000 * min(left, _POLL))
            if time.monotonic() - self._watched >= _POLL:
                self._watch()
                self._watched = time.monotonic()
            if ready:
                return

    # --- what it uses, and its end ---

    def _watch(self) -> None:
        pids = _family(self._process.pid)
        if len(pids) > self.limits.processes:
            self._die("crash", f"started more than {self.limits.processes} processes")
        used = sum(map(_resident_mb, pids))
        if used > self.limits.memory_mb:
            self._die("memory", f"used more than {self.limits.memory_mb} MB of memory")

    def _die(self, reason: str, detail: str) -> Any:
        self.close()
        raise WorkerDied(reason, detail)

    def _post_mortem(self) -> tuple[str, str]:
        try:
            status = self._process.wait(5)
        except subprocess.TimeoutExpired:
            return "crash", "closed its connection to the judge"
        number = status - 128 if status > 128 else -status if status < 0 else 0
        if status == worker.MEMORY_EXIT:
            return "memory", f"used more than {self.limits.memory_mb} MB of memory"
        if number == signal.SIGKILL:
            return "memory", "was killed, most likely because memory ran out"
        if number == signal.SIGXCPU:
            return "timeout", f"used more than {self.limits.cpu_seconds} s of computing time"
        try:
            return "crash", f"ended its process ({signal.Signals(number).name})"
        except ValueError:
            return "crash", f"ended its process (exit status {status})"

    def _why_not_up(self, death: WorkerDied) -> str:
        last = self._said.strip().splitlines()[-1].strip() if self._said.strip() else death.detail
        if not (last.startswith("bwrap:") and ("namespace" in last or "uid map" in last)):
            return f"the sandbox did not start: {last}"
        return (
            f"bubblewrap cannot make a sandbox here ({last}). User namespaces must be allowed: "
            "sudo sysctl -w kernel.unprivileged_userns_clone=1 "
            "kernel.apparmor_restrict_unprivileged_userns=0"
        )

    def close(self) -> None:
        """Kill the process with all that it started, and wait until all of it is gone."""
        if self._requests < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            if self._first is not None:
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._first is not None:
            poll = select.poll()
            poll.register(self._first, select.POLLIN)
            poll.poll(10_000)  # a namespace's first process goes last
            os.close(self._first)
        for fd in (self._requests, self._replies, self._info):
            os.close(fd)
        self._requests, self._first = -1, None
        self._stderr.seek(0)
        self._said = self._stderr.read(20_000).decode("utf-8", "replace")
        self._stderr.close()
        if self._folder:
            self._folder.cleanup()


# --- the sandbox's walls ---


def _bwrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise IsolationError(
            "bubblewrap is missing: sudo apt-get install bubblewrap "
            "(or, for files that you trust, --isolation none)"
        )
    return found


@cache
def _namespaces(bwrap: str) -> tuple[str, ...]:
    text = subprocess.run([bwrap, "--help"], capture_output=True, text=True, check=False)
    options = ["--unshare-user", "--unshare-all", "--uid", "1000", "--gid", "1000"]
    if "--disable-userns" in text.stdout + text.stderr:  # since bubblewrap 0.8
        options += ["--disable-userns"]
    options += ["--hostname", "sandbox", "--die-with-parent", "--new-session"]
    return (*options, "--cap-drop", "ALL", "--clearenv", "--chdir", "/tmp")


@cache
def _mounts(tmp_mb: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """bubblewrap's options for what can be seen inside, and the paths that can be read there."""
    options = ["--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"]
    options += ["--size", str(tmp_mb << 20), "--tmpfs", "/tmp"]  # first: this may all lie in /tmp
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
        for name in ("bin", "lib", "lib64", "pyvenv.cfg"):  # nothing else that may lie beside them
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
    show(worker.__file__, f"{_COURSE}/worker.py")
    for path in _font_lists():
        options += ["--ro-bind", str(path), f"/tmp/.cache/matplotlib/{path.name}"]
    options += ["--remount-ro", "/"]
    return tuple(options), tuple(readable)


def _prefixes() -> list[Path]:
    """Where the interpreter and its environment live, by every name that they have."""
    prefixes = [Path(sys.base_prefix), Path(sys.prefix), Path(sys.base_exec_prefix)]
    executable = Path(sys.executable)
    prefixes.append(executable.resolve().parent.parent)
    return [p for prefix in prefixes for p in (prefix, prefix.resolve())]


def _hidden() -> list[Path]:
    """Folders of this project that would show through if they were installed as packages."""
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


# --- a look from outside ---


def _family(pid: int) -> list[int]:
    """A process and all its descendants; the orphans among them hang on the namespace's first."""
    found = [pid]
    for parent in found:
        try:
            for thread in os.listdir(f"/proc/{parent}/task"):
                children = Path(f"/proc/{parent}/task/{thread}/children").read_text()
                found += map(int, children.split())
        except OSError:
            continue  # gone meanwhile
        if len(found) > 5000:
            break
    return found


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


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
