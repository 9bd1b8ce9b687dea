"""The sandbox: what runs inside can compute, and nothing else."""

import ast
import dataclasses
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sandlock

import autograder
import solutions
from autograder.engine.runs import call
from autograder.engine.values import Array, Opaque
from autograder.grader.judge import Cell, judge_cells
from autograder.grader.sandbox import groups, seccomp, warm, watch
from autograder.grader.sandbox.host import IsolationError, Limits, SandboxLost, Worker, WorkerDied
from autograder.grader.student_side import student_side

REPOSITORY = Path(autograder.__file__).resolve().parents[1]
SMALL = Limits(cell_seconds=20.0, probe_seconds=2.0, memory_mb=1024, tmp_mb=64, file_mb=16)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(limits=SMALL) as shared:
        yield shared


def errors(outputs: list[dict]) -> list[str]:
    return [output["ename"] for output in outputs if output["output_type"] == "error"]


def printed(outputs: list[dict]) -> str:
    return "".join(o["text"] for o in outputs if o["output_type"] == "stream")


def value_of(worker: Worker, expression: str) -> str:
    outputs = worker.execute(f"print({expression})")
    assert not errors(outputs), outputs
    return printed(outputs).strip()


def how_it_dies(source: str, limits: Limits = SMALL, seconds: float | None = None) -> WorkerDied:
    with Worker(limits=limits) as own, pytest.raises(WorkerDied) as death:
        own.execute(source, seconds)
    return death.value


# --- cells are cells ----------------------------------------------------------------------------

CELLS = {
    "print": ("print('a'); print('b')", [("stream", "stdout", "a\nb\n")]),
    "stderr": ("import sys; print('e', file=sys.stderr)", [("stream", "stderr", "e\n")]),
    "a result": ("x = 20\nx + 1", [("execute_result", "21")]),
    "nothing": ("x = 1;", []),
    "a silenced result": ("1 + 1;", []),
    "display": ("from IPython.display import display\ndisplay(7)", [("display_data", "7")]),
    "top-level await": ("import asyncio\nawait asyncio.sleep(0, 5)", [("execute_result", "5")]),
    "an exception": ("1/0", [("error", "ZeroDivisionError")]),
    "a syntax error": ("def f(:", [("error", "SyntaxError")]),
    "sys.exit": ("import sys; sys.exit(3)", [("error", "SystemExit"), "stream"]),
    "exit()": ("exit()", [("error", "SystemExit")]),
    "input": ("input('name? ')", ["stream", ("error", "EOFError")]),
    "getpass": ("import getpass; getpass.getpass()", ["stream", ("error", "EOFError")]),
    "output in order": ("print(1)\nx=display(2)\nprint(3)", ["stream", "display_data", "stream"]),
    "an exception that cannot be shown": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        [("error", "E"), ("error", "ValueError")],
    ),
    "a lone surrogate": ("print('\\ud800')", [("stream", "stdout", "?\n")]),
    "terminal codes": ("print('\\x1b[31mred\\x07')", [("stream", "stdout", "red\n")]),
}  # fmt: skip


@pytest.mark.parametrize("source, expected", CELLS.values(), ids=CELLS.keys())
def test_a_cell_gives_the_outputs_a_notebook_would(worker, source, expected):
    def brief(output: dict) -> tuple:
        kind = output["output_type"]
        if kind == "stream":
            return (kind, output["name"], output["text"])
        return (kind, output["ename"] if kind == "error" else output["data"]["text/plain"])

    outputs = [brief(output) for output in worker.execute(source)]
    wanted = [o[0] if isinstance(e, str) else o for o, e in zip(outputs, expected, strict=True)]
    assert wanted == expected


def test_magics_work(worker):
    assert "per loop" in printed(worker.execute("%timeit -n1 -r1 1"))
    outputs = worker.execute("%no_such_magic\nprint(1)")  # it costs nothing
    assert not errors(outputs) and "1\n" in printed(outputs)


def test_figures_come_out_as_pictures(worker):
    outputs = worker.execute(
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    )
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert pictures and pictures[0]["data"]["image/png"].startswith("iVBOR")


def test_a_traceback_is_short_and_shows_the_line(worker):
    worker.execute("def f(n): return f(n + 1)")
    (error,) = worker.execute("f(0)")
    text = "\n".join(error["traceback"])
    assert error["ename"] == "RecursionError"
    assert "f(0)" in text
    assert len(text) < 10_000


def test_unknown_mime_types_stay_inside(worker):
    (output,) = worker.execute(
        "from IPython.display import display\n"
        "display({'text/plain': 'x', 'application/javascript': 'alert(1)'}, raw=True)"
    )
    assert output["data"] == {"text/plain": "x"}


# --- probing ------------------------------------------------------------------------------------


def test_a_probe_gives_the_value(worker):
    worker.execute("import numpy as np\ndef double(x): return 2 * x")
    record = worker.probe("double", call(np.arange(3.0)))
    assert isinstance(record.value, Array)
    np.testing.assert_array_equal(record.value.data, [0.0, 2.0, 4.0])


def test_a_name_that_is_not_defined_gives_none(worker):
    assert worker.probe("nobody_defines_this", call()) is None


def test_many_runs_go_in_one_message(worker):
    worker.execute("def identity(x): return x")
    records = worker.probe_all("identity", [call(float(i)) for i in range(50)])
    assert [record.value for record in records] == [float(i) for i in range(50)]


@pytest.mark.parametrize(
    "body, name",
    [("raise ValueError('no')", "ValueError"), ("raise KeyboardInterrupt", "KeyboardInterrupt"),
     ("import sys; sys.exit()", "SystemExit"), ("raise MemoryError", "MemoryError"),
     ("return Liar()", "RuntimeError"), ("return bytearray(10**10)", "MemoryError")],
)  # fmt: skip
def test_what_a_probe_raises_is_recorded(worker, body, name):
    worker.execute(
        f"class Liar(dict):\n    def items(self): raise RuntimeError('no')\ndef f(): {body}"
    )
    assert worker.probe("f", call()).raised.types[0] == name


