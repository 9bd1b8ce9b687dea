"""Wrong answers of `pointers.txt`, and what the pointer says, or does not say, of their places.

A case has a title, then lines that say what must hold of the pointer: its first line (`says`), the
line of the answer that is shown (`line`), what is marked in it (`marked`), its last line (`ends`),
what is nowhere in it (`unsaid`); `silent`, if there is none. The answer follows.
"""

import re
from pathlib import Path

import pytest
from pointer_cases import pointed

pytestmark = pytest.mark.usefixtures("plenty_of_time")
CASES = re.findall(
    r"^# ([^\n]+)\n((?:silent\n|\w+: [^\n]+\n)+)(.*?)(?=\n\n# |\Z)",
    Path(__file__).with_name("pointers.txt").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("rules", "source"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_what_the_pointer_says_of_a_wrong_answer(rules, source):
    name = re.search(r"^(?:def|class) (\w+)", source, re.MULTILINE)[1]
    found = pointed(source, name)
    says, line, marks, *_ = [*found.splitlines(), "", "", ""]
    shown = {
        "says": says,
        "line": line,
        "marked": line[marks.find("^") : len(marks)],
        "ends": found[found.rfind("\n") + 1 :],
    }
    for rule in rules.splitlines():
        kind, _, text = rule.partition(": ")
        if kind == "silent":
            assert found == ""
        elif kind == "unsaid":
            assert text not in found
        elif kind == "marked":
            assert text == shown[kind], found
        else:
            assert text in shown[kind], found
