"""What all tests share: a sandbox, small courses, the built book, the known answers as JSON."""

import fcntl
import gc
import json
import os
import re
import shutil
import subprocess
import time
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

import autograder.judge  # noqa: F401  (before nbgrader: see there)
from autograder.publishing import collect_garbage_seldom

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

    from autograder.gradebook.classroom import ClassResult
    from autograder.sandbox.host import Sandbox

MATRIX = Path("build") / "matrix.json"
WITHOUT_TORCH = "No module named 'torch'"
# What takes longest as one piece: it must not be what all workers wait for at the end.
LONG = (
    "test_attacks.py",
    "test_honest.py",
    "test_same_marks.py",
    "test_running_a_course.py",
    "test_matrix.py",
    "test_block_access.py",
    "test_luck.py",
    "test_restart_parts.py",
    "test_check.py",
)
LONG_READERS = (  # of the built pages
    "test_book.py", "test_learner.py", "test_explorables.py", "test_pencil.py", "test_around.py",
    "test_playing.py", "test_sound.py",
)  # fmt: skip
# In some of these, tests of one chapter or class run together, in others each runs by itself.
TOGETHER = re.compile(r"test_(attacks|honest)\.py::\w+\[(endless|ending|first|second)-")
OF_MATRIX = re.compile(r"test_matrix\.py::\w+\[([a-z_]+(?:-\w+)?)")  # chapter and exercise
ALONE = re.compile(
    r"test_(attacks\.py::test_an_attack_ends_|honest\.py::test_judge_|restart_parts\.py::test_"
    r"|block_access\.py::test_|other_machines\.py::test_|check\.py::test_nonsense_|luck\.py::test_a_right_|mutants\.py::test_a_sample_)\w+"
)
PIECES = 3
# Tensors of a few numbers gain nothing from threads, and threads that wait for a core are costly.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Whether an example is right does not depend on how busy the machine is.
hypothesis.settings.register_profile("course", deadline=None)
hypothesis.settings.load_profile("course")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """A file's tests run in one process and share its fixtures; in the matrix, an exercise's do.

    Those that look at a single page for long go wherever there is room, and so do pieces of other
    long files.
    """
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrPiece(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _piece(nodeid) or super()._split_scope(nodeid)

    return ByFileOrPiece(config, log)


def _piece(nodeid: str) -> str | None:
    """What a test of a long file runs together with, if that is not the whole file."""
    if "test_sound.py::" in nodeid:
        return nodeid
    if one := OF_MATRIX.search(nodeid):  # whichever the test, the verdicts are the same
        return f"matrix of {one[1]}"
    if together := TOGETHER.search(nodeid):  # they share a fixture that takes long
        return " ".join(together.groups())  # whichever the test, it is the same class
    if alone := ALONE.search(nodeid):
        return f"{alone[0]} {_number(nodeid) % PIECES}"
    return None


def _number(name: str) -> int:
    """A number of a name, the same on every machine."""
    return zlib.crc32(name.encode())


def pytest_collection() -> None:
    """Until all tests are collected, nothing is worth looking for garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is there now stays: no search for garbage need go through it again, nor come often."""
    gc.freeze()
    collect_garbage_seldom()
    gc.enable()


def pytest_sessionfinish() -> None:
    """What is left is not searched for garbage once more before the process ends."""
    gc.freeze()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what `make test` leaves to `make test-all`."""
    for mark in item.iter_markers("share"):
        (one_of,), drawn = mark.args, mark.kwargs.get("of", item.name)
        if not one_of or _number(drawn) % one_of:
            item.add_marker(mark.kwargs.get("rest", "full"))
            return
    if "html" in getattr(item, "fixturenames", ()) and not _pages_are_built(item.config.rootpath):
        item.add_marker(pytest.mark.full)  # to run the chapters takes as long as all of `make test`


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Skip a file that needs torch where there is none."""
    report = yield
    if report.failed and WITHOUT_TORCH in str(report.longrepr):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, f"Skipped: {WITHOUT_TORCH}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Skip a test that needs torch where there is none."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            pytest.skip(WITHOUT_TORCH)
        raise


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker build the book at once while no other waits for it: its readers come last.

    One file that needs the pages goes first, then what takes longest; the other files that need
    them go last, those that take longest first among them. It takes `--no-loadscope-reorder` for
    workers to get the files in this order.
    """
    lacking = {}
    try:
        from torch.cuda import is_available
    except ModuleNotFoundError:  # the grader works without
        is_available, lacking["needs_torch"] = bool, WITHOUT_TORCH
    if not is_available():
        lacking["gpu"] = "there is no CUDA device"
    for mark, reason in lacking.items():
        for item in filter(lambda item: item.get_closest_marker(mark), items):
            item.add_marker(pytest.mark.skip(reason=reason))
    need = dict.fromkeys(item.path for item in items if "html" in getattr(item, "fixturenames", ()))
    order = {name: number for number, name in enumerate((*LONG, None, *LONG_READERS), 1)}
    place = {path: order.get(path.name, len(order) + 1) for path in need}
    place |= dict.fromkeys(list(need)[:1], 0)
    items.sort(key=lambda item: place.get(item.path, order.get(item.path.name, order[None])))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print how many mistakes are caught and named, and how many right answers get full marks.

    The whole matrix is written to `build/matrix.json` by `make matrix` alone.
    """
    reports = [r for group in terminalreporter.stats.values() for r in group]
    found = [
        entry
        for report in reports
        for key, entry in getattr(report, "user_properties", ())
        if key == "matrix" and report.when == "call"
    ]
    if not found:
        return
    exercises = _by_exercise(found)
    terminalreporter.section("known answers")
    for line in _table(exercises):
        terminalreporter.write_line(line)
    some = config.getoption("keyword") or any("::" in arg for arg in config.args)
    if not some and config.getoption("markexpr") == "full or not full":
        path = config.rootpath / MATRIX
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"exercises": exercises}, indent=1) + "\n", encoding="utf-8")