@pytest.mark.parametrize(
    "result",
    ["object()", "lambda: 0", "np.array([{}], dtype=object)", "10**50", "open('/dev/null')"],
)
def test_what_is_not_a_value_stays_inside(worker, result):
    worker.execute(f"import numpy as np\ndef f(): return {result}")
    assert isinstance(worker.probe("f", call()).value, Opaque)


def test_what_a_probe_prints_is_not_the_next_cells_output(worker):
    worker.execute("def f(): print('from the probe')")
    worker.probe("f", call())
    assert worker.execute("1;") == []


# --- the walls ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secret(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("outside") / "secret.txt"
    path.write_text("secret")
    path.chmod(0o644)
    return path


HIDDEN = {
    "the reference": Path(solutions.__file__).parent / "kernel_regression.py",
    "the known mistakes": Path(solutions.__file__).parent / "mistakes/kernel_regression/softmax.py",
    "the judge": REPOSITORY / "autograder" / "grader" / "judge.py",
    "the project": REPOSITORY / "pyproject.toml",
    "passwords": Path("/etc/shadow"),
    "users": Path("/etc/passwd"),
    "the kernel's": Path("/sys/kernel"),
}


@pytest.mark.parametrize("path", HIDDEN.values(), ids=HIDDEN.keys())
def test_what_lies_outside_cannot_be_seen(worker, path):
    assert path.exists()
    outputs = worker.execute(f"import os\nos.stat({str(path)!r})")
    assert errors(outputs) in (["FileNotFoundError"], ["PermissionError"])


def test_other_files_in_tmp_cannot_be_seen(worker, secret):
    for path in (secret, f"/proc/1/root{secret}", f"/proc/1/cwd{secret}"):
        outputs = worker.execute(f"open({str(path)!r}).read()")
        assert errors(outputs) in (["FileNotFoundError"], ["PermissionError"])


@pytest.mark.parametrize(
    "module", ["solutions", "solutions.kernel_regression", "autograder.grader"]
)
def test_the_instructors_side_cannot_be_imported(worker, module):
    assert errors(worker.execute(f"import {module}")) == ["ModuleNotFoundError"]


def test_no_solution_line_lies_anywhere_inside(worker):
    """Search all that can be read, but for the packages from elsewhere."""
    mark = "BEGIN SOLUTION"
    assert mark in HIDDEN["the reference"].read_text()
    outputs = worker.execute(
        "import os\n"
        "for root in ('/course', '/etc', '/tmp'):\n"
        "    for folder, _, files in os.walk(root):\n"
        f"        if folder.startswith({sys.prefix!r}): continue\n"
        "        for file in files:\n"
        "            with open(os.path.join(folder, file), 'rb') as f: text = f.read()\n"
        f"            print('read', {mark.encode()!r} in text)\n"
    )
    assert "read False" in printed(outputs)
    assert "read True" not in printed(outputs)


def test_inside_is_the_students_side_and_nothing_else(worker):
    seen = value_of(worker, "sorted(__import__('os').listdir('/course/autograder'))")
    assert set(ast.literal_eval(seen)) - {"__pycache__"} == set(student_side())
    assert value_of(worker, "sorted(__import__('os').listdir('/course'))") == str(
        ["autograder", "seccomp.py", "warm.py", "watch.py", "worker.py"]
    )


INSTRUCTORS = tuple(f"autograder.{room}" for room in ("grader", "publishing", "cli"))


def test_the_students_side_imports_nothing_of_the_instructors():
    root = Path(autograder.__file__).parent
    files = [file for path in student_side().values() for file in [path, *path.rglob("*.py")]]
    sources = {file for file in files if file.suffix == ".py"}
    assert {str(f.relative_to(root)) for f in sources} >= {"check.py", "exercises/__init__.py"}
    for file in sources:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith(("solutions", *INSTRUCTORS)), f"{file}: {name}"


