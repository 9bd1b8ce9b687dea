"""Runs the chapters' notebooks side by side, and keeps the results where Sphinx looks for them.

Sphinx would run one notebook after the other while it reads the pages. Run beforehand, the longest
first, they take little longer than the longest; myst-nb finds the results in its cache. A chapter
that fails here is not kept: Sphinx runs it again, and says what is wrong and where.

    python -m autograder.publishing.chapter_runs [DIR]

TRUST BOUNDARY. Runs the book's own cells, with the rights of the person who builds the book.
"""

import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import ExecutionResult, single_nb_execution
from myst_nb.core.read import read_myst_markdown_notebook
from myst_parser.config.main import MdParserConfig
from nbformat import NotebookNode

from autograder.judge.dependencies import code_of_cells, digest_of
from autograder.publishing.bookindex import CHAPTER

EXERCISE = re.compile(r"^from solutions\.(\w+) import (\w+)$", re.MULTILINE)
CELL = re.compile(
    r"^```\{code-cell\}[^\n]*\n(?:---\n.*?\n---\n)?(?::[^\n]*\n)*(.*?)^```",
    re.MULTILINE | re.DOTALL,
)
MEASURED = re.compile(r"[\w.-]+\.json\b")  # what scripts have measured, and a page's cells read
MOST = 4  # at once; each takes about half a gigabyte


def code_of(root: Path, text: str) -> list[Path]:
    """The files whose change could change the results of the cells on a chapter's page."""
    named = (root / "benchmarks" / name for name in sorted({*MEASURED.findall(text)}))
    cells = "\n".join(match[1] for match in CELL.finditer(text))
    return [*code_of_cells(cells, chapters_run(text)), *(path for path in named if path.is_file())]


def chapters_run(text: str) -> set[str]:
    """The chapters whose references a page's cells run."""
    return {match[1] for match in EXERCISE.finditer(text)}


def with_code_digest(root: Path, text: str) -> str:
    """A page on which each exercise's cell bears a digest of all the code that the cells run.

    The cache looks at the cells alone, and must not mistake the run of an earlier reference for
    that of this one.
    """
    mark = digest_of(code_of(root, text))[:16] if chapters_run(text) else ""
    return EXERCISE.sub(lambda match: f"{match[0]}  # {mark}", text)


def read(root: Path, page: Path, config: dict) -> NotebookNode:
    """A chapter's notebook, cell by cell as Sphinx will see it."""
    syntax = MdParserConfig(enable_extensions=config["parse"]["myst_enable_extensions"])
    text = with_code_digest(root, page.read_text(encoding="utf-8"))
    return read_myst_markdown_notebook(text, syntax, add_source_map=True, path=page)


def run_chapters(root: Path, report: Callable[[str], object] = print) -> None:
    """Run the chapters whose cells, or the code that these run, have changed since they last ran.

    Those that say at their top that they take many `seconds` run first. `told` is given a line
    whenever one of them has ended.
    """
    root = root.resolve()
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    cache = get_cache(root / config["execute"]["cache"])
    waiting = {}
    for page in sorted((root / "book").glob("*.md"), reverse=True):
        if CHAPTER.fullmatch(page.stem):
            notebook = read(root, page, config)
            with suppress(KeyError):
                cache.match_cache_notebook(notebook)
                continue
            waiting[page] = notebook

    def run(page: Path) -> ExecutionResult:
        return single_nb_execution(
            waiting[page],
            str(page.parent),
            config["execute"]["timeout"],
            allow_errors=False,
            extra_arguments=["--log-level=ERROR"],  # its warnings differ each time
            coalesce_streams=True,  # or when a line is sent shows on the page
        )

    with ThreadPoolExecutor(min(MOST, len(os.sched_getaffinity(0)))) as pool:
        longest_first = sorted(waiting, key=lambda page: -waiting[page].metadata.get("seconds", 0))
        runs = {pool.submit(run, page): page for page in longest_first}
        for done in as_completed(runs):
            page = runs[done]
            try:
                result = done.result()
            except Exception as error:
                report(f"{page.stem} does not run: {type(error).__name__}")
                continue
            if result.err is not None:
                report(f"{page.stem} ends in an error")
                continue
            kept = CacheBundleIn(waiting[page], str(page), data={"execution_seconds": result.time})
            cache.cache_notebook_bundle(kept, check_validity=False, overwrite=True)
            report(f"{page.stem} has run, in {result.time:.0f} s")


if __name__ == "__main__":
    here = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (str(here), os.environ.get("PYTHONPATH")))
    )
    run_chapters(here, lambda line: print(line, flush=True))
