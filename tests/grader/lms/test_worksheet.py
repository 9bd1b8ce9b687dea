"""Worksheets that no system writes: what can be read of them counts, each row for itself."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from lms_archives import (
    FILE,
    GERMAN_HEAD,
    MOODLE_HEAD,
    NAME,
    handed_in,
    moodle,
    moodle_row,
    notebook,
    table,
)

from autograder.gradebook.times import moment_in
from autograder.lms.systems import read_worksheet
from tests.grader.lms.test_collect import ADA, ADAS, PEOPLE, sort, stamp


@pytest.fixture
def course(tmp_path) -> Path:
    (tmp_path / "course.toml").write_text(PEOPLE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("spoil", [
    lambda text: text.encode("utf-16"), lambda text: b"sep=,\r\n" + text.encode(),
    lambda text: text.replace("Ada", "A\0da").encode(), lambda text: text.encode("cp1252"),
    lambda text: text.replace("\r\n", "\r").encode(),
    lambda text: b"\r\n\r\n" + text.encode(), lambda text: text.encode() + b"\r\n,,,\r\n",
    lambda text: text.replace("ada@example.org", "x" * 300_000).encode(),
])  # fmt: skip
def test_a_worksheet_in_an_odd_form_is_read(course, spoil):
    rows = [MOODLE_HEAD, moodle_row(1, ADAS, "ada@example.org", "Friday, 1 March 2030, 11:59 AM")]
    sheet = table(course / "sheet.csv", rows)
    sheet.write_bytes(spoil(sheet.read_bytes().decode("utf-8-sig")))
    done = sort(course, {moodle(ADAS, 1): notebook()}, worksheet=sheet)
    assert stamp(course, "ada") == "2030-03-01 10:59:00 UTC" and len(done.problems) <= 1


@pytest.mark.parametrize(
    "identifier", ["", "7", "Participant", "Participant x", "Participant " + "9" * 5000, "-"]
)
def test_a_row_without_an_identifier_costs_itself_alone(course, identifier):
    rows = [
        moodle_row(n, name, "", "Friday, 1 March 2030, 11:59 AM")
        for n, name in enumerate((ADAS, "Jürgen Müller-Lüdenscheidt", "Aoife O'Brien"), 1)
    ]
    rows[1][0] = identifier
    files = {moodle(ADAS, 1): notebook(), moodle("Aoife OBrien", 3): notebook()}
    done = sort(course, files, worksheet=table(course / "sheet.csv", [MOODLE_HEAD, *rows]))
    assert stamp(course, "ada") == stamp(course, "ob") == "2030-03-01 10:59:00 UTC"
    (line,) = done.problems
    assert line.startswith("sheet.csv, line 3: expected an identifier such as Participant 12345")


def test_a_number_of_two_people_in_a_worksheet_is_neithers(course):
    """The names in the archive still say whose each is."""
    time = "Friday, 1 March 2030, 11:59 AM"
    rows = [moodle_row(1, ADAS, "", time), moodle_row(1, "Aoife O'Brien", "", time)]
    rows.append(moodle_row(2, "Jürgen Müller-Lüdenscheidt", "", time))
    done = sort(course, {moodle(ADAS, 1): notebook("a"), moodle("Aoife OBrien", 1): notebook("b")},
                worksheet=table(course / "sheet.csv", [MOODLE_HEAD, *rows]))  # fmt: skip
    assert handed_in(course) == {ADA: notebook("a"), f"ob/{NAME}/{FILE}": notebook("b")}
    assert [line.partition(": ")[0] for line in done.problems] == [
        "sheet.csv, line 2", "sheet.csv, line 3"
    ]  # fmt: skip


@pytest.mark.parametrize("text, hour", [
    ("Friday, 1 March 2030, 12:05 AM", 0), ("Friday, 1 March 2030, 12:05 PM", 12),
    ("Friday, 1 March 2030, 5:05 pm", 17), ("viernes, 1 de marzo de 2030, 5:05 p. m.", 17),
    ("viernes, 1 de marzo de 2030, 5:05 a.\u202fm.", 5), ("1 Μαρτίου 2030, 5:05 μ.μ.", 17),
    ("1 Μαρτίου 2030, 5:05 πμ", 5), ("2030. március 1., péntek, 5:05 du.", 17),
    ("perjantaina 1. maaliskuuta 2030, 5.05 ip.", 17), ("1 Mart 2030 Cuma, 5:05 ÖS", 17),
    ("Freitag, 1. März 2030, 17:05 Uhr", 17), ("pátek, 1. března 2030, 17.05", 17),
    ("п’ятниця, 1 березня 2030, 17:05", 17), ("2030-03-01 17:05:00", 17),
])  # fmt: skip
def test_a_time_is_that_of_the_morning_or_of_the_afternoon(text, hour):
    local = datetime(2030, 3, 1, hour, 5, tzinfo=ZoneInfo("Europe/Berlin"))
    assert moment_in(text, ZoneInfo("Europe/Berlin")) == local


@pytest.mark.parametrize("text", [
    "Friday, 1 March 2030, 13:05 AM", "Friday, 1 March 2030, 13:05 PM",
    "Friday, 1 March 2030, 5:05 in the afternoon", "Friday, 1 March 2030, 5:05 CET",
    "Fri, 1 March 2030 05:05:00 +0100", "2030年3月1日 5:05", "petak, 1. ožujka 2030, 5:05",
    "01/03/2030 5:05", "Thursday, 1 January 1970, 1:00 AM", "1970-01-01 01:00",
    "Sunday, 27 October 2030, 2:30 AM", "2030-10-27 02:30",  # twice
    "Sunday, 31 March 2030, 2:30 AM", "2030-03-31 02:30",  # never
])  # fmt: skip
def test_a_time_that_can_be_two_or_none_is_not_read(text):
    assert moment_in(text, ZoneInfo("Europe/Berlin")) is None


def test_the_hour_that_clocks_show_twice_is_read_with_its_zone(course):
    text = "2030-10-27T02:30:00+01:00"
    assert moment_in(text, ZoneInfo("Europe/Berlin")) == datetime(2030, 10, 27, 1, 30, tzinfo=UTC)
    rows = [MOODLE_HEAD, moodle_row(1, ADAS, "ada@example.org", "Sunday, 27 October 2030, 2:30 AM")]
    files = {moodle(ADAS, 1): notebook("x")}
    done = sort(course, files, worksheet=table(course / "sheet.csv", rows))
    assert done.outcomes and "2:30 AM" in done.problems[0] and "line 2" in done.problems[0]


@pytest.mark.parametrize("odd", ["Freitag, der erste", "Sonntag, 27. Oktober 2030, 02:30", "x"])
def test_a_time_that_is_not_read_leaves_the_others_theirs_in_any_language(course, odd):
    """The columns of a worksheet in another language are known by what stands in them."""
    whole = [("a@x.org", "Freitag, 1. März 2030, 11:59"), ("b@x.org", odd), ("c@x.org", "-")]
    rows = [moodle_row(n, f"P {mail}", mail, time, participant="Teilnehmer")
            for n, (mail, time) in enumerate(whole, 1)]  # fmt: skip
    listed = table(course / "sheet.csv", [GERMAN_HEAD, *rows])
    sheet = read_worksheet(listed, ZoneInfo("Europe/Berlin"))
    assert [one.moment for one in sheet.people] == [
        datetime(2030, 3, 1, 10, 59, tzinfo=UTC), None, None,
    ]  # fmt: skip
    (line,) = sheet.problems
    assert "line 3" in line and odd in line
    assert {login for one in sheet.people for login in one.logins} == set()  # ID heads the numbers
