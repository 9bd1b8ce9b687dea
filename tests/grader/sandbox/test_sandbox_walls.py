"""The sandbox's walls: what runs inside sees, reaches and writes nothing else."""

import ast
import dataclasses
import os
import socket
import sys
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
import sandlock
from sandboxes import SMALL, errors, printed, value_of

import autograder
import solutions
from autograder.sandbox import walls
from autograder.sandbox.host import Sandbox
from autograder.sandbox.student_package import student_package

pytestmark = pytest.mark.needs_torch  # as the course does

REPOSITORY = Path(autograder.__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def secret(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("outside") / "secret.txt"
    path.write_text("secret")
    path.chmod(0o644)
    return path


SOLUTIONS = Path(solutions.__file__).parent
HIDDEN = {
    "the reference": SOLUTIONS / "kernel_regression.py",
    "the known mistakes": SOLUTIONS / "mistakes/kernel_regression/softmax.txt",
    "the judge": REPOSITORY / "autograder" / "judge" / "verdicts.py",
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


@pytest.mark.parametrize("module", ["solutions", "solutions.kernel_regression", "autograder.judge"])
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
    walk = "[os.path.join(at, f)[8:] for at, _, fs in os.walk('/course') for f in fs]"
    seen = ast.literal_eval(value_of(worker, f"(os := __import__('os')) and {walk}"))
    there = {name for name in seen if "/" in name and "__pycache__" not in name}
    answers = {n for n in student_package() if n.startswith("attention_by_hand/blocks/")}
    answers.add("attention_by_hand/exercises/bugs.py")
    assert there - {"attention_by_hand/expected/held.json"} == {*student_package()} - answers
    assert {name for name in seen if "/" not in name} == {
        "seccomp.py", "walls.py", "warm.py", "watch.py", "worker.py"
    }  # fmt: skip


def test_the_environment_is_not_there(monkeypatch):
    monkeypatch.setenv("AUTOGRADER_TEST_SECRET", "hunter2")
    with Sandbox(limits=SMALL) as own:
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
    with Sandbox(limits=SMALL) as own:
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
    name = uuid4().hex
    outputs = worker.execute(
        f"import os\nopen('{name}', 'w').write('x'); print(os.path.abspath('{name}'))"
    )
    assert printed(outputs) == f"/tmp/{name}\n"
    assert not Path("/tmp", name).exists()
    with Sandbox(limits=SMALL) as other:
        assert value_of(other, f"__import__('os').path.exists('/tmp/{name}')") == "False"


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
    """The kernel itself answers, so that a sandbox that fails to use it is found out."""
    worker.wait_until_up()
    assert worker.landlock == (sandlock.landlock_abi_version() >= sandlock.min_landlock_abi())


# --- what each layer stops ----------------------------------------------------------------------

C = "import ctypes, os\nc = ctypes.CDLL(None, use_errno=True)\n"
ATTACKS = {  # by layer: what is tried, as an expression, and its value once that layer is off
    "memory in nobody's account, by descriptor": (
        walls.SECCOMP, "c.memfd_create(b'x', 0) >= 0"),
    "memory in nobody's account, shared": (
        walls.SECCOMP, "len(__import__('mmap').mmap(-1, 4096)) == 4096"),
    "memory in nobody's account, of System V": (
        walls.SECCOMP, "c.shmget(0, 4096, 0o1600) >= 0"),
    "a user namespace": (walls.SECCOMP, "c.unshare(0x10000000) == 0"),
    "a user namespace, cloned": (
        walls.SECCOMP, "(lambda p: p and os.waitpid(p, 0)[1] == 0 if p else os._exit(0))"
        "(c.syscall(56, 0x10000011, 0, 0, 0, 0)) and True"),
    "a socket": (walls.SECCOMP, "bool(__import__('socket').socket(1))"),
    "a trace": (walls.SECCOMP, "c.ptrace(0, 0, 0, 0) == 0"),
    "the kernel's keys": (walls.SECCOMP, "c.syscall(250, 0, -3, 1) > 0"),
    "a personality": (walls.SECCOMP, "c.personality(0xFFFFFFFF) >= 0"),
    "io_uring": (walls.SECCOMP, "c.syscall(425, 0, 0) == -1 and ctypes.get_errno() != 1"),
    "a look at what nobody needs": (walls.LANDLOCK, "bool(os.listdir('/'))"),
    "the warm process's place": (walls.NAMESPACES, "os.getpid() > 2 and os.getppid() > 1"),
    "a signal to the warm process": (
        (walls.NAMESPACES, walls.LANDLOCK),
        "os.kill(os.getppid(), 0) is None and os.getppid() > 1"),
    "what another submission leaves": (
        walls.NAMESPACES, "(lambda seen: (open('/tmp/left', 'w'), seen)[1])"
        "(os.path.exists('/tmp/left'))"),
    "a file without end": (walls.LIMITS, "open('big', 'wb').write(bytes(20 << 20)) > 0"),
    "all memory": (walls.LIMITS, "len(__import__('numpy').empty(3 << 30, 'u1')) > 0"),
    "an open file too many": (walls.LIMITS, "len([open('/dev/null') for _ in range(400)]) > 0"),
}  # fmt: skip


def tries(expression: str, layers: tuple[str, ...]) -> bool:
    """Whether an attack succeeds behind some layers. What it leaves is there for the second try."""
    source = C + f"try: print(bool({expression}))\nexcept BaseException as e: print(False, repr(e))"
    limits = dataclasses.replace(SMALL, memory_mb=2048)
    with Sandbox(limits=limits, layers=layers) as first:
        first.execute(source)
    with Sandbox(limits=limits, layers=layers) as own:
        return printed(own.execute(source)).startswith("True")


@pytest.mark.share(3)
@pytest.mark.parametrize("off, expression", ATTACKS.values(), ids=ATTACKS.keys())
def test_each_layer_stops_what_passes_without_it(off, expression):
    left = tuple(
        layer for layer in walls.LAYERS if layer not in ([off] if type(off) is str else off)
    )
    assert not tries(expression, walls.LAYERS)
    assert tries(expression, left)