def _by_exercise(found: Iterable[list]) -> list[dict]:
    rows: dict[tuple[str, str], dict] = {}
    for slug, name, kind, answer, caught, named, full in sorted(found, key=lambda e: e[:2]):
        empty = {"mistakes": {}, "rights": {}}
        row = rows.setdefault((slug, name), {"chapter": slug, "exercise": name} | empty)
        state = {"caught": caught, "named": named} if kind == "mistakes" else {"full": full}
        row[kind][answer] = state
    return list(rows.values())


def _table(exercises: list[dict]) -> Iterable[str]:
    yield f"{'exercise':44} {'mistakes':>8} {'caught':>7} {'named':>6} {'rights':>7} {'full':>5}"
    total = [0] * 5
    for row in exercises:
        wrong, right = row["mistakes"].values(), row["rights"].values()
        counts = [len(wrong), sum(m["caught"] for m in wrong), sum(m["named"] for m in wrong)]
        counts += [len(right), sum(r["full"] for r in right)]
        total = [a + b for a, b in zip(total, counts, strict=True)]
        yield _line(f"{row['chapter']}.{row['exercise']}", counts)
    yield _line("all", total)


def _line(title: str, counts: list[int]) -> str:
    return "{:44} {:8} {:7} {:6} {:7} {:5}".format(title, *counts)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in [*item.iter_markers("seed")][:1]:
        from torch import manual_seed

        manual_seed(*mark.args)


