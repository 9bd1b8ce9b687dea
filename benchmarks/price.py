"""What each hostile submission costs outside the sandbox: the judging process's time and memory.

`python -m benchmarks.price [--only NAME]` hands in every attack of the corpus, and a notebook of
cells that take long to parse, to one judging process, and prints the dearest. Memory is how far the
process's largest use goes beyond what it had when it began.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from autograder.gradebook.local_pool import LocalPool
from autograder.notebook.reading import parse_notebook
from autograder.notebook.rebuild import rebuild
from autograder.sandbox.limits import Limits

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "grader" / "sandbox")]
LONGEST = 400.0  # seconds after which a judge is given up, twice
CELLS = {
    "95 cells of lists": lambda i: f"a{i}=[" + "[]," * 6600 + "]",
    "95 cells of lambdas": lambda i: f"a{i}=[" + "lambda:0," * 2300 + "]",
    "95 cells with late errors": lambda i: f"a{i}=[" + "(a)," * 5000 + "] ?? !",
}


def peak() -> int:
    """The largest use of memory so far, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) >> 10


def priced(name: str) -> tuple[float, int, float, str]:
    """Judge an attack: seconds of computing time, MB, seconds of the clock, and the verdict."""
    import nbformat
    from test_attacks import FILES, attacked, chapter, declared, limits, released, text_of

    from autograder.judge.judge_file import judge_file

    if name in CELLS:
        release = nbformat.reads(chapter("kernel_regression"), as_version=4)
        cells = [{"cell_type": "code", "source": CELLS[name](i), "metadata": {}} for i in range(95)]
        handed = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    elif name and FILES[name].suffix == ".ipy":
        from file_cells import fill_in

        path = Path(f"/tmp/price-{name}.ipynb")
        nbformat.write(fill_in(released(attacked(name)), [attacked(name)], text_of(name)), path)
    elif name:
        path = FILES[name]
    Path("/proc/self/clear_refs").write_text("5")
    before, cpu, clock = peak(), time.process_time(), time.monotonic()
    if name in CELLS:
        rebuild(release, parse_notebook(handed.encode()))
        verdict = "rebuilt"
    else:
        asked = [attacked(name)] if name else None
        given = limits(declared(name)) if name else Limits()
        target = path if name else ROOT / "solutions/kernel_regression.py"
        result = judge_file(target, asked, seed=b"a seed", limits=given)
        verdict = " ".join(v["verdict"] for v in result["exercises"].values())
    return time.process_time() - cpu, peak() - before, time.monotonic() - clock, verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of attacks")
    parser.add_argument("--top", type=int, default=10)
    options = parser.parse_args()
    from test_attacks import ATTACKS

    names = options.only or [*ATTACKS, *CELLS]
    jobs = [("", ""), *((name, name) for name in names)]  # the first one imports what all need
    found = {}
    for name, told in LocalPool(1, LONGEST, "bwrap").run(iter(jobs), priced):
        failed = isinstance(told, Exception)
        found[name] = (LONGEST, 0, 2 * LONGEST, str(told)) if failed else told
        cpu, memory, clock, verdict = found[name]
        print(f"{cpu:8.2f} s {memory:6d} MB {clock:8.1f} s  {name}: {verdict[:60]}", flush=True)
    del found[""]
    for what, at in (("computing time", 0), ("memory", 1)):
        print(f"\nThe dearest by {what}:")
        for name in sorted(found, key=lambda n: -found[n][at])[: options.top]:
            print(f"{found[name][0]:8.2f} s {found[name][1]:6d} MB  {name}")


if __name__ == "__main__":
    main()
