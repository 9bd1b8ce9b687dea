"""How fast a class is graded: `autograder grade` beside stock `nbgrader autograde`, in one run.

Run: python -m benchmarks.grading [--count 64] [--sizes 16,64,256,512] [--jobs 2] [--no-stock]

Both grade the same submissions of chapter 4: of every 16, seven right, five wrong, two crashing (a
syntax error, an `os._exit`), one half written and one untouched, as in the sample class; endless
loops are left out, since stock nbgrader would wait for them. Stock nbgrader is as it comes: its own
`Execute`, one kernel per submission, no sandbox, no feedback. `autograder grade` has its isolation
on and writes feedback, too.

The floor is a third run: the same cells (no drawings, nothing that the submission does not need),
one submission after another in one warm interpreter that does nothing else (one on each core, since
two that are busy are slower). A run begins with starting processes and imports; what a further
submission takes is the difference between two sizes.
Overhead is that, in wall clock times jobs (all that the machine could have done), less the floor.
CPU seconds are those of the whole machine, so run this alone; memory is the largest resident set of
one process of each kind, shared pages included.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import is_solution
from rich.console import Console
from rich.progress import Progress

from autograder.notebook import stubs
from autograder.notebook.cells_to_skip import cells_to_skip
from autograder.student import course
from autograder.student.course import exercises_of

ROOT = Path(__file__).resolve().parents[1]
SLUG = "masking"
NAME = next((ROOT / "notebooks").glob(f"*_{SLUG}")).name
NAMES = [exercise.name for exercise in exercises_of(SLUG)]
WRONG = {
    "causal_mask": "n_k = n_q if n_k is None else n_k\nreturn torch.ones(n_q, n_k).tril(-1).bool()",
    "masked_softmax": "if mask is not None:\n    scores = scores * mask\n"
    "return torch.softmax(scores, dim=-1)",
    "masked_attention": "weights = masked_softmax(query @ key.transpose(-2, -1), mask)\n"
    "return weights @ value, weights",
    "padding_mask": "return torch.ones(len(lengths), 1, 1, max_len or int(lengths.max())).bool()",
}
KINDS = [
    *[{}] * 7,
    *[{name: body} for name, body in list(WRONG.items())[:3]],
    {"causal_mask": WRONG["causal_mask"], "padding_mask": WRONG["padding_mask"]},
    WRONG,
    {"masked_softmax": "return torch.softmax(scores, dim=-1"},  # a syntax error
    {"attend_with_cache": "import os\nos._exit(0)"},
    dict.fromkeys(NAMES[3:]),  # half written
    dict.fromkeys(NAMES),
]


def submission(release: NotebookNode, wrong: dict[str, str | None]) -> NotebookNode:
    """The released notebook, filled in: right except for `wrong`; None is an untouched stub."""
    notebook = nbformat.reads(nbformat.writes(release), as_version=4)
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name not in NAMES or (name in wrong and wrong[name] is None):
            continue
        text = stubs.source(SLUG, name)
        if name in wrong:
            text = stubs.clear(text)
            (line,) = [row for row in text.split("\n") if stubs.CODE_STUB in row]
            indent = line[: len(line) - len(line.lstrip())]
            body = "\n".join(indent + row for row in wrong[name].split("\n"))
            cell.source = text.replace(line, body)
        else:
            rows = text.split("\n")
            cell.source = "\n".join(r for r in rows if not any(m in r for m in _MARKS))
    return notebook


_MARKS = (stubs.BEGIN, stubs.END)


def hand_in(root: Path, count: int) -> None:
    """Write `count` submissions under `root`."""
    release = nbformat.read(ROOT / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)
    texts = [nbformat.writes(submission(release, wrong)) for wrong in KINDS]
    for number in range(count):
        path = root / "submitted" / f"s{number:04}" / NAME / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(texts[number % len(texts)], encoding="utf-8")


@dataclass
class Cost:
    """What grading some submissions took."""

    count: int
    wall: float
    cpu: float
    peak: dict[str, float] = field(default_factory=dict)  # MB, by kind of process

    @property
    def per_minute(self) -> float:
        return 60 * self.count / self.wall


class Watch(threading.Thread):
    """Looks at a process and its descendants once a second: a look costs the cores something."""

    def __init__(self, pid: int, tick):
        super().__init__(daemon=True)
        self.pid, self.tick, self.over = pid, tick, threading.Event()
        self.peak: dict[str, float] = {}

    def run(self) -> None:
        while not self.over.wait(1):
            self.tick()
            for pid in family(self.pid):
                try:
                    command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                    status = Path(f"/proc/{pid}/status").read_text()
                    size = int(status.partition("\nVmHWM:")[2].split()[0]) / 1024
                except (OSError, IndexError):
                    continue
                kind = kind_of(command)
                if kind:
                    self.peak[kind] = max(self.peak.get(kind, 0.0), size)


def kind_of(command: bytes) -> str | None:
    if b"bwrap" in command:
        return None
    if b"warm.py" in command:
        return "sandbox"
    return "kernel" if b"ipykernel" in command else "grader"


def family(pid: int) -> Iterator[int]:
    yield pid
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split():
                yield from family(int(child))
    except OSError:
        return


def timed(command: list[str], count: int, folder: Path, pattern: str, told: str) -> Cost:
    """Run a command that leaves `count` files of a pattern in `folder`, with a progress bar."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    before, started = busy(), time.perf_counter()
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(told, total=count)

        def tick() -> None:
            bar.update(task, completed=sum(1 for _ in folder.glob(pattern)))

        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        watch = Watch(process.pid, tick)
        watch.start()
        said, _ = process.communicate()
        watch.over.set()
        watch.join()
        reap()
    wall, cpu = time.perf_counter() - started, busy() - before
    done = sum(1 for _ in folder.glob(pattern))
    if done < 0.8 * count:  # stock nbgrader gives up on those whose kernel dies
        raise RuntimeError(f"{told}: {done} of {count} are done\n{said.decode()[-3000:]}")
    return Cost(count, wall, cpu, watch.peak)


