"""Every command of the page *Running a course*, run in a copy of the repository.

The commands are read out of the page, block by block, and run by bash in their order, as in one
shell. Four things are other than on an instructor's machine, and all are here:

- `sudo` is left out, since a test leaves the system alone: there, the packages must be those that
  the Makefile installs, or Python's own;
- the environment is the one that the tests run in, so that `make env` finds it made;
- `jupyter lab`, which waits for a person, is stopped when formgrader has shown the submissions;
- ports and the name of the database server are replaced by those of servers that the test starts.
"""

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
import pytest
from lms_archives import MOODLE_HEAD, archive, moodle, moodle_row, read_table, table
from servers import postgres

from solutions.sample_class import EXPECTED
from solutions.sample_class.notebooks import submissions

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "running_a_course.md").read_text(encoding="utf-8")
NAME = "01_kernel_regression"
BLOCKS = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines()]
LAB = "jupyter lab\n"
MAY_FAIL = "autograder judge"  # its exit status says that not all points were earned
STUDENTS = (
    "id,first_name,last_name,email\nada,Ada,King,ada@example.org\nben,Ben,Day,b@example.org\n"
)
NEWS = "What a later version says."


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def course(tmp_path_factory) -> Path:
    """A clone of the repository as it is, of which there is a later version; with the environment.

    And what an instructor has from elsewhere: a list of students, an archive.
    """
    course = tmp_path_factory.mktemp("instructor") / "course"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (course / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, course / name)
    put_under_git(course, course.parent / "origin.git")
    (course / ".venv").symlink_to(sys.prefix)
    (course / "build" / "stamps").mkdir(parents=True)
    (course / "build" / "stamps" / "env").touch()
    (course / "students.csv").write_text(STUDENTS)
    release = nbformat.read(ROOT / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)
    files, downloaded = submissions(release), course / "downloaded"
    downloaded.mkdir()
    names = {"ada": "Ada King", "ben": "Ben Day"}
    archive(
        downloaded / "class.zip",
        {moodle(name, n): files[student] for n, (student, name) in enumerate(names.items(), 7)},
    )
    points = f"{sum(EXPECTED['ada'].marks.values()) + 4:g}"  # and two written questions
    rows = [moodle_row(n, name, "", "-", points) for n, name in enumerate(names.values(), 7)]
    table(downloaded / "worksheet.csv", [MOODLE_HEAD, *rows])
    return course


