"""Every benchmark starts, on its smallest size: it ends, or still computes when its time is up."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 2  # of processor time: more than imports take
LONGER = {"grading": 90, "price": 90, "term": 60}  # those whose parts have to end
SMALL = {
    "bert": "--seeds 0 --rows 1",
    "bugs": "--steps 1 --jobs 1",
    "captions": "--seeds 0",
    "decoding": "--threads 1 --length 16 --repeats 1",
    "depth": "--jobs 1",
    "distances": "--steps 1",
    "fine_tuning": "--seeds 0 --rows 40 --steps 1 --result typed.json",
    "grading": "--count 2 --jobs 1 --no-stock",
    "heads": "--steps 300",
    "induction": "--seeds 0 --steps 1 --result x.json",
    "language_models": "--steps 1 --seeds 0 --widths 32 --result sizes.json",
    "luck": "--only softmax --times 1 --jobs 1",
    "mixing": "--rounds 1",
    "mutants": "--only softmax",
    "names": "--only softmax --slips 1 --pairs 1",
    "neighbours": "--rounds 1 --busy 1 --chapter kernel_regression",
    "price": "--only check_replaced --top 1",
    "readings": "--steps 1 --jobs 1 --seeds 0",
    "second.bert_controls": "1",
    "second.moved_digits": "1",
    "sentences": "draw drawn",
    "sequence_models": "--seconds 1 --seed 0 --result sequences.json",
    "term": "--students 2 --chapters 1 --jobs 1",
    "training": "--threads 1 --rounds 1 --each 1",
    "vision": "--seeds 0 --result pictures.json",
    "vision_letters": "--seeds 0 --steps 1 --result letters.json",
    "warm_up": "--jobs 1",
}
NOT_INSTALLED = {
    "libraries": {"keras": "compares with Keras and Transformers, which are not installed"},
    "ppm": {"pyppmd": "packs by PPM, which is not installed"},
}
RUNNER = "benchmarks.second"  # of each module beside it
SCRIPTS = sorted({
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__main__")
    for path in (ROOT / "benchmarks").rglob("*.py")
    if '\nif __name__ == "__main__":' in path.read_text(encoding="utf-8")
    or path.stem == "__main__"
    or path.parent.name == "second"
} - {RUNNER})  # fmt: skip
pytestmark = pytest.mark.share(0)  # takes long
FORKS = """
import json, os, resource, runpy, signal, sys, time
from contextlib import suppress
import scipy.stats, sklearn.linear_model, torch
import autograder.judge.verdicts, benchmarks.bert
for line in sys.stdin:
    name, seconds, arguments = json.loads(line)
    said = os.memfd_create("said")
    if not (pid := os.fork()):
        os.setsid()
        os.dup2(said, 1)
        os.dup2(said, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        sys.argv[1:] = arguments
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        sys.exit()
    end, ended = time.monotonic() + 3 * seconds, (0, 0)
    while ended[0] == 0 and time.monotonic() < end:
        time.sleep(0.05)
        ended = os.waitpid(pid, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not ended[0]:
        os.waitpid(pid, 0)
    told = os.pread(said, 1 << 20, 0).decode()[-3000:]
    os.close(said)
    print(json.dumps([os.waitstatus_to_exitcode(ended[1]) if ended[0] else None, told]), flush=True)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The repository; what benchmarks write into is a copy."""
    root = tmp_path_factory.mktemp("benchmarks")
    for path in ROOT.iterdir():
        if path.name in ("benchmarks", "attention_by_hand"):
            shutil.copytree(path, root / path.name)
        elif path.name != "build" and not path.name.startswith("."):
            (root / path.name).symlink_to(path)
    return root


@pytest.fixture(scope="module")
def fresh(copy) -> Iterator[subprocess.Popen]:
    """A process that has imported what most benchmarks import, and starts each in a fork."""
    with subprocess.Popen(
        [sys.executable, "-c", FORKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=copy,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    ) as running:
        yield running
        running.stdin.close()


@pytest.mark.parametrize("name", SCRIPTS)
def test_benchmark_starts(name, fresh):
    short = name.removeprefix("benchmarks.")
    for package, reason in NOT_INSTALLED.get(short, {}).items():
        pytest.importorskip(package, reason=reason)
    arguments, seconds = SMALL.get(short, "").split(), LONGER.get(short, SECONDS)
    if name.startswith(RUNNER):
        name, arguments = RUNNER, [short.removeprefix("second."), *arguments]
    fresh.stdin.write(json.dumps([name, seconds, arguments]) + "\n")
    fresh.stdin.flush()
    status, said = json.loads(fresh.stdout.readline())
    if status is None:  # those whom it has started do the work
        return
    assert status in (0, -signal.SIGXCPU, -signal.SIGKILL), said
    assert "Traceback" not in said or status == -signal.SIGXCPU, said


def test_a_benchmark_that_fails_is_found(fresh):
    with pytest.raises(AssertionError, match="No module named"):
        test_benchmark_starts("benchmarks.of_nothing", fresh)


def test_every_small_size_is_some_benchmarks():
    assert SMALL.keys() <= {name.removeprefix("benchmarks.") for name in SCRIPTS}
