"""The warm process, from which each submission's own is forked."""

import ast
import dataclasses
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sandboxes import SMALL, errors, how_it_dies, printed, value_of, who_forks

from autograder.gradebook.local_pool import LocalPool
from autograder.judge.block_code import blocks_for, names_by_module, pieces
from autograder.judge.verdicts import Cell, judge_cells
from autograder.sandbox import host, seccomp, watch
from autograder.sandbox.host import ProcessDied, Sandbox, SandboxLost
from autograder.sandbox.launcher import warm_process
from autograder.student import course
from autograder.student.course import find_exercise
from autograder.student.engine.runs import call

pytestmark = pytest.mark.needs_torch  # as the course does


def the_warm_process(pids: list[int]) -> int:
    """Which of some processes, parents first, is the warm process."""
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids}
    return next(p for p, c in commands.items() if b"warm.py" in c and b"bwrap" not in c)


def test_children_come_from_one_process_and_share_nothing():
    with Sandbox(limits=SMALL) as one, Sandbox(limits=SMALL) as two:
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


def test_judging_processes_share_one_of_the_graders_and_each_has_its_own_once_that_has_ended():
    ours = warm_process("bwrap").pid
    jobs = iter([(job, job) for job in ("one", "two", "three")])
    assert {pid for _, pid in LocalPool(2, isolation="bwrap").run(jobs, who_forks)} == {ours}
    jobs = iter([("one", "one"), ("killed", "killed")])
    told = dict(LocalPool(1, isolation="bwrap").run(jobs, who_forks))
    assert told["one"] == ours
    assert isinstance(told["killed"], int) and told["killed"] != ours
    assert warm_process("bwrap").pid != ours


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


def test_a_turn_ends_at_its_deadline_without_the_judge(monkeypatch):
    monkeypatch.setattr(host, "BEHIND", 1)
    limits = dataclasses.replace(SMALL, total_seconds=1.0, start_seconds=1.0)
    with Sandbox(limits=SMALL):  # so that the warm process is up
        pass
    with Sandbox(limits=limits) as own:
        own.wait_until_up()
        poll = select.poll()
        poll.register(own._first.pidfd, select.POLLIN)
        assert poll.poll(10_000)  # nobody asked it anything, nobody killed it


def test_a_lost_warm_process_is_no_fault_of_the_students():
    with Sandbox(limits=SMALL) as own:
        own.execute("1")
        os.kill(the_warm_process(watch.family(own._warm.process.pid)), signal.SIGKILL)
        poll = select.poll()
        poll.register(own._first.pidfd, select.POLLIN)
        assert poll.poll(10_000)  # the child dies with it
        with pytest.raises(SandboxLost):
            own.execute("1")
    with Sandbox(limits=SMALL) as own:
        assert value_of(own, "1 + 1") == "2"


def kill(worker: Sandbox) -> None:
    """Kill a sandbox's first process from outside, and wait until it is gone."""
    worker.wait_until_up()
    signal.pidfd_send_signal(worker._first.pidfd, signal.SIGKILL)
    assert ends(worker)


def ends(worker: Sandbox) -> bool:
    poll = select.poll()
    poll.register(worker._first.pidfd, select.POLLIN)
    return bool(poll.poll(30_000))


def test_a_sandbox_that_is_killed_from_outside_is_no_fault_of_the_students():
    """Its second process may be the student's own doing, or the kernel's when memory runs out."""
    with Sandbox(limits=SMALL) as own:
        own.execute("1")
        kill(own)
        with pytest.raises(SandboxLost, match="killed"):
            own.execute("1")


def test_a_submission_goes_on_in_another_sandbox_when_its_own_is_killed(monkeypatch):
    killed, execute = [], Sandbox.execute

    def kills_the_first(worker: Sandbox, *arguments):
        if not killed:
            kill(worker)
            killed.append(worker)
        return execute(worker, *arguments)

    monkeypatch.setattr(Sandbox, "execute", kills_the_first)
    judged = judge_cells([Cell("x = 1"), Cell("print(x)")], [], {})
    assert killed and judged.notes == () and judged.outputs[1][0]["text"] == "1\n"


