"""Which of our modules a set of files needs: followed from import to import, and no further."""

import pytest

from autograder.publishing.needed import imports_of, needed

FILES = {
    "__init__.py": "",
    "check.py": "from autograder.student import course\nimport numpy as np\n",
    "course.py": "def room():\n    from autograder.rooms.inner import table\n",
    "rooms/__init__.py": "from autograder import colours\n",
    "rooms/inner.py": "import json\n",
    "rooms/other.py": "from autograder import pictures\n",
    "colours.py": "",
    "pictures.py": "import autograder.student.check\n",
}


@pytest.fixture
def files(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in FILES}


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ("from autograder import check", {"rooms/other.py", "pictures.py"}),
        ("import autograder.pictures", {"rooms/other.py"}),
        ("%matplotlib inline\nfrom autograder.rooms import other", set()),
        ("import autograder", FILES.keys() - {"__init__.py"}),
        ("import numpy", FILES.keys()),
    ],
)
def test_what_is_imported_in_turn_is_needed(files, source, missing):
    assert needed([source], files) == FILES.keys() - missing


def test_imports_are_found_wherever_they_stand():
    text = "import a.b as c\nif c:\n    def f():\n        from d.e import g, h\n"
    assert imports_of(text) == {"a.b", "d.e.g", "d.e.h"}
    with pytest.raises(SyntaxError):
        imports_of("import")
