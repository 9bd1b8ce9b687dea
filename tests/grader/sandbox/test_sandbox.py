"""The sandbox: cells run as in a notebook, functions can be probed, with isolation or without."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sandboxes import SMALL, errors, printed, value_of

import attention_by_hand
import autograder
import solutions
from autograder.sandbox.bubblewrap import IsolationError
from autograder.sandbox.host import ProcessDied, Sandbox
from autograder.student.course import VARIABLE
from autograder.student.engine.runs import call
from autograder.student.engine.values import Array, Opaque

pytestmark = pytest.mark.needs_torch  # as the course does

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
    "input": ("input('name? ')", [("error", "EOFError")]),
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
    "body, times, raised",
    [("raise NotImplementedError", 1, ["NotImplementedError"] * 4),
     ("1 / x\n    raise NotImplementedError", 2,
      ["ZeroDivisionError", *["NotImplementedError"] * 3]),
     ("if x < 2: raise NotImplementedError\n    return x", 4,
      ["NotImplementedError", "NotImplementedError", None, None])],
)  # fmt: skip
def test_a_stub_is_called_until_it_says_so_and_an_answer_each_time(worker, body, times, raised):
    worker.execute(f"calls = []\ndef f(x):\n    calls.append(x)\n    {body}")
    records = worker.probe_all("f", [call(float(i)) for i in range(4)])
    assert [record.raised and record.raised.types[0] for record in records] == raised
    assert printed(worker.execute("print(len(calls))")) == f"{times}\n"


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


def test_without_isolation_cells_run_all_the_same():
    with Sandbox("none", limits=SMALL) as own:
        assert value_of(own, "1 + 1") == "2"
        own.execute("def f(x): return x")
        assert own.probe("f", call(3)).value == 3
        with pytest.raises(ProcessDied):
            own.execute("while True: pass", 0.5)


def test_isolation_is_never_dropped_silently():
    with pytest.raises(ValueError, match="bwrap, none"):
        Sandbox("docker")


def test_a_device_that_is_not_let_in_is_no_crash_of_the_students():
    with pytest.raises(IsolationError, match="cpu, cuda, not 'tpu'"):
        Sandbox(device="tpu")


def test_without_bubblewrap_it_says_how_to_install_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(IsolationError, match="apt-get install bubblewrap"):
        Sandbox()


def test_without_user_namespaces_it_says_what_to_do(monkeypatch, tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with Sandbox() as own, pytest.raises(IsolationError, match=r"No permissions.*sysctl"):
        own.execute("1")


def test_installed_packages_do_not_show_through(tmp_path):
    """The course installed into site-packages as an instructor may, not in place."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    site = next(venv.glob("lib/python*/site-packages"))
    for package in (autograder, attention_by_hand, solutions):
        source = Path(package.__file__).parent
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, site / source.name, ignore=ignore)
    (site / "others.pth").write_text(str(Path(np.__file__).parents[1]) + "\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import solutions.kernel_regression as s\n"
        "from autograder.sandbox.host import Sandbox\n"
        f"assert s.__file__.startswith({str(site)!r}), s.__file__\n"
        "with Sandbox() as w:\n"
        "    for source in ('import solutions.kernel_regression', 'import autograder.judge',\n"
        "                   f'open({s.__file__!r})', 'import autograder.student.check'):\n"
        "        print([o.get('ename') for o in w.execute(source)])\n"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), VARIABLE: str(site)}
    done = subprocess.run(
        [venv / "bin" / "python", script], env=environment, capture_output=True, text=True,
        cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "['ModuleNotFoundError']", "['ModuleNotFoundError']", "['FileNotFoundError']", "[]",
    ], done.stderr  # fmt: skip
