"""Forks one isolated child per submission from a process that has imported everything.

TRUST BOUNDARY. This process is trusted and never runs a student's code: it imports our own code and
the packages, forks, and waits. It runs inside bubblewrap all the same (no network, a read-only
system, neither reference nor gradebook), as root of a user namespace that bubblewrap made, because
it has to make namespaces. It takes orders from the grader alone, over a socket that no child
inherits; a child can tell it nothing but its exit status. It watches what each child uses
(`watch`), whatever the grader is doing meanwhile.

A child is set up in this order, by trusted code, before it reads its first request:

1. fork into a new process namespace, of which it is the first process (`_first`);
2. close every descriptor but its two pipes;
3. own mount, network, IPC, host name and cgroup namespaces: an empty /tmp of limited size, part of
   which is /dev/shm, a read-only /proc that shows its own processes only, no terminals, no
   /dev/zero (a shared mapping of it is memory that no process is charged for);
4. own user namespace, a child of the one that owns the others: even with all capabilities in it,
   which it then gives up, it could not change them;
5. resource limits, Landlock, the seccomp filter;
6. fork again: the second process runs the student's code (`worker.serve`), the first one only reaps
   orphans; it ends when the second one does, and with it all that is left in the namespace.

A turn ends when the grader kills the first process, or closes its end of the turn's socket, or when
a limit is exceeded, or at the turn's deadline, by this process's own clock. When the grader
dies, the kernel kills this process (`_die_with`), bubblewrap's first process ends, and with it
every child.

Steps 1 and 3 to 5 are layers; a test can leave one out to show what it stops.
"""

import ctypes
import fcntl
import gc
import importlib
import json
import os
import re
import select
import signal
import socket
import stat
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

NAMESPACES, LANDLOCK, SECCOMP, LIMITS = "namespaces", "landlock", "seccomp", "limits"
LAYERS = (NAMESPACES, LANDLOCK, SECCOMP, LIMITS)
MESSAGE = 1 << 16  # bytes of an order
PRELOADED = (
    "numpy", "torch", "torch.nn.functional", "matplotlib.pyplot",
    "matplotlib_inline.backend_inline", "autograder.check", "autograder.blocks",
    "autograder.plots", "autograder.engine.probe", "autograder.engine.records", "autograder.table",
    "autograder.engine.values",
)  # fmt: skip

_NEW_MOUNTS, _NEW_CGROUPS, _NEW_HOST_NAME, _NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEW_USERS, _NEW_PROCESSES, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_BIND, _RECURSIVE, _PRIVATE, _DETACH = 4096, 16384, 1 << 18, 2
_PARENT_DEATH, _DUMPABLE, _DROP_BOUND, _AMBIENT, _CLEAR_ALL = 1, 4, 24, 47, 4
_NO_NEW_PRIVILEGES, _CAPABILITIES = 38, 0x20080522
_FEWEST_NUMBERS = 301  # RESERVED_PIDS + 1: no namespace can have fewer
_SET_OWNER, _SET_SIGNAL = 8, 10  # F_SETOWN, F_SETSIG

_libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, name: str, *arguments: Any) -> None:
    """Call the C library. Raises `OSError` that says what could not be done."""
    if getattr(_libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _prctl(option: int, value: int, more: int = 0) -> None:
    longs = (ctypes.c_ulong(value), ctypes.c_ulong(more), ctypes.c_ulong(0), ctypes.c_ulong(0))
    _call(f"prctl {option}", "prctl", option, *longs)


# --- the warm process ---------------------------------------------------------------------------


@dataclass
class _Turn:
    """A child: its first process, the socket to its requester, and its deadline.

    One that is `killed` may take a while to end, with all that it started. Its first process
    reports through the pipe `ended` how the second one ended: a student's code can choose an exit
    status.
    """

    pid: int
    pidfd: int
    report: socket.socket
    deadline: float
    watch: Any
    alone: bool  # in its own namespace, which has a first process
    ended: int
    killed: bool = False
    excess: tuple[str, str] | None = None


class Warm:
    """Takes orders over `control` and watches over the children."""

    def __init__(self, config: dict[str, Any], worker: Any, watch: Any, session: Any):
        self.control = socket.socket(fileno=config["control"])
        self.readable, self.isolated = config["readable"], config["isolated"]
        self.worker, self.watch, self.session = worker, watch, session
        self.own_processes = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self.turns: dict[int, _Turn] = {}  # by the number of the child's pidfd

    def run(self) -> None:
        """Work until the grader closes the socket."""
        while True:
            poll = select.poll()
            poll.register(self.control, select.POLLIN)
            for turn in self.turns.values():
                poll.register(turn.pidfd, select.POLLIN)
                if not turn.killed:
                    poll.register(turn.report, 0)  # only to see whether it is closed
            ready = {fd for fd, _ in poll.poll(self._until_next_look())}
            for turn in list(self.turns.values()):
                if turn.pidfd in ready:
                    self._ended(turn)
                elif turn.killed:
                    continue
                elif turn.report.fileno() in ready or time.monotonic() >= turn.deadline:
                    self._kill(turn)
                elif time.monotonic() >= turn.watch.again:
                    turn.excess = turn.watch.look()
                    if turn.excess:
                        self._kill(turn)
            if self.control.fileno() in ready and not self._order():
                return

    def _until_next_look(self) -> float | None:
        times = [min(t.deadline, t.watch.again) for t in self.turns.values() if not t.killed]
        if not times:
            return None
        return max(0.0, 1000 * (min(times) - time.monotonic())) + 1

    def _kill(self, turn: _Turn) -> None:
        """Kill a child without waiting: others have to be forked meanwhile."""
        turn.killed = True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(turn.pidfd, signal.SIGKILL)

    def _ended(self, turn: _Turn) -> None:
        """Reap a child that has ended or was killed, and report how it ended."""
        del self.turns[turn.pidfd]
        _, status = os.waitpid(turn.pid, 0)
        os.close(turn.pidfd)
        with open(turn.ended, "rb") as pipe:
            told = pipe.read()
        if not turn.alone:
            told = str(os.waitstatus_to_exitcode(status)).encode()
        how = {"status": int(told) if told else None, "excess": turn.excess}
        with turn.report, suppress(OSError):  # the requester may have gone
            turn.report.send(json.dumps(how | {"overdue": turn.killed}).encode())

    def _order(self) -> bool:
        """Take an order and start its turn; return whether there was one."""
        message, fds, _, _ = socket.recv_fds(self.control, MESSAGE, 8, socket.MSG_CMSG_CLOEXEC)
        if not message:
            return False
        order = json.loads(message)
        requests, replies, report = fds
        isolated = NAMESPACES in order["layers"]
        if len(os.listdir("/proc/self/task")) != 1:
            raise RuntimeError("the warm process has threads: it cannot fork safely")
        if isolated:
            _call("no own processes", "unshare", _NEW_PROCESSES)  # for the next child
        ended, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._child(order, requests, replies, tell)
        if isolated:
            _call("no way back", "setns", self.own_processes, _NEW_PROCESSES)
        for fd in (requests, replies, tell):
            os.close(fd)
        pidfd, deadline = os.pidfd_open(pid), time.monotonic() + order["seconds"]
        watch = self.watch.Watch(pid, order["limits"])
        turn = _Turn(pid, pidfd, socket.socket(fileno=report), deadline, watch, isolated, ended)
        self.turns[pidfd] = turn
        try:
            socket.send_fds(turn.report, [json.dumps({"pid": pid}).encode()], [pidfd])
        except OSError:
            self._kill(turn)
        return True

    def _child(self, order: dict[str, Any], requests: int, replies: int, tell: int) -> None:
        """What the forked process does. Never returns."""
        try:
            requests, replies, tell = _close_all_but(requests, replies, tell)
            if order["folder"]:
                os.chdir(order["folder"])
            self.session.recorder.limit = int(order["limits"]["output_bytes"])
            landlock = self._wall_in(order)
            if NAMESPACES in order["layers"]:
                _first(os.fork(), tell)
            os.close(tell)
            self.worker.serve(self.session, requests, replies, {"landlock": landlock})
        except OSError as error:  # before `serve`: no student's code has run
            self.worker.say(replies, {"id": 0, "error": f"{error.strerror or error}"})
        except BaseException as error:  # noqa: BLE001  (nothing may return to the warm process's code)
            self.worker.say(replies, {"id": 0, "error": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(1)

    def _wall_in(self, order: dict[str, Any]) -> bool:
        """Apply the order's layers; return whether Landlock is on. Raises `OSError`."""
        layers, limits, landlock = order["layers"], order["limits"], False
        os.setsid()
        if NAMESPACES in layers:
            _leave(limits)
        if self.isolated:
            _give_up_capabilities()
        _prctl(_PARENT_DEATH, signal.SIGKILL)  # last, because the steps above would unset it
        if LIMITS in layers:
            self.worker.limit_resources(limits)
        if LANDLOCK in layers:
            landlock = self.worker.confine(self.readable)
        if SECCOMP in layers:
            importlib.import_module("seccomp").install()
        return landlock


# --- a child's walls ----------------------------------------------------------------------------


def _close_all_but(*keep: int) -> list[int]:
    """Close every descriptor except those to keep, which are renumbered from 3."""
    null = os.open(os.devnull, os.O_RDWR)
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in keep]
    for fd in (0, 1, 2):  # output from below Python is discarded
        os.dup2(null, fd)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in high:
            with suppress(OSError):  # the listing's own
                os.close(int(name))
    moved = [os.dup2(fd, 3 + number, inheritable=False) for number, fd in enumerate(high)]
    for fd in high:
        os.close(fd)
    return moved


def _leave(limits: dict[str, Any]) -> None:
    """Leave the warm process's namespaces for new ones."""
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)  # the one that can be written to
    _write("self/oom_score_adj", "500", proc)  # a student's process is killed before the grader
    kinds = _NEW_MOUNTS | _NEW_IPC | _NEW_HOST_NAME | _NEW_NETWORK | _NEW_CGROUPS
    _call("no own namespaces", "unshare", kinds)
    _mount(None, "/", None, _PRIVATE | _RECURSIVE)
    options = f"size={int(limits['tmp_mb']) << 20},nr_inodes=20000,mode=0755"
    shown = {place: os.open(place, os.O_PATH | os.O_CLOEXEC) for place in _mounted_below("/tmp")}
    _mount("tmpfs", "/tmp", "tmpfs", _NO_SUID | _NO_DEVICES, options)
    for place, fd in shown.items():  # the interpreter and its packages may lie there, read-only
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.makedirs(place, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.close(os.open(place, os.O_CREAT | os.O_CLOEXEC))
        _mount(f"/proc/self/fd/{fd}", place, None, _BIND | _RECURSIVE)
        os.close(fd)
    flags = _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_PROGRAMS
    _count_numbers()
    try:
        _mount("proc", "/proc", "proc", flags, "subset=pid")
    except OSError:  # before Linux 5.8
        _mount("proc", "/proc", "proc", flags)
    _mount("/dev/null", "/dev/zero", None, _BIND)
    if os.path.isdir("/dev/shm"):  # where multiprocessing has its locks; of /tmp's size
        os.mkdir("/tmp/.shm", 0o700)
        _mount("/tmp/.shm", "/dev/shm", None, _BIND)
    if os.path.ismount("/dev/pts"):
        _call("no way to hide terminals", "umount2", b"/dev/pts", _DETACH)
    os.chdir("/tmp")
    _call("no own user namespace", "unshare", _NEW_USERS)
    _write("self/setgroups", "deny", proc)
    _write("self/uid_map", "1000 0 1", proc)
    _write("self/gid_map", "1000 0 1", proc)
    os.close(proc)
    os.makedirs("/tmp/.ipython", exist_ok=True)


def _count_numbers() -> None:
    """Limit the namespace to the fewest process numbers that the kernel allows.

    Where the grader runs as root, the kernel does not enforce the limit on processes; before Linux
    6.14 this setting is missing, too, and a fork bomb ends when the judge sees it.
    """
    _mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
    with suppress(OSError):
        fd = os.open("/proc/sys/kernel/pid_max", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, str(_FEWEST_NUMBERS).encode())
        finally:
            os.close(fd)
    _call("no way to hide the kernel's settings", "umount2", b"/proc", _DETACH)


def _mounted_below(folder: str) -> list[str]:
    """The outermost mount points below a folder."""
    with open("/proc/self/mountinfo", "rb") as lines:
        escaped = [line.split(b" ")[4] for line in lines]
    octal = re.compile(rb"\\([0-7]{3})")  # how a space is escaped there
    places = [os.fsdecode(octal.sub(lambda m: bytes([int(m[1], 8)]), name)) for name in escaped]
    found: list[str] = []
    for place in places:
        if place.startswith(f"{folder}/") and not place.startswith(tuple(f"{p}/" for p in found)):
            found.append(place)
    return list(dict.fromkeys(found))


def _mount(source: str | None, place: str, kind: str | None, flags: int, options: str = "") -> None:
    texts = [text and text.encode() for text in (source, place, kind)]
    number = ctypes.c_ulong(flags)
    _call(f"no mount on {place}", "mount", *texts, number, options.encode() or None)


def _write(path: str, text: str, folder: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _give_up_capabilities() -> None:
    """Give up every capability, and the ability to gain one by running a program."""
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _prctl(_AMBIENT, _CLEAR_ALL)
    for number in range(64):
        if _libc.prctl(_DROP_BOUND, ctypes.c_ulong(number), *[ctypes.c_ulong(0)] * 3):
            break  # there are no more, or we lack the right to drop any
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    _call("capset", "capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def _first(worker: int, tell: int) -> None:
    """In the namespace's first process: reap until `worker` ends, report how, and exit.

    In the worker: return.
    """
    if worker == 0:
        return
    os.closerange(0, tell)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while True:
        pid, status = os.wait()
        if pid == worker:
            os.write(tell, str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)


# --- the start ----------------------------------------------------------------------------------


def _die_with(pipe: int) -> None:
    """Have the kernel kill us when the other end of a pipe closes: when the grader dies."""
    fcntl.fcntl(pipe, _SET_SIGNAL, signal.SIGKILL)
    fcntl.fcntl(pipe, _SET_OWNER, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    poll = select.poll()
    poll.register(pipe, 0)
    if poll.poll(0):  # it has closed already
        os._exit(0)


def _preload(worker: Any, exercises: list[str]) -> Any:
    """Import what submissions import, and make the shell; return the session."""
    for name in PRELOADED:
        importlib.import_module(name)
    for name in exercises:
        importlib.import_module(f"autograder.exercises.{name}")
    with suppress(ImportError):
        importlib.import_module("sandlock")
    importlib.import_module("seccomp")
    torch = sys.modules["torch"]
    torch.zeros(1, dtype=torch.float16).float()  # it reads /proc/cpuinfo, which no child has
    session = worker.Session(0)
    out, err = sys.stdout, sys.stderr
    session.shell.run_cell("None", silent=True)  # what IPython creates on first use
    sys.stdout, sys.stderr = out, err
    return session


def main() -> None:
    config = json.loads(sys.argv[1])
    _die_with(config["life"])
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [here, config["course"]]
    worker, watch = importlib.import_module("worker"), importlib.import_module("watch")
    from autograder.exercises import chapters

    session = _preload(worker, list(chapters()))
    sys.path.remove(here)
    if config["isolated"]:
        _prctl(_DUMPABLE, 0)  # our memory cannot be read, though other walls prevent that already
    for fd in (config["life"], config["control"]):
        os.set_inheritable(fd, False)
    gc.collect()
    gc.freeze()  # so that a collection in a child does not copy all these pages
    Warm(config, worker, watch, session).run()


if __name__ == "__main__":
    main()
