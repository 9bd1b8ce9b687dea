"""Which of the course's own cells have to run for a student's code to work.

Most cells of a chapter measure, train and print for the reader. Marks depend on such a cell only if
the student's own cells use a name that it defines, directly or through other cells.

TRUST BOUNDARY. Students' code is hostile text here: its names are read (`names`), nothing is run.
Running a cell is always safe, because it runs in the sandbox, so in doubt a cell is run: code that
can reach names in ways that cannot be read (`globals()`, magics) is taken to need all of them.
Leaving a cell out by mistake could cost marks, but never earn any.
"""

import re
from collections.abc import Sequence

from autograder.notebook.names import Names, names_in

_SETTING = re.compile(r"\bset_(?:default|grad|flush)|\bseterr\b|\bimport \*")


def cells_to_skip(cells: Sequence[tuple[str, bool]]) -> set[int]:
    """The numbers of the course's own cells that need not run.

    `cells` holds the source of each cell and whether it is the course's own, as it was released.
    """
    needed: set[str] = set()
    settled: set[str] = set()  # names that no cell of the course changes: modules, students' own
    rest: dict[int, Names] = {}
    for number, (source, ours) in enumerate(cells):
        names = names_in(source)
        settled |= names.imports
        if not ours:
            if names.reaches:
                return set()
            needed |= names.uses
            settled |= names.defines
        elif names.reaches or _SETTING.search(source):
            needed |= names.uses
        else:
            rest[number] = names
    while found := [
        n for n, c in rest.items() if (c.defines | c.imports | c.changes - settled) & needed
    ]:
        for number in found:
            needed |= rest.pop(number).uses
    return set(rest)
