"""Odd folders of one student, each made of an ordinary one.

Each maker is given the course and the student. `TIMES` makes a submission whose time is not known,
`BAD` one that cannot be graded, `SKIPPED` something that is passed over and told, `FINE` what looks
odd and is graded as usual; `AFTER` changes, once it is graded, what the grader has made of it.
"""

import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

from faults import TINY

Maker = Callable[[Path, str], object]


def folder(course: Path, student: str) -> Path:
    return course / "submitted" / student / TINY


def file(course: Path, student: str) -> Path:
    return folder(course, student) / f"{TINY}.ipynb"


# --- what may lie in the place of a file ----------------------------------------------------------


def written(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def linked(to: str) -> Callable[[Path], object]:
    return lambda path: path.symlink_to(to)


def listening(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def large(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(10**9)


def forbidden(path: Path) -> None:
    path.write_bytes(b"2030-03-01 12:00:00 UTC")
    path.chmod(0)


PLACED: dict[str, Callable[[Path], object]] = {
    "empty": written(b""),
    "zeros": written(bytes(50)),
    "binary": written(bytes(range(256))),
    "half_of_utf16": written("2030-03-01 12:00:00 UTC".encode("utf-16")[:-1]),
    "latin": written("März, 12 Uhr".encode("latin-1")),
    "large": large,
    "forbidden": forbidden,
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": listening,
    "link_to_a_file": linked("/etc/hostname"),
    "link_to_a_device": linked("/dev/zero"),
    "link_to_nothing": linked("nothing"),
    "link_to_itself": linked("timestamp.txt"),
    "link_too_long": linked("x" * 4000),
}


def in_place_of(path_of: Callable[[Path, str], Path], make: Callable[[Path], object]) -> Maker:
    def maker(course: Path, student: str) -> None:
        path = path_of(course, student)
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)

    return maker


# --- times ----------------------------------------------------------------------------------------


def stamp(course: Path, student: str) -> Path:
    return folder(course, student) / "timestamp.txt"


SAID = {
    "first_year": "0001-01-01 00:00:00 UTC",
    "last_year": "9999-12-31 23:59:59 UTC",
    "over_the_last": "9999-12-31 23:59:59 -2359",
    "under_the_first": "0001-01-01 00:00:00 Asia/Tokyo",
    "year_0": "0000-00-00 00:00:00 UTC",
    "no_clock": "1970-01-01 00:00:00 UTC",
    "minus_one": "-1",
    "one": "1",
    "nan": "NaN",
    "infinite": "1e400",
    "digits": "9" * 90,
    "epoch": "1898596800",
    "a_year": "2030",
    "a_day": "2030-03-01",
    "a_clock": "10:15",
    "a_clock_and_a_zone": "10:15 AM UTC",
    "a_weekday": "Monday 12:00:00 UTC",
    "a_day_without_year": "3 March 12:00",
    "two_days_in_one": "03/04/2030 12:00",
    "no_such_day": "2030-02-30 12:00:00 UTC",
    "no_such_zone": "2030-03-01 12:00:00 Nowhere/Land",
    "zone_by_a_word": "2030-03-01T12:00:00 CEST",
    "zone_as_a_file": "2030-03-01 12:00:00 /etc/passwd",
    "zone_in_seconds": "2030-03-01 12:00:00 +0100",
    "zone_without_end": "2030-03-01 12:00:00 " + "9" * 60,
    "offset_of_days": "2030-03-01T12:00:00+99:99",
    "two_times": "2030-03-01 12:00:00 UTC\n2030-03-02 12:00:00 UTC",
    "a_word": "tomorrow",
    "zero_byte": "2030-03-01 12:00\0:00 UTC",
    "escape": "\x1b[2J2030-03-01 12:00:00 UTC",
    "backwards": "\u202e2030-03-01 12:00:00 UTC",
    "a_table": '{"time": "2030-03-01 12:00:00 UTC"}',
}
TIMES = {f"time_{name}": in_place_of(stamp, written(text.encode())) for name, text in SAID.items()}
TIMES |= {f"time_{name}": in_place_of(stamp, make) for name, make in PLACED.items()}

# --- notebooks and their folders ------------------------------------------------------------------

TEXTS = {
    "null": b"null",
    "number": b"1e999",
    "deep": b"[" * 200_000,
    "zeros_inside": b'{"nbformat": 4, \0 "cells": []}',
    "format_of_digits": b'{"nbformat": ' + b"9" * 5000 + b', "cells": []}',
    "format_two": b'{"nbformat": 2, "worksheets": []}',
    "cells_are_none": b'{"nbformat": 4, "cells": null}',
    "half_of_utf16": '{"nbformat": 4, "cells": []}'.encode("utf-16")[:-1],
}
PLACES = {name: make for name, make in PLACED.items() if name != "link_to_itself"}
BAD = {f"notebook_{name}": in_place_of(file, written(text)) for name, text in TEXTS.items()}
BAD |= {f"notebook_{name}": in_place_of(file, make) for name, make in PLACES.items()}
BAD |= {f"folder_{name}": in_place_of(folder, make) for name, make in PLACES.items()
        if name != "folder"}  # fmt: skip
BAD["folder_link_to_another"] = in_place_of(folder, linked(f"../ann/{TINY}"))
BAD["folder_link_to_itself"] = in_place_of(folder, linked(TINY))


def bad(make: Maker) -> Maker:
    BAD[make.__name__] = make
    return make


@bad
def folder_not_to_be_read(course: Path, student: str) -> None:
    folder(course, student).chmod(0o000)


@bad
def folder_not_to_be_entered(course: Path, student: str) -> None:
    folder(course, student).chmod(0o600)


@bad
def notebooks_by_the_thousand(course: Path, student: str) -> None:
    """Each of 20 MB that take no place."""
    file(course, student).unlink()
    for number in range(2000):
        with (folder(course, student) / f"{number}.ipynb").open("wb") as stream:
            stream.truncate(20_000_000)


@bad
def notebook_under_an_odd_name(course: Path, student: str) -> None:
    file(course, student).rename(folder(course, student) / os.fsdecode(b"\xff\n.ipynb"))
    (folder(course, student) / f"{TINY.upper()}.ipynb").write_bytes(b"{}")


# --- what is passed over, and what is fine --------------------------------------------------------

SKIPPED: dict[str, Maker] = {}


def renamed(name: bytes | str) -> Maker:
    def maker(course: Path, student: str) -> None:
        place = folder(course, student).parent
        place.rename(place.with_name(os.fsdecode(name)))

    return maker


NO_NAMES = {
    "newline": "a\nb", "escape": "a\x1b[31mb", "backwards": "a\u202eb", "no_utf8": b"\xff\xfe",
    "half_a_surrogate": b"\xed\xa0\x80", "long": "x" * 255, "stars": "a*b?", "markup": "<b>a",
    "at_home": "~root", "blank": " a ",
}  # fmt: skip
SKIPPED |= {f"name_{key}": renamed(name) for key, name in NO_NAMES.items()}


def skipped(make: Maker) -> Maker:
    SKIPPED[make.__name__] = make
    return make


@skipped
def place_is_a_file(course: Path, student: str) -> None:
    shutil.rmtree(folder(course, student).parent)
    folder(course, student).parent.write_bytes(b"x")


@skipped
def place_is_a_link(course: Path, student: str) -> None:
    shutil.rmtree(folder(course, student).parent)
    folder(course, student).parent.symlink_to("ann")


@skipped
def place_is_a_link_to_itself(course: Path, student: str) -> None:
    shutil.rmtree(folder(course, student).parent)
    folder(course, student).parent.symlink_to(student)


@skipped
def place_is_a_pipe(course: Path, student: str) -> None:
    shutil.rmtree(folder(course, student).parent)
    os.mkfifo(folder(course, student).parent)


@skipped
def place_not_to_be_read(course: Path, student: str) -> None:
    folder(course, student).parent.chmod(0o000)


@skipped
def place_is_empty(course: Path, student: str) -> None:
    shutil.rmtree(folder(course, student))


@skipped
def assignment_in_capitals(course: Path, student: str) -> None:
    folder(course, student).rename(folder(course, student).with_name(TINY.upper()))


FINE: dict[str, Maker] = {}


def fine(make: Maker) -> Maker:
    FINE[make.__name__] = make
    return make


@fine
def files_by_the_thousand(course: Path, student: str) -> None:
    for number in range(20_000):
        os.mknod(folder(course, student) / f"{number}.txt")


@fine
def odd_names(course: Path, student: str) -> None:
    for name in (b"-rf", b"a\nb", b"\xff\xfe", b"..%2f", b"x" * 255, b"*", b"\xe2\x80\xaegnp"):
        place = folder(course, student) / os.fsdecode(name)
        place.mkdir()
        (place / ".ipynb").touch()


@fine
def long_before(course: Path, student: str) -> None:
    for path in (file(course, student), folder(course, student)):
        os.utime(path, (-(2**31), -(2**31)))


@fine
def long_after(course: Path, student: str) -> None:
    for path in (file(course, student), folder(course, student)):
        os.utime(path, (13_600_000_000, 13_600_000_000))  # in the year 2400


@fine
def time_with_a_mark_of_windows(course: Path, student: str) -> None:
    stamp(course, student).write_bytes("\ufeff2030-03-01 12:00:00 UTC\r\n".encode())


@fine
def surrogates_in_a_cell(course: Path, student: str) -> None:
    tree = json.loads(file(course, student).read_bytes())
    tree["cells"].append({"cell_type": "markdown", "source": "\ud800\0\u2028", "metadata": {}})
    file(course, student).write_text(json.dumps(tree))


@fine
def numbers_that_are_none(course: Path, student: str) -> None:
    tree = json.loads(file(course, student).read_bytes())
    tree["metadata"] = {"nan": float("nan"), "large": float("inf")}
    file(course, student).write_text(json.dumps(tree))


def secret(course: Path, student: str) -> Path:
    return folder(course, student) / "submission_secret.txt"


FINE |= {f"secret_{name}": in_place_of(secret, make) for name, make in PLACED.items()}
# A course's folder has such names, too; and so have files.
NAMES = (
    "submitted",
    TINY,
    "notebooks",
    "x.ipynb",
    "ANN",
    "-rf",
    "=1+1",
    "None",
    "0",
    "e\u0301" * 20,
)
FINE |= {f"called {name}": renamed(name) for name in NAMES}

# --- what the grader has made ---------------------------------------------------------------------


def page(course: Path, student: str) -> Path:
    return course / "feedback" / student / TINY / f"{TINY}.html"


def made(course: Path, student: str) -> Path:
    return course / "autograded" / student / TINY / f"{TINY}.ipynb"


SMALL = {name: make for name, make in PLACES.items() if name != "large"}
AFTER = {f"page_{name}": in_place_of(page, make) for name, make in SMALL.items()}
AFTER |= {f"made_{name}": in_place_of(made, make) for name, make in SMALL.items()}
AFTER |= {f"made_{name}": in_place_of(made, written(text)) for name, text in TEXTS.items()}
for _room in ("feedback", "autograded", "logs"):
    for _name in ("empty", "pipe", "link_to_nothing", "forbidden"):
        AFTER[f"{_room}_{_name}"] = in_place_of(
            lambda course, student, room=_room: course / room / student, PLACED[_name]
        )
