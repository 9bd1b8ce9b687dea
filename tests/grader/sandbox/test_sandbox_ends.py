"""Whatever runs in the sandbox comes to an end in time, and cannot forge what it sends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sandboxes import SMALL, errors, how_it_dies, value_of

from autograder.sandbox import host
from autograder.sandbox.host import ProcessDied, Sandbox
from autograder.sandbox.limits import Limits
from autograder.student.engine.runs import call

pytestmark = pytest.mark.needs_torch  # as the course does

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


@pytest.mark.share(3)
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


@pytest.mark.share(4)
@pytest.mark.parametrize("source, name", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_goes_off_inside(source, name):
    with Sandbox(limits=SMALL) as own:
        assert errors(own.execute(source)) == [name]


def test_computing_time_is_limited():
    death = how_it_dies("while True: pass", Limits(cpu_seconds=1))
    assert death.reason == "timeout"
    assert "computing time" in death.detail


def test_a_probe_has_its_own_limit():
    with Sandbox(limits=Limits(probe_seconds=0.5)) as own:
        own.execute("def f():\n    while True: pass")
        with pytest.raises(ProcessDied) as death:
            own.probe("f", call())
    assert death.value.reason == "timeout"


FLOODS = {
    "print": "print('y' * 100_000_000)",
    "display": "from IPython.display import display\nfor _ in range(30): display('y' * 1_000_000)",
    "a descriptor": "import os\nfor _ in range(100): os.write(1, bytes(1_000_000))",
    "endless": "while True: print('y' * 100_000)",
    "wide characters": "print('\\U0001f600' * 5_000_000)",
}


@pytest.mark.share(2)
@pytest.mark.parametrize("source", FLOODS.values(), ids=FLOODS.keys())
def test_a_flood_of_output_is_cut(source):
    limits = Limits(output_bytes=1 << 20)
    with Sandbox(limits=limits) as own:
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


@pytest.mark.share(4)
@pytest.mark.parametrize("source", REMAINS.values(), ids=REMAINS.keys())
@pytest.mark.parametrize("end", ["closed", "timed out"])
def test_nothing_outlives_its_turn(source, end):
    token = f"t{os.getpid()}{time.monotonic_ns() % 10**6}"
    prelude = (
        f"import ctypes, os, time\nTOKEN = {token!r}\n"
        "def name(): ctypes.CDLL(None).prctl(15, TOKEN.encode(), 0, 0, 0)\n"
    )
    with Sandbox(limits=SMALL) as own:
        own.execute(prelude + source)
        deadline = time.monotonic() + 10
        while not seen(token) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert seen(token)
        if end == "timed out":
            with pytest.raises(ProcessDied):
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
        "import time\nfrom autograder.sandbox.host import Sandbox\n"
        f"w = Sandbox()\nw.execute({source!r})\nprint('up', flush=True)\ntime.sleep(600)\n"
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
    "no record": "{'record': None}",
    "another word": "{'records': None}",
    "a list of nothing": "{'record': {'t': 'list', 'items': []}}",
    "a text": "{'record': 'x'}",
    "a record of nothing": "{'record': {'t': 'dict', 'items': []}}",
    "values that are a text": "{'record': record(values='x')}",
    "an exception of numbers": "{'record': record(raised=[1, 2])}",
    "changes that are a list": "{'record': record(changed={'t': 'list', 'items': []})}",
}


@pytest.mark.parametrize("items", RECORDS.values(), ids=RECORDS.keys())
def test_a_forged_record_is_refused_or_only_a_record(items):
    with Sandbox(limits=SMALL) as own:
        own.execute(
            PIPES + "def record(**more):\n"
            "    empty = {'t': 'dict', 'items': []}\n"
            "    items = dict(values={'t': 'tuple', 'items': []}, raised=None, gradients=empty,\n"
            "                 changed=empty, side_effects={'t': 'list', 'items': []}) | more\n"
            "    return {'t': 'dict', 'items': [[k, v] for k, v in items.items()]}\n"
            f"def f(): send(reply(id=2, **{items})); os._exit(0)"
        )
        if items == RECORDS["no record"]:
            assert own.probe("f", call()) is None
        else:
            with pytest.raises(ProcessDied) as death:
                own.probe("f", call())
            assert death.value.reason == "crash"


def test_records_run_by_run_are_bounded_like_one_message(monkeypatch):
    monkeypatch.setattr(host, "_FRAME_LIMIT", 1 << 20)
    with Sandbox(limits=SMALL) as own:
        own.execute("import numpy as np\ndef f(n): return np.zeros(n, 'u1')")
        assert len(own.probe_all("f", [call(1 << 18)] * 3)) == 3
        with pytest.raises(ProcessDied, match="more than it may") as death:
            own.probe_all("f", [call(1 << 18)] * 5)
        assert len(death.value.records) == 3
