"""How long an honest submission takes beside one that keeps sixty processes busy.

Run: python -m benchmarks.neighbours [--rounds 5] [--no-groups] [--busy 60] [--chapter masking]

Both are judged as `grade` judges them with two jobs: each by a process of its own, with its own
sandbox. The honest one (all of a chapter's reference answers) is judged alone and beside the busy
one by turns, in one run; what counts is the ratio of the two medians. `--no-groups` does without
control groups, as on a machine where none can be made.

The ratio can be no smaller than the machine allows: with a single core, two that both want all of
it get half each. Run this on an idle machine.
"""

import multiprocessing
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from autograder.judge.judge_file import judge_file
from autograder.sandbox import groups
from autograder.sandbox.limits import Limits
from benchmarks.command_line import options

ROOT = Path(__file__).resolve().parents[1]
BUSY = """
import os

for _ in range({count} - 1):
    if os.fork() == 0:
        os.setsid()
        break
while True:
    pass


def softmax(scores, axis=-1):
    return scores
"""


def without_groups() -> None:
    """Make no control groups in this process."""
    groups.places = lambda own, mounts: {}


def keep_busy(path: str, grouped: bool, up: Connection) -> None:
    """Judge the busy submission, as one of `grade`'s processes, until killed."""
    if not grouped:
        without_groups()
    up.send(None)
    judge_file(path, limits=Limits(cell_seconds=600, restarts=0))


def timed(path: Path) -> float:
    """The seconds that it takes to judge a submission, which must earn full marks."""
    began = time.perf_counter()
    result = judge_file(path, seed=b"a seed")
    assert result["score"] == result["points"] > 0
    return time.perf_counter() - began


def beside(path: Path, busy: Path, grouped: bool) -> float:
    """The same, beside the busy one."""
    ours, theirs = multiprocessing.Pipe()
    other = multiprocessing.Process(target=keep_busy, args=(str(busy), grouped, theirs))
    other.start()
    try:
        ours.recv()
        time.sleep(5.0)  # until all of it is at work
        assert other.is_alive()
        return timed(path)
    finally:
        other.kill()
        other.join()
        time.sleep(1.0)  # the kernel ends what it had started


def main() -> None:
    chosen = options(__doc__, rounds=5, busy=60, chapter="masking", no_groups=False)
    if chosen.no_groups:
        without_groups()
    path = ROOT / "solutions" / f"{chosen.chapter}.py"
    alone, crowded = [], []
    with tempfile.TemporaryDirectory() as folder:
        busy = Path(folder, "busy.py")
        busy.write_text(BUSY.format(count=chosen.busy), encoding="utf-8")
        timed(path)  # starts the process that forks the sandboxes
        print("control groups:", ", ".join(groups.places_here()) or "none")
        for number in range(chosen.rounds):
            alone.append(timed(path))
            crowded.append(beside(path, busy, not chosen.no_groups))
            print(
                f"round {number + 1}: alone {alone[-1]:.2f} s, beside {crowded[-1]:.2f} s",
                flush=True,
            )
    ratio = statistics.median(crowded) / statistics.median(alone)
    print(
        f"medians of {chosen.rounds}: alone {statistics.median(alone):.2f} s, beside "
        f"{chosen.busy} busy processes {statistics.median(crowded):.2f} s, ratio {ratio:.2f}"
    )


if __name__ == "__main__":
    main()
