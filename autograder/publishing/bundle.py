"""What a student downloads: an archive of the notebooks and the student's side of `autograder`.

TRUST BOUNDARY. Everything in the archive becomes public. Only `student_package` and released
notebooks go in; the reference, the known mistakes and the judge never do.
"""

import gzip
import io
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import yaml

from autograder.publishing.bookindex import published_at
from autograder.sandbox.student_package import student_package
from autograder.student import course, versions
from autograder.student.course import chapters, contents, exercises_of
from autograder.student.expected import digest_kept, fixed_digest
from autograder.student.expected.fingerprints import same_runs
from autograder.student.limit import ALLOWED, WAITING

# What the checks were tried with; grading uses the pins. NumPy 1 draws other inputs.
_TRIED = {"numpy": ">=2.0,<2.5"}
Date = tuple[int, int, int, int, int, int]  # to the second
_DATE = re.compile(r"^date-released: (\d{4})-(\d\d)-(\d\d)$", re.MULTILINE)

_THERE = "What is there, and which limits hold: <{address}>\n"
_DRAFT = """\
**This is a draft.** The book is not published yet: links in the notebooks lead nowhere, and
exercises may still change.

"""


KINDS = (".zip", ".tar.gz", ".tgz")  # of archives, by the end of the name


def archive_name() -> str:
    return f"{contents().NAME}.zip"


def download() -> str:
    """The archive's address, relative to the book's pages."""
    return f"_downloads/{archive_name()}"


def bundle(root: Path, archive: Path | None = None, wanted: Sequence[str] | None = None) -> Path:
    """Pack the student's archive of the course at `root`; return its path.

    The archive is of the kind that its name says. `wanted` are chapters, by slug or by the name of
    the notebook; None means all. Raises `FileNotFoundError` if nothing has been released yet,
    `ValueError` for a name of another kind, for an unknown chapter, and if the exercises have
    changed since the expected values were computed.
    """
    archive = archive or root / "build" / archive_name()
    if not archive.name.endswith(KINDS):
        raise ValueError(f"{archive.name}: the archive's name must end in {' or '.join(KINDS)}")
    slugs = _slugs(root, wanted)
    for slug in slugs:
        for exercise in exercises_of(slug):
            if not same_runs(fixed_digest(exercise), digest_kept(slug, exercise)):
                raise ValueError(f"{exercise.name} has changed: run `autograder release` first")
    notebooks = [p for p in _released_notebooks(root) if wanted is None or _slug(p) in slugs]
    if not notebooks:
        raise FileNotFoundError("there are no notebooks: run `autograder release` first")
    archive.parent.mkdir(parents=True, exist_ok=True)
    others = set(chapters()) - set(slugs)
    parts = sorted(_contents(root, notebooks, others))
    files = {f"{contents().NAME}/{name}": data for name, data in parts}
    (_zip if archive.suffix == ".zip" else _tar)(archive, files, _release_date(root))
    return archive


def _zip(archive: Path, contents: dict[str, bytes], date: Date) -> None:
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, date)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(entry, data)


def _tar(archive: Path, contents: dict[str, bytes], date: Date) -> None:
    stamp = int(datetime(*date, tzinfo=UTC).timestamp())
    with (
        archive.open("wb") as stream,
        gzip.GzipFile("", "wb", fileobj=stream, mtime=stamp) as pressed,
        tarfile.open(fileobj=pressed, mode="w") as packed,
    ):
        for name, data in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(data), stamp, 0o644
            packed.addfile(entry, io.BytesIO(data))


def _slugs(root: Path, wanted: Sequence[str] | None) -> list[str]:
    """The slugs of the chapters to pack. Raises `ValueError` for an unknown one."""
    if wanted is None:
        return list(chapters())
    stems = {path.stem: _slug(path) for path in _released_notebooks(root)}
    slugs = [stems.get(name, name) for name in wanted]
    unknown = [name for name in slugs if name not in chapters()]
    if unknown:
        raise ValueError(f"no chapter {unknown[0]}; there are {', '.join(chapters())}")
    missing = [name for name in slugs if name not in stems.values()]
    if missing:
        raise ValueError(f"{missing[0]} is not released: run `autograder release {missing[0]}`")
    return slugs


