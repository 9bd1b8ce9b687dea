"""A submission is put together again from the release: nothing lost, nothing taken on trust."""

import json
import random
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.notebook.reading import (
    MAX_SOURCE,
    UnusableFile,
    parse_notebook,
    read_file,
    without_outputs,
)
from autograder.notebook.rebuild import rebuild

ROOT = Path(__file__).resolve().parents[3]
PATH = next(ROOT.glob("notebooks/*_kernel_regression/*.ipynb"))
RELEASE = nbformat.read(PATH, as_version=4)
STUB = "    raise NotImplementedError"


def mark(cell) -> dict:
    return cell.get("metadata", {}).get("nbgrader", {})


def fresh() -> nbformat.NotebookNode:
    return nbformat.reads(nbformat.writes(RELEASE), as_version=4)


def at(notebook, grade_id: str) -> int:
    return next(
        n for n, cell in enumerate(notebook.cells) if mark(cell).get("grade_id") == grade_id
    )


def solve(cell, body: str = "    return 1") -> None:
    assert STUB in cell.source
    cell.source = cell.source.replace(STUB.strip(), body.strip())


def sources(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells]


def locked(notebook) -> list[dict]:
    return [cell for cell in notebook.cells if mark(cell).get("locked")]


def check_invariants(rebuilt) -> None:
    """What holds for whatever is handed in."""
    nbformat.validate(rebuilt)
    assert locked(rebuilt) == locked(RELEASE)
    ids = [cell.id for cell in rebuilt.cells]
    assert len(set(ids)) == len(ids)
    assert rebuilt.metadata == RELEASE.metadata
    known = {json.dumps(cell.metadata, sort_keys=True) for cell in RELEASE.cells}
    for cell in rebuilt.cells:
        assert not cell.get("attachments")
        assert not cell.get("outputs") and cell.get("execution_count") is None
        assert json.dumps(cell.metadata, sort_keys=True) in known | {"{}"}
    grade_ids = [mark(cell)["grade_id"] for cell in rebuilt.cells if mark(cell)]
    assert len(set(grade_ids)) == len(grade_ids)


# --- Any edits ------------------------------------------------------------------------------------

EDITS = ("edit", "delete", "duplicate", "move", "insert", "retype", "split", "forget", "steal")


def edited(seed: int, edits: list[str]) -> tuple[nbformat.NotebookNode, Counter]:
    """A notebook after some edits, and how often each of the student's own lines is in it."""
    chance, notebook = random.Random(seed), fresh()
    cells = notebook.cells
    for number, edit in enumerate(edits):
        place = chance.randrange(len(cells))
        cell, line = cells[place], f"own_line_{number} = {number}"
        if edit == "edit":
            cell.source += f"\n{line}"
        elif edit == "delete" and len(cells) > 1:
            del cells[place]
        elif edit == "duplicate":
            copy = nbformat.from_dict(json.loads(json.dumps(cell)))
            cells.insert(chance.randrange(len(cells) + 1), copy)
        elif edit == "move":
            cells.insert(chance.randrange(len(cells)), cells.pop(place))
        elif edit == "insert":
            make = chance.choice((new_code_cell, new_markdown_cell))
            cells.insert(place, make(line, metadata={"nbgrader": {"points": 99}, "tags": ["draw"]}))
        elif edit == "retype":
            cell.cell_type = chance.choice(("code", "markdown", "raw"))
        elif edit == "split":
            copy = nbformat.from_dict(json.loads(json.dumps(cell)))
            copy.source, cell.source = line, cell.source + f"\n{line}"
            cells.insert(place, copy)
        elif edit == "forget":
            cell.metadata = {}
        elif edit == "steal":
            cell.metadata = {"nbgrader": {"grade_id": "check_softmax", "grade": True}}
            cell.source += f"\n{line}"
    lines = (line for cell in cells for line in cell.source.split("\n"))
    return notebook, Counter(line for line in lines if line.startswith("own_line_"))


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(EDITS), max_size=14))
def test_checks_stay_the_released_ones_and_no_line_is_lost(seed, edits):
    submitted, lines = edited(seed, edits)
    rebuilt, _ = rebuild(RELEASE, submitted)
    check_invariants(rebuilt)
    kept = (line for source in sources(rebuilt) for line in source.split("\n"))
    assert Counter(line for line in kept if line.startswith("own_line_")) == lines


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from(EDITS), max_size=10))
def test_rebuilding_twice_changes_nothing(seed, edits):
    once, _ = rebuild(RELEASE, edited(seed, edits)[0])
    assert rebuild(RELEASE, once)[0] == once


ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    ATOMS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=8
)
CELL = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", "heading", ""]) | JSON,
        "source": st.text() | st.lists(st.text() | JSON) | JSON,
        "metadata": JSON
        | st.fixed_dictionaries({"nbgrader": JSON})
        | st.fixed_dictionaries(
            {"nbgrader": st.fixed_dictionaries({"grade_id": st.just("softmax") | JSON})}
        ),
        "id": st.just("softmax") | JSON,
        "outputs": JSON,
    },
)


