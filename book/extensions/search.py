"""Search by passage: Pagefind's index of the finished pages, section by section.

Pagefind (MIT licence) reads the articles as they are published, and so can give away nothing that
they do not show. Its files go to `pagefind/`; `static/search.js` lists what it finds.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# Pagefind takes a heading with an id for the beginning of a part; Sphinx gives the section the id.
SECTION = re.compile(r'<section id="([^"]+)"[^>]*>((?:\s*<span id="[^"]*"></span>)*)\s*<h([1-6])>')
LEFT_OUT = (
    ".headerlink, .prev-next-footer, .page-foot, .glance, .hints, .fold-line, .exercise-done, "
    ".progress-slot, script, template, [data-part=controls]"
)
NEEDED = re.compile(
    r"fragment|index|pagefind(-worker)?\.js|pagefind-entry\.json|.*\.pf_meta|wasm\.en\..*"
)


# A term of the glossary is found as a passage, too.
TERM = re.compile(r'<dt id="(term-[^"]+)">(.*?)</dt>', re.DOTALL)

OPTIONS = {
    "root-selector": "article",
    "exclude-selectors": LEFT_OUT,
    "force-language": "en",
    "include-characters": "_",  # causal_mask is one word
}


def _index(pages: dict[str, str], folder: Path) -> None:
    """Write the index of some pages, by their paths, to a folder. Raises `ExtensionError`."""
    command = [sys.executable, "-m", "pagefind", "--output-path", str(folder)]
    command += [part for name, value in OPTIONS.items() for part in (f"--{name}", value)]
    with tempfile.TemporaryDirectory() as site:
        for url, page in pages.items():
            path = Path(site, url)
            path.parent.mkdir(parents=True, exist_ok=True)
            told = TERM.sub(r'<h3 id="\1">\2</h3>', page)
            path.write_text(SECTION.sub(r'<section>\2<h\3 id="\1">', told), encoding="utf-8")
        done = subprocess.run(
            [*command, "--site", site], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise ExtensionError(f"the pages could not be indexed:\n{done.stdout}{done.stderr}")


def finish(app: Sphinx, error: Exception | None) -> None:
    """Index all pages but the search page; runs when they are finished."""
    if error is not None or app.builder.format != "html":
        return
    output = Path(app.outdir)
    folder = output / "pagefind"
    shutil.rmtree(folder, ignore_errors=True)
    pages = {
        path.relative_to(output).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(output.rglob("*.html"))
        if "_static" not in path.parts and path.stem not in ("search", "genindex")
    }
    _index({url: page for url, page in pages.items() if "<article" in page}, folder)
    for path in folder.iterdir():
        if not NEEDED.fullmatch(path.name):
            path.unlink()


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Load our script on the search page."""
    if pagename == "search":
        app.add_js_file("search.js", type="module")


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_script)
    app.connect("build-finished", finish, priority=990)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
