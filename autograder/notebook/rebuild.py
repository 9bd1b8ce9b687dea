"""Rebuilds a student's notebook from the released one and what the student wrote.

TRUST BOUNDARY. The release is ours; the submission is hostile JSON of any shape. Only three things
in it are used: the source text of its cells, their order, and pictures in written text (`pictures`
says which). Cell metadata, outputs and ids always come from the release or are made here. No
student's code is run.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from operator import is_
from typing import Any

from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell

from autograder.notebook.names import defined_names, names_in
from autograder.notebook.reading import ADDED, SubmittedFile, cells_of

DOUBTFUL = "*Nothing was written here, but text was added elsewhere that may be the answer.*"
_TELLING = 40  # characters of a line that tell which question it is
NEW = {"code": new_code_cell, "markdown": new_markdown_cell, "raw": new_raw_cell}


@dataclass
class Slot:
    """A cell of the release, the submission's cell in its place, and the cells added around it."""

    cell: NotebookNode  # empty before the first
    found: SubmittedFile | None = None
    before: list[SubmittedFile] = field(default_factory=list)
    after: list[SubmittedFile] = field(default_factory=list)

    @property
    def mark(self) -> Mapping[str, Any]:
        return self.cell.metadata.get("nbgrader", {}) if self.cell else {}

    @property
    def grade_id(self) -> str | None:
        return self.mark.get("grade_id")

    @property
    def answer(self) -> bool:
        """Whether the student is meant to edit this cell."""
        return bool(self.mark.get("solution"))


def rebuild(release: NotebookNode, submitted: Mapping[str, Any]) -> tuple[NotebookNode, list[str]]:
    """The released notebook with the student's answers and the cells that the student added.

    Every cell of the release is in its place. Answers are taken by grade id; added cells follow
    the released cell that they followed; an edited ordinary cell runs after the released one, and
    an edited check before it. Returns the notebook and notes for the instructor. Never raises
    because of `submitted`.
    """
    notes: list[str] = []
    cells = list(cells_of(submitted, notes))
    slots = [Slot(NotebookNode()), *(Slot(cell) for cell in release.cells)]
    _match(slots, cells, notes)
    _place(slots, cells, notes)
    doubtful = _written_elsewhere(slots, notes)
    notebook = NotebookNode({**release, "metadata": deepcopy(release.metadata)})
    notebook.cells = list(_assemble(slots, doubtful, notes))
    _number(notebook, {cell.get("id") for cell in release.cells})
    return notebook, list(dict.fromkeys(notes))


def _match(slots: list[Slot], cells: list[SubmittedFile], notes: list[str]) -> None:
    """Match every slot with its cell of the submission: by grade id, cell id, then text."""
    graded = {slot.grade_id: slot for slot in slots if slot.grade_id}
    plain = [slot for slot in slots if slot.cell and not slot.grade_id]
    copies: dict[str, list[int]] = {}
    for number, cell in enumerate(cells):
        name = cell.grade_id if cell.grade_id in graded else None
        if name is None and cell.grade_id is None and cell.cell_id in graded:
            name = cell.cell_id  # a tool that drops metadata keeps the cell's id, which equals it
        if name is not None:
            copies.setdefault(name, []).append(number)
    for name, numbers in copies.items():
        slot = graded[name]
        check = f"check_{name}"
        end = copies[check][0] if check in copies else len(cells)
        slot.found = cells[_choose(slot, cells, numbers, end)]
        if len(numbers) > 1:
            notes.append(f"The cell {name} occurs {len(numbers)} times.")
        for number in numbers:
            if cells[number] is not slot.found and _same(cells[number], slot):
                cells[number].kind = "dropped"  # an untouched copy adds nothing
    taken = {id(slot.found) for slot in slots if slot.found}
    free = [c for c in cells if id(c) not in taken and c.kind != "dropped"]
    for test in (
        lambda cell, slot: cell.cell_id == slot.cell.get("id") and _same(cell, slot),
        _same,
        lambda cell, slot: (
            cell.cell_id is not None
            and cell.cell_id == slot.cell.get("id")
            and cell.kind == slot.cell.cell_type
        ),
    ):
        for slot in plain:
            if slot.found is None:
                slot.found = next((cell for cell in free if test(cell, slot)), None)
                free = [cell for cell in free if cell is not slot.found]


