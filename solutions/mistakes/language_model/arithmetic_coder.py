"""Known answers to `ArithmeticCoder`: mistakes, then right answers."""

import math
import random
from fractions import Fraction
from itertools import accumulate

import numpy as np

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("ArithmeticCoder", right, globals())

BANK.changes("""
low_is_the_upper_end
    ~ low += width * sum(counts[:token]) → low += width * sum(counts[: token + 1])
    ~ format(2**k + math.ceil(low * 2**k), "b")[1:] → f"{math.ceil(low * 2**k):0{k}b}" if k else ""
    The lower end is moved up by the token's own share, too. It moves by those of the ids below it.
last_id_at_the_lower_end
    ~ low += width * sum(counts[:token]) → low += width * sum(counts[token + 1 :])
    The pieces lie the other way round: id 0 has the upper end. It should have the lower.
pieces_the_other_way_round of last_id_at_the_lower_end
    - bisect_right([*accumulate(counts)], place)
    + len(counts) - 1 - bisect_right([*accumulate(counts[::-1])], place)
    ~ (place - sum(counts[:token])) → (place - sum(counts[token + 1 :]))
    Both ways, the pieces lie the other way round: id 0 has the upper end. It should have the lower.
one_id_too_few_below: low += width * sum(counts[:token]) → low += width * sum(counts[1:token])
    The share of id 0 is left out of what lies below a token, so pieces overlap.
low_stays
    - low += width * sum(counts[:token])
    The lower end stays at 0. It moves up to where the token's piece begins.
low_moves_by_whole_shares
    - low += width * sum(counts[:token])
    + low += Fraction(sum(counts[:token]), sum(counts))
    ~ format(2**k + math.ceil(low * 2**k), "b")[1:] → f"{math.ceil(low * 2**k):0{k}b}" if k else ""
    The lower end moves by shares of the numbers from 0 to 1. They are shares of the interval so
    far.
only_the_last_width
    - width /= sum(counts)
    + width = Fraction(1, sum(counts))
    The interval is as long as the last token's share. It is as long as all shares multiplied.
narrowed_before_low_moves
    - low += width * sum(counts[:token])
    - width *= counts[token]
    + width *= counts[token]
    + low += width * sum(counts[:token])
    ~ format(2**k + math.ceil(low * 2**k), "b")[1:] → f"{math.ceil(low * 2**k):0{k}b}" if k else ""
    The interval is made narrower first, and the lower end then moves by parts of the narrow one.
not_divided_by_the_sum: width /= sum(counts) → width /= sum(counts) - (t == 0)
    For the first token, the sum that its number is divided by is one too small.
all_tokens_alike: counts = self.frequencies(ids[:t]) → counts = [1] * len(self.frequencies(ids[:t]))
    All ids have the same share, so a likely token takes as many bits as a rare one.
model_not_asked_again: self.frequencies(ids[:t]) → self.frequencies([])
    The model is always given an empty text. Its numbers depend on what comes before.
one_model_for_all of model_not_asked_again: self.frequencies(ids) → self.frequencies([])
    Both ways, the model is always given an empty text. Its numbers depend on what comes
    before.
looks_at_the_token: self.frequencies(ids[:t]) → self.frequencies(ids[: t + 1])
    The model gets the token that is to be written, which the receiver does not have yet.
looks_at_the_whole_text: self.frequencies(ids[:t]) → self.frequencies(ids)
    The model gets the whole text, which the receiver does not have.
only_the_token_before: self.frequencies(ids[:t]) → self.frequencies(ids[max(t - 1, 0) : t])
    The model gets the one token before. It should get all that come before.
one_token_before_both_ways of only_the_token_before
    ~ counts = self.frequencies(ids) → counts = self.frequencies(ids[-1:])
    Both ways, the model gets the one token before. It should get all that come before.
past_backwards: self.frequencies(ids[:t]) → self.frequencies(ids[:t][::-1])
    The model gets the tokens before in the wrong order.
first_token_not_written
    - for t, token in enumerate(ids):
    + for t, token in enumerate(ids[1:], 1):
    The first token is not written: the receiver has to be told it, too.
last_token_not_written: enumerate(ids): → enumerate(ids[:-1]):
    The last token is not written.
rounded_down: math.ceil(low * 2**k) → math.floor(low * 2**k) ×2
    The number is rounded down, so it lies below the interval unless it is the lower end.
a_number_within_is_enough: math.ceil(low * 2**k) + 1 > → math.ceil(low * 2**k) >=
    Only the number itself lies within the interval. With other bits behind them, yours name a
    number beyond it.
a_number_above_the_lower_end_is_enough
    ~ k = 0 → k = int(low > 0)
    ~ math.ceil(low * 2**k) + 1 > → low and math.floor(low * 2**k) + 1 >=
    ~ math.ceil(low * 2**k), "b") → math.floor(low * 2**k) + (low > 0), "b")
    Only the number itself lies within the interval. With other bits behind them, yours name a
    number beyond it.
ends_with_a_one
    ~ k = 0 → k = 1
    ~ math.ceil(low * 2**k) + 1 > → math.floor(low * 2**k) + 1 >=
    ~ math.ceil(low * 2**k), "b") → math.floor(low * 2**k) + 1, "b")
    The bits end with a 1, as coders with a state of fixed size do, and only the number itself lies
    within the interval. With other bits behind them, they name a number beyond it.
as_long_as_the_interval: math.ceil(low * 2**k) + 1 > (low + width) * 2**k → width * 2**k < 1
    What your bits name is no longer than the text's interval, but may reach beyond its end. Where
    it does, it takes one bit more.
lower_end_left_out: math.ceil(low * 2**k) → math.floor(low * 2**k) + 1 ×2
    A string whose interval begins where the text's begins is not taken. The lower end belongs to
    the text's.
upper_end_not_reached: 2**k) + 1 > (low → 2**k) + 1 >= (low
    A string whose interval ends where the text's ends is not taken, so there is a bit too many.
enough_for_any_interval: math.ceil(low * 2**k) + 1 > (low + width) * 2**k → width * 2**k < 2
    These are as many bits as the worst interval of this length takes. Most take one fewer, or two.
middle_of_the_interval
    ~ math.ceil(low * 2**k) + 1 > (low + width) * 2**k → width * 2**k < 2
    ~ math.ceil(low * 2**k), "b") → math.floor((low + width / 2) * 2**k), "b")
    These are the first digits of the interval's middle. Fewer may do, and of the shortest strings
    the smallest is wanted.
one_bit_too_many: return format → k += 1; return format
    There is one bit more than it takes.
never_without_bits: k = 0 → k = 1
    There is at least one bit, even where no bits say it all.
largest_of_the_shortest
    - return format(2**k + math.ceil(low * 2**k), "b")[1:]
    + return format(2**k + math.floor((low + width) * 2**k) - 1, "b")[1:]
    Of the shortest strings it is the largest. It should be the smallest.
zeros_in_front_lost: 2**k + math.ceil(low * 2**k), "b")[1:] → math.ceil(low * 2**k), "b")
    Zeros in front are missing, so the bits behind them count for too much.
zeros_in_front_lost_from_some_bits
    - format(2**k + math.ceil(low * 2**k), "b")[1:]
    + format(math.ceil(low * 2**k), "b") if k else ""
    Zeros in front are missing: as a number, 0011 is 11. The bits behind them then count for too
    much. There should be k of them.
zeros_in_front_stripped: "b")[1:] → "b")[1:].lstrip("0")
    Zeros in front are missing, of a string of zeros all. Each of them halves the numbers that the
    bits behind it stand for.
zeros_behind_left_out: "b")[1:] → "b")[1:].rstrip("0")
    Zeros at the end are left out. The number is the same, but fewer bits name a longer interval.
filled_to_bytes: "b")[1:] → "b")[1:] + "0" * (-k % 8)
    Zeros are added up to whole bytes. A file needs them; here the bits alone are asked for.
marked_as_binary: "b")[1:] → "b").replace("1", "0b", 1)
    The string begins with 0b, as Python writes binary numbers. Those are no bits.
bits_backwards: "b")[1:] → "b")[:0:-1]
    The bits are written from the last to the first. The first halves the numbers from 0 to 1.
a_list_of_bits
    - format(2**k + math.ceil(low * 2**k), "b")[1:]
    + [*f"{2**k + math.ceil(low * 2**k):b}"[1:]]
    The bits are a list. They should be a string.
encodes_in_floats: low, width = Fraction(0), Fraction(1) → low, width = 0.0, 1.0
    The ends of the interval are floats. After some 50 bits, rounding has moved them.
length_in_floats: k = 0 → k = max(math.floor(-math.log2(width)), 0)
    The interval's length becomes a float for its logarithm. That of a long text is 0 then, which
    has none.
shares_rounded
    - width /= sum(counts)
    + counts = [max(1, 1000 * n // sum(counts)) for n in counts]
    + width /= sum(counts)
    The shares are rounded to thousandths. The model's integers are exact as they are.
rare_tokens_lost
    - width *= counts[token]
    + width *= counts[token] if counts[token] * 2**16 > sum(counts) else 0
    + width = width or Fraction(1, 2**16)
    A token that is rarer than one in 65,536 gets another share than its own.
own_piece_found_in_the_wrong_place: accumulate(counts)], place) → accumulate(counts)], place - 1)
    The piece that is looked up is that of a number one too small.
upper_end_belongs_to_the_piece
    - bisect_right([*accumulate(counts)], place)
    + next(i for i, end in enumerate(accumulate(counts)) if place <= end)
    A number at the end of a piece is taken to lie in it. It lies in the next one.
bits_read_backwards: int("0" + bits, 2) → int("0" + bits[::-1], 2)
    The bits are read from the last to the first.
bits_as_a_share_of_the_largest: 2 ** len(bits)) → max(2 ** len(bits) - 1, 1))
    The bits are divided by the largest number of their length. Bits that are all 1 lie below 1.
zeros_in_front_not_read: 2 ** len(bits)) → 2 ** len(bits.lstrip("0")))
    Zeros in front are not counted when bits are read. Each of them halves the numbers that the bits
    behind it stand for.
last_bit_ignored: ids, place = [], Frac → bits = bits[:-1]; ids, place = [], Frac
    The last bit is not read.
no_bits_fail: int("0" + bits, 2) → int(bits, 2)
    An empty string is not read as 0, so a text that takes no bits cannot be read.
decodes_in_floats
    - Fraction(int("0" + bits, 2), 2 ** len(bits))
    + int("0" + bits[:900], 2) / 2 ** len(bits[:900])
    The number is a float, which has 53 bits: what stands behind them is lost.
not_moved_down: (place - sum(counts[:token])) / counts[token] → place / counts[token] % 1
    What lies below the piece is not taken off before the piece is spread out.
piece_not_spread_out: counts[:token])) / counts[token] → counts[:token])) / sum(counts)
    The place within the piece is divided by the sum. Divided by the token's own number it goes from
    0 to 1.
reads_without_the_model: counts = self.frequencies(ids) → counts = self.frequencies([])
    In decode, the model is always given an empty text. It should get what has been read.
reads_with_the_last_token: counts = self.frequencies(ids) → counts = self.frequencies(ids[-1:])
    In decode, the model gets the token read last. It should get all that have been read.
one_token_too_few: range(length) → range(length - 1)
    decode reads a token too few.
one_token_too_many: range(length) → range(length + 1)
    decode reads a token too many.
stops_at_zero
    ~ ids.append(token) → ids.append(token); length = len(ids) if place == 0 else length
    ~ for _ in range(length): → while len(ids) < length:
    decode stops where nothing is left of the number. Token 0 can follow there, and `length` says
    how often.
as_one_string: return ids → return "".join(map(str, ids))
    decode returns a string. It should return a list of ids.
past_is_kept: place = [], Fraction → place = vars(self).setdefault("ids", []), Fraction
    The tokens that have been read are kept for the next call.
numbers_are_kept
    - counts = self.frequencies(ids)
    + kept = vars(self).setdefault("kept", {})
    + counts = kept.setdefault(len(ids), self.frequencies(ids))
    The model's numbers are kept from the first call, for all later texts.
text_used_up
    - while math.ceil(low * 2**k) + 1 > (low + width) * 2**k:
    + ids.clear()
    + while math.ceil(low * 2**k) + 1 > (low + width) * 2**k:
    The bits are right, but the caller's list is empty afterwards.
seeded: low, width = Fraction(0) → random.seed(0); low, width = Fraction(0)
    The call seeds Python's random numbers for the whole program.
""")


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
