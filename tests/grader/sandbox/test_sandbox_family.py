"""What all of a submission's processes use together is limited."""

import os
import select
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from sandboxes import SMALL, errors, how_it_dies, printed, value_of

from autograder.sandbox import groups, watch
from autograder.sandbox.host import ProcessDied, Sandbox

pytestmark = pytest.mark.needs_torch  # as the course does


def skip_without_groups(*needed: str) -> None:
    """Skip where this process may create no group, or none for a controller that is `needed`.

    What the watch does alone is tested everywhere, by the other half of `grouped`.
    """
    found = set(groups.places_here())
    if not found or not found.issuperset(needed):
        missing = ", ".join(sorted(set(groups.CONTROLLERS) - found))
        pytest.skip(f"no control groups for {missing}: they take root or a delegated hierarchy")


@pytest.fixture(params=["control groups", "none"])
def grouped(request, monkeypatch) -> bool:
    """Whether the kernel holds a submission together, where it can; else the watch stands alone."""
    if request.param == "none":
        monkeypatch.setattr(groups, "places_here", dict)
    else:
        skip_without_groups(*groups.CONTROLLERS)
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


@pytest.mark.share(2)
def test_memory_is_limited_while_the_judge_does_something_else(grouped):
    """Each child has less than one process may; nobody asks for anything while they take it.

    They wait for a signal from outside, which comes after the judge has its reply.
    """
    waits = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
    takes = "signal.sigwait({signal.SIGUSR1}); kept = [np.ones(1 << 23) for _ in range(8)]"
    with Sandbox(limits=SMALL) as own:
        own.execute(waits + FAMILY.format(count=6, each=takes))
        first, most = own._first, 0.0
        held = watch._status(first.pid)["RssAnon"] / 1024  # shared with the warm process
        _, judged, *children = watch.family(first.pid)
        assert len(children) == 6, judged
        for pid in children:
            os.kill(pid, signal.SIGUSR1)

        def over() -> bool:
            nonlocal most
            uses = map(watch._status, watch.family(first.pid))
            most = max(most, sum(use.get("RssAnon", 0) for use in uses) / 1024)
            poll = select.poll()
            poll.register(first.pidfd, select.POLLIN)
            return bool(poll.poll(0)) or own._out_of_memory()

        assert seen_within(60, over)
        with pytest.raises(ProcessDied, match="more than 1024 MB of memory") as death:
            own.execute("1")
    assert death.value.reason == "memory"
    # what they share with the warm process is in each of the eight, and is allowed once
    assert most < 1024 + 64 + 9 * held + 512


def test_a_submission_has_its_memory_to_itself(grouped):
    """What was imported before it does not count, however much that is: see torch with CUDA."""
    with Sandbox(limits=SMALL) as own:
        own.execute("import time, numpy as np\nmost = np.ones(960 << 20, 'u1')\ntime.sleep(0.5)")
        assert value_of(own, "most.size >> 20") == "960"
        assert errors(own.execute("np.ones(68 << 20, 'u1')")) == ["MemoryError"]


@pytest.mark.share(2)
def test_a_child_that_the_kernel_kills_for_its_memory_is_told(grouped):
    source = FAMILY.format(count=4, each="kept = [np.ones(1 << 23) for _ in range(8)]")
    death = how_it_dies(source + "os.wait()\ntime.sleep(600)", seconds=15.0)
    assert (death.reason, death.detail) == ("memory", "used more than 1024 MB of memory")


def test_memory_that_processes_share_counts_once(grouped):
    with Sandbox(limits=SMALL) as own:
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
    with Sandbox(limits=SMALL) as one, Sandbox(limits=SMALL) as many:
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

        least = 41.001 * 1.25 ** (usual - 19)  # this test may be run by `nice`
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
    skip_without_groups()
    with Sandbox(limits=SMALL) as own:
        own.execute(FAMILY.format(count=8, each="pass"))
        folders = list(own._group.folders.values())
        assert folders and all(folder.is_dir() for folder in folders)
    assert not any(folder.exists() for folder in folders)


def test_the_groups_of_a_grader_that_is_no_more_are_removed():
    skip_without_groups()
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
    with Sandbox(limits=SMALL) as own:
        outputs = own.execute(source)
        assert printed(outputs).strip() == expected, outputs


def test_shared_memory_is_of_the_size_of_tmp():
    with Sandbox(limits=SMALL) as own:
        source = "for n in range(20): open(f'/dev/shm/{n}', 'wb').write(bytes(8 << 20))"
        assert errors(own.execute(source)) == ["OSError"]
        assert value_of(own, "__import__('os').statvfs('/dev/shm').f_bavail") == "0"
        assert value_of(own, "__import__('os').statvfs('/tmp').f_bavail") == "0"
        assert not Path("/dev/shm/0").exists()
