"""A class of made-up students, with the marks that each deserves.

The marks were worked out by hand from the exercises' declarations; grading the class and comparing
the marks tests the whole grader.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder.gradebook.classroom import ClassResult, Progress, grade
from autograder.gradebook.sample_notebooks import FULL, SLUG, submissions
from autograder.judge.judgement import GRADED, UNUSABLE

CELL_SECONDS, PROBE_SECONDS = 12.0, 6.0  # so that its endless loop does not cost minutes


# --- What each deserves ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Deserved:
    """The marks that a sample student deserves, the mistakes to be named, and the reasoning."""

    why: str
    marks: Mapping[str, float]
    mistakes: Mapping[str, str] = field(default_factory=dict)
    status: str = GRADED

    @property
    def score(self) -> float:
        return round(sum(self.marks.values()), 6)


NOTHING = dict.fromkeys(FULL, 0.0)
EXPECTED: dict[str, Deserved] = {
    "ada": Deserved("everything right", FULL),
    "ben": Deserved(
        "softmax without subtracting the maximum: NaN for ±10,000 (0.5) and for a row of −inf "
        "(0.25). The answers that call it are judged with the course's own, and are right.",
        FULL | {"softmax": 2.25},
        {"softmax": "max_not_subtracted"},
    ),
    "cleo": Deserved(
        "wrong in ways that nobody foresaw: epanechnikov squared (0.55), and a boxcar that turns "
        "float32 into float64 (0.2); the median of the squares (all of 3: dtype and inputs count "
        "only if the first aspect holds); predictions shifted by 0.01, of which only the gradients "
        "(0.5, and 0.25 with exclude_self) are right.",
        FULL | {"kernel_weights": 2.25, "leave_one_out_mse": 0.0, "KernelRegression": 0.75},
    ),
    "dan": Deserved("nothing written", NOTHING),
    "eve": Deserved(
        "a syntax error in softmax, which has nothing; the answers that call it are judged with "
        "the course's own, and are right.",
        FULL | {"softmax": 0.0},
    ),
    "finn": Deserved("attention_pool never ends; nothing calls it", FULL | {"attention_pool": 0.0}),
    "gus": Deserved(
        "leave_one_out_mse ends the process, and so does an added cell",
        FULL | {"leave_one_out_mse": 0.0},
    ),
    "hana": Deserved("warns on stderr; right all the same", FULL),
    "ivo": Deserved("check cells copied, an answer split in two; all right", FULL),
    "jun": Deserved("all check cells deleted; all right", FULL),
    "kim": Deserved(
        "an edited check cell that praises itself, over an empty attention_pool",
        FULL | {"attention_pool": 0.0},
    ),
    "leo": Deserved("helper cells, and softmax in a cell of its own; all right", FULL),
    "mia": Deserved("no notebook", NOTHING, status=UNUSABLE),
    "noor": Deserved("half a file", NOTHING, status=UNUSABLE),
    "otto": Deserved(
        "the first two exercises, under the file name of a second download",
        NOTHING | {"softmax": 3.0, "gaussian_scores": 2.0},
    ),
    "pia": Deserved("scripts everywhere, and a thousand points claimed; all right", FULL),
    "rosa": Deserved(
        "nadaraya_watson normalised over the queries (nothing: its rows and inputs count only with "
        "right predictions); the own point kept in leave_one_out_mse (nothing); exclude_self "
        "ignored: 1.0, and with it its gradients (0.25), the narrow kernels (0.25) and further "
        "calls (0.2).",
        FULL | {"nadaraya_watson": 0.0, "leave_one_out_mse": 0.0, "KernelRegression": 2.3},
        {
            "nadaraya_watson": "normalised_over_queries",
            "leave_one_out_mse": "own_point_kept",
        },
    ),
}  # fmt: skip


def make_sample_class(release_dir: Path, dest: Path) -> list[Path]:
    """Write the sample class under `dest`/submitted; return the students' folders.

    Files that are already up to date are left unchanged. Raises `FileNotFoundError` if the
    chapter is not released.
    """
    found = sorted(Path(release_dir).glob(f"*_{SLUG}/*_{SLUG}.ipynb"))
    if not found:
        raise FileNotFoundError(f"no released notebook of {SLUG} in {release_dir}")
    assignment = found[0].stem
    files = submissions(nbformat.read(found[0], as_version=4))
    places = []
    for name in EXPECTED:
        place = dest / "submitted" / name
        folder = place / assignment
        folder.mkdir(parents=True, exist_ok=True)
        title = f"{assignment} (1).ipynb" if name == "otto" else f"{assignment}.ipynb"
        path = folder / title
        data = files.get(name)
        if data is not None and not (path.is_file() and path.read_bytes() == data):
            path.write_bytes(data)
        places.append(place)
    strays = {p for p in (dest / "submitted").iterdir() if p.name not in EXPECTED}
    for stray in strays:
        shutil.rmtree(stray)
    return places


# --- Grading it -----------------------------------------------------------------------------------


def grade_sample(
    release_dir: Path,
    dest: Path,
    *,
    jobs: int | None = None,
    isolation: str = "bwrap",
    device: str = "cpu",
    progress: Progress | None = None,
) -> ClassResult:
    """Make the sample class in `dest` and grade it there.

    It starts afresh if graded cells have been added or removed since it was made: nbgrader's
    gradebook keeps the cells that its submissions have.
    """
    note, cells = dest / "cells.txt", _graded_cells(release_dir)
    if dest.is_dir() and not (note.is_file() and note.read_text(encoding="utf-8") == cells):
        shutil.rmtree(dest)
    make_sample_class(release_dir, dest)
    note.write_text(cells, encoding="utf-8")
    return grade(
        dest / "submitted",
        jobs=jobs,
        isolation=isolation,
        device=device,
        release=release_dir,
        cell_seconds=CELL_SECONDS,
        probe_seconds=PROBE_SECONDS,
        progress=progress,
    )


def _graded_cells(release_dir: Path) -> str:
    """The names of the cells that are graded, and their points, a line each."""
    found = [
        cell.metadata["nbgrader"]
        for path in sorted(Path(release_dir).glob(f"*_{SLUG}/*_{SLUG}.ipynb"))
        for cell in nbformat.read(path, as_version=4).cells
        if cell.metadata.get("nbgrader", {}).get("grade")
    ]
    return "".join(f"{cell['grade_id']} {cell['points']}\n" for cell in found)


def compare(result: ClassResult) -> dict[str, list[str]]:
    """By student, how the marks differ from those deserved; an empty list if they agree."""
    rows = {row.student: row for row in result.rows}
    told: dict[str, list[str]] = {}
    for name, deserved in EXPECTED.items():
        row = rows.get(name)
        if row is None:
            told[name] = ["was not graded"]
            continue
        told[name] = [] if row.status == deserved.status else [f"{row.status}: {row.reason}"]
        for exercise, points in deserved.marks.items():
            mark = row.marks.get(f"check_{exercise}")
            given = mark.score if mark else None
            if given is None or abs(given - points) > 1e-9:
                told[name].append(f"{exercise}: {given} instead of {points:g}")
            named = row.verdicts[exercise].mistake if exercise in row.verdicts else None
            wanted = deserved.mistakes.get(exercise)
            if wanted and named != wanted:
                told[name].append(f"{exercise}: named {named} instead of {wanted}")
    return told
