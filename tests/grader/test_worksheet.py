"""Worksheets that no system writes: what can be read of them counts, each row for itself."""

from pathlib import Path

import pytest
from lms_archives import FILE, MOODLE_HEAD, NAME, handed_in, moodle, moodle_row, notebook, table
from test_collect import ADA, ADAS, PEOPLE, sort, stamp


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
    assert stamp(course, "ada") == "2030-03-01 10:59:00 UTC" and len(done.aside) <= 1


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
    (line,) = done.aside
    assert line.startswith("sheet.csv, line 3: expected an identifier such as Participant 12345")


def test_a_number_of_two_people_in_a_worksheet_is_neithers(course):
    """The names in the archive still say whose each is."""
    time = "Friday, 1 March 2030, 11:59 AM"
    rows = [moodle_row(1, ADAS, "", time), moodle_row(1, "Aoife O'Brien", "", time)]
    rows.append(moodle_row(2, "Jürgen Müller-Lüdenscheidt", "", time))
    done = sort(course, {moodle(ADAS, 1): notebook("a"), moodle("Aoife OBrien", 1): notebook("b")},
                worksheet=table(course / "sheet.csv", [MOODLE_HEAD, *rows]))  # fmt: skip
    assert handed_in(course) == {ADA: notebook("a"), f"ob/{NAME}/{FILE}": notebook("b")}
    assert [line.partition(": ")[0] for line in done.aside] == [
        "sheet.csv, line 2", "sheet.csv, line 3"
    ]  # fmt: skip
