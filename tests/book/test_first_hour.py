"""README's block for instructors, run as it stands: from the environment to a student's marks."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_running_a_course import course  # noqa: F401  (a fixture: a copy of the repository)

pytestmark = pytest.mark.share(0)  # takes long

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"^```bash\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_readmes_block_leads_to_the_marks_of_ones_own_student(course):  # noqa: F811
    environment = {**os.environ, "PYTHONPATH": str(course), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(
        ["bash", "-e"], input=BLOCK, cwd=course, env=environment, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"│ me +│ 01_kernel_regression │ +0/", ran.stdout)
    assert "me" in (course / "report.html").read_text(encoding="utf-8")
    assert (course / "feedback" / "me").is_dir()


def test_readme_names_what_a_term_needs():
    for command in ("collect", "return", "bundle", "marking"):
        assert f"`autograder {command}" in README


@pytest.mark.parametrize(
    ("index", "answers", "asked", "told"),
    [(None, 0, True, False), (None, 1, False, True), ("", 0, False, True)],
    ids=["it answers", "it does not", "it is not to be asked"],
)
def test_torch_for_the_cpu_comes_first_or_a_line_says_how_large_it_is(
    tmp_path, index, answers, asked, told
):
    """`make env` with a Python that only notes what it is to do, and has no torch."""
    log, python = tmp_path / "log", tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        f'#!/bin/sh\necho "$*" >> {log}\n'
        f'case "$*" in *"import torch") exit 1;; *urlopen*) exit {answers};; esac\n'
    )
    python.chmod(0o755)
    variables = [
        f"BIN={python.parent}",
        f"STAMPS={tmp_path / 'stamps'}",
        f"PYTHON={sys.executable}",
    ]
    variables += [] if index is None else [f"TORCH_INDEX={index}"]
    done = subprocess.run(
        ["make", "env", *variables], cwd=ROOT, capture_output=True, text=True, check=True
    )
    readme = ROOT / "autograder/publishing/bundle_with_torch.md"
    (own,) = re.findall(r"--index-url (\S+)", readme.read_text())
    pinned = re.search(r"^torch==.+$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)[0]
    did = log.read_text().splitlines()
    first = [n for n, line in enumerate(did) if f"--index-url {own} {pinned} --no-deps" in line]
    rest = [n for n, line in enumerate(did) if "-r requirements.txt" in line]
    assert bool(first) == asked and first < rest and len(rest) == 1
    assert any("urlopen" in line for line in did) == (index is None)
    assert ("6 GB" in done.stdout) == told