def busy() -> float:
    """CPU seconds that this machine has spent: a sandbox's processes report theirs to nobody."""
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def reap() -> None:
    """Wait for what the command left running, which is ours to wait for now (see `main`)."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.05)
        except ChildProcessError:
            return
    raise RuntimeError("something still runs after the command has ended")


def ours(count: int, jobs: int) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        hand_in(root, count)
        command = [sys.executable, "-m", "autograder.cli", "grade", "submitted"]
        pattern = f"feedback/*/{NAME}/{NAME}.html"
        return timed([*command, "--jobs", str(jobs)], count, root, pattern, f"ours, {count}")


def stock(count: int) -> Cost:
    from autograder.gradebook.writer import Writer

    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        hand_in(root, count)
        Writer(root, f"sqlite:///{root / 'gradebook.db'}", ROOT / "notebooks").register(NAME)
        command = [sys.executable, "-m", "nbgrader", "autograde", NAME, f"--course-dir={root}"]
        return timed(command, count, root, f"autograded/*/{NAME}/{NAME}.ipynb", f"stock, {count}")


def floor() -> tuple[float, float]:
    """CPU seconds that a submission's cells take in a warm interpreter: without, with its checks.

    The submission that ends its process is left out.
    """
    from autograder.sandbox import warm

    sys.path.insert(0, str(Path(warm.__file__).parent))
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    session = warm.preload(course)  # the very interpreter that grades
    release = nbformat.read(ROOT / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)
    spent = {False: 0.0, True: 0.0}
    kinds = [wrong for wrong in KINDS if "os._exit" not in str(wrong)]
    for wrong in [{}, *kinds]:  # the first one warms up
        cells = [
            c
            for c in submission(release, wrong).cells
            if c.cell_type == "code" and "draw" not in c.metadata.get("tags", ())
        ]
        answers = [c for c in cells if not c.metadata.get("nbgrader", {}).get("locked")]
        idle = cells_to_skip([(c.source, not is_solution(c)) for c in answers])
        idle = {id(answers[number]) for number in idle}
        session.shell.reset(new_session=False)
        for cell in cells:
            mark = cell.metadata.get("nbgrader", {})
            if id(cell) in idle:
                continue
            session.recorder.limit = 4 << 20
            session.recorder.begin()
            out = sys.stdout, sys.stderr
            sys.stdout, sys.stderr = session.streams
            start = time.process_time()
            session.shell.run_cell(cell.source)
            spent[bool(mark.get("locked"))] += time.process_time() - start
            sys.stdout, sys.stderr = out
        if wrong == {} and "warmed" not in spent:
            spent = {False: 0.0, True: 0.0, "warmed": True}
    cells, checks = spent[False] / len(kinds), spent[True] / len(kinds)
    return cells, cells + checks


def line(name: str, cost: Cost) -> str:
    peak = ", ".join(f"{kind} {size:.0f} MB" for kind, size in sorted(cost.peak.items()))
    return (
        f"{name:24} {cost.count:5} {cost.wall:8.1f} {cost.per_minute:9.1f} "
        f"{1000 * cost.wall / cost.count:8.0f} {cost.cpu / cost.count:8.2f}   {peak}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=64)
    parser.add_argument("--sizes", default="", help="more sizes, for `autograder grade` alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-stock", action="store_true")
    parser.add_argument("--floor", action="store_true", help="print the floor as JSON, and end")
    chosen = parser.parse_args()
    if chosen.floor:
        print(json.dumps(floor()))
        return
    floors = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.grading", "--floor"], cwd=ROOT, text=True,
            stdout=subprocess.PIPE, env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for _ in range(chosen.jobs)
    ]  # fmt: skip
    told = [json.loads(process.communicate()[0].splitlines()[-1]) for process in floors]
    cells, checked = (sum(times) / len(times) for times in zip(*told, strict=True))
    # Orphans become our children, so that the time of all processes is counted.
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    print(f"one warm interpreter: {1000 * cells:.0f} ms a submission for its cells, "
          f"{1000 * checked:.0f} ms with the checks")  # fmt: skip
    head = ("", "count", "seconds", "a minute", "ms each", "CPU s", "largest process")
    print("{:24} {:>5} {:>8} {:>9} {:>8} {:>8}   {}".format(*head))
    mine = ours(chosen.count, chosen.jobs)
    print(line(f"autograder, {chosen.jobs} jobs", mine), flush=True)
    if not chosen.no_stock:
        theirs = stock(chosen.count)
        print(line("stock nbgrader", theirs), flush=True)
        print(
            f"ratio: {theirs.wall / mine.wall:.1f} × in time, {theirs.cpu / mine.cpu:.1f} × in CPU"
        )
    sizes = [int(part) for part in chosen.sizes.split(",") if part]
    runs = {mine.count: mine}
    for size in sizes:
        runs[size] = runs.get(size) or ours(size, chosen.jobs)
        print(line(f"autograder, {chosen.jobs} jobs", runs[size]), flush=True)
    small = min(runs)
    for size in sorted(runs)[1:]:
        further = (runs[size].wall - runs[small].wall) / (size - small)
        taken = 1000 * chosen.jobs * further
        print(
            f"a further submission, {small} to {size}: {1000 * further:.0f} ms, {taken:.0f} ms of "
            f"a core: {taken - 1000 * checked:.0f} ms more than the floor's cells and checks"
        )
        small = size


if __name__ == "__main__":
    main()
