"""Facts about `ArithmeticCoder`, found by other means than the reference."""

import math
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_by_hand.exercises.language_model.counting import always, by_the_past
from solutions.language_model import ArithmeticCoder

MODELS = [(always([3, 1, 2]), 3), (by_the_past(4, 13), 4), (always([1, 2**20, 1]), 3)]


def share_of(frequencies, ids):
    parts = ((frequencies(ids[:t]), token) for t, token in enumerate(ids))
    return math.prod((Fraction(n[token], sum(n)) for n, token in parts), start=Fraction(1))


def test_the_pages_example():
    """the ½, well ¼, deep ¼: "the deep well" goes from 7/16 to 15/32."""
    coder = ArithmeticCoder(always([2, 1, 1]))
    assert coder.encode([0, 2, 1]) == "01110"
    assert coder.decode("01110", 3) == [0, 2, 1]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MODELS), st.data())
def test_it_comes_back_whatever_follows_and_takes_less_than_two_bits_more(model, data):
    frequencies, vocab = model
    ids = data.draw(st.lists(st.integers(0, vocab - 1), max_size=30))
    coder = ArithmeticCoder(frequencies)
    bits = coder.encode(ids)
    behind = data.draw(st.text("01", max_size=20))
    assert coder.decode(bits + behind, len(ids)) == ids
    share = share_of(frequencies, ids)
    assert 2 ** len(bits) * share < 4 and 2 ** len(bits) * share >= 1


@pytest.mark.parametrize(("frequencies", "vocab"), MODELS)
def test_no_text_begins_with_another_of_its_length_and_none_could_be_shorter(frequencies, vocab):
    coder = ArithmeticCoder(frequencies)
    found = sorted(coder.encode([*ids]) for ids in product(range(vocab), repeat=4))
    assert not any(b.startswith(a) for a, b in pairwise(found))
    assert sum(Fraction(1, 2 ** len(bits)) for bits in found) <= 1
    for bits in found[:20]:  # with one bit fewer, no string is safe
        ids = coder.decode(bits, 4)
        for number in range(2 ** max(len(bits) - 1, 0)) if 0 < len(bits) <= 10 else ():
            shorter = f"{number:b}".zfill(len(bits) - 1) if len(bits) > 1 else ""
            ends = {(*coder.decode(shorter + end * 40, 4),) for end in "01"}
            assert ends != {(*ids,)}
