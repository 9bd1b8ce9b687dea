"""The English text of chapter 9's GPT trained beforehand: what is prose, and what is held out."""

import pytest

from benchmarks import english

DOCSTRING = '''
def f(x, y):
    """Return the *sum* of the :func:`numbers <n>` in `both` of [1]_ them.

    The result is new, and ``f_of(x)`` is not prose: The rest of it is a line.

    Parameters
    ----------
    x : array
        The first of the two arrays.
    y : array
        The second of them,
        on two lines.

    >>> f(1, 2) is an example of it.
    """
'''


@pytest.mark.parametrize("sentence", [
    "Return the sum of the two numbers.", "If it is not there, the default (a list) is returned.",
])  # fmt: skip
def test_sentences_of_plain_words_are_prose(sentence):
    assert english.is_prose(sentence)


@pytest.mark.parametrize("sentence", [
    "Too short.", "return the sum of the two.", "Return the sum of the two", "The sum of x_1 is.",
    "Call the function f(x) of the module.", "It is 3 times the sum.", "Words without any sense.",
    "The letter y is in it.", "The result (if there is any is returned.",
    "The class isFinite of the module.",
])  # fmt: skip
def test_what_is_code_or_cut_off_is_no_prose(sentence):
    assert not english.is_prose(sentence)


def test_markup_goes_and_what_a_parameter_means_is_a_paragraph():
    found = [
        p for text in english.find_docstrings(DOCSTRING) for p in english.find_paragraphs(text)
    ]
    assert found == [
        "Return the sum of the numbers in both of them.",
        "The rest of it is a line.",
        "The first of the two arrays.",
        "The second of them, on two lines.",
    ]


def test_of_a_sentence_that_stands_twice_the_first_copy_stays():
    texts = {("a", "1"): "One of them. Two of them.\n", ("b", "1"): "Two of them. It is new.\n"}
    assert english.without_repeats(texts | {("c", "1"): "It is new.\n"}) == {
        ("a", "1"): "One of them. Two of them.\n",
        ("b", "1"): "It is new.\n",
    }


def test_sentences_with_rare_words_go():
    texts = {(p, "1"): "All of them are here.\n" for p in "abc"}
    texts["d", "1"] = "Here are all zebras. They are all of them.\n"
    kept = english.without_rare_words(texts)
    assert set(kept) == {("a", "1"), ("b", "1"), ("c", "1")}


def test_runs_of_words_are_within_a_line():
    line = "a b c d e f g h i"
    assert english.runs_of_words(f"{line}\nx y\n") == {tuple("abcdefgh"), tuple("bcdefghi")}


def test_documents_held_out_are_whole_large_enough_and_share_no_run_with_any_other(monkeypatch):
    monkeypatch.setattr(english, "LEAST", 30)
    monkeypatch.setattr(english, "HELD_OUT", {"test": 150, "valid": 60})
    texts = {
        ("p", str(i)): f"A{i} b{i} c{i} d{i} e{i} f{i} g{i} h{i} i{i} end of it.\n"
        for i in range(9)
    }
    twins = "One two three four five six seven eight nine ten eleven.\n"
    texts |= {
        ("p", "twin"): twins,
        ("q", "twin"): "Now " + twins.lower(),
        ("p", "small"): "So it is.\n",
    }
    parts = english.split(texts)
    assert {name: text for part in parts.values() for name, text in part.items()} == texts
    assert {("p", "twin"), ("q", "twin"), ("p", "small")} <= set(parts["train"])
    for part, least in (("test", 150), ("valid", 60)):
        size = sum(len(text.encode()) for text in parts[part].values())
        assert least <= size < least + 60