@settings(max_examples=80, deadline=None)
@given(st.fixed_dictionaries({"cells": st.lists(CELL | JSON, max_size=6) | JSON}) | JSON)
def test_no_json_brings_it_down(submitted):
    rebuilt, _ = rebuild(RELEASE, submitted)
    check_invariants(rebuilt)
    nbformat.writes(rebuilt).encode("utf-8")


# --- What students do -----------------------------------------------------------------------------


def test_an_untouched_notebook_stays_as_it_is():
    rebuilt, notes = rebuild(RELEASE, fresh())
    assert rebuilt == RELEASE and notes == []


def test_an_answer_is_taken_and_its_neighbours_are_not_disturbed():
    submitted = fresh()
    solve(submitted.cells[at(submitted, "softmax")])
    rebuilt, notes = rebuild(RELEASE, submitted)
    assert sources(rebuilt) == sources(submitted) and notes == []


def test_a_split_answer_runs_in_the_order_in_which_it_stood():
    submitted = fresh()
    place = at(submitted, "softmax")
    solve(submitted.cells[place])
    head = nbformat.from_dict(json.loads(json.dumps(submitted.cells[place])))
    head.source = "import math"
    submitted.cells.insert(place, head)
    rebuilt, _ = rebuild(RELEASE, submitted)
    assert rebuilt.cells[place].source == "import math"
    assert mark(rebuilt.cells[place + 1])["grade_id"] == "softmax"
    assert rebuilt.cells[place + 1].source == submitted.cells[place + 1].source


def test_the_part_of_a_split_answer_that_defines_the_name_is_the_answer():
    submitted = fresh()
    place = at(submitted, "softmax")
    solve(submitted.cells[place])
    tail = nbformat.from_dict(json.loads(json.dumps(submitted.cells[place])))
    tail.source = "print(softmax)"
    submitted.cells.insert(place + 1, tail)
    rebuilt, _ = rebuild(RELEASE, submitted)
    assert mark(rebuilt.cells[place])["grade_id"] == "softmax"
    assert rebuilt.cells[place + 1].source == "print(softmax)"
    assert mark(rebuilt.cells[place + 2])["grade_id"] == "check_softmax"


def test_a_second_attempt_below_the_check_does_not_replace_the_first():
    submitted = fresh()
    place = at(submitted, "softmax")
    solve(submitted.cells[place])
    second = nbformat.from_dict(json.loads(json.dumps(submitted.cells[place])))
    second.source += "  # second"
    submitted.cells.insert(at(submitted, "check_softmax") + 1, second)
    rebuilt, _ = rebuild(RELEASE, submitted)
    assert sources(rebuilt) == sources(submitted)
    assert mark(rebuilt.cells[place])["grade_id"] == "softmax"


def test_an_untouched_copy_of_the_stub_does_not_undo_the_answer():
    submitted = fresh()
    place = at(submitted, "softmax")
    submitted.cells.insert(
        place + 1, nbformat.from_dict(json.loads(json.dumps(submitted.cells[place])))
    )
    solve(submitted.cells[place])
    rebuilt, _ = rebuild(RELEASE, submitted)
    assert len(rebuilt.cells) == len(RELEASE.cells)
    assert rebuilt.cells[place].source == submitted.cells[place].source