def _released_notebooks(root: Path) -> list[Path]:
    return sorted((root / "notebooks").glob("*/*.ipynb"))


def _slug(notebook: Path) -> str:
    return notebook.stem.partition("_")[2]


def _contents(root: Path, notebooks: list[Path], others: set[str]) -> Iterator[tuple[str, bytes]]:
    """The files of the archive, without the exercises of the `others` among the chapters."""
    readme = "with_torch.md" if "torch" in contents().PACKAGES else "without_torch.md"
    from autograder.publishing.release_checks import nobodys_address  # it imports this module

    told = {
        "title": contents().TITLE,
        "first": notebooks[0].stem,
        "draft": _DRAFT if nobodys_address(root) else "",
        "there": _page_address(root),
        "limit": f"{ALLOWED:g}",
        "longer": f"{WAITING * ALLOWED:g}",
        "python": "{}.{}".format(*sys.version_info),
        "variables": course.variable("").rstrip("_"),
        "blocks": course.blocks(),
    }
    yield "README.md", _template(readme).format(**told, **_pins(root)).encode()
    # without torch's version: in Colab, its pin would fetch gigabytes that are there already
    packages = [name + _TRIED.get(name, "") for name in contents().PACKAGES]
    yield (
        "pyproject.toml",
        _template("pyproject.toml")
        .format(
            name=contents().NAME,
            dependencies=str(packages)[1:-1],
            package=course.package(),
        )
        .encode(),
    )
    yield "requirements.txt", _requirements(root).encode()
    if (root / "LICENSE").is_file():
        yield "LICENSE", (root / "LICENSE").read_bytes()
    for path in notebooks:
        yield str(path.relative_to(root)), path.read_bytes()
    for name, path in student_package().items():
        if path.parent.name not in others:
            yield name, path.read_bytes()
    yield f"autograder/student/{versions.FILE.name}", json.dumps(versions.versions_here()).encode()


def _template(name: str) -> str:
    return Path(__file__).with_name(f"bundle_{name}").read_text(encoding="utf-8")


def _page_address(root: Path) -> str:
    """Where a course has a page for students on the machine that grades them, if it has one."""
    if not (root / "book" / "what_runs.md").is_file():
        return ""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return _THERE.format(address=f"{published_at(root, config)}/book/what_runs.html")


def _requirements(root: Path) -> str:
    """The packages that a student needs, in ranges that were tried, and the package itself."""
    packages = [name + _TRIED.get(name, f"=={pin}") for name, pin in _pins(root).items()]
    return "\n".join(["-e .", *packages, "jupyterlab>=4", ""])  # it refuses a wrong Python first


def _pins(root: Path) -> dict[str, str]:
    """The versions for grading of the packages that a student needs: pinned, or else installed."""
    file = root / "requirements.txt"
    if not file.is_file():
        return {name: version(name) for name in contents().PACKAGES}
    lines = file.read_text(encoding="utf-8").splitlines()
    pairs = [line.strip().split("==") for line in lines if "==" in line]
    return {name: version for name, version in pairs if name in contents().PACKAGES}


def _release_date(root: Path) -> Date:
    """The date of the release for all files, so that packing again gives the same bytes."""
    if not (root / "CITATION.cff").is_file():
        return (2000, 1, 1, 0, 0, 0)
    found = _DATE.search((root / "CITATION.cff").read_text(encoding="utf-8"))
    if found is None:
        raise ValueError("CITATION.cff has no date-released")
    year, month, day = map(int, found.groups())
    return (year, month, day, 0, 0, 0)