def _choose(slot: Slot, cells: list[SubmittedFile], numbers: list[int], end: int) -> int:
    """Which of several copies of a graded cell counts.

    For an answer: the last edited copy before the check that defines the name, so that a cell that
    was split or copied does what it did for the student. For others: the first untouched copy.
    """
    if not slot.answer:
        return next((n for n in numbers if _same(cells[n], slot)), numbers[0])
    ranked = [n for n in numbers if not _same(cells[n], slot)] or numbers
    if slot.cell.cell_type == "code":
        ranked = [n for n in ranked if _defines(cells[n], slot.grade_id)] or ranked
    ranked = [n for n in ranked if n < end] or ranked
    return ranked[-1]


def _same(cell: SubmittedFile, slot: Slot) -> bool:
    return cell.kind == slot.cell.cell_type and cell.source.strip() == slot.cell.source.strip()


def _defines(cell: SubmittedFile, name: str | None) -> bool:
    """Whether a cell's text defines a name at its top level."""
    if cell.kind == "code" and cell.names is None:
        cell.names = defined_names(cell.source)
    return cell.names is not None and name in cell.names


def _place(slots: list[Slot], cells: list[SubmittedFile], notes: list[str]) -> None:
    """Attach every other cell of the submission before or after a cell of the release."""
    slot_of = {id(slot.found): slot for slot in slots if slot.found}
    anchor = slots[0]
    for cell in cells:
        slot = slot_of.get(id(cell))
        if slot is None:
            if cell.kind != "dropped" and cell.source.strip():
                anchor.after.append(cell)
            continue
        anchor = slot
        if slot.answer:
            if cell.kind != slot.cell.cell_type:
                notes.append(
                    f"The answer {slot.grade_id} had been turned into a {cell.kind} cell; "
                    f"it was taken as {slot.cell.cell_type}."
                )
        elif slot.grade_id:
            if not _same(cell, slot):
                notes.append(f"The cell {slot.grade_id} had been edited; the released one counts.")
                if cell.source.strip() not in ("", slot.cell.source.strip()):
                    slot.before.append(cell)
        elif not _same(cell, slot) and cell.source.strip():
            slot.after.insert(0, cell)


def _written_elsewhere(slots: list[Slot], notes: list[str]) -> set[int]:
    """Find the answers to questions whose own cells are missing or untouched.

    An added text takes the place of a missing question if it repeats the question, or if it stands
    alone where the question stood. Returns the other questions (ids of slots) that some added text
    may answer: for an untouched question, text next to it; for a missing one, any text.
    """
    asked = [slot for slot in slots if slot.answer and slot.cell.cell_type != "code"]
    for slot in asked:
        if slot.found is None:
            _adopt(slot, partial(_repeats, slot=slot), slots, notes)
    doubtful = set()
    shared = Counter(id(_neighbours(slot, slots)[0]) for slot in asked if slot.found is None)
    for slot in asked:
        beside = _neighbours(slot, slots)
        texts = [cell for near in beside for cell in near.after if _is_text(cell)]
        if slot.found is None:
            if shared[id(beside[0])] == 1 and len(texts) == 1:
                _adopt(slot, partial(is_, texts[0]), beside, notes)
            elif any(_is_text(c) for near in slots for c in (*near.before, *near.after)):
                doubtful.add(id(slot))
        elif texts and _same(slot.found, slot):
            doubtful.add(id(slot))
    for slot in asked:
        if id(slot) in doubtful:
            notes.append(
                f"The question {slot.grade_id} is unanswered, but there is added text that may "
                "be the answer: mark it by hand."
            )
    return doubtful


def _neighbours(slot: Slot, slots: list[Slot]) -> list[Slot]:
    """The slots whose added cells stand next to a question: its own and the one before it.

    Text that follows another question, if that is answered, belongs to it, unless this one is
    missing.
    """
    here = next(number for number, other in enumerate(slots) if other is slot)
    before = here - 1
    while before > 0 and slots[before].found is None:
        before -= 1
    other = slots[before]
    taken = slot.found and other.answer and other.found and not _same(other.found, other)
    return slots[here if taken else before : here + 1]