def test_the_stub_is_not_put_back_over_an_added_cell_that_defines_the_name():
    submitted = fresh()
    place = at(submitted, "softmax")
    submitted.cells[place] = new_code_cell("def softmax(scores, axis=-1):\n    return scores")
    rebuilt, notes = rebuild(RELEASE, submitted)
    assert not any("def softmax" in s and STUB in s for s in sources(rebuilt))
    assert mark(rebuilt.cells[place])["grade_id"] == "softmax"
    assert any("softmax is missing" in note for note in notes)


def test_one_cell_may_define_several_missing_answers():
    submitted = fresh()
    for name in ("gaussian_scores", "softmax"):
        del submitted.cells[at(submitted, name)]
    submitted.cells.insert(3, new_code_cell("def softmax(): ...\ndef gaussian_scores(): ..."))
    rebuilt, _ = rebuild(RELEASE, submitted)
    assert not any(STUB in s and "def softmax" in s for s in sources(rebuilt))
    assert not any(STUB in s and "def gaussian_scores" in s for s in sources(rebuilt))


def test_a_deleted_answer_that_nothing_defines_comes_back_as_the_stub():
    submitted = fresh()
    del submitted.cells[at(submitted, "softmax")]
    rebuilt, _ = rebuild(RELEASE, submitted)
    assert sources(rebuilt) == sources(RELEASE)


def test_an_edited_check_runs_before_the_released_one():
    submitted = fresh()
    place = at(submitted, "check_softmax")
    submitted.cells[
        place
    ].source = "def softmax(scores, axis=-1):\n    return scores\ncheck(softmax)"
    rebuilt, notes = rebuild(RELEASE, submitted)
    assert rebuilt.cells[place].source == submitted.cells[place].source
    assert rebuilt.cells[place].metadata == {}
    assert rebuilt.cells[place + 1] == RELEASE.cells[place]
    assert notes == ["The cell check_softmax had been edited; the released one counts."]


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_an_answer_turned_into_text_by_accident_is_code_again(kind):
    submitted = fresh()
    place = at(submitted, "softmax")
    solve(submitted.cells[place])
    submitted.cells[place].cell_type = kind
    rebuilt, notes = rebuild(RELEASE, submitted)
    assert rebuilt.cells[place].cell_type == "code"
    assert rebuilt.cells[place].source == submitted.cells[place].source
    assert len(notes) == 1


def test_an_edited_ordinary_cell_runs_after_the_released_one():
    submitted = fresh()
    place = next(n for n, c in enumerate(submitted.cells) if c.cell_type == "code" and not mark(c))
    submitted.cells[place].source += "\nimport math"
    rebuilt, _ = rebuild(RELEASE, submitted)
    assert rebuilt.cells[place] == RELEASE.cells[place]
    assert rebuilt.cells[place + 1].source == submitted.cells[place].source
    assert rebuilt.cells[place + 2] == RELEASE.cells[place + 1]


def test_metadata_lost_by_some_tool_costs_nothing():
    submitted = fresh()
    solve(submitted.cells[at(submitted, "softmax")])
    wanted = sources(submitted)
    for cell in submitted.cells:
        cell.metadata = {}
    assert sources(rebuild(RELEASE, submitted)[0]) == wanted


def test_windows_line_ends_are_no_edit():
    submitted = json.loads(nbformat.writes(RELEASE))
    for cell in submitted["cells"]:
        cell["source"] = "".join(cell["source"]).replace("\n", "\r\n")
    rebuilt, notes = rebuild(RELEASE, submitted)
    assert rebuilt == RELEASE and notes == []


def test_a_huge_cell_is_left_out_and_told():
    submitted = fresh()
    submitted.cells.append(new_code_cell("#" * (MAX_SOURCE + 1)))
    rebuilt, notes = rebuild(RELEASE, submitted)
    assert sources(rebuilt) == sources(RELEASE)
    assert "huge" in notes[0]


# --- Files ----------------------------------------------------------------------------------------

