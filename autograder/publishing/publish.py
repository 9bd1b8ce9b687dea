"""Builds the book's pages like `jupyter-book build`, but is silent unless something is wrong."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

OUTPUT = Path("build/book")


def build_book(
    root: Path,
    *,
    strict: bool = True,
    run: bool = True,
    report: Callable[[str], object] = lambda line: None,
) -> Path:
    """Build the pages of the book at `root`; return the folder that holds them.

    With `strict`, a warning or a broken reference is an error. With `run`, chapters whose results
    are not at hand are run side by side before Sphinx starts, which would run one after the other;
    `told` is given a line whenever one has ended. Raises `RuntimeError` with Sphinx's messages.
    """
    if run:
        beforehand = [sys.executable, "-m", "autograder.publishing.chapter_runs", str(root)]
        with subprocess.Popen(beforehand, cwd=root, stdout=subprocess.PIPE, text=True) as running:
            for line in running.stdout or ():
                report(line.rstrip())
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "."]
    command += ["--path-output", str(OUTPUT), "--quiet"]
    command += ["-W", "-n", "--keep-going"] if strict else []
    html = root / OUTPUT / "_build" / "html"
    shutil.rmtree(html / "reports", ignore_errors=True)  # those of earlier builds
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        # Sphinx would not re-read a page that gave only a warning, and so would lose the warning
        shutil.rmtree(root / OUTPUT / "_build" / ".doctrees", ignore_errors=True)
        reports = [path.read_text(encoding="utf-8") for path in html.glob("reports/**/*.err.log")]
        said = "\n".join([done.stderr or done.stdout, *reports])
        raise RuntimeError(f"the book does not build:\n{said}")
    return html
