"""What is made again after a change: for a file of each kind, that and nothing else."""

from pathlib import Path

import pytest

from attention_by_hand.course import CHAPTERS
from autograder.judge.dependencies import (
    code_of_cells,
    code_of_expected_values,
    code_that_judges,
    digest_of,
    imports_of,
    without_docstrings,
)
from autograder.publishing.chapter_runs import code_of
from autograder.sandbox.student_package import student_package

ROOT = Path(__file__).resolve().parents[3]
PAGES = {p.stem.partition("_")[2]: p for p in sorted((ROOT / "book").glob("[0-9]*_*.md"))}
TEXTS = {slug: page.read_text(encoding="utf-8") for slug, page in PAGES.items()}
ALL = set(CHAPTERS)


def pages_with(*words: str) -> set[str]:
    return {slug for slug, text in TEXTS.items() if any(word in text for word in words)}


RECURRENT = pages_with("figures import recurrent")
DECODERS = pages_with("figures import decoders")
# of what is changed: whose marks, expected values and cells are made again; do students get it?
CHANGES = {
    "attention_by_hand/figures/decoders.py": (set(), set(), DECODERS, True),
    "attention_by_hand/figures/recurrent.py": (set(), set(), RECURRENT, True),
    "attention_by_hand/plots.py": (set(), set(), ALL, True),
    "attention_by_hand/data/dates.py": (set(), set(), pages_with("data import dates"), True),
    "attention_by_hand/blocks/recurrent.py": (ALL, ALL, ALL, True),
    "autograder/student/engine/compare.py": (ALL, ALL, ALL, True),  # a tolerance
    "autograder/student/pencil.py": (set(), set(), ALL, True),
    "attention_by_hand/exercises/masking/causal_mask.py": ({"masking"},) * 3 + (True,),  # a hint
    "solutions/masking.py": ({"masking"},) * 3 + (False,),
    "solutions/mistakes/masking/causal_mask.py": ({"masking"}, {"masking"}, set(), False),
    "solutions/mistakes/masking/causal_mask.txt": ({"masking"}, {"masking"}, set(), False),
    "solutions/mistakes/shared.txt": (ALL, ALL, set(), False),
    "autograder/bank/shared.txt": (ALL, ALL, set(), False),
    "autograder/sandbox/worker.py": (ALL, set(), set(), False),
    "autograder/cli.py": (set(), set(), set(), False),
    "autograder/report/report.py": (set(), set(), set(), False),
    "autograder/lms/collect.py": (set(), set(), set(), False),
    "autograder/publishing/plain_markdown.py": (set(), set(), set(), False),
    "book/extensions/front_page.py": (set(), set(), set(), False),
    "benchmarks/heads.json": (set(), set(), {"multi_head"}, False),
}


@pytest.fixture(scope="module")
def affected() -> list[dict[str, set[Path]]]:
    return [
        {slug: set(code_that_judges([slug])) for slug in CHAPTERS},
        {slug: set(code_of_expected_values([slug])) for slug in CHAPTERS},
        {slug: set(code_of(ROOT, text)) for slug, text in TEXTS.items()},
    ]


@pytest.mark.share(0)
@pytest.mark.parametrize("name", CHANGES)
def test_change_makes_again_what_it_affects_and_nothing_else(name, affected):
    *wanted, public = CHANGES[name]
    path = ROOT / name
    assert path.is_file()
    assert [{slug for slug, files in of.items() if path in files} for of in affected] == wanted
    assert (path in student_package().values()) == public


def test_new_file_is_private_unless_it_is_in_a_students_folder():
    names = student_package()
    assert {name.split("/")[0] for name in names} == {"autograder", "attention_by_hand"}
    beside = {name for name in names if name.startswith("autograder/")}
    assert {name for name in beside if not name.startswith("autograder/student/")} == {
        "autograder/__init__.py"
    }


def test_imports_are_found_wherever_they_stand():
    text = "import a.b as c\nif c:\n    def f():\n        from d.e import g, h\n"
    assert imports_of(text) == {"a.b", "d.e.g", "d.e.h"}
    text = 'try:\n    import_module("a.b")\nexcept ImportError:\n    import c\n'
    assert imports_of(text) == {"a.b", "c"}
    text = "%matplotlib inline\nimport a; import b.c\nfrom d import (  # all\n    e,\n    f,\n)\n"
    assert imports_of(text) == {"a", "b.c", "d.e", "d.f"}
    assert imports_of("import of goods\nimport") == set()


def test_what_lies_beside_an_import_does_not_count():
    files = code_of_cells("from attention_by_hand.data import dates")
    assert {path.name for path in files} == {"__init__.py", "dates.py"}
    assert code_of_cells("import numpy") == []


@pytest.mark.parametrize(
    ("changed", "alike"),
    [
        ('"""Another."""\n\n\ndef f(x):\n    """And\n    so on."""\n    return x + 1\n', True),
        ('"""One."""\n\n\ndef f(x):\n    """What."""\n    return x + 2\n', False),
        ('"""One."""\n\n\ndef f(x):\n    x = """What."""\n    return x + 1\n', False),
    ],
)
def test_reworded_docstring_leaves_the_digest_of_what_is_computed(tmp_path, changed, alike):
    path, digests = tmp_path / "module.py", []
    for source in ('"""One."""\n\n\ndef f(x):\n    """What."""\n    return x + 1\n', changed):
        path.write_text(source)
        digests.append(digest_of([path], without_docstrings))
    assert (digests[0] == digests[1]) == alike
