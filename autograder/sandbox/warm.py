"""Forks one isolated child per submission from a process that has imported everything.

TRUST BOUNDARY. This process is trusted and never runs a student's code: it imports our own code and
the packages, forks, and waits. It runs inside bubblewrap all the same (no network, a read-only
system, neither reference nor gradebook), as root of a user namespace that bubblewrap made, because
it has to make namespaces. It takes orders from the grader alone, over a socket that no child
inherits; a child can tell it nothing but its exit status. It watches what each child uses
(`watch`), whatever the grader is doing meanwhile.

A child is set up in this order, by trusted code (`walls`), before it reads its first request:

1. fork into a new process namespace, of which it is the first process;
2. close every descriptor but its two pipes;
3. enter its own mount, network, IPC, host name and cgroup namespaces: an empty /tmp of limited
   size, part of which is /dev/shm, a read-only /proc that shows its own processes only, no
   terminals, no /dev/zero (a shared mapping of it is memory that no process is charged for);
4. enter its own user namespace, a child of the one that owns the others: even with all capabilities
   in it, which it then gives up, it could not change them;
5. set resource limits, Landlock and the seccomp filter;
6. fork again: the second process runs the student's code (`worker.serve`), and the first one only
   reaps orphans; it ends when the second one does, and with it all that is left in the namespace.

A turn ends when the grader kills the first process, or closes its end of the turn's socket, or when
a limit is exceeded, or at the turn's deadline, by this process's own clock. When the grader
dies, the kernel kills this process (`_die_with`), bubblewrap's first process ends, and with it
every child.

Steps 1 and 3 to 5 are layers; a test can leave one out to show what it stops.
"""

import builtins
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    from autograder.sandbox.launcher import Order
    from autograder.sandbox.watch import Watch
    from autograder.sandbox.worker import Session

MESSAGE = 1 << 16  # the most bytes of an order
PRELOADED = (
    "numpy", "matplotlib.pyplot", "matplotlib_inline.backend_inline", "autograder.student.check",
    "autograder.student.engine.probe", "autograder.student.engine.records",
    "autograder.student.engine.values", "autograder.student.pointing", "autograder.student.table",
)  # fmt: skip

_SET_OWNER, _SET_SIGNAL = 8, 10  # F_SETOWN, F_SETSIG


@dataclass
class _Turn:
    """A child: its first process, the socket to its requester, and its deadline.

    One that is `killed` may take a while to end, with all that it started. Its first process
    reports through the pipe `ended` how the second one ended, since a student's code can choose its
    exit status.
    """

    pid: int
    pidfd: int
    report: socket.socket
    deadline: float
    watch: "Watch"
    alone: bool  # in its own namespace, which has a first process
    ended: int
    killed: bool = False
    excess: tuple[str, str] | None = None


class Warm:
    """Takes orders over `control` and watches over the children."""

    def __init__(self, config: dict[str, Any], session: "Session"):
        self.control = socket.socket(fileno=config["control"])
        self.readable, self.isolated = config["readable"], config["isolated"]
        self.session = session
        self.walls, self.watch, self.worker = map(import_module, ("walls", "watch", "worker"))
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
        alone = self.walls.NAMESPACES in order["layers"]
        if len(os.listdir("/proc/self/task")) != 1:
            raise RuntimeError("the warm process has threads: it cannot fork safely")
        if alone:  # the next child is the first process of its own namespace
            self.walls.call("cannot make a process namespace", "unshare", self.walls.NEW_PROCESSES)
        ended, tell = os.pipe()
        pid = os.fork()
        if pid == 0:
            self._child(order, requests, replies, tell)
        if alone:
            back = (self.own_processes, self.walls.NEW_PROCESSES)
            self.walls.call("cannot return to its own process namespace", "setns", *back)
        for fd in (requests, replies, tell):
            os.close(fd)
        pidfd, deadline = os.pidfd_open(pid), time.monotonic() + order["seconds"]
        watch = self.watch.Watch(pid, order["limits"])
        turn = _Turn(pid, pidfd, socket.socket(fileno=report), deadline, watch, alone, ended)
        self.turns[pidfd] = turn
        try:
            socket.send_fds(turn.report, [json.dumps({"pid": pid}).encode()], [pidfd])
        except OSError:
            self._kill(turn)
        return True

    def _child(self, order: "Order", requests: int, replies: int, tell: int) -> None:
        """What the forked process does. Never returns."""
        try:
            requests, replies, tell = self.walls.close_all_but(requests, replies, tell)
            if order["folder"]:
                os.chdir(order["folder"])
            sys.path.append("")  # for what a cell writes and imports; last: it hides no package
            self.session.recorder.limit = int(order["limits"]["output_bytes"])
            landlock = self.walls.put_up(order, self.readable, self.isolated)
            if self.walls.NAMESPACES in order["layers"]:
                self.walls.reap(os.fork(), tell)
            os.close(tell)
            self.worker.serve(self.session, requests, replies, {"landlock": landlock})
        except OSError as error:  # before `serve`: no student's code has run
            self.worker.say(replies, {"id": 0, "error": f"{error.strerror or error}"})
        except BaseException as error:  # noqa: BLE001  (nothing may return to the warm process's code)
            self.worker.say(replies, {"id": 0, "error": f"{type(error).__name__}: {error}"})
        finally:
            os._exit(1)


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


@contextmanager
def _forgiving() -> Iterator[None]:
    """matplotlib stays with its backend where no other is wanted."""
    with suppress(ImportError):
        yield


def _input(prompt: object = "", /) -> str:
    raise EOFError("input() waits for a person, and nobody types while this is graded")


def _without_a_person() -> None:
    """Replace what waits for a keyboard or a screen."""
    builtins.input = _input
    for path, name in (("matplotlib", "use"), ("matplotlib.pyplot", "switch_backend")):
        module = import_module(path)
        setattr(module, name, _forgiving()(getattr(module, name)))


def preload(course: "ModuleType") -> "Session":
    """Import what submissions of a course import, and make the shell; return the session."""
    for name in (*course.contents().PRELOADED, *PRELOADED):
        import_module(name)
    for slug in course.chapters():
        course.exercises_of(slug)
    with suppress(ImportError):
        import_module("sandlock")
    for name in ("seccomp", "walls", "watch"):
        import_module(name)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.zeros(1, dtype=torch.float16).float()  # it reads /proc/cpuinfo, which no child has
    _without_a_person()
    session = import_module("worker").Session(0)
    out, err = sys.stdout, sys.stderr
    session.shell.run_cell("None", silent=True)  # what IPython creates on first use
    sys.stdout, sys.stderr = out, err
    return session


def main() -> None:
    config = json.loads(sys.argv[1])
    _die_with(config["life"])
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [here, config["course"]]
    gc.disable()  # nothing is garbage that is imported
    session = preload(import_module("autograder.student.course"))
    sys.path.remove(here)
    if config["isolated"]:
        import_module("walls").hide_memory()
    for fd in (config["life"], config["control"]):
        os.set_inheritable(fd, False)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise RuntimeError("there is a CUDA context before the fork: no child could use the GPU")
    gc.freeze()  # so that a collection in a child does not copy all these pages
    gc.enable()
    Warm(config, session).run()


if __name__ == "__main__":
    main()