@pytest.fixture
def plenty_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a pointer is found must not depend on how busy the machine is."""
    monkeypatch.setattr("autograder.student.pointing.SECONDS", 60.0)


@pytest.fixture(scope="session")
def grade_the_sample(request: pytest.FixtureRequest) -> Callable[[], "ClassResult"]:
    """Grades the sample class in build/sample_class, or reads what is graded there already.

    If another process of the same test run is grading it, this waits, for 15 minutes at most.
    """
    from autograder.gradebook.sample_class import grade_sample

    root = request.config.rootpath

    def grade() -> "ClassResult":
        deadline = time.monotonic() + 900
        while True:
            try:
                return grade_sample(root / "notebooks", root / "build" / "sample_class")
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    return grade


@pytest.fixture(scope="session")
def sample_class(grade_the_sample: Callable[[], "ClassResult"]) -> "ClassResult":
    return grade_the_sample()


@pytest.fixture(scope="session")
def html(request: pytest.FixtureRequest) -> Path:
    """The pages, built once a test run with `-W -n --keep-going`; parallel workers wait in line.

    If `make book` has built them in the same way from the same sources, they are not built again.
    """
    from autograder.publishing.publish import OUTPUT, build_book

    root = request.config.rootpath
    build = root / "build"
    build.mkdir(exist_ok=True)
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    with (build / ".book-lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        ready = root / OUTPUT / "_build" / "html"
        if run and lock.read() == run:  # another worker of this run has built it
            return ready
        if _pages_are_built(root):
            return ready
        pages = build_book(root)
        lock.truncate(0)
        lock.write(run or "")
        return pages


@cache
def _pages_are_built(root: Path) -> bool:
    """Whether `make` has built the pages, from what is there now."""
    from autograder.publishing.publish import OUTPUT

    return (root / OUTPUT / "_build" / "html").is_dir() and _nothing_to_make(
        root, "build/stamps/book"
    )


def _nothing_to_make(root: Path, target: str) -> bool:
    """Whether Make considers a target newer than everything it is made from."""
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    asked = ["make", "--question", target]
    done = subprocess.run(asked, cwd=root, env=alone, capture_output=True, check=False)
    return done.returncode == 0


class Pages(Mapping):
    """Pages by their paths, each parsed when somebody asks for it."""

    def __init__(self, html: Path):
        self.files = {
            path.relative_to(html).as_posix(): path
            for path in sorted(html.rglob("*.html"))
            if "_static" not in path.parts
        }
        self.parsed: dict[str, BeautifulSoup] = {}

    def __getitem__(self, name: str) -> "BeautifulSoup":
        from bs4 import BeautifulSoup

        if name not in self.parsed:
            self.parsed[name] = BeautifulSoup(self.files[name].read_bytes(), "html.parser")
        return self.parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@pytest.fixture(scope="session")
def pages(html: Path) -> Mapping[str, "BeautifulSoup"]:
    """Every page, parsed, by its path."""
    return Pages(html)


@pytest.fixture(scope="module")
def worker() -> Iterator["Sandbox"]:
    """A sandbox that a file's tests share."""
    from sandboxes import SMALL

    from autograder.sandbox.host import Sandbox

    with Sandbox(limits=SMALL) as shared:
        yield shared


# --- a course of one exercise, whose judge costs nothing: see `faults` ----------------------------


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from faults import tiny_release

    return tiny_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory, release: Path) -> Path:
    """A course in which nothing is graded, and whose gradebook is there: to copy."""
    from faults import SCORES, new_course

    from autograder.gradebook.writer import Writer

    course = new_course(tmp_path_factory.mktemp("template"), release, SCORES)
    with Writer(course, None, release) as one:
        one.register("tiny")
    return course


@pytest.fixture(scope="session")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, template: Path, release: Path
) -> tuple[dict, int]:
    """The outcome of an undisturbed run, and the number of its calls."""
    from faults import SCORES, Bomb, grade_quickly, outcome_of

    course = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(template, course)
    grade_quickly(course, release)  # first, so that what is made only once is there
    shutil.rmtree(course)
    shutil.copytree(template, course)
    with Bomb() as counted:
        grade_quickly(course, release)
    outcome = outcome_of(course)
    assert {name: (times, score) for name, (times, score, *_) in outcome.items()} == {
        name: (1, score) for name, score in SCORES.items()
    }
    return outcome, counted.count


@pytest.fixture
def course(tmp_path: Path, template: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "course"))
