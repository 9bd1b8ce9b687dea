"""The bank of known answers: wrong ones, each with its cause, and right ones that look different.

A mistake's docstring is what a student is told; its name is what the judge reports. The same bank
tests the grader: every mistake must lose marks and be named, every right answer must get them all.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Answer = TypeVar("Answer", bound=Callable[..., Any])


class Bank:
    """The known answers to one exercise; `mistake` and `right` are decorators that add one.

    Raises `ValueError` for a name that is taken, and for a mistake without a docstring.
    """

    def __init__(self, exercise: str):
        self.exercise = exercise
        self.mistakes: dict[str, Callable[..., Any]] = {}
        self.rights: dict[str, Callable[..., Any]] = {}

    def mistake(self, answer: Answer) -> Answer:
        """Add a wrong answer. Its docstring says to a student what went wrong."""
        if not (answer.__doc__ or "").strip():
            raise ValueError(f"the mistake {answer.__name__} does not say what went wrong")
        return self._add(self.mistakes, answer)

    def right(self, answer: Answer) -> Answer:
        """Add a right answer that is written another way than the reference."""
        return self._add(self.rights, answer)

    def _add(self, shelf: dict[str, Callable[..., Any]], answer: Answer) -> Answer:
        if answer.__name__ in {*self.mistakes, *self.rights}:
            raise ValueError(f"{self.exercise} has an answer called {answer.__name__} already")
        shelf[answer.__name__] = answer
        return answer


def cause(answer: Callable[..., Any]) -> str:
    """What a mistake tells a student: the first paragraph of its docstring, on one line."""
    return " ".join((answer.__doc__ or "").strip().split("\n\n")[0].split())


def banks(slug: str) -> dict[str, Bank]:
    """The banks of a chapter, by the name of the exercise."""
    module = import_module(f"solutions.mistakes.{slug}")
    return {b.exercise: b for b in vars(module).values() if isinstance(b, Bank)}
