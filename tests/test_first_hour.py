"""README's block for instructors, run as it stands: from the environment to a student's marks."""

import os
import re
import subprocess
from pathlib import Path

from test_running_a_course import course  # noqa: F401  (a fixture: a copy of the repository)

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
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
