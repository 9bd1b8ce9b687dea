"""Where there is a CUDA device, the judge can use it."""

from pathlib import Path

import pytest

from autograder.exercises import chapters
from autograder.grader.files import judge_file

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.gpu
@pytest.mark.parametrize("slug", chapters())
def test_the_references_earn_full_marks_on_a_gpu(slug):
    result = judge_file(ROOT / "solutions" / f"{slug}.py", seed=b"a seed", device="cuda")
    assert result["device"] == "cuda"
    assert result["score"] == result["points"] > 0
