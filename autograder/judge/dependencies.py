"""Which files affect what is computed, followed from import to import.

What is imported by a name that is made up is added by hand: a chapter's exercises, its bank and the
blocks. What is imported beside what is used, as all of `autograder` is beside `autograder.bank`,
does not count.

TRUST BOUNDARY. Reads our own files and the course's, and runs none of them.
"""

import ast
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path

import autograder
from autograder.student import course

GRADER = Path(autograder.__file__).resolve().parent
_BY_NAME = re.compile(r'import_module\("([\w.]+)"\)')
_IMPORT = re.compile(
    r"^[ \t]*+((?:from[ \t]++[\w.]++[ \t]++)?import[ \t]++(?:\([^()]*+\)|[^\n(]++))", re.MULTILINE
)
JUDGING = ("autograder.judge.job", "autograder.judge.judge_file", "autograder.sandbox.warm")
_DATA = (".bin", ".json", ".txt")
_WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef
EXPECTING = ("autograder.publishing.expected_values", "autograder.publishing.path_values")


def imports_of(source: str) -> set[str]:
    """The modules, or names in modules, that a text in Python imports, wherever in it.

    A line of a string that reads as an import counts, too: to parse whole files takes longer than
    to judge a submission.
    """
    found = {*_BY_NAME.findall(source)}
    for text in _IMPORT.findall(source):
        with suppress(SyntaxError):  # a sentence that begins like an import
            for node in ast.parse(text).body:
                if isinstance(node, ast.Import):
                    found |= {alias.name for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def code_that_judges(slugs: Iterable[str]) -> list[Path]:
    """The files that decide about the marks of some chapters."""
    return _files({*JUDGING, *_of_chapters(slugs)})


def code_of_expected_values(slugs: Iterable[str]) -> list[Path]:
    """The files that decide what `check` compares with in some chapters."""
    return _files({*EXPECTING, *_of_chapters(slugs)})


def _of_chapters(slugs: Iterable[str]) -> set[str]:
    ours = course.package()
    parts = [f"{ours}.course", f"{ours}.exercises.bugs", course.blocks()]
    for slug in slugs:
        parts += f"{ours}.exercises.{slug}", f"solutions.{slug}", f"solutions.mistakes.{slug}"
    return {name for part in parts for name in _inside(part)}


def digest_of(files: Iterable[Path], read: Callable[[Path], bytes] = Path.read_bytes) -> str:
    """A digest of files, or of what is read of them, and their names."""
    whole = hashlib.sha256()
    for path in files:
        data = read(path) if path.is_file() else b""
        whole.update(f"{path.parent.name}/{path.name} {len(data)}\0".encode() + data)
    return whole.hexdigest()


def without_docstrings(path: Path) -> bytes:
    """What a file holds; a module without its docstrings, which compute nothing."""
    data = path.read_bytes()
    return _code_alone(data) if path.suffix == ".py" else data


@lru_cache(maxsize=1024)
def _code_alone(source: bytes) -> bytes:
    lines, told = source.split(b"\n"), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            first, end = node.body[0], node.body[0].end_lineno or 0
            around = (
                lines[first.lineno - 1][: first.col_offset],
                lines[end - 1][first.end_col_offset :],
            )
            if not b"".join(around).strip():
                told.update(range(first.lineno - 1, end))
    return b"\n".join(line for number, line in enumerate(lines) if number not in told)


def code_of_cells(cells: str, slugs: Collection[str] = ()) -> list[Path]:
    """The files whose change could change what cells compute that run the references of `slugs`.

    What `check` compares with is not among them: it comes from the references, so it changes only
    if they do.
    """
    parts = [course.blocks()] if slugs else []  # what a check hands out
    for slug in slugs:
        parts += f"{course.package()}.exercises.{slug}", f"solutions.{slug}"
    return _files({*imports_of(cells), *(name for part in parts for name in _inside(part))})


def _files(roots: Iterable[str]) -> list[Path]:
    """The files of modules and of all that they import of ours, with the data beside them."""
    known, found, todo = _modules(), set[str](), [*roots]
    while todo:
        for name in _modules_of(todo.pop(), known) - found:
            found.add(name)
            todo += imports_of(known[name].read_text(encoding="utf-8"))
    files = {known[name] for name in found}
    return sorted(files | {data for path in files for data in _data_of(path)})


def _modules_of(name: str, known: dict[str, Path]) -> set[str]:
    """The modules of ours that an import of a module, or of a name in one, runs."""
    parts = name.split(".")
    above = {".".join(parts[:i]) for i in range(2, len(parts) + 1)}
    direct = {name, name.rpartition(".")[0]} - ({parts[0]} if name in known else set())
    return (above | direct) & known.keys()


def _inside(name: str) -> Iterator[str]:
    return (m for m in _modules() if name and f"{m}.".startswith(f"{name}."))


@cache
def _modules() -> dict[str, Path]:
    """All modules of the grader, of the course's package and of its `solutions`, by name."""
    found = {}
    for folder in (GRADER, course.folder(), course.root() / "solutions"):
        for path in folder.rglob("*.py"):
            inside = path.relative_to(folder.parent).with_suffix("")
            found[".".join(inside.parts).removesuffix(".__init__")] = path
    return found


def _data_of(path: Path) -> list[Path]:
    """The data that a module reads: those of its own name, and a package's of the name `shared`."""
    stems = {path.stem, "shared" if path.stem == "__init__" else path.stem}
    return [p for p in path.parent.iterdir() if p.stem in stems and p.suffix in _DATA]
