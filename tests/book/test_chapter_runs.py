"""The chapters' notebooks run side by side, before Sphinx reads the pages."""

import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_cache import get_cache

from autograder.publishing import chapter_runs
from autograder.publishing.chapter_runs import code_of, run_chapters, with_code_digest
from autograder.student import course

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
execute: {cache: build/.jupyter_cache, timeout: 60}
parse: {myst_enable_extensions: [colon_fence, dollarmath]}
"""
PAGE = """---
kernelspec: {{display_name: Python 3, language: python, name: python3}}
file_format: mystnb
---

# A chapter

```{{code-cell}} ipython3
{}
```
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A book of two chapters, one of which ends in an error, and another page."""
    (tmp_path / "book").mkdir()
    (tmp_path / "_config.yml").write_text(CONFIG)
    cells = {"01_right": "print(6 * 7)", "02_wrong": "1 / 0", "appendix": "print('not a chapter')"}
    for name, cell in cells.items():
        (tmp_path / "book" / f"{name}.md").write_text(PAGE.format(cell))
    return tmp_path


def test_chapters_are_run_once_and_an_error_is_left_to_sphinx(root):
    told: list[str] = []
    run_chapters(root, told.append)
    assert sorted(line.partition(",")[0] for line in told) == [
        "01_right has run", "02_wrong ends in an error",
    ]  # fmt: skip
    cache = get_cache(root / "build" / ".jupyter_cache")
    (kept,) = cache.list_cache_records()
    (cell,) = cache.get_cache_bundle(kept.pk).nb.cells
    assert cell.outputs[0]["text"] == "42\n"
    (root / "book" / "02_wrong.md").unlink()
    told.clear()
    run_chapters(root, told.append)
    assert told == []
    (root / "book" / "01_right.md").write_text(PAGE.format("print(6 * 8)"))
    run_chapters(root, told.append)
    assert len(told) == 1


@pytest.mark.share(0)
def test_when_a_line_was_sent_does_not_show(root):
    """What comes in two pieces would be joined with another empty line."""
    slowly = "import time; print(1, flush=True); time.sleep(1); print(); print(2)"
    (root / "book" / "01_right.md").write_text(PAGE.format(slowly))
    run_chapters(root, lambda line: None)
    cache = get_cache(root / "build" / ".jupyter_cache")
    (kept,) = cache.list_cache_records()
    (cell,) = cache.get_cache_bundle(kept.pk).nb.cells
    assert [output["text"] for output in cell.outputs] == ["1\n\n2\n"]


def test_a_chapter_that_says_that_it_takes_longer_runs_first(root, monkeypatch):
    monkeypatch.setattr(chapter_runs, "MOST", 1)
    quick = PAGE.format("print(6 * 7)")
    (root / "book" / "01_right.md").write_text(quick.replace("---\n", "---\nseconds: 5\n", 1))
    for name in ("02_wrong", "03_quick"):
        (root / "book" / f"{name}.md").write_text(quick)
    told: list[str] = []
    run_chapters(root, told.append)
    assert told[0].startswith("01_right has run") and len(told) == 3


@pytest.mark.share(0)
def test_sphinx_takes_what_a_chapter_has_given(root):
    config = "title: A book\nonly_build_toc_files: true\n" + CONFIG.replace(
        "{cache: build/", f"{{execute_notebooks: cache, cache: {root}/build/"
    )
    (root / "_config.yml").write_text(config)
    (root / "_toc.yml").write_text("{format: jb-book, root: book/01_right}\n")
    (root / "book" / "01_right.md").write_text(
        PAGE.format("import os\nprint('process', os.getpid())")
    )
    run_chapters(root, lambda line: None)
    cache = get_cache(root / "build" / ".jupyter_cache")
    (kept,) = cache.list_cache_records()
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (cell,) = cache.get_cache_bundle(kept.pk).nb.cells
    page = root / "_build" / "html" / "book" / "01_right.html"
    assert cell.outputs[0]["text"].strip() in page.read_text(encoding="utf-8")


def test_a_chapter_runs_again_when_the_code_that_it_runs_has_changed(tmp_path, monkeypatch):
    text = "from solutions.masking import causal_mask\ncheck(causal_mask)\n"
    reference = tmp_path / "masking.py"
    reference.write_text("def causal_mask(): ...\n")
    monkeypatch.setattr(chapter_runs, "code_of", lambda root, text: [reference])
    before = with_code_digest(tmp_path, text)
    assert before != text and with_code_digest(tmp_path, text) == before
    reference.write_text("def causal_mask(): return 1\n")
    assert with_code_digest(tmp_path, text) != before


def test_a_chapter_runs_again_when_what_a_script_has_measured_for_it_has_changed(tmp_path):
    text = "from solutions.masking import causal_mask\nPath(FOLDER, 'captions.json').read_text()\n"
    for name in ("solutions/masking.py", "benchmarks/captions.json", "benchmarks/other.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("before")
    before = with_code_digest(tmp_path, text)
    (tmp_path / "benchmarks/other.json").write_text("after")
    assert with_code_digest(tmp_path, text) == before
    (tmp_path / "benchmarks/captions.json").write_text("after")
    assert with_code_digest(tmp_path, text) != before


def test_no_chapter_runs_again_because_what_check_compares_with_was_written_meanwhile():
    """`make` releases the notebooks, which writes it, while the chapters run."""
    for page in (ROOT / "book").glob("[0-9]*.md"):
        files = code_of(ROOT, page.read_text(encoding="utf-8"))
        assert files and not [
            path for path in files if path.is_relative_to(course.folder("expected"))
        ]