def put_under_git(course: Path, origin: Path) -> None:
    """Make it a clone of `origin`, which is one commit ahead."""

    def git(*command: str) -> None:
        who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
        subprocess.run(["git", *who, *command], cwd=course, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--message=this version")
    with (course / "CHANGELOG.md").open("a", encoding="utf-8") as changelog:
        changelog.write(NEWS + "\n")
    with (course / "notebooks" / NAME / f"{NAME}.ipynb").open("a", encoding="utf-8") as released:
        released.write("\n")  # where the instructor's own release has another address
    git("commit", "--all", "--message=the next version")
    git("clone", "--bare", str(course), str(origin))
    git("reset", "--hard", "HEAD~1")
    git("remote", "add", "origin", str(origin))
    git("fetch", "origin")
    git("branch", "--set-upstream-to=origin/main")


@pytest.fixture(scope="module")
def said(course, tmp_path_factory) -> dict[str, str]:
    """What each block's commands said, by the block; all of them have been run."""
    environment = os.environ | {"PYTHONPATH": str(course), "OMP_NUM_THREADS": "1"}
    for name in ("AUTOGRADER_DB", "MAKEFLAGS", "MAKELEVEL"):
        environment.pop(name, None)
    told, port, before = {}, str(free_port()), ""
    with postgres() as url:
        for block in BLOCKS:
            lines = [line for line in block.splitlines() if not line.startswith("sudo ")]
            script = "\n".join(lines).replace("8786", port)
            script = script.replace("postgresql://grader@db.example/course", f"'{url}'")
            script = re.sub(rf"^({MAY_FAIL}.*)$", r"\1 || [ $? = 1 ]", script, flags=re.MULTILINE)
            if block == LAB:
                with jupyter(before + script, course, environment, tmp_path_factory) as get:
                    told[block] = get(f"/formgrader/api/submissions/{NAME}")
            else:
                told[block] = run(before + script, course, environment)
            kept = re.findall(r"^(?:export|source) .*$", script, re.MULTILINE)  # one shell
            before += "".join(line + "\n" for line in kept)
    return told


def bash(script: str, folder: Path, environment: dict[str, str]) -> subprocess.Popen:
    with (folder / "build" / "said").open("w") as stream:
        return subprocess.Popen(
            ["bash", "-eu", "-o", "pipefail", "-c", script],
            cwd=folder, env=environment, stdout=stream, stderr=stream, start_new_session=True,
        )  # fmt: skip


def run(script: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a script, and end what it left in the background."""
    process = bash(script, folder, environment)
    try:
        status = process.wait(timeout=600)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    said = (folder / "build" / "said").read_text()
    assert status == 0, f"{script}\n{said[-3000:]}"
    return said


@contextmanager
def jupyter(
    script: str, folder: Path, environment: dict[str, str], temporary: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """A Jupyter server that a script starts; gives a function that fetches its pages."""
    home, port = temporary.mktemp("jupyter"), free_port()
    server = {"port": port, "port_retries": 0, "ip": "127.0.0.1", "allow_root": True}
    config = {"ServerApp": server, "IdentityProvider": {"token": "secret"}}
    (home / "jupyter_server_config.json").write_text(json.dumps(config))
    own = {"JUPYTER_CONFIG_DIR": str(home), "JUPYTER_RUNTIME_DIR": str(home), "BROWSER": "true"}
    process = bash(script, folder, environment | own)

    def get(path: str) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
        request.add_header("Authorization", "token secret")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    try:
        for _ in range(480):
            try:
                get("/api")
                break
            except urllib.error.URLError:
                assert process.poll() is None, (folder / "build" / "said").read_text()
                time.sleep(0.25)
        yield get
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.share(0)
def test_every_command_of_the_page_is_run_but_for_sudo(said):
    sample = len(re.findall(r"^```toml$", PAGE, re.MULTILINE))  # see test_course_file
    assert PAGE.count("```") == 2 * (len(BLOCKS) + sample)  # no block of another kind
    assert [*said] == BLOCKS and len(LINES) >= 30
    (left_out,) = [line for line in LINES if line.startswith("sudo ")]
    _, program, command, *packages = left_out.split()
    installs = (ROOT / "Makefile").read_text()
    assert (program, command) == ("apt-get", "install") and shutil.which(program)
    assert packages and all(package in installs or package == "make" for package in packages)


def test_the_page_leads_from_an_empty_machine_to_marks():
    steps = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert steps == [
        "The common case", "Install", "Release", "Collect", "Grade", "Look at the class",
        "Review by hand", "Late work", "Feedback", "Export", "Many machines", "Back up", "Upgrade",
    ]  # fmt: skip
    programs = "release bundle collect grade judge report marking return"
    for program in programs.split():
        assert any(line.startswith(f"autograder {program}") for line in LINES)


def test_the_common_case_comes_first_is_short_and_has_the_commands_that_are_run():
    first = PAGE.partition("## Install")[0]
    case = first[first.index("## The common case") :]
    commands = re.findall(r"`((?:make|source|printf|autograder|nbgrader|jupyter) [^`]+)`", case)
    assert len(first.split()) <= 400 and len(commands) >= 10 and {*commands} <= {*LINES}
    for program in ("release", "bundle", "collect", "grade", "report", "marking", "return"):
        assert any(command.startswith(f"autograder {program} ") for command in commands)


@pytest.mark.share(0)
def test_formgrader_shows_what_was_graded(said):
    listed = json.loads(said[LAB])
    assert {row["student"]: row["score"] for row in listed} == {
        name: EXPECTED[name].score for name in ("ada", "ben")
    }


@pytest.mark.share(0)
def test_an_upgrade_brings_the_later_version_and_leaves_the_class_out_of_git(course, said):
    assert (course / "CHANGELOG.md").read_text(encoding="utf-8").endswith(NEWS + "\n")
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=course, capture_output=True, text=True, check=True
    ).stdout
    new = [line for line in status.splitlines() if line.startswith("??")]
    assert new == []
    released = (course / "notebooks" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
    assert "https://attention.university.edu" in released


@pytest.mark.share(0)
def test_the_marks_arrive_where_the_page_says(course, said):
    assert all(
        (course / "submitted" / s / NAME / f"{NAME}.ipynb").is_file() for s in ("ada", "ben")
    )
    for exported in ("grades.csv", "build/grades-of-the-server.csv"):
        with (course / exported).open(newline="", encoding="utf-8") as stream:
            rows = {r["student_id"]: r for r in csv.DictReader(stream) if r["assignment"] == NAME}
        assert {name: float(row["score"]) for name, row in rows.items()} == {
            name: EXPECTED[name].score for name in ("ada", "ben")
        }
    with (course / "grades.csv").open(newline="", encoding="utf-8") as stream:
        assert "Ada" in {row["first_name"] for row in csv.DictReader(stream)}
    head, *rows = read_table(course / "returned" / NAME / "grades.csv")
    assert {row[1]: float(row[head.index("Grade")]) for row in rows} == {
        "Ada King": EXPECTED["ada"].score, "Ben Day": EXPECTED["ben"].score
    }  # fmt: skip
    result = json.loads((course / "build" / "result.json").read_text())
    assert all(row["unchanged"] for row in result["submissions"])
    assert "ben" in (course / "report.html").read_text(encoding="utf-8")
    with (course / "items.csv").open(newline="", encoding="utf-8") as stream:
        items = {row["item"]: row for row in csv.DictReader(stream)}
    assert items["softmax"]["full"] == items["softmax"]["partial"] == "1"
    marking = (course / "marking.html").read_text(encoding="utf-8")
    assert "Ada King" in marking and "No model answer" not in marking
    assert (course / "build" / "students.tar.gz").stat().st_size > 10_000


@pytest.mark.share(0)
def test_the_log_tells_what_happened(said):
    (block,) = [block for block in BLOCKS if "cat logs/ada" in block]
    assert re.search(r"graded on \S+\n    graded: 21.5 of 25.5 points", said[block])


@pytest.mark.share(0)
def test_backups_hold_what_the_page_says(course, said):
    backup = course / "build" / "backup"
    assert (backup / "gradebook.db").read_bytes()[:15] == b"SQLite format 3"
    assert "autograder_graded" in (backup / "gradebook.sql").read_text(encoding="utf-8")
    listed = subprocess.run(
        ["tar", "-tzf", backup / "files.tar.gz"], capture_output=True, text=True, check=True
    ).stdout
    for name in ("submitted/ada", "autograded/ada", "feedback/ada", "logs/ada"):
        assert name in listed
    assert ".autograder-secret" in listed


@pytest.mark.share(0)
def test_nothing_is_graded_twice_by_following_the_page(course, said):
    """Neither in the file's gradebook nor in the server's, however often `grade` is called."""
    log = (course / "logs" / "ada" / f"{NAME}.log").read_text(encoding="utf-8")
    assert log.count("graded on") == 2  # once in each