def test_the_first_process_cannot_be_made_to_die_by_a_limit():
    with Sandbox(limits=SMALL) as own:
        for limit in ("RLIMIT_CPU", "RLIMIT_NOFILE"):
            code = f"import resource\nresource.prlimit(1, resource.{limit}, (0, 0))"
            assert errors(own.execute(code)) in (["PermissionError"], ["ValueError"])
        assert value_of(own, "resource.prlimit(0, resource.RLIMIT_CORE)") == "(0, 0)"


@pytest.mark.share(0)
def test_a_turn_that_is_overdue_is_told_as_that(monkeypatch):
    with Sandbox(limits=SMALL):  # so that the warm process is up
        pass
    monkeypatch.setattr(host, "BEHIND", 3)
    limits = dataclasses.replace(SMALL, total_seconds=1.0, start_seconds=4.0)
    death = how_it_dies("while True: pass", limits, 60)
    assert death.reason == "timeout"


def test_a_warm_process_that_forks_no_more_is_replaced():
    limits = dataclasses.replace(SMALL, start_seconds=1.0)
    with Sandbox(limits=SMALL) as first:
        first.execute("1")
        warm_pid = the_warm_process(watch.family(first._warm.process.pid))
        os.kill(warm_pid, signal.SIGSTOP)
        with Sandbox(limits=limits) as second, pytest.raises(SandboxLost, match="did not start"):
            second.execute("1")
        assert ends(first)
        with pytest.raises(SandboxLost):
            first.execute("1")
    with Sandbox(limits=SMALL) as third:
        assert third._warm is not first._warm and value_of(third, "1 + 1") == "2"


def test_a_fork_bomb_is_small_whoever_the_grader_is():
    """The kernel counts root's processes in a control group only, the others' by their limit."""
    limits = dataclasses.replace(SMALL, processes=12)
    with Sandbox(limits=limits) as own:
        own.execute("import os, time")
        source = (
            "count = 0\nfor _ in range(100):\n"
            "    try: pid = os.fork()\n    except OSError: break\n"
            "    if pid == 0: time.sleep(60)\n    count += 1\nprint(count)"
        )
        try:
            assert int(printed(own.execute(source))) <= 14
        except ProcessDied as death:  # the judge has seen it first
            assert "12 processes" in death.detail


def test_what_the_probe_uses_was_taken_before_the_student_came():
    with Sandbox(limits=SMALL) as own:
        own.execute(
            "import sys\n"
            "for name in ('observe', 'probe', 'records', 'state', 'values', 'new'):\n"
            "    sys.modules['autograder.student.engine.' + name] = None\n"
            "def double(x): return 2 * x\n"
            "def twice(x): return double(x)"
        )
        assert own.probe("double", call(21)).values == (42,)
        own.hand_out(pieces(frozenset({"softmax"})), names_by_module(), 20)
        blocks = {"double": "attention_by_hand.blocks:softmax"}
        (record,) = own.probe_all("twice", [call(np.zeros(2))], 20, blocks)
        assert list(record.values[0].data) == [0.5, 0.5]


def test_a_judge_that_is_killed_takes_a_stopped_warm_process_with_it(tmp_path):
    script = tmp_path / "judge.py"
    script.write_text(
        "import time\nfrom autograder.sandbox.host import Sandbox\n"
        "from autograder.sandbox.watch import family\n"
        "w = Sandbox()\nw.execute('1')\nprint(*family(w._warm.process.pid), flush=True)\n"
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


@pytest.mark.parametrize("name", ["greedy_decode", "generate"])
def test_a_probe_imports_nothing_that_the_warm_process_has_not_imported(name):
    """Each submission would pay for it: half of torch and sympy take more than half a second."""
    slug, exercise = find_exercise(name)
    with Sandbox() as worker:
        worker.hand_out(pieces(blocks_for(slug, exercise)), names_by_module(), 20)
        worker.execute((course.root() / "solutions" / f"{slug}.py").read_text(encoding="utf-8"))
        worker.execute("import sys\nbefore = {*sys.modules}")
        records = worker.probe_all(name, [r for row in exercise.runs(b"any") for r in row], 60.0)
        assert records
        assert value_of(worker, "sorted({*sys.modules} - before)") == "[]"
