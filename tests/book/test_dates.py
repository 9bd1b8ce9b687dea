"""The dates of chapter 7: every text has one reading, no day stands in two parts."""

import calendar
import datetime
import re

import pytest
import torch

from attention_by_hand.data import dates
from attention_by_hand.data.dates import FORMATS, LOCALES, PARTS, one_reading, write
from autograder.sandbox.host import Sandbox

YEAR_OF_FOUR = re.compile(r"\d{4}")


def every_day(first: datetime.date, last: datetime.date):
    for k in range((last - first).days + 1):
        yield first + datetime.timedelta(days=k)


def kept(days, ways):
    """Every kept text of the days, with the days that it is a text of."""
    read: dict[str, set[datetime.date]] = {}
    for day in days:
        for locale, format in ways:
            text = write(day, locale, format)
            if one_reading(text, day):
                read.setdefault(text, set()).add(day)
    return read


ALL_WAYS = [(locale, format) for locale in LOCALES for format in FORMATS]


def has_long_year(locale, format):
    return YEAR_OF_FOUR.search(write(datetime.date(2027, 3, 9), locale, format)) is not None


def test_there_are_14_locales_and_each_writes_its_own_language():
    assert len(LOCALES) == 14
    day = datetime.date(2027, 3, 9)  # a Tuesday
    written = {locale: write(day, locale, "full") for locale in LOCALES}
    assert written["en_US"] == "Tuesday, March 9, 2027"
    assert written["de_DE"] == "Dienstag, 9. März 2027"
    assert written["pt_BR"] == "terça-feira, 9 de março de 2027"
    assert written["ja_JP"] == "2027年3月9日火曜日"
    assert len(set(written.values())) == 14


@pytest.mark.share(0)
def test_a_text_with_a_long_year_has_one_reading():
    """The year stands in it, so two readings would lie in one year: all days of two years."""
    ways = [way for way in ALL_WAYS if has_long_year(*way)]
    two_years = every_day(datetime.date(2027, 1, 1), datetime.date(2028, 12, 31))
    for text, read in kept(two_years, ways).items():
        assert len(read) == 1, (text, read)
        (day,) = read
        assert YEAR_OF_FOUR.findall(text) == [str(day.year)], text


@pytest.mark.share(0)
def test_a_text_with_a_short_year_has_one_reading():
    """All days of the century: a year of two digits could be a day or a month."""
    ways = [way for way in ALL_WAYS if not has_long_year(*way)]
    assert {format for _, format in ways} == {"short"} and len(ways) == 5
    for text, read in kept(every_day(dates.FIRST, dates.LAST), ways).items():
        assert len(read) == 1, (text, read)
        assert not YEAR_OF_FOUR.search(text)


def test_what_could_be_read_in_two_orders_is_left_out():
    march = datetime.date(2027, 3, 9)
    assert not one_reading(write(march, "en_US", "short"), march)  # 3/9/27, in Spain 3 September
    assert not one_reading(write(march, "en_GB", "short"), march)
    assert one_reading(write(march, "ja_JP", "short"), march)  # 2027/03/09
    for day in (datetime.date(2027, 3, 25), datetime.date(2027, 3, 3)):
        assert one_reading(write(day, "en_US", "short"), day)


def test_a_century_holds_each_short_year_once():
    years = range(dates.FIRST.year, dates.LAST.year + 1)
    assert len(years) == 100 == len({year % 100 for year in years})


def test_the_parts_share_no_day_and_leave_none_out():
    parts = {part: set(dates.days(part)) for part in PARTS}
    everything = set(every_day(dates.FIRST, dates.LAST))
    assert sum(map(len, parts.values())) == len(everything) == 36_525
    assert set.union(*parts.values()) == everything
    assert len(parts["test"]) > 5000


@pytest.mark.share(0)
def test_no_text_and_no_date_of_the_test_is_in_training():
    train, test = dates.examples("train", 20_000), dates.examples("test", 1000, seed=2)
    assert not {e.iso for e in train} & {e.iso for e in test}
    assert not {e.text for e in train} & {e.text for e in test}
    assert {e.locale for e in train} == set(LOCALES) == {e.locale for e in test}
    assert {e.format for e in test} == set(FORMATS)


def test_an_example_says_what_it_means():
    for example in dates.examples("valid", 300, seed=3):
        day = datetime.date.fromisoformat(example.iso)
        assert day in dates.days("valid")
        assert example.text == write(day, example.locale, example.format)
        digits = re.findall(r"\d+", example.text)
        assert day.day in map(int, digits)
        if not has_long_year(example.locale, example.format):
            assert f"{day.year % 100:02}" in digits


def test_the_weekday_of_a_full_date_is_the_calendars():
    for example in dates.examples("valid", 400, seed=4):
        if example.locale == "en_GB" and example.format == "full":
            day = datetime.date.fromisoformat(example.iso)
            assert example.text.startswith(calendar.day_name[day.weekday()])


def test_the_same_seed_draws_the_same_examples_and_leaves_the_global_state():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = dates.examples("train", 50, seed=1)
    assert first == dates.examples("train", 50, seed=1) != dates.examples("train", 50, seed=2)
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_vocabulary_gives_texts_back():
    texts = ["9. März 2027", "2027年3月9日火曜日", "3"]
    known = dates.Vocabulary(texts)
    ids = known.encode(texts, eos=True)
    assert ids.shape == (3, 13) and ids.dtype == torch.long
    assert [known.decode(row) for row in ids] == texts
    assert (ids == dates.EOS).sum(1).tolist() == [1, 1, 1]
    assert ids[2].tolist()[1:] == [dates.EOS] + [dates.PAD] * 11
    assert known.decode([dates.BOS, *known.encode(["3"])[0], dates.EOS, 5]) == "3"
    with pytest.raises(ValueError, match="X"):
        known.encode(["X"])


def test_a_pass_of_batches_gives_each_example_once_with_its_target():
    data = dates.examples("train", 700)
    source = dates.Vocabulary([e.text for e in data])
    target = dates.Vocabulary([e.iso for e in data])
    asked = {e.text: e.iso for e in data}
    passes, seen, padding, total = dates.batches(data, source, target, 64, seed=1), [], 0, 0
    while len(seen) < len(data):
        x, y = next(passes)
        assert x.numel() <= 64 * 24 and len(x) == len(y)
        seen += [(source.decode(a), target.decode(b)) for a, b in zip(x, y, strict=True)]
        padding, total = padding + int((x == dates.PAD).sum()), total + x.numel()
    assert sorted(text for text, _ in seen) == sorted(e.text for e in data)
    assert all(asked[text] == iso for text, iso in seen)
    assert padding < 0.1 * total  # texts of about the same length share a batch
    again = next(dates.batches(data, source, target, 64, seed=2))[0]
    assert again.shape != x.shape or not torch.equal(again, x)


def test_a_student_has_the_dates_in_the_sandbox():
    code = "from attention_by_hand.data import dates\nprint(dates.examples('test', 2, seed=2)[0])"
    with Sandbox() as worker:
        (output,) = worker.execute(code)
    assert output["text"] == f"{dates.examples('test', 2, seed=2)[0]}\n"
