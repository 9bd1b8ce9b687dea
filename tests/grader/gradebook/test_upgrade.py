"""The documented upgrade, from one's own release on: `git pull` brings the next version."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "book" / "running_a_course.md").read_text(encoding="utf-8")
BLOCK = re.search(r"^## Upgrade$.*?^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
LINES = [line for line in BLOCK.splitlines() if line.startswith("git ")]
RELEASED = next((ROOT / "notebooks").glob("*_kernel_regression/*.ipynb")).relative_to(ROOT)
EXPECTED = Path(
    "attention_by_hand/expected/held.json"
)  # tracked, and written by `autograder release`


def git(folder: Path, *command: str) -> None:
    who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True)


def write(folder: Path, **texts: str) -> None:
    for path in (RELEASED, EXPECTED):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(f"{texts['of']} {path}", encoding="utf-8")


@pytest.fixture
def course(tmp_path) -> Path:
    """A clone in which a release has changed tracked files, as the next version does."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init", "--initial-branch=main")
    write(origin, of="this version")
    git(origin, "add", "--all")
    git(origin, "commit", "--message=this version")
    git(tmp_path, "clone", "origin", "course")
    write(origin, of="next version")
    git(origin, "commit", "--all", "--message=next version")
    write(tmp_path / "course", of="own address")
    return tmp_path / "course"


def test_a_pull_alone_would_abort(course):
    with pytest.raises(subprocess.CalledProcessError):
        git(course, "pull")


def test_the_pages_commands_bring_the_next_version(course):
    assert LINES[-1] == "git pull" and shutil.which("git")
    for line in LINES:
        git(course, *line.split()[1:])
    for path in (RELEASED, EXPECTED):
        assert (course / path).read_text(encoding="utf-8") == f"next version {path}"


def test_the_release_is_made_again_before_anything_is_graded():
    lines = BLOCK.splitlines()
    assert lines.index("autograder release kernel_regression") > lines.index("git pull")
    assert lines[-1] == "autograder grade submitted"