def _adopt(
    slot: Slot, wanted: Callable[[SubmittedFile], bool], among: list[Slot], notes: list[str]
) -> None:
    """Take an added cell as the answer to a question whose own cell is missing."""
    for near in among:
        for cells in (near.before, near.after):
            found = next((cell for cell in cells if _is_text(cell) and wanted(cell)), None)
            if found is not None:
                cells.remove(found)
                slot.found = found
                notes.append(f"The cell {slot.grade_id} is missing; an added text was taken.")
                return


def _is_text(cell: SubmittedFile) -> bool:
    """Whether an added cell holds text for people: no code, nor a code cell without Python."""
    prose = cell.kind != "code" or not names_in(cell.source).parsed
    return prose and any(character.isalnum() for character in cell.source)


def _repeats(cell: SubmittedFile, slot: Slot) -> bool:
    """Whether a text holds a line of the question, in whatever spacing."""
    theirs = " ".join(cell.source.split())
    lines = (" ".join(line.split()) for line in slot.cell.source.splitlines())
    return any(len(line) >= _TELLING and line in theirs for line in lines)


def _assemble(slots: list[Slot], doubtful: set[int], notes: list[str]) -> Iterator[NotebookNode]:
    """The cells of the rebuilt notebook, in order; `doubtful` questions are marked by hand."""
    foreign = [cell for slot in slots for cell in (*slot.before, *slot.after)]
    adopted: dict[int, Slot] = {}
    left_out: set[int] = set()
    for slot in slots:
        if not slot.cell or slot.found or not slot.grade_id:
            continue
        maker = [cell for cell in foreign if _defines(cell, slot.grade_id)] if slot.answer else []
        if maker:
            left_out.add(id(slot))
            notes.append(f"The cell {slot.grade_id} is missing; an added cell defines the name.")
            chosen = next((c for c in reversed(maker) if id(c) not in adopted), None)
            if chosen is not None:
                adopted[id(chosen)] = slot
        else:
            notes.append(f"The cell {slot.grade_id} is missing; the released one was put back.")
    for slot in slots:
        yield from (_copy_added(cell, adopted) for cell in slot.before)
        if slot.cell and id(slot) not in left_out:
            made = _fill(slot, slot.found) if slot.answer and slot.found else _clean(slot.cell)
            if id(slot) in doubtful:  # with another text than the release's, it waits for a person
                made.source += f"\n\n{DOUBTFUL}"
            yield made
        yield from (_copy_added(cell, adopted) for cell in slot.after)


def _copy_added(cell: SubmittedFile, adopted: Mapping[int, Slot]) -> NotebookNode:
    slot = adopted.get(id(cell))
    if slot is not None:
        return _fill(slot, cell)
    made = NEW[cell.kind](cell.source)
    made.id = ""
    _hang(made, cell)
    return made


def _fill(slot: Slot, cell: SubmittedFile) -> NotebookNode:
    made = _clean(slot.cell)
    # An untouched cell keeps the exact text of the release, and so nbgrader's checksum.
    if not _same(SubmittedFile(made.cell_type, cell.source), slot):
        made.source = cell.source
        _hang(made, cell)
    return made


def _hang(made: NotebookNode, cell: SubmittedFile) -> None:
    """Give a written text its pictures."""
    if cell.pictures and made.cell_type == "markdown":
        made.attachments = from_dict(cell.pictures)


def _clean(cell: NotebookNode) -> NotebookNode:
    """A cell of the release without outputs."""
    made = deepcopy(cell)
    if made.cell_type == "code":
        made.outputs = []
        made.execution_count = None
    return made


def _number(notebook: NotebookNode, taken: set[str]) -> None:
    """Give the added cells unique ids."""
    number = 0
    for cell in notebook.cells:
        if cell.get("id"):
            continue
        number += 1
        while f"{ADDED}{number}" in taken:
            number += 1
        cell.id = f"{ADDED}{number}"
