"""The page *Declaring exercises*: all that an author can call is on it, with what it does."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from bs4 import BeautifulSoup, Tag

from autograder import bank
from autograder.bank import Bank
from autograder.student import authoring

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "declaring_exercises.md"
CLASSES = (authoring.Declaration, authoring.Draw, authoring.Run, Bank)


def names() -> list[str]:
    """Every public name, as Sphinx writes it."""
    found = [f"{authoring.__name__}.{name}" for name in authoring.__all__]
    found += [f"{bank.__name__}.{name}" for name in ("Bank", "Edit", "cause")]
    for kind in CLASSES:
        room = bank if kind is Bank else authoring
        methods = [n for n, member in vars(kind).items() if inspect.isfunction(member)]
        found += [f"{room.__name__}.{kind.__name__}.{n}" for n in methods if not n.startswith("_")]
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> BeautifulSoup:
    """The page, built alone with the book's own settings; a warning is an error."""
    source = tmp_path_factory.mktemp("page")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]
    ours = ("default_role", "add_module_names", *(n for n in settings["config"] if "autodoc" in n))
    lines = [f"{name} = {settings['config'][name]!r}" for name in ours]
    lines += ["extensions = ['myst_parser', 'sphinx.ext.autodoc']", f"master_doc = {PAGE.stem!r}"]
    (source / "conf.py").write_text("\n".join(lines), encoding="utf-8")
    (source / PAGE.name).write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    build = [sys.executable, "-m", "sphinx", "-q", "-n", "-W", str(source), str(source / "html")]
    subprocess.run(build, check=True, cwd=ROOT)
    html = (source / "html" / f"{PAGE.stem}.html").read_text(encoding="utf-8")
    return BeautifulSoup(html, "html.parser")


@pytest.mark.parametrize("name", names())
def test_each_public_name_is_on_the_page_and_says_what_it_does(page, name):
    entry = page.find(id=name)
    assert isinstance(entry, Tag), f"{name} is not on the page"
    said = entry.find_next_sibling("dd")
    first = said.find("p", recursive=False) if isinstance(said, Tag) else None
    assert first is not None and first.get_text(strip=True), f"{name} says nothing"


def test_the_page_is_in_the_book():
    assert f"book/{PAGE.stem}" in (ROOT / "_toc.yml").read_text(encoding="utf-8")
