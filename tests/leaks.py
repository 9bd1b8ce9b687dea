"""What must not get out of references and model answers, and how much of it a text has."""

import functools
import re
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path

import snowballstemmer

from autograder.notebook import stubs
from autograder.publishing.bookindex import BookIndex, directive
from autograder.publishing.release import chapter_files
from autograder.student.course import exercises_of

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = chapter_files(ROOT)
SLUGS = [path.stem.partition("_")[2] for path in CHAPTERS]


@functools.cache
def squeezed(text: str) -> str:
    """Text without white space, so that line breaks and highlighting make no difference."""
    return re.sub(r"\s+", "", text)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@functools.cache
def stems(text: str) -> set[str]:
    stem, known = snowballstemmer.stemmer("english"), set(words(text))
    return {stem.stemWord(word) for word in known} | known


# Lines of a solution that give nothing away: any module, any measurement has them.
IDIOMS = {
    "super().__init__()",
    "with torch.no_grad():",
    "loss.backward()",
    "n, d = x.shape[-2:]",
    "return attention",
    "return model.eval()",
    "return output, weights",
    "def forward(self, x, mask=None):",
    "if head_mask is not None:",
}


def secret_lines(slug: str) -> list[str]:
    """A chapter's solution lines, without those so short that anybody writes them (`return x`)."""
    source = (ROOT / "solutions" / f"{slug}.py").read_text(encoding="utf-8")
    lines = [line for line in stubs.solution_lines(source) if len(squeezed(line)) >= 15]
    known = IDIOMS | given_lines()
    return [line for line in lines if line.strip() not in known]


@functools.cache
def given_lines() -> frozenset[str]:
    """The lines that some exercise's stub gives to everybody."""
    return frozenset(
        line.strip()
        for slug in SLUGS
        for exercise in exercises_of(slug)
        for line in stub_of(slug, exercise.name).splitlines()
    )


def stub_of(slug: str, name: str) -> str:
    return stubs.stub(getattr(import_module(f"solutions.{slug}"), name))


@functools.cache
def the_book() -> BookIndex:
    """The book's sources, read once."""
    return BookIndex(ROOT)


@functools.cache
def model_answers(chapter: Path) -> list[str]:
    book, found = the_book(), []
    for token in book.parser.parse(chapter.read_text(encoding="utf-8")):
        question = directive(token, chapter, 1)
        if question is not None and question.name in ("question", "hard-problem"):
            inner = [directive(t, chapter, 1) for t in book.parser.parse(question.body)]
            found += [d.body for d in inner if d is not None and d.name == "model-answer"]
    return found


@functools.cache
def without_answers(chapter: Path) -> str:
    """A chapter's source without model answers: the index also knows the TeX of the formulas."""
    source = chapter.read_text(encoding="utf-8")
    for answer in model_answers(chapter):
        assert answer in source
        source = source.replace(answer, "")
    return source


def leaked_lines(text: str, lines: list[str]) -> list[str]:
    """The solution lines that stand in a text."""
    squeezed_text = squeezed(text)
    return [line for line in lines if squeezed(line) in squeezed_text]


LENGTH = 8  # words in a row that no text has from a model answer by chance


def runs(text: str) -> Iterator[str]:
    """All runs of so many words of a text."""
    found = words(text)
    return (" ".join(found[i : i + LENGTH]) for i in range(len(found) - LENGTH + 1))


def leaked_phrases(text: str, secret: Collection[str]) -> set[str]:
    """Which of the secret runs of words a text has."""
    return {run for run in runs(text) if run in secret}


def leaked_terms(index: dict, secret: str, published: str) -> set[str]:
    """The words of a secret that lead to a page in the search index and are visible on none."""
    known = [*index["terms"].items(), *index["titleterms"].items()]
    return (stems(secret) - stems(published)) & {term for term, found in known if found != []}
