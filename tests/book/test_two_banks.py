"""The book's first picture: which *bank*, by an attention that was trained to tell."""

import math
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from attention_by_hand.figures import journey
from attention_by_hand.figures.two_banks import LOOKS, MADE, TEXTS
from benchmarks.two_banks import (
    FOLLOWED,
    SENSES,
    WORDS,
    Model,
    batch,
    learnt,
    looks,
    sentences,
    shown,
    train,
)

STATE = {name: np.array(numbers) for name, numbers in MADE["state"].items()}
PAGE = (Path(__file__).parents[2] / "book" / "intro.md").read_text(encoding="utf-8")
MUDDY, CLOSED = TEXTS.values()


@pytest.mark.parametrize("text", TEXTS)
def test_the_numbers_are_those_of_attention(text):
    found = TEXTS[text]
    rows = STATE["table.weight"][[MADE["words"].index(word) for word in found["words"]]]
    assert_allclose(found["embedding"], rows[found["place"]])
    query = STATE["W_q.weight"] @ rows[found["place"]]
    counts = np.exp(rows @ STATE["W_k.weight"].T @ query / math.sqrt(2))
    values = rows @ STATE["W_v.weight"].T
    average = counts / counts.sum() @ values
    logits = np.exp(STATE["output.weight"] @ average + STATE["output.bias"])
    for name, numbers in (
        ("weights", counts / counts.sum()),
        ("values", values),
        ("average", average),
        ("answer", logits / logits.sum()),
    ):
        assert_allclose(found[name], numbers, rtol=0, atol=6e-5, err_msg=name)


def test_one_word_differs_and_gets_most_of_the_weight_and_decides():
    assert list(FOLLOWED) == [MUDDY["words"], CLOSED["words"]]
    assert sum(a != b for a, b in zip(*FOLLOWED, strict=True)) == 1
    assert MUDDY["embedding"] == CLOSED["embedding"], "the table knows one bank only"
    for found, word, sense in ((MUDDY, "muddy", "water"), (CLOSED, "closed", "money")):
        assert found["words"][np.argmax(found["weights"])] == word and max(found["weights"]) > 0.5
        assert SENSES[np.argmax(found["answer"])] == sense


def test_neither_sentence_was_trained_on_but_the_grammar_makes_them():
    trained = [text for text, _ in learnt()]
    assert MADE["words"] == WORDS
    for text in FOLLOWED:
        assert text in [made for made, _ in sentences()]
        assert not any([w for w in other if w != "today"] == text for other in trained)
    assert ["she", "sees", "the", "muddy", "bank", "."] in trained


def test_a_noun_that_tells_by_itself_keeps_its_sense_and_a_bank_has_that_of_its_adjective():
    for text, sense in sentences():
        if {"shore", "lake"} & set(text):
            assert sense == "water", text
        elif {"shop", "firm"} & set(text):
            assert sense == "money", text
        elif {"old", "small", "near"} & set(text):
            assert sense == "either", text
        else:
            assert (sense == "water") == bool({"muddy", "deep", "wide"} & set(text)), text


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(10))
def test_a_training_gets_both_banks_right_and_looks_as_is_stored(seed):
    model = train(seed)
    answers = [SENSES[np.argmax(found["answer"])] for found in shown(model).values()]
    assert answers == ["water", "money"]
    assert_allclose(looks(model), LOOKS[seed], atol=0.02)


def test_ten_trainings_do_what_the_caption_says():
    assert LOOKS[MADE["seed"]] == [MUDDY["weights"][3], CLOSED["weights"][3]]
    assert (len(LOOKS), sum(min(look) > 0.5 for look in LOOKS)) == (10, 6)
    assert "All ten such networks get both banks right; in six of them, this one included," in PAGE


def test_a_large_first_number_speaks_for_the_water_and_a_large_second_one_for_money():
    rows = STATE["output.weight"]
    assert "a large first number speaks for the water, a large second one for money" in PAGE
    for place, sense in enumerate(("water", "money")):
        assert SENSES[np.argmax(rows[:, place])] == sense and rows[:, place].max() > 0
    assert MUDDY["average"][0] > 0 > CLOSED["average"][0]
    assert CLOSED["average"][1] > 1 > MUDDY["average"][1]


