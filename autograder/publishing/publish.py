"""Builds the book's pages: the same as `jupyter-book build`, quiet unless something is wrong."""

import shutil
import subprocess
import sys
from pathlib import Path

OUTPUT = Path("build/book")


def build_book(root: Path, *, strict: bool = True) -> Path:
    """Build the pages of the book at `root`; return the folder that holds them.

    With `strict`, a warning or a reference that leads nowhere is an error. Raises `RuntimeError`
    with what Sphinx said.
    """
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "."]
    command += ["--path-output", str(OUTPUT), "--quiet"]
    command += ["-W", "-n", "--keep-going"] if strict else []
    html = root / OUTPUT / "_build" / "html"
    shutil.rmtree(html / "reports", ignore_errors=True)  # those of earlier builds
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        # Sphinx would not read a page again that it has only warned of, and so forget the warning
        shutil.rmtree(root / OUTPUT / "_build" / ".doctrees", ignore_errors=True)
        reports = [path.read_text(encoding="utf-8") for path in html.glob("reports/**/*.err.log")]
        said = "\n".join([done.stderr or done.stdout, *reports])
        raise RuntimeError(f"the book does not build:\n{said}")
    return html
