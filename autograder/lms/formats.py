"""How Moodle and Canvas name the files in an archive of submissions.

Moodle gives each student a folder, `Ada King_12345_assignsubmission_file_/`, since version 4.1
without the last underscore; with *Download submissions in folders* switched off, the same text
comes before the file's own name. The number is the participant's in this one assignment, the one
that the grading worksheet calls *Participant 12345*; a name's underscores have become spaces, and
characters that file systems reject are gone. A text typed into the page comes as
`…_assignsubmission_onlinetext…`. With anonymous marking, *Participant* stands in place of the name.

Where groups hand in, the folder has the group's name and id, `Team A_17_assignsubmission_file`; the
default group, of all who are in none, has no id. Before version 4.1, there is a copy for each
member, `Team A-Ada King_12345_…`, with the participant's number.

Canvas puts all files into one folder: `kingada_4711_99001_notebook.ipynb` has the sortable name
*King, Ada* in lower case, of which only letters and digits are left, the user's id, which is the
same in all assignments, the id of the file, which grows, and its name; `_LATE` stands before the
user's id if Canvas counts the file as late. One that was handed in again under the same name ends
in `-1.ipynb`. A group's file has the group's name and the id of one of its members. Texts and links
have no file id: `kingada_4711_text.html`. Anonymous submissions are called `anon_` and a code.

Sources: Moodle's `mod/assign/classes/downloader.php` (`get_student_prefix`,
`load_submissionplugin_filelist`) and `mod/assign/feedback/file/importziplib.php`
(`is_valid_filename_for_import`), and MoodleDocs, *Using Assignment*; Canvas LMS,
`lib/content_zipper.rb` (`get_filename`, `add_upload_submission`) and
`app/models/abstract_assignment.rb` (`infer_comment_context_from_filename`), and the Canvas
instructor guide, *How do I download all student submissions for an assignment?*

TRUST BOUNDARY. Names come from outside. They are taken apart here, and no file is opened by them.
"""

import re
from dataclasses import dataclass

from autograder.notebook.archive import Member

MOODLE, CANVAS = "moodle", "canvas"
SYSTEMS = (MOODLE, CANVAS)
FILE = "file"  # the kind of a file that was handed in
_MOODLE = re.compile(r"([^_]*)(?:_(\d{1,18}))?_assignsubmission_([a-z]+)(?:_(.*))?", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True)
class ArchiveEntry:
    """A file in an archive: whose it is by its name there, and what the student called it.

    `number` is the participant's in Moodle, the user's in Canvas. `kind` is FILE, or what else the
    system lets people hand in. `prefix` is what comes before the student's own file name, or the
    folder of the file; by it, the system recognises the student when feedback comes back.
    """

    system: str
    label: str
    number: str
    kind: str
    filename: str
    prefix: str
    in_folder: bool = False
    file_number: int = 0
    late: bool = False

    @property
    def who(self) -> tuple[str, str, str]:
        """Whose it is: a number alone can be one person's and another's, or a group's."""
        return self.system, self.number, self.label.casefold()


def handed(member: Member) -> ArchiveEntry | None:
    """What an archive's member is by its name; None if neither system names files so."""
    for place, part in enumerate(member.parts):
        found = _MOODLE.fullmatch(part)
        if found:
            label, number, kind, rest = found.groups(default="")
            inside = member.parts[place + 1 :]
            filename = inside[-1] if inside else rest
            prefix = part if inside else part[: len(part) - len(rest)]
            return ArchiveEntry(MOODLE, label, number, kind, filename, prefix, bool(inside))
    return _of_canvas(member.parts[-1]) if member.parts else None


def _of_canvas(name: str) -> ArchiveEntry | None:
    parts = name.split("_")
    if parts[0] == "anon" or parts[:2] == ["LATE", "anon"]:
        return None
    numbers = [n for n, part in enumerate(parts) if n and _NUMBER.fullmatch(part)]
    if not numbers:
        return None
    at = numbers[0]
    late = at > 1 and parts[at - 1] == "LATE"
    label = "_".join(parts[: at - late])
    rest = parts[at + 1 :]
    if len(rest) > 1 and _NUMBER.fullmatch(rest[0]):
        prefix = "_".join(parts[: at + 2]) + "_"
        filename, file_number = "_".join(rest[1:]), int(rest[0])
        return ArchiveEntry(
            CANVAS, label, parts[at], FILE, filename, prefix, file_number=file_number, late=late
        )
    if rest in (["text.html"], ["link.html"]):
        prefix = "_".join(parts[: at + 1]) + "_"
        kind = rest[0].removesuffix(".html")
        return ArchiveEntry(CANVAS, label, parts[at], kind, rest[0], prefix, late=late)
    return None