def test_the_page_says_the_numbers_of_its_picture():
    (alt,) = re.findall(r"\{picture\} journey\.neighbours\n:alt: (.*)", PAGE)
    told = {float(number.replace("−", "-")) for number in re.findall(r"−?\d\.\d\d", alt)}
    numbers = [*MUDDY["embedding"]]
    for found in (MUDDY, CLOSED):
        numbers += [max(found["weights"]), max(found["answer"]), *found["average"]]
    assert told == {float(journey.format_number(number).replace("−", "-")) for number in numbers}
    journey.neighbours()
    drawn = [text.get_text() for text in plt.gcf().axes[0].texts]
    for found, sense in ((MUDDY, "by the water"), (CLOSED, "with money")):
        assert any(sense in label and f"{max(found['answer']):.2f}" in label for label in drawn)
        for number in (*found["weights"], *found["average"]):
            assert journey.format_number(number) in drawn
        for number in np.ravel(found["values"]):
            assert journey.format_number(number, 1) in drawn
    plt.close("all")


def test_the_page_names_all_its_words():
    (told,) = re.findall(r"It knows (.*?) and the full stop", PAGE)
    assert sorted([*re.findall(r"\*(\w+)\*", told), "."]) == WORDS


def test_two_subjects_mislead_it_as_the_page_says():
    model = Model()
    model.load_state_dict({name: torch.tensor(part) for name, part in MADE["state"].items()})
    text = "The bank is muddy. The shop is closed."
    assert f"In *{text}* the word *bank* looks most at *shop*" in PAGE
    words = re.findall(r"\w+|\.", text.lower())
    swap = {"muddy": "closed", "closed": "muddy"}
    with torch.no_grad():
        ids, _ = batch([words, [swap.get(word, word) for word in words]])
        logits, _, weights, _ = model(ids, torch.tensor([1, 1]))
    assert words[weights[0].argmax()] == "shop" and words[1] == "bank"
    assert SENSES[logits[0].argmax()] == "money"
    assert_allclose(logits[0], logits[1], atol=1e-5, err_msg="the order makes no difference")


def test_the_table_by_hand_has_the_numbers_of_the_picture():
    (table,) = re.findall(r"\{pencil\} first_average\n(.*?)\n:::::", PAGE, re.DOTALL)
    lines = [
        re.split(r" *\| *", line.strip("| ")) for line in table.splitlines() if line[:1] == "|"
    ]
    columns = zip(*[line[1:] for line in lines[2:]], strict=True)
    far, surely = [], []
    for found, cells in zip((MUDDY, CLOSED), columns, strict=True):
        numbers = (re.search(r"−?\d\.\d+", cell)[0] for cell in cells)
        shown = [float(number.replace("−", "-")) for number in numbers]
        both, says, alike, weight, brings, others, average = shown
        first, shares = np.array(found["values"])[:, 0], np.array(found["weights"])
        parts = shares * first
        wanted = [first.sum() - first[3], first[3], first.mean(), parts[3]]
        wanted += [parts.sum() - parts[3], parts.sum()]
        assert weight == round(shares[3], 2)
        assert [both, says, alike, brings, others, average] == [round(part, 1) for part in wanted]
        assert (alike, brings) == (round((both + says) / 5, 1), round(weight * says, 1))
        assert average == round(brings + others, 1)
        assert f"{shares[4]:.2f} · {first[4]:.1f} = {parts[4]:.1f}" in PAGE
        far.append(((both + says) / 5, average))
        logits = STATE["output.weight"] @ np.mean(found["values"], 0) + STATE["output.bias"]
        assert logits.argmax() == np.argmax(found["answer"])
        surely.append(round(np.exp(logits).max() / np.exp(logits).sum(), 2))
    (plain, other), (muddy, closed) = zip(*far, strict=True)
    near = f"averages are {plain:.1f} − {other:.1f} = {plain - other:.1f} apart; "
    assert near + f"with the weights, {muddy:.1f} + {-closed:.1f} = {muddy - closed:.1f}." in PAGE
    assert f"still be right, but only {surely[0]:.2f} and {surely[1]:.2f} sure instead" in PAGE
    assert min(max(found["answer"]) for found in (MUDDY, CLOSED)) == pytest.approx(0.99, abs=0.005)
