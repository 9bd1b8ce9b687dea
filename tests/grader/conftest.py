"""Courses that several tests of the grader hand in to."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def real_course(tmp_path, release) -> Path:
    """The tiny course with answers that are judged, of students who earn `DESERVED`."""
    from faults import DESERVED, LEAVES, RIGHT, hand_in

    course = tmp_path / "course"
    for student, score in DESERVED.items():
        hand_in(course, release, student, RIGHT if score else LEAVES)
    shutil.copytree(release, course / "notebooks")
    return course


@pytest.fixture
def term_course(tmp_path, monkeypatch) -> Path:
    """The course of `terms`, released, where a stand-in judges."""
    from terms import release, with_stand_in

    release(tmp_path)
    with_stand_in(monkeypatch)
    return tmp_path
