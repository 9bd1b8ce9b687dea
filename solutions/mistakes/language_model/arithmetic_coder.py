"""Known answers to `ArithmeticCoder`: mistakes, then right answers."""

import math
import random
from fractions import Fraction
from itertools import accumulate

import numpy as np

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("ArithmeticCoder", right, globals())
BANK.read()


@BANK.mistake
class a_code_for_each_token(right.ArithmeticCoder):
    """Each token gets bits of its own, whole ones. All of them together name one interval: what is
    left of a bit is of use for the next token."""

    def encode(self, ids):
        bits = ""
        for t, token in enumerate(ids):
            counts = self.frequencies(ids[:t])
            alone = right.ArithmeticCoder(lambda _, counts=counts: counts)
            bits += alone.encode([token])
        return bits

    def decode(self, bits, length):
        ids = []
        for _ in range(length):
            counts = self.frequencies(ids)
            alone = right.ArithmeticCoder(lambda _, counts=counts: counts)
            ids += alone.decode(bits, 1)
            bits = bits[len(alone.encode(ids[-1:])) :]
        return ids


@BANK.right
class in_integers:
    """The ends as integers over one denominator; decode narrows the interval as encode does."""

    def __init__(self, frequencies):
        self.frequencies = frequencies

    def narrowed(self, interval, counts, token):
        low, width, scale = interval
        below, total = sum(counts[:token]), sum(counts)
        return low * total + width * below, width * counts[token], scale * total

    def encode(self, ids):
        interval = 0, 1, 1
        for t in range(len(ids)):
            interval = self.narrowed(interval, self.frequencies(list(ids[:t])), ids[t])
        low, width, scale = interval
        k = max((scale // width).bit_length() - 1, 0)
        while True:
            number = -((-low << k) // scale)
            if (number + 1) * scale <= (low + width) << k:
                return f"{number:0{k}b}" if k else ""
            k += 1

    def decode(self, bits, length):
        number = int(bits, 2) if bits else 0
        interval, ids = (0, 1, 1), []
        while len(ids) < length:
            counts = self.frequencies(list(ids))
            for token in range(len(counts)):
                low, width, scale = self.narrowed(interval, counts, token)
                if number * scale < (low + width) << len(bits):
                    break
            interval = low, width, scale
            ids.append(token)
        return ids


@BANK.right
class from_the_last_token:
    """The interval is built from the inside: that of the rest of the text, placed in a piece."""

    def __init__(self, model):
        self.model = model

    def inside(self, ids, t):
        if t == len(ids):
            return Fraction(0), Fraction(1)
        low, high = self.inside(ids, t + 1)
        ends = [0, *accumulate(self.model(ids[:t]))]
        start, end = (Fraction(e, ends[-1]) for e in ends[ids[t] : ids[t] + 2])
        return start + low * (end - start), start + high * (end - start)

    def encode(self, ids):
        low, high = self.inside(ids, 0)
        k = next(k for k in range(10**6) if Fraction(math.ceil(low * 2**k) + 1, 2**k) <= high)
        return bin(math.ceil(low * 2**k))[2:].zfill(k) if k else ""

    def decode(self, bits, length):
        return self.read(Fraction(int(bits or "0", 2), 1 << len(bits)), [], length)

    def read(self, x, ids, length):
        if len(ids) == length:
            return ids
        ends = [0, *accumulate(self.model(ids))]
        x *= ends[-1]
        token = max(i for i, end in enumerate(ends[:-1]) if end <= x)
        x = (x - ends[token]) / (ends[token + 1] - ends[token])
        return self.read(x, [*ids, token], length)


@BANK.right
class bits_as_soon_as_they_are_settled:
    """A bit is written once the interval lies in one half, which is then spread out."""

    def __init__(self, frequencies):
        self.frequencies = frequencies

    def encode(self, ids):
        low, high, bits = Fraction(0), Fraction(1), []
        for t, token in enumerate(ids):
            counts = self.frequencies(ids[:t])
            below, size = Fraction(sum(counts[:token]), sum(counts)), high - low
            high = low + size * (below + Fraction(counts[token], sum(counts)))
            low += size * below
            while high - low < 1 and (2 * high <= 1 or 2 * low >= 1):
                bit = int(2 * low >= 1)
                bits.append(str(bit))
                low, high = 2 * low - bit, 2 * high - bit
        tail = [""]
        while True:
            for end in tail:
                number, cells = int("0" + end, 2), 2 ** len(end)
                if low * cells <= number and number + 1 <= high * cells:
                    return "".join(bits) + end
            tail = [end + bit for end in tail for bit in "01"]

    def decode(self, bits, length):
        at, ids = sum(Fraction(int(bit), 2 << i) for i, bit in enumerate(bits)), []
        for _ in range(length):
            counts = self.frequencies(ids)
            at, token = at * sum(counts), 0
            while at >= counts[token]:
                at -= counts[token]
                token += 1
            at /= counts[token]
            ids = [*ids, token]
        return ids


@BANK.right
class with_numpys_sums:
    """The pieces' ends from NumPy, as Python's integers."""

    def __init__(self, frequencies):
        self.frequencies = frequencies

    def ends(self, past):
        return [0, *map(int, np.cumsum(self.frequencies(past)))]

    def encode(self, ids):
        low, high = Fraction(0), Fraction(1)
        for t, token in enumerate(ids):
            ends = self.ends(ids[:t])
            unit = (high - low) / ends[-1]
            low, high = low + unit * ends[token], low + unit * ends[token + 1]
        k = 0
        while (number := -(-low * 2**k // 1)) + 1 > high * 2**k:
            k += 1
        return "".join(str(int(number) >> i & 1) for i in reversed(range(k)))

    def decode(self, bits, length):
        low, high, ids = Fraction(0), Fraction(1), []
        number = Fraction(int(bits, 2) if bits else 0, 2 ** len(bits))
        for _ in range(length):
            ends = self.ends(ids)
            unit = (high - low) / ends[-1]
            token = int(np.searchsorted(ends, int((number - low) / unit), side="right")) - 1
            low, high = low + unit * ends[token], low + unit * ends[token + 1]
            ids.append(token)
        return ids
