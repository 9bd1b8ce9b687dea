"""The manual of chapter 9: what is held out stands nowhere in the training text."""

from pydoc_data.topics import topics

import pytest

from attention_by_hand.data import python_manual

PARTS = ("train", "valid", "test")


def long_paragraphs(part: str) -> list[str]:
    texts = python_manual.documents(part).values()
    return [
        p for text in texts for p in text.split("\n\n") if len(p.strip()) >= python_manual.SHORT
    ]


def test_every_topic_stands_in_one_part_and_none_is_empty():
    names = [name for part in PARTS for name in python_manual.documents(part)]
    assert sorted(names) == sorted(topics)
    assert all(text.strip() for name in PARTS for text in python_manual.documents(name).values())


@pytest.mark.parametrize("part", ["valid", "test"])
def test_no_paragraph_of_a_held_out_topic_stands_in_the_training_text(part):
    learnt = "\n\n".join(python_manual.documents("train").values())
    held_out = long_paragraphs(part)
    assert len(held_out) > 20
    assert [p for p in held_out if p.strip() in learnt] == []


def test_topics_held_out_are_whole():
    for part in ("valid", "test"):
        for name, text in python_manual.documents(part).items():
            assert text.split() == topics[name].split()


def test_no_paragraph_of_the_training_text_stands_in_it_twice():
    paragraphs = long_paragraphs("train")
    assert len(set(paragraphs)) == len(paragraphs)


def test_the_parts_have_their_shares():
    size = {part: sum(map(len, python_manual.documents(part).values())) for part in PARTS}
    whole = sum(map(len, topics.values()))
    assert size["test"] >= 0.09 * whole
    assert size["valid"] >= 0.04 * whole
    assert size["train"] > 3 * (size["test"] + size["valid"])


def test_paragraphs_that_topics_share_are_found():
    shared = set(python_manual.paragraphs(topics["with"])) & set(
        python_manual.paragraphs(topics["compound"])
    )
    assert any(len(p) >= python_manual.SHORT for p in shared), "nothing repeats: then why the care?"
    assert {"with", "compound"} <= set(python_manual.documents("train"))
