"""The bank of known answers: wrong ones, each with its cause, and right ones that look different.

Each chapter has a package in `solutions/mistakes/`, each of its exercises a module, which makes one
`BANK`. The judge compares wrong answers with it: it reports a mistake's name and tells the student
its cause. The same bank tests the grader: every mistake must lose marks and be named, and every
right answer must earn full marks.

Most mistakes are the reference with one thing changed, and are declared as that change in a text
beside the module (`Bank.read`); the others are functions and classes (`Bank.mistake`).
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, TypeVar

from autograder.bank.change import Edit, Entry, apply_edits, build, entries, plain_source, with_code
from autograder.bank.shared import complete
from autograder.student import course

course.package()

Answer = TypeVar("Answer", bound=Callable)


class Answers(Mapping[str, Callable]):
    """Known answers by name, each made when it is first looked up."""

    def __init__(self) -> None:
        self.makers: dict[str, Callable[[], Callable]] = {}
        self.made: dict[str, Callable] = {}

    def __getitem__(self, name: str) -> Callable:
        if name not in self.made:
            self.made[name] = self.makers[name]()
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.makers)

    def __len__(self) -> int:
        return len(self.makers)


class Bank:
    """The known answers to one exercise.

    `references` is the module of the exercise's reference; `names` is what else changed code may
    use: the `globals()` of the bank's module. Adding an answer raises `ValueError` if its name is
    taken, or if a mistake does not say what went wrong.
    """

    def __init__(self, exercise: str, references: ModuleType, names: Mapping[str, Any]):
        self.exercise, self.references, self.names = exercise, references, names
        self.mistakes, self.rights = Answers(), Answers()
        self.changed: dict[str, tuple[str, str, str]] = {}  # the arguments of `with_code`
        self.declared: dict[str, Entry] = {}

    def mistake(self, answer: Answer) -> Answer:
        """Add a wrong answer, whose docstring tells a student what went wrong. A decorator."""
        self._add(self.mistakes, answer.__name__, lambda: answer, answer.__doc__ or "")
        return answer

    def right(self, answer: Answer) -> Answer:
        """Add a right answer that is written differently from the reference. A decorator."""
        self._add(self.rights, answer.__name__, lambda: answer)
        return answer

    def change(
        self,
        name: str,
        cause: str,
        *edits: Edit,
        before: str = "",
        after: str = "",
        of: str | None = None,
    ) -> None:
        """Add the wrong answer that some edits, one after the other, make of the reference.

        `before` is code to put at the beginning of the function, or of the class's `forward`;
        `after` is code for its end, where its return value is called `result`. `of` names what to
        change instead of the reference: another change of this bank, or something already defined
        in its module. Raises `ValueError` for an edit whose text does not occur, or occurs more
        often than it says. The answer is compiled when it is first looked up; that raises
        `ValueError` for code that is not valid Python, or does the same as before.
        """
        what = f"{self.exercise}, {name}"
        self._declare(Entry(name, cause, of, edits, before, after, what))

    def read(self) -> None:
        """Add the wrong answers that the text beside the bank's module declares.

        `softmax.txt` belongs to `softmax.py`. An entry is a name, its changes and, indented, its
        cause; lines that begin with `#` are comments::

            sign_flipped: scores - largest → largest - scores
                The exponent has the wrong sign: the lowest score gets the largest weight.

        The changes follow the name, separated by semicolons, or have lines of their own::

            ~ old → new     replaces this text, which occurs once; with ` ×2`, twice
            - old           the same for several lines
            + new
            + code          without `-` above it: goes to the beginning of the function or `forward`
            > code          goes to its end, where its return value is called `result`

        `name of other` changes another answer instead of the reference. An entry without a cause,
        or without changes, has those of the shared mistake of its name, in the grader's
        `bank/shared.txt` or the course's `solutions/mistakes/shared.txt`: `made_on_the_cpu(scores)`
        puts `scores` for the argument there.
        """
        file = Path(self.names["__file__"]).with_suffix(".txt")
        self.changes(file.read_text(encoding="utf-8"), f"{file.parent.name}/{file.name}")

    def changes(self, text: str, place: str = "") -> None:
        """Add the wrong answers that a text declares; `place` is where it stands, for errors."""
        for entry in entries(text, place or self.exercise):
            self._declare(complete(entry))

    def _declare(self, entry: Entry) -> None:
        name, cause, of, edits, before, after, what, _ = entry
        source = self._source(self.exercise if of is None else of, what)
        changed = apply_edits(source, edits, what)
        if changed == source and not before and not after:
            raise ValueError(f"{what}: nothing is changed")

        def make() -> Callable:
            text = with_code(changed, before, after, what)
            names = {**self.names, **vars(self.references)}
            return build(name, cause, text, source, names, what)

        self._add(self.mistakes, name, make, cause, what)
        self.changed[name] = (changed, before, after)
        self.declared[name] = entry

    def _source(self, name: str, what: str) -> str:
        """The text of an answer, to be changed."""
        if name in self.changed:
            return with_code(*self.changed[name], what)
        for scope in (self.names, vars(self.references)):
            if name in scope:
                return plain_source(scope[name])
        raise ValueError(f"{what}: there is no {name} to change")

    def _add(
        self,
        shelf: Answers,
        name: str,
        make: Callable[[], Callable],
        cause: str = "-",
        what: str = "",
    ) -> None:
        what = what or f"{self.exercise}, {name}"
        if not cause.strip():
            raise ValueError(f"{what}: the mistake does not say what went wrong")
        if name in self.mistakes or name in self.rights:
            raise ValueError(f"{what}: there is an answer of this name already")
        shelf.makers[name] = make


def cause(answer: Callable) -> str:
    """What a mistake tells a student: the first paragraph of its docstring, on one line."""
    return " ".join((answer.__doc__ or "").strip().split("\n\n")[0].split())


def banks(slug: str) -> dict[str, Bank]:
    """The banks of a chapter by the name of the exercise, in the order of the references."""
    package = import_module(f"solutions.mistakes.{slug}")
    files = (f"{package.__name__}.{module.name}" for module in iter_modules(package.__path__))
    found = {bank.exercise: bank for bank in (import_module(file).BANK for file in files)}
    references = list(vars(import_module(f"solutions.{slug}")))
    return {name: found[name] for name in sorted(found, key=references.index)}
