"""A whole term: a large class, all chapters of Part I, graded, stored and drawn.

Run: python -m benchmarks.term [--students 500] [--chapters 7] [--jobs 2] [--keep DIR]

Every student has an ability, drawn evenly from 0.3 to 1: the share of exercises that are right. Of
the others, a fifth are left unwritten, and the rest are known mistakes, drawn evenly; written
questions get between 20 and 120 words. So no two notebooks are alike. Chapters are handed in and
graded one by one, as in a term. Printed for each: seconds of wall clock, CPU seconds of the
whole machine (so run this alone), and how large the gradebook is; at the end the report: how long
drawing it takes, its size, and how soon it can be used in Chromium (median of five loads: until the
page is laid out, and until a search has hidden the rows that do not match).
"""

import argparse
import inspect
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
from nbformat.v4 import new_code_cell
from rich.progress import track

from autograder.bank import banks
from autograder.notebook import stubs
from autograder.student.course import exercises_of
from benchmarks.grading import busy

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
IMPORTS = """import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn"""
SAID = (
    "the weights of a query are a softmax over all keys so that each row sums to one because "
    "scores grow with the width we divide by its root and a mask takes positions out before "
    "not after it which leaves the others in proportion and gradients reach values through them"
)


@cache
def wrong(slug: str, name: str) -> list[str]:
    """The mistakes of an exercise that are written under its own name."""
    found = []
    for answer in banks(slug)[name].mistakes.values():
        try:
            source = inspect.getsource(answer)
        except OSError:  # made in another way
            continue
        if source.startswith((f"def {name}(", f"class {name}(")):
            found.append(source)
    return found


@cache
def right(slug: str, name: str) -> str:
    """The reference, without the marks around what students write."""
    lines = stubs.source(slug, name).split("\n")
    return "\n".join(line for line in lines if stubs.BEGIN not in line and stubs.END not in line)


def hand_in(root: Path, chapter: str, students: int) -> None:
    """Write a notebook of a chapter for every student."""
    slug = chapter.partition("_")[2]
    release = (NOTEBOOKS / chapter / f"{chapter}.ipynb").read_text(encoding="utf-8")
    names = {exercise.name for exercise in exercises_of(slug)}
    for number in range(students):
        ability = np.random.default_rng([number]).uniform(0.3, 1.0)
        random = np.random.default_rng([number, int(chapter[:2])])
        notebook = nbformat.reads(release, as_version=4)
        for cell in notebook.cells:
            mark = cell.metadata.get("nbgrader", {})
            name = mark.get("grade_id")
            if name in names:
                if random.random() < ability:
                    cell.source = right(slug, name)
                elif random.random() > 0.2 and wrong(slug, name):
                    cell.source = str(random.choice(wrong(slug, name)))
            elif cell.cell_type == "markdown" and mark.get("solution"):
                said = " ".join(random.choice(SAID.split(), random.integers(20, 121)))
                cell.source = cell.source.replace(stubs.TEXT_STUB, said)
        notebook.cells.insert(1, new_code_cell(IMPORTS, id="imports"))
        path = root / "submitted" / f"s{number:04}" / chapter / f"{chapter}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)


def grade(root: Path, chapter: str, jobs: int) -> None:
    """Grade what has been handed in of a chapter."""
    command = [sys.executable, "-m", "autograder.cli", "grade", "submitted", "--jobs", str(jobs)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--assignment", chapter], cwd=root, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-3000:])


def opened(page_file: Path) -> tuple[float, float]:
    """Seconds until the report is laid out, and until a search has done its work: medians of 5."""
    from playwright.sync_api import sync_playwright

    laid_out, searched = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(args=["--no-sandbox"], executable_path=chromium())
        for _ in range(5):
            page = browser.new_page()
            started = time.perf_counter()
            page.goto(page_file.as_uri(), wait_until="load")
            page.evaluate("document.body.offsetHeight")
            laid_out.append(time.perf_counter() - started)
            started = time.perf_counter()
            page.locator("input[type=search]").first.fill("s0007")
            page.evaluate("() => new Promise(done => requestAnimationFrame(() => done()))")
            searched.append(time.perf_counter() - started)
            page.close()
        browser.close()
    return statistics.median(laid_out), statistics.median(searched)


def chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        raise FileNotFoundError("chromium is missing: the report is opened in it")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--students", type=int, default=500)
    parser.add_argument("--chapters", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path, help="a folder for all of it, which is kept")
    chosen = parser.parse_args()
    chapters = sorted(path.name for path in NOTEBOOKS.iterdir() if path.is_dir())[: chosen.chapters]
    with tempfile.TemporaryDirectory() as name:
        root = (chosen.keep or Path(name)).resolve()
        root.mkdir(parents=True, exist_ok=True)
        print(f"{chosen.students} students, {chosen.jobs} jobs")
        print(f"{'':26}{'wall s':>8}{'CPU s':>8}{'s each':>8}{'gradebook MB':>14}", flush=True)
        walls, cpus = [], []
        for chapter in track(chapters, transient=True):
            hand_in(root, chapter, chosen.students)
            before, started = busy(), time.perf_counter()
            grade(root, chapter, chosen.jobs)
            walls.append(time.perf_counter() - started)
            cpus.append(busy() - before)
            size = (root / "gradebook.db").stat().st_size / 1e6
            each = walls[-1] / chosen.students
            print(f"{chapter:26}{walls[-1]:8.0f}{cpus[-1]:8.0f}{each:8.2f}{size:14.1f}", flush=True)
        print(f"{'all':26}{sum(walls):8.0f}{sum(cpus):8.0f}")
        before, started = busy(), time.perf_counter()
        subprocess.run([sys.executable, "-m", "autograder.cli", "report"], cwd=root, check=True)
        taken, spent = time.perf_counter() - started, busy() - before
        print(f"report drawn in {taken:.1f} s ({spent:.1f} CPU s)")
        page = root / "report.html"
        laid_out, searched = opened(page)
        print(f"{page.stat().st_size / 1e6:.1f} MB", end=", ")
        print(f"open after {laid_out:.1f} s, searched after {searched:.2f} s")


if __name__ == "__main__":
    main()