NOT_NOTEBOOKS = {
    "empty": (b"", "empty"),
    "blank": (b" \n", "empty"),
    "nothing but zeros": (bytes(4096), "empty"),
    "binary": (bytes(range(256)), "UTF-8"),
    "utf-16 by halves": ('{"nbformat": 4}'.encode("utf-16")[:-1], "UTF-8"),
    "a conflict": (b'{"nbformat": 4,\n<<<<<<< HEAD\n"cells": []\n', "conflict in git.*line 2"),
    "half": (b'{"nbformat": 4, "cells": [', "JSON"),
    "deep": (b"[" * 200_000, "JSON"),
    "long number": (b'{"nbformat": ' + b"9" * 5000 + b"}", "JSON"),
    "list": (b"[]", "no notebook"),
    "no format": (b'{"cells": []}', "no notebook"),
    "format 3": (b'{"nbformat": 2, "worksheets": []}', "format 2"),
    "no cells": (b'{"nbformat": 4}', "no list of cells"),
}


@pytest.mark.parametrize("data, reason", NOT_NOTEBOOKS.values(), ids=NOT_NOTEBOOKS)
def test_what_is_no_notebook_is_refused_with_its_reason(data, reason):
    with pytest.raises(UnusableFile, match=reason) as raised:
        parse_notebook(data)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_zeros_behind_it_do_no_harm(encoding):
    """As a disk leaves them that lost its power, or a copy that stopped."""
    data = PATH.read_text(encoding="utf-8").encode(encoding) + bytes(4096)
    assert parse_notebook(data) == parse_notebook(PATH.read_bytes())


def test_a_byte_order_mark_does_no_harm():
    assert parse_notebook(b"\xef\xbb\xbf" + PATH.read_bytes())["nbformat"] == 4


@pytest.mark.parametrize("coding", ["utf-16", "utf-8-sig"])
def test_other_codings_with_a_mark_are_read(coding):
    assert parse_notebook(PATH.read_text("utf-8").encode(coding)) == json.loads(PATH.read_text())


def test_format_3_is_read():
    old = nbformat.convert(nbformat.read(PATH, 4), 3)
    read = parse_notebook(nbformat.writes(old, version=3).encode())
    text = [cell.source for cell in RELEASE.cells if cell.cell_type == "code"]
    assert ["".join(c["source"]) for c in read["cells"] if c["cell_type"] == "code"] == text


def test_outputs_are_dropped_while_reading(tmp_path):
    inside = 'print("\\"outputs\\": [1, 2]")  # "outputs": [\n' + "]" * 9
    cell = {"cell_type": "code", "metadata": {}, "source": [inside], "outputs": []}
    large = {"output_type": "stream", "name": "stdout", "text": ['["]]\\' * 15_000_000]}
    path = tmp_path / "a.ipynb"
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    path.write_text(json.dumps(notebook | {"cells": [cell | {"outputs": [large, [[]]]}, cell]}))
    assert path.stat().st_size > 100_000_000
    assert parse_notebook(read_file(path)) == notebook | {"cells": [cell, cell]}


@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("spaces", [None, 1])
def test_nested_outputs_and_widgets_are_left_out(coding, spaces):
    deep: object = "]}\\"
    for number in range(12):
        deep = [deep, {"a": [], "outputs": [number]}] if number % 2 else {"[": deep}
    cell = {"cell_type": "code", "metadata": {}, "source": ['x["outputs"]'], "outputs": []}
    text = {"cell_type": "markdown", "metadata": {"widgets": {}}, "source": '"widgets": {'}
    with_all = [
        cell | {"outputs": [{"data": deep}, deep]},
        text | {"metadata": {"widgets": {"a": deep}}},
    ]
    whole = {"cells": with_all, "metadata": {"widgets": {"state": deep, "n": {}}}, "nbformat": 4}
    data = json.dumps(whole, indent=spaces).encode(coding)
    left = {"cells": [cell, text], "metadata": {"widgets": {}}, "nbformat": 4}
    assert parse_notebook(without_outputs(data)) == left


@pytest.mark.parametrize("body", ["[" * 99, "[]" * 9 + '"', '"outputs": [' * 99])
def test_outputs_that_do_not_end_stay(body):
    data = f'{{"cells": [{{"outputs": [1]}}, {{"outputs": [{body}'.encode()
    assert without_outputs(data) == data.replace(b"[1]", b"[]")


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "link.ipynb").symlink_to(PATH)
    with pytest.raises(UnusableFile, match="link"):
        read_file(tmp_path / "link.ipynb")
