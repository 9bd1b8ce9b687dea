"""The notation page explains the formulas: one meaning for each symbol in each chapter."""

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import chapter_header
import pytest
import symbols
from bs4 import BeautifulSoup
from mathml import mathml

from autograder.publishing.pages import student_view
from autograder.publishing.release import chapter_files
from autograder.student.course import find_exercise

EXTENSIONS = Path(__file__).resolve().parents[2] / "book" / "extensions"

NUMBERS = [int(path.name[:2]) for path in chapter_files(Path(__file__).resolve().parents[2])]


def found(tex: str, chapter: int) -> list[str]:
    return [symbol.name for symbol in symbols.mark(mathml(tex), chapter)[1]]


def test_a_symbol_has_one_meaning_in_a_chapter():
    for chapter in NUMBERS:
        heads = Counter(
            head for s in symbols.symbols() if chapter in s.chapters for head, _ in s.heads
        )
        assert [head for head, count in heads.items() if count > 1] == [], chapter


def test_each_line_of_the_notation_has_an_address_of_its_own_and_its_chapters():
    lines = symbols.symbols()
    assert len(lines) > 40
    assert len({line.anchor for line in lines}) == len(lines)
    assert all(set(line.chapters) & set(NUMBERS) for line in lines)


@pytest.mark.parametrize(
    ("tex", "chapter", "names"),
    [
        (r"K(x - x_i)", 1, ["K", "x", "x_i"]),
        (r"Q K^\top / \sqrt{d_k}", 4, ["Q, K, V", "d_k"]),
        (r"s_{il}", 4, ["s_ij"]),
        (r"\sum_{j=1}^{n_k} \alpha_{ij}", 4, ["n, n_k", "α, α_ij"]),
        (r"W_1^Q", 3, ["W_h^Q, W_h^K, W_h^V"]),
        (r"W_1 x", 6, ["x, x_j", "W_1, b_1, W_2, b_2"]),
        (r"\exp a_{ij}", 4, ["a, a_ij"]),
        (r"\text{Var}", 2, []),
        (r"d_\text{model}^{-1/2}", 7, ["d_model"]),
        (r"\left(\frac{a}{6}\right)^\alpha", 7, ["α"]),
        (r"z_t \odot h_{t-1}", 8, ["h, h_t, h_t−1", "r, r_t, z, z_t"]),
    ],
)
def test_symbols_are_known_by_their_chapter(tex, chapter, names):
    assert sorted(found(tex, chapter)) == sorted(names)


def test_a_formula_says_the_same_as_before_it_was_marked():
    for tex in (
        r"\frac{s_{ij} \exp a_{ij}}{2}",
        r"a < b \& c",
        r"\begin{cases} 1 \\ 2 \end{cases}",
    ):
        before, after = mathml(tex), symbols.mark(mathml(tex), 4)[0]
        told = [list(ElementTree.fromstring(text).itertext()) for text in (before, after)]
        assert told[0] == told[1]


# --- the head of a chapter ---

GITHUB = {"repository": "https://github.com/you/course", "jupyterhub": "https://hub.example.edu/"}


def test_without_a_repository_nothing_is_launched():
    assert list(chapter_header.launches("04_masking", {})) == []
    assert "Colab" not in chapter_header.head("04_masking", [], [], 5, {})


def test_with_a_repository_the_notebook_opens_elsewhere():
    path = "notebooks/04_masking/04_masking.ipynb"
    assert dict(chapter_header.launches("04_masking", GITHUB)) == {
        "Colab": f"https://colab.research.google.com/github/you/course/blob/main/{path}",
        "Binder": "https://mybinder.org/v2/gh/you/course/main?urlpath=lab%2Ftree%2F"
        + path.replace("/", "%2F"),
        "JupyterHub": "https://hub.example.edu/hub/user-redirect/git-pull"
        "?repo=https%3A%2F%2Fgithub.com%2Fyou%2Fcourse&branch=main&urlpath=lab%2Ftree%2Fcourse%2F"
        + path.replace("/", "%2F"),
    }
    assert (chapter_header.ROOT / path).is_file(), "what the buttons open"
    page = chapter_header.head("04_masking", [], [], 5, GITHUB)
    assert all(f">{label}</a>" in page for label in ("Colab", "Binder", "JupyterHub"))


def test_colab_opens_only_what_is_on_github():
    other = dict(
        chapter_header.launches("04_masking", {"repository": "https://git.example.org/a/b.git"})
    )
    assert list(other) == ["Binder"]
    assert "/v2/git/https%3A%2F%2Fgit.example.org%2Fa%2Fb/main" in other["Binder"]


def letters(text: str) -> str:
    """Letters and digits alone: d_k is a formula on a page."""
    return re.sub(r"[\W_]", "", text)


def test_each_hint_is_inside_the_one_before():
    exercise = find_exercise("causal_mask")[1]
    text = student_view.hints(exercise)
    assert text.count("<details>") == len(exercise.aspects)
    assert text.endswith("</details>" * len(exercise.aspects) + "</div>")
    for number, aspect in enumerate(exercise.aspects, 1):
        assert f"Hint {number} of {len(exercise.aspects)}" in text
        begins = aspect.hint.split("`")[0][:30].partition("<")[0]
        assert letters(begins) in letters(BeautifulSoup(text, "html.parser").get_text())