def test_the_environment_is_not_there(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_TEST_SECRET", "hunter2")
    with Worker(limits=SMALL) as own:
        outputs = own.execute(
            "import glob, os\n"
            "print('hunter2' in str(dict(os.environ)))\n"
            "for path in glob.glob('/proc/*/environ'):\n"
            "    try: print(b'hunter2' in open(path, 'rb').read())\n"
            "    except OSError: pass\n"
        )
    assert printed(outputs).split().count("False") >= 2
    assert "True" not in printed(outputs)


def test_no_descriptor_but_the_channel_is_open():
    with Worker(limits=SMALL) as own:
        kinds = value_of(
            own,
            "sorted(__import__('os').readlink(f'/proc/self/fd/{n}').split(':')[0]"
            " for n in __import__('os').listdir('/proc/self/fd')"
            " if __import__('os').path.islink(f'/proc/self/fd/{n}'))",
        )
    assert [k for k in ast.literal_eval(kinds) if k != "/dev/null"] == ["pipe", "pipe"]


PLACES = ["/", "/usr", "/etc", "/course", "/course/autograder", "/dev", "/dev/pts", "/proc",
          str(REPOSITORY), sys.prefix + "/lib", os.path.dirname(np.__file__)]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_nothing_but_tmp_can_be_written(worker, place):
    outputs = worker.execute(f"open({place!r} + '/written_by_a_student', 'w')")
    if not Path(place).is_relative_to("/tmp"):  # a checkout there is a folder of its own /tmp
        assert errors(outputs) and set(errors(outputs)) <= {
            "OSError", "PermissionError", "FileNotFoundError",
        }  # fmt: skip
    assert not Path(place, "written_by_a_student").exists()


def test_tmp_can_be_written_and_is_the_sandboxs_own(worker):
    outputs = worker.execute(
        "import os\nopen('mine', 'w').write('x'); print(os.path.abspath('mine'))"
    )
    assert printed(outputs) == "/tmp/mine\n"
    assert not Path("/tmp/mine").exists()
    with Worker(limits=SMALL) as other:
        assert value_of(other, "__import__('os').path.exists('/tmp/mine')") == "False"


def test_nobody_outside_can_be_reached(worker):
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        name = f"\0autograder-test-{os.getpid()}"
        unix.bind(name)
        unix.listen()
        tcp.settimeout(0.2)
        unix.settimeout(0.2)
        for family, address in (("INET", tcp.getsockname()), ("UNIX", name)):
            outputs = worker.execute(
                f"import socket\nsocket.socket(socket.AF_{family}).connect({address!r})"
            )
            assert errors(outputs) in (["ConnectionRefusedError"], ["PermissionError"], ["OSError"])
        for server in (tcp, unix):
            with pytest.raises(TimeoutError):
                server.accept()


@pytest.mark.parametrize("address", ["('192.0.2.1', 80)", "('1.1.1.1', 53)"])
def test_there_is_no_network(worker, address):
    outputs = worker.execute(f"import socket\nsocket.create_connection({address}, 1)")
    assert errors(outputs) == ["OSError"]


CALLS = {
    "a user namespace": "c.unshare(0x10000000)",
    "a mount": "c.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "a root": "c.chroot(b'/tmp')",
    "root's rights": "c.setuid(0)",
    "a trace of the first process": "c.ptrace(16, 1, 0, 0)",
}


@pytest.mark.parametrize("expression", CALLS.values(), ids=CALLS.keys())
def test_the_kernel_refuses(worker, expression):
    worker.execute("import ctypes\nc = ctypes.CDLL(None, use_errno=True)")
    assert value_of(worker, expression) == "-1"


def test_limits_cannot_be_raised(worker):
    outputs = worker.execute(
        "import resource\nresource.setrlimit(resource.RLIMIT_DATA, (1 << 40, 1 << 40))"
    )
    assert errors(outputs) == ["ValueError"]


def test_landlock_is_on_where_the_kernel_has_it(worker):
    """It is the kernel that is asked, so that a sandbox that fails to use it is found out."""
    worker.wait_until_up()
    assert worker.landlock == (sandlock.landlock_abi_version() >= sandlock.min_landlock_abi())


# --- an end in time -----------------------------------------------------------------------------

DEATHS = {
    "an endless loop": ("while True: pass", "timeout"),
    "a loop that swallows interrupts": (
        "while True:\n  try:\n    while True: pass\n  except BaseException: pass", "timeout"),
    "a stopped process": ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
    "a deaf process": (
        "import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass", "timeout"),
    "os._exit": ("import os; os._exit(0)", "crash"),
    "a segfault": ("import ctypes; ctypes.string_at(0)", "crash"),
    "an abort": ("import os; os.abort()", "crash"),
    "a closed channel": ("import os; os.closerange(3, 64)", "crash"),
    "a kill": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "memory"),
    "a fork bomb": (
        "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "crash"),
}  # fmt: skip


@pytest.mark.parametrize("source, reason", DEATHS.values(), ids=DEATHS.keys())
def test_a_process_that_comes_to_grief_says_how(source, reason):
    seconds = 1.0 if reason == "timeout" else None
    limits = Limits(cell_seconds=20.0, memory_mb=1024, processes=10)
    death = how_it_dies(source, limits, seconds)
    assert death.reason == reason, death
    assert death.detail


BOMBS = {
    "one allocation": ("x = bytearray(10**10)", "MemoryError"),
    "many allocations": ("x = []\nwhile True: x.append(bytearray(1 << 24))", "MemoryError"),
    "an array": ("import numpy as np; np.zeros(10**10)", "MemoryError"),
    "a large file": ("f = open('big', 'wb')\nwhile True: f.write(bytes(1 << 20))", "OSError"),
    "a full disk": (
        "for n in range(99):\n  with open(f'{n}', 'wb') as f: f.write(bytes(10 << 20))", "OSError"),
    "memory in nobody's account": ("import mmap\nmmap.mmap(-1, 1 << 20)", "OSError"),
    "open files": ("x = [open('/dev/null') for _ in range(1000)]", "OSError"),
}  # fmt: skip


@pytest.mark.parametrize("source, name", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_goes_off_inside(source, name):
    with Worker(limits=SMALL) as own:
        assert errors(own.execute(source)) == [name]


def test_computing_time_is_limited():
    death = how_it_dies("while True: pass", Limits(cpu_seconds=1))
    assert death.reason == "timeout"
    assert "computing time" in death.detail


def test_a_probe_has_its_own_limit():
    with Worker(limits=Limits(probe_seconds=0.5)) as own:
        own.execute("def f():\n    while True: pass")
        with pytest.raises(WorkerDied) as death:
            own.probe("f", call())
    assert death.value.reason == "timeout"


FLOODS = {
    "print": "print('y' * 100_000_000)",
    "display": "from IPython.display import display\nfor _ in range(30): display('y' * 1_000_000)",
    "a descriptor": "import os\nfor _ in range(100): os.write(1, bytes(1_000_000))",
    "endless": "while True: print('y' * 100_000)",
    "wide characters": "print('\\U0001f600' * 5_000_000)",
}


@pytest.mark.parametrize("source", FLOODS.values(), ids=FLOODS.keys())
def test_a_flood_of_output_is_cut(source):
    limits = Limits(output_bytes=1 << 20)
    with Worker(limits=limits) as own:
        outputs = own.execute(source)
        assert sum(len(str(output)) for output in outputs) < 2 * limits.output_bytes
        assert value_of(own, "'still there'") == "still there"


def seen(token: str) -> bool:
    """Whether any process or thread of this machine bears the token."""
    for path in Path("/proc").glob("[0-9]*/task/[0-9]*/comm"):
        try:
            if token in path.read_text() or token in (path.parents[2] / "cmdline").read_text():
                return True
        except OSError:
            continue
    return False


REMAINS = {
    "a forked child": "if os.fork() == 0: name(); time.sleep(600)",
    "an orphan in a session of its own": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: name(); time.sleep(600)\n"
        "    os._exit(0)"),
    "a program in a session of its own": (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', TOKEN],"
        " start_new_session=True)"),
    "a thread": (
        "import threading\n"
        "threading.Thread(target=lambda: (name(), time.sleep(600))).start()"),
    "a child that ignores signals": (
        "import signal\nif os.fork() == 0:\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    signal.signal(signal.SIGHUP, signal.SIG_IGN)\n    name(); time.sleep(600)"),
}  # fmt: skip


@pytest.mark.parametrize("source", REMAINS.values(), ids=REMAINS.keys())
@pytest.mark.parametrize("end", ["closed", "timed out"])
def test_nothing_outlives_its_turn(source, end):
    token = f"t{os.getpid()}{time.monotonic_ns() % 10**6}"
    prelude = (
        f"import ctypes, os, time\nTOKEN = {token!r}\n"
        "def name(): ctypes.CDLL(None).prctl(15, TOKEN.encode(), 0, 0, 0)\n"
    )
    with Worker(limits=SMALL) as own:
        own.execute(prelude + source)
        deadline = time.monotonic() + 10
        while not seen(token) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert seen(token)
        if end == "timed out":
            with pytest.raises(WorkerDied):
                own.execute("while True: pass", 0.2)
        else:
            own.close()
        assert not seen(token)


def test_nothing_outlives_the_judge(tmp_path):
    token = f"t{os.getpid()}{time.monotonic_ns() % 10**6}"
    script = tmp_path / "judge.py"
    source = (
        "import ctypes, os, time\n"
        f"if os.fork() == 0: ctypes.CDLL(None).prctl(15, b'{token}', 0, 0, 0); time.sleep(600)"
    )
    script.write_text(
        "import time\nfrom autograder.grader.sandbox.host import Worker\n"
        f"w = Worker()\nw.execute({source!r})\nprint('up', flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as judge:
        assert judge.stdout.readline() == b"up\n"
        deadline = time.monotonic() + 10
        while not seen(token) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert seen(token)
        judge.kill()
    deadline = time.monotonic() + 10
    while seen(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not seen(token)


# --- what all of a submission's processes use together -------------------------------------------


@pytest.fixture(params=["control groups", "none"])
def grouped(request, monkeypatch) -> bool:
    """Whether the kernel holds a submission together, where it can; else the watch stands alone."""
    if request.param == "none":
        monkeypatch.setattr(groups, "places_here", dict)
    elif set(groups.places_here()) != set(groups.CONTROLLERS):
        pytest.skip("no control groups can be made here")
    return request.param != "none"


FAMILY = (
    "import os, time\nimport numpy as np\n"
    "for _ in range({count}):\n"
    "    if os.fork() == 0:\n"
    "        {each}\n"
    "        while True: time.sleep(600)\n"
)


def seen_within(seconds: float, condition) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return bool(condition())


def test_memory_is_limited_while_the_judge_does_something_else(grouped):
    """Each child has less than one process may; nobody asks for anything while they take it."""
    with Worker(limits=SMALL) as own:
        own.execute(FAMILY.format(count=6, each="kept = [np.ones(1 << 23) for _ in range(8)]"))
        first, most = own._first, 0.0

        def over() -> bool:
            nonlocal most
            uses = map(watch._status, watch.family(first.pid))
            most = max(most, sum(use.get("RssAnon", 0) for use in uses) / 1024)
            poll = select.poll()
            poll.register(first.pidfd, select.POLLIN)
            return bool(poll.poll(0)) or own._out_of_memory()

        assert seen_within(60, over)
        with pytest.raises(WorkerDied, match="more than 1024 MB of memory") as death:
            own.execute("1")
    assert death.value.reason == "memory"
    # pages that they share with the warm process count in each: 190 MB eight times
    assert most < 1024 + 64 + 8 * 250 + 512


def test_a_child_that_the_kernel_kills_for_its_memory_is_told(grouped):
    source = FAMILY.format(count=4, each="kept = [np.ones(1 << 23) for _ in range(8)]")
    death = how_it_dies(source + "os.wait()\ntime.sleep(600)", seconds=15.0)
    assert (death.reason, death.detail) == ("memory", "used more than 1024 MB of memory")


def test_memory_that_processes_share_counts_once(grouped):
    with Worker(limits=SMALL) as own:
        own.execute("import numpy as np\nbig = np.ones(60 << 20)")  # 480 MB
        own.execute(FAMILY.format(count=5, each="pass") + "time.sleep(0.5)")
        assert value_of(own, "big.size") == str(60 << 20)


def test_files_and_sockets_count_together(grouped):
    each = "kept = [os.pipe() for _ in range(60)]"
    death = how_it_dies(FAMILY.format(count=6, each=each) + "time.sleep(30)")
    assert death.reason == "crash" and "512 files, pipes and sockets" in death.detail


def autogroups(pids: list[int]) -> set[str]:
    return {Path(f"/proc/{pid}/autogroup").read_text().split()[0] for pid in pids}


def test_many_processes_weigh_as_one(grouped):
    """In a control group that is so from the start; the watch makes them nice as well."""
    with Worker(limits=SMALL) as one, Worker(limits=SMALL) as many:
        one.execute("1")
        usual = os.getpriority(os.PRIO_PROCESS, 0)
        priorities = [os.getpriority(os.PRIO_PROCESS, p) for p in watch.family(one._first.pid)]
        assert priorities == [usual, usual]
        many.execute(FAMILY.format(count=40, each="os.setsid()"))
        pids = watch.family(many._first.pid)
        assert len(pids) == 42

        def weight() -> float:
            """Of all of them, in a neighbour's: each of the kernel's steps is a quarter."""
            return sum(1.25 ** (usual - os.getpriority(os.PRIO_PROCESS, pid)) for pid in pids[1:])

        least = 41 * 1.25 ** (usual - 19)  # this test may be run by `nice`
        assert seen_within(30, lambda: weight() <= max(1.0, least))
        if Path("/proc/self/autogroup").exists():
            assert len(autogroups(pids)) == 1
        if grouped:
            own = {pid: Path(f"/proc/{pid}/cgroup").read_text() for pid in pids}
            assert len(set(own.values())) == 1
            lines = own[pids[0]].splitlines()
            assert sum("/autograder-" in line for line in lines) == len(set(groups.CONTROLLERS))
            assert own[pids[0]] != Path(f"/proc/{one._first.pid}/cgroup").read_text()


def test_a_group_goes_with_its_submission():
    if not groups.places_here():
        pytest.skip("no control groups can be made here")
    with Worker(limits=SMALL) as own:
        own.execute(FAMILY.format(count=8, each="pass"))
        folders = list(own._group.folders.values())
        assert folders and all(folder.is_dir() for folder in folders)
    assert not any(folder.exists() for folder in folders)


def test_the_groups_of_a_grader_that_is_no_more_are_removed():
    if not groups.places_here():
        pytest.skip("no control groups can be made here")
    gone = subprocess.Popen(["true"])
    gone.wait()
    folders = {place.folder for place in groups.places_here().values()}
    left = [folder / f"autograder-{gone.pid}-1" for folder in folders]
    for folder in left:
        folder.mkdir()
    groups.places_here.cache_clear()
    groups.places_here()
    assert not any(folder.exists() for folder in left)


VERSION_1 = """12:memory:/user.slice/user-7.slice
4:cpu,cpuacct:/user.slice
3:pids:/
1:name=systemd:/user.slice
0::/user.slice
"""
MOUNTS_1 = """31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /user.slice /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
39 31 0:36 /docker/7 /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
"""
MOUNTS_2 = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"


def test_a_group_is_made_below_our_own_or_beside_it():
    root = Path("/sys/fs/cgroup")
    assert groups.places(VERSION_1, MOUNTS_1) == {  # that of pids is not shown by the mount
        "cpu": groups.Place(root / "cpu,cpuacct" / "user.slice", 1),
        "memory": groups.Place(root / "memory" / "user-7.slice", 1),
    }
    beside = groups.Place(root / "user.slice", 2)
    found = groups.places("0::/user.slice/x.scope\n", MOUNTS_2)
    assert found == dict.fromkeys(groups.CONTROLLERS, beside)
    assert groups.places("0::/\n", MOUNTS_2)["cpu"] == groups.Place(root, 2)
    both = groups.places(VERSION_1, MOUNTS_1 + MOUNTS_2.replace("cgroup rw", "cgroup/unified rw"))
    assert (both["memory"].version, both["pids"].version) == (1, 2)
    assert groups.places("", "") == groups.places("0::/\n", "") == {}


def test_what_is_written_to_a_group_of_version_2(tmp_path, monkeypatch):
    """A folder that takes everything stands in for the kernel's."""
    place = groups.Place(tmp_path, 2)
    monkeypatch.setattr(groups, "places_here", lambda: dict.fromkeys(groups.CONTROLLERS, place))
    group = groups.Group([7, 8], 100, 20)
    (folder,) = set(group.folders.values())
    texts = {path.name: path.read_text() for path in folder.iterdir()}
    assert texts == {
        "memory.max": str(100 << 20), "memory.oom.group": "1", "pids.max": "21",
        "cgroup.procs": "8",
    }  # fmt: skip
    assert not group.out_of_memory()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 1\noom_group_kill 1\n")
    assert group.out_of_memory()
    shutil.rmtree(folder)
    group.close()


STATUSES = {86: "exit status 86", 137: "exit status 137", 152: "exit status 152"}


@pytest.mark.parametrize("status, words", STATUSES.items())
def test_an_exit_status_says_nothing_but_itself(status, words):
    death = how_it_dies(f"import os; os._exit({status})")
    assert (death.reason, death.detail) == ("crash", f"ended its process ({words})")


TOGETHER = {
    "a pool": (
        "import multiprocessing\nwith multiprocessing.Pool(4) as p: print(p.map(abs, [-1, -2]))",
        "[1, 2]"),
    "an executor of processes": (
        "from concurrent.futures import ProcessPoolExecutor\n"
        "with ProcessPoolExecutor(4) as p: print(list(p.map(abs, [-1, -2])))", "[1, 2]"),
    "threads of torch": (
        "import torch\nn = torch.get_num_threads()\ntorch.set_num_threads(4)\n"
        "print(torch.ones(600, 600).matmul(torch.ones(600, 600)).sum().item())\n"
        "torch.set_num_threads(n)", "216000000.0"),
    "a loop of events": (
        "import asyncio, threading\n"
        "async def f(): return await asyncio.gather(*[asyncio.sleep(0, i) for i in range(3)])\n"
        "t = threading.Thread(target=lambda: print(asyncio.run(f())))\nt.start()\nt.join()",
        "[0, 1, 2]"),
    "a program": (
        "import asyncio, sys\n"
        "p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(5)', stdout=-1)\n"
        "print((await p.communicate())[0])", "b'5\\n'"),
    "a program in a session of its own": (
        "import subprocess, sys\n"
        "command = [sys.executable, '-c', 'print(5)']\n"
        "p = subprocess.run(command, stdout=-1, start_new_session=True)\n"
        "print(p.stdout)", "b'5\\n'"),
    "a pair of sockets": (
        "import socket\na, b = socket.socketpair()\n"
        "a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)\na.send(b'x')\nprint(b.recv(9))",
        "b'x'"),
    "a database": (
        "import sqlite3\nc = sqlite3.connect('/tmp/a.db')\nc.execute('create table t(a)')\n"
        "c.execute('insert into t values (1)')\nc.commit()\n"
        "print(c.execute('select * from t').fetchall())", "[(1,)]"),
}  # fmt: skip


@pytest.mark.parametrize("source, expected", TOGETHER.values(), ids=TOGETHER.keys())
def test_what_honest_code_does_with_processes_and_sockets(source, expected):
    with Worker(limits=SMALL) as own:
        outputs = own.execute(source)
        assert printed(outputs).strip() == expected, outputs


def test_shared_memory_is_of_the_size_of_tmp():
    with Worker(limits=SMALL) as own:
        source = "for n in range(20): open(f'/dev/shm/{n}', 'wb').write(bytes(8 << 20))"
        assert errors(own.execute(source)) == ["OSError"]
        assert value_of(own, "__import__('os').statvfs('/dev/shm').f_bavail") == "0"
        assert value_of(own, "__import__('os').statvfs('/tmp').f_bavail") == "0"
        assert not Path("/dev/shm/0").exists()


# --- forged messages ----------------------------------------------------------------------------

PIPES = (
    "import os, stat, struct, json\n"
    "pipes = [n for n in range(3, 64) if os.path.exists(f'/proc/self/fd/{n}')"
    " and stat.S_ISFIFO(os.fstat(n).st_mode)]\n"
    "def send(data):\n"
    "    for n in pipes:\n"
    "        try: os.write(n, data)\n"
    "        except OSError: pass\n"
    "def frame(tree, blobs=()):\n"
    "    head = json.dumps({'tree': tree, 'sizes': [len(b) for b in blobs]}).encode()\n"
    "    body = struct.pack('<Q', len(head)) + head + b''.join(blobs)\n"
    "    return struct.pack('<Q', len(body)) + body\n"
    "def reply(**items):\n"
    "    return frame({'t': 'dict', 'items': [[k, v] for k, v in items.items()]})\n"
    "assert pipes\n"
)
FORGERIES = {
    "noise": "send(os.urandom(4096))",
    "a length without end": "send(b'\\xff' * 8)",
    "a length of a terabyte": "send(struct.pack('<Q', 1 << 40))",
    "a length and then nothing": "send(struct.pack('<Q', 1 << 20))\nos.closerange(3, 64)",
    "no message": "send(struct.pack('<Q', 4) + b'abcd')",
    "a pickle": "import pickle\nb = pickle.dumps(print)\nsend(struct.pack('<Q', len(b)) + b)",
    "a reply to another request": "send(reply(id=99, outputs=None))",
    "a reply without a number": "send(reply(outputs=None))",
    "a reply that is a list": "send(frame({'t': 'list', 'items': []}))",
    "outputs that are none": "send(reply(id=1, outputs='x'))",
    "outputs nested without end": "send(frame(1, [b'[' * 100000]))",
}


@pytest.mark.parametrize("source", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forged_message_costs_the_forger_the_process(source):
    assert how_it_dies(PIPES + source, seconds=5.0).reason == "crash"


def test_a_message_that_drips_ends_in_time():
    source = (
        PIPES
        + "send(struct.pack('<Q', 1 << 20))\nimport time\nwhile True: send(b' '); time.sleep(.01)"
    )
    assert how_it_dies(source, seconds=1.0).reason == "timeout"


RECORDS = {
    "no records": "None",
    "too few": "[]",
    "too many": "['x'] * 9",
    "texts": "['x']",
    "a record of nothing": "[{'t': 'dict', 'items': []}]",
    "values that are a text": "[record(values='x')]",
    "an exception of numbers": "[record(raised=[1, 2])]",
    "changes that are a list": "[record(changed={'t': 'list', 'items': []})]",
}


@pytest.mark.parametrize("records", RECORDS.values(), ids=RECORDS.keys())
def test_a_forged_record_is_refused_or_only_a_record(records):
    with Worker(limits=SMALL) as own:
        own.execute(
            PIPES + "def record(**more):\n"
            "    empty = {'t': 'dict', 'items': []}\n"
            "    items = dict(values={'t': 'tuple', 'items': []}, raised=None, gradients=empty,\n"
            "                 changed=empty, side_effects={'t': 'list', 'items': []}) | more\n"
            "    return {'t': 'dict', 'items': [[k, v] for k, v in items.items()]}\n"
            "def f():\n"
            f"    records = {records}\n"
            "    records = records and {'t': 'list', 'items': records}\n"
            "    send(reply(id=2, records=records)); os._exit(0)"
        )
        if records == "None":
            assert own.probe("f", call()) is None
        else:
            with pytest.raises(WorkerDied) as death:
                own.probe("f", call())
            assert death.value.reason == "crash"


# --- what each layer stops ----------------------------------------------------------------------

C = "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\n"
ATTACKS = {  # by layer: what is tried, as an expression, and its value once that layer is off
    "memory in nobody's account, by descriptor": (
        warm.SECCOMP, "c.memfd_create(b'x', 0) >= 0"),
    "memory in nobody's account, shared": (
        warm.SECCOMP, "len(__import__('mmap').mmap(-1, 4096)) == 4096"),
    "memory in nobody's account, of System V": (
        warm.SECCOMP, "c.shmget(0, 4096, 0o1600) >= 0"),
    "a user namespace": (warm.SECCOMP, "c.unshare(0x10000000) == 0"),
    "a user namespace, cloned": (
        warm.SECCOMP, "(lambda p: p and os.waitpid(p, 0)[1] == 0 if p else os._exit(0))"
        "(c.syscall(56, 0x10000011, 0, 0, 0, 0)) and True"),
    "a socket": (warm.SECCOMP, "bool(__import__('socket').socket(1))"),
    "a trace": (warm.SECCOMP, "c.ptrace(0, 0, 0, 0) == 0"),
    "the kernel's keys": (warm.SECCOMP, "c.syscall(250, 0, -3, 1) > 0"),
    "a personality": (warm.SECCOMP, "c.personality(0xFFFFFFFF) >= 0"),
    "io_uring": (warm.SECCOMP, "c.syscall(425, 0, 0) == -1 and ctypes.get_errno() != 1"),
    "a look at what nobody needs": (warm.LANDLOCK, "bool(os.listdir('/'))"),
    "the warm process's place": (warm.NAMESPACES, "os.getpid() > 2 and os.getppid() > 1"),
    "a signal to the warm process": (
        (warm.NAMESPACES, warm.LANDLOCK), "os.kill(os.getppid(), 0) is None and os.getppid() > 1"),
    "what another submission leaves": (
        warm.NAMESPACES, "(lambda seen: (open('/tmp/left', 'w'), seen)[1])"
        "(os.path.exists('/tmp/left'))"),
    "a file without end": (warm.LIMITS, "open('big', 'wb').write(bytes(20 << 20)) > 0"),
    "all memory": (warm.LIMITS, "len(__import__('numpy').empty(3 << 30, 'u1')) > 0"),
    "an open file too many": (warm.LIMITS, "len([open('/dev/null') for _ in range(400)]) > 0"),
}  # fmt: skip


def tries(expression: str, layers: tuple[str, ...]) -> bool:
    """Whether an attack succeeds behind some layers. What it leaves is there for the second try."""
    source = C + f"try: print(bool({expression}))\nexcept BaseException as e: print(False, repr(e))"
    limits = dataclasses.replace(SMALL, memory_mb=2048)
    with Worker(limits=limits, layers=layers) as first:
        first.execute(source)
    with Worker(limits=limits, layers=layers) as own:
        return printed(own.execute(source)).startswith("True")


@pytest.mark.parametrize("off, expression", ATTACKS.values(), ids=ATTACKS.keys())
def test_each_layer_stops_what_passes_without_it(off, expression):
    left = tuple(
        layer for layer in warm.LAYERS if layer not in ([off] if type(off) is str else off)
    )
    assert not tries(expression, warm.LAYERS)
    assert tries(expression, left)


# --- the warm process ---------------------------------------------------------------------------


def the_warm_process(pids: list[int]) -> int:
    """Which of some processes, parents first, is the warm process."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids}
    return next(p for p, c in commands.items() if b"warm.py" in c and b"bwrap" not in c)


def test_children_come_from_one_process_and_share_nothing():
    with Worker(limits=SMALL) as one, Worker(limits=SMALL) as two:
        one.execute("import torch, random, numpy as np\nmine = 1\nopen('/tmp/a', 'w').write('x')")
        assert value_of(one, "mine") == "1"
        assert errors(two.execute("mine")) == ["NameError"]
        assert value_of(two, "__import__('os').path.exists('/tmp/a')") == "False"
        assert one._warm is two._warm
        spaces = "pid mnt net ipc user uts cgroup"
        expression = (
            f"[__import__('os').readlink('/proc/self/ns/' + n) for n in {spaces!r}.split()]"
        )
        first, second = (ast.literal_eval(value_of(w, expression)) for w in (one, two))
        assert all(a != b for a, b in zip(first, second, strict=True))
        outside = [os.readlink(f"/proc/self/ns/{name}") for name in spaces.split()]
        assert set(outside).isdisjoint({*first, *second})
        capable = value_of(one, "[l for l in open('/proc/self/status') if 'Cap' in l]")
        assert set(re.findall(r"\\t([0-9a-f]+)", capable)) == {"0" * 16}


def test_a_child_sees_no_process_but_its_own(worker):
    assert value_of(worker, "[p for p in __import__('os').listdir('/proc') if p.isdigit()]") == str(
        ["1", "2"]
    )
    assert value_of(worker, "__import__('os').path.exists('/proc/sys')") == "False"


PROBES = ("open('/proc/1/mem', 'rb').read(1)", "open('/proc/1/environ', 'rb').read()",
          "os.readlink('/proc/1/root')")  # fmt: skip


@pytest.mark.parametrize("expression", PROBES)
def test_the_first_process_cannot_be_read(worker, expression):
    outputs = worker.execute(f"import os\n{expression}")
    assert errors(outputs) in (["PermissionError"], ["FileNotFoundError"])


def test_the_first_process_cannot_be_killed(worker):
    worker.execute(
        "import os\nfor n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass"
    )
    assert value_of(worker, "1 + 1") == "2"


def test_a_turn_ends_at_its_deadline_without_the_judge():
    limits = dataclasses.replace(SMALL, total_seconds=1.0, start_seconds=1.0)
    with Worker(limits=SMALL):  # so that the warm process is up
        pass
    with Worker(limits=limits) as own:
        own.wait_until_up()
        poll = select.poll()
        poll.register(own._first.pidfd, select.POLLIN)
        assert poll.poll(10_000)  # nobody asked it anything, nobody killed it


def test_a_lost_warm_process_is_no_fault_of_the_students():
    with Worker(limits=SMALL) as own:
        own.execute("1")
        os.kill(the_warm_process(watch.family(own._warm.process.pid)), signal.SIGKILL)
        poll = select.poll()
        poll.register(own._first.pidfd, select.POLLIN)
        assert poll.poll(10_000)  # the child dies with it
        with pytest.raises(SandboxLost):
            own.execute("1")
    with Worker(limits=SMALL) as own:
        assert value_of(own, "1 + 1") == "2"


def kill(worker: Worker) -> None:
    """Kill a sandbox's first process from outside, and wait until it is gone."""
    worker.wait_until_up()
    signal.pidfd_send_signal(worker._first.pidfd, signal.SIGKILL)
    assert ends(worker)


def ends(worker: Worker) -> bool:
    poll = select.poll()
    poll.register(worker._first.pidfd, select.POLLIN)
    return bool(poll.poll(30_000))


def test_a_sandbox_that_is_killed_from_outside_is_no_fault_of_the_students():
    """Its second process may be the student's own doing, or the kernel's when memory runs out."""
    with Worker(limits=SMALL) as own:
        own.execute("1")
        kill(own)
        with pytest.raises(SandboxLost, match="killed"):
            own.execute("1")


def test_a_submission_goes_on_in_another_sandbox_when_its_own_is_killed(monkeypatch):
    killed, execute = [], Worker.execute

    def kills_the_first(worker: Worker, *arguments):
        if not killed:
            kill(worker)
            killed.append(worker)
        return execute(worker, *arguments)

    monkeypatch.setattr(Worker, "execute", kills_the_first)
    judged = judge_cells([Cell("x = 1"), Cell("print(x)")], [], {})
    assert killed and judged.notes == [] and judged.outputs[1][0]["text"] == "1\n"


def test_the_first_process_cannot_be_made_to_die_by_a_limit():
    with Worker(limits=SMALL) as own:
        for limit in ("RLIMIT_CPU", "RLIMIT_NOFILE"):
            code = f"import resource\nresource.prlimit(1, resource.{limit}, (0, 0))"
            assert errors(own.execute(code)) in (["PermissionError"], ["ValueError"])
        assert value_of(own, "resource.prlimit(0, resource.RLIMIT_CORE)") == "(0, 0)"


def test_a_turn_that_is_overdue_is_told_as_that():
    with Worker(limits=SMALL):  # so that the warm process is up
        pass
    limits = dataclasses.replace(SMALL, total_seconds=1.0, start_seconds=1.0)
    death = how_it_dies("while True: pass", limits, 60)
    assert death.reason == "timeout"


def test_a_warm_process_that_forks_no_more_is_replaced():
    limits = dataclasses.replace(SMALL, start_seconds=1.0)
    with Worker(limits=SMALL) as first:
        first.execute("1")
        warm_pid = the_warm_process(watch.family(first._warm.process.pid))
        os.kill(warm_pid, signal.SIGSTOP)
        with Worker(limits=limits) as second, pytest.raises(SandboxLost, match="did not start"):
            second.execute("1")
        assert ends(first)
        with pytest.raises(SandboxLost):
            first.execute("1")
    with Worker(limits=SMALL) as third:
        assert third._warm is not first._warm and value_of(third, "1 + 1") == "2"


def test_a_fork_bomb_is_small_whoever_the_grader_is():
    """The kernel counts root's processes in a control group only, the others' by their limit."""
    limits = dataclasses.replace(SMALL, processes=12)
    with Worker(limits=limits) as own:
        own.execute("import os, time")
        source = (
            "count = 0\nfor _ in range(100):\n"
            "    try: pid = os.fork()\n    except OSError: break\n"
            "    if pid == 0: time.sleep(60)\n    count += 1\nprint(count)"
        )
        try:
            assert int(printed(own.execute(source))) <= 14
        except WorkerDied as death:  # the judge has seen it first
            assert "12 processes" in death.detail


def test_what_the_probe_uses_was_taken_before_the_student_came():
    with Worker(limits=SMALL) as own:
        own.execute(
            "import sys\n"
            "for name in ('observe', 'probe', 'records', 'state', 'values', 'new'):\n"
            "    sys.modules['autograder.engine.' + name] = None\n"
            "def double(x): return 2 * x\n"
            "def twice(x): return double(x)"
        )
        assert own.probe("double", call(21)).values == (42,)
        blocks = {"double": "autograder.blocks:softmax"}
        (record,) = own.probe_all("twice", [call(np.zeros(2))], 20, blocks)
        assert list(record.values[0].data) == [0.5, 0.5]


def test_a_judge_that_is_killed_takes_a_stopped_warm_process_with_it(tmp_path):
    script = tmp_path / "judge.py"
    script.write_text(
        "import time\nfrom autograder.grader.sandbox.host import Worker\n"
        "from autograder.grader.sandbox.watch import family\n"
        "w = Worker()\nw.execute('1')\nprint(*family(w._warm.process.pid), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE) as judge:
        pids = [int(pid) for pid in judge.stdout.readline().split()]
        assert len(pids) >= 5  # bubblewrap's two, the warm process, a child's two
        os.kill(the_warm_process(pids), signal.SIGSTOP)
        judge.kill()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_the_filter_is_made_for_two_kinds_of_machine_and_no_other():
    for machine in ("x86_64", "aarch64"):
        made = seccomp.program(machine)
        assert all(0 <= skip < len(made) - n for n, step in enumerate(made) for skip in step[1:3])
    with pytest.raises(seccomp.Unsupported, match="riscv64"):
        seccomp.program("riscv64")


# --- with less, and without ---------------------------------------------------------------------


def test_without_isolation_cells_run_all_the_same():
    with Worker("none", limits=SMALL) as own:
        assert value_of(own, "1 + 1") == "2"
        own.execute("def f(x): return x")
        assert own.probe("f", call(3)).value == 3
        with pytest.raises(WorkerDied):
            own.execute("while True: pass", 0.5)


def test_isolation_is_never_dropped_silently():
    with pytest.raises(ValueError, match="bwrap, none"):
        Worker("docker")


def test_a_device_that_is_not_let_in_is_no_crash_of_the_students():
    with pytest.raises(IsolationError, match="lets no cuda in"):
        Worker(device="cuda")


def test_without_bubblewrap_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(IsolationError, match="apt-get install bubblewrap"):
        Worker()


def test_without_user_namespaces_it_says_what_to_do(monkeypatch, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Worker() as own, pytest.raises(IsolationError, match=r"No permissions.*sysctl"):
        own.execute("1")


def test_installed_packages_do_not_show_through(tmp_path):
    """The course installed into site-packages as an instructor may, not in place."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    for package in (autograder, solutions):
        source = Path(package.__file__).parent
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, site / source.name, ignore=ignore)
    (site / "others.pth").write_text(str(Path(np.__file__).parents[1]) + "\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import solutions.kernel_regression as s\n"
        "from autograder.grader.sandbox.host import Worker\n"
        f"assert s.__file__.startswith({str(site)!r}), s.__file__\n"
        "with Worker() as w:\n"
        "    for source in ('import solutions.kernel_regression', 'import autograder.grader',\n"
        "                   f'open({s.__file__!r})', 'import autograder.check'):\n"
        "        print([o.get('ename') for o in w.execute(source)])\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        [venv / "bin" / "python", script], env=environment, capture_output=True, text=True,
        cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "['ModuleNotFoundError']", "['ModuleNotFoundError']", "['FileNotFoundError']", "[]",
    ], done.stderr  # fmt: skip
