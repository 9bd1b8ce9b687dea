"""Times as Moodle's tables write them, in the site's language.

*Monday, 3 March 2025, 10:15 AM*, *Montag, 3. März 2025, 10:15*: a day, a month's name, a year, a
time to the minute. The names come from Unicode's CLDR data as shipped with Babel, of the languages
below. A month that is a number is not understood, since 3/4 is two days, nor is a zone that stands
behind, nor an hour that the clocks showed twice or never.
"""

import re
from datetime import UTC, datetime, tzinfo
from functools import cache
from unicodedata import normalize

NONE = ("", "-", "–")  # no time
LANGUAGES = (
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "nb", "fi", "pl", "cs", "hu", "tr",
    "ru", "uk", "el", "ca", "ro",
)  # fmt: skip
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(r"(?<!\d)(\d{1,2})[:.](\d\d)(?:[:.](\d\d))?(?!\d)(\D*)$")
_WORDS = re.compile(r"[^\W\d_]+")
_FIRST = 2000  # a year: what knows no time may write one of 1970


def moment_in(text: str, zone: tzinfo) -> datetime | None:
    """The moment that a text names, by the clock of `zone` unless it says another; else None."""
    try:
        moment = _moment_in(normalize("NFKC", text).strip(), zone)
    except (ValueError, OverflowError):  # a day or a year that there is not
        return None
    return moment if moment and moment.year >= _FIRST else None


def _moment_in(text: str, zone: tzinfo) -> datetime | None:
    if found := _ISO.fullmatch(text):
        stamp = datetime.fromisoformat(text.replace(" UTC", "+00:00").replace("UTC", "+00:00"))
        return stamp.astimezone(UTC) if found[3] else clock_to_utc(stamp, zone)
    clock = _CLOCK.search(text)
    if clock is None:
        return None
    date, behind = text[: clock.start()], "".join(filter(str.isalpha, clock[4].casefold()))
    months = {_months()[w] for w in _WORDS.findall(date.casefold()) if w in _months()}
    named = [w for w in re.findall(r"\b[A-Z]{3,5}\b", date) if w.casefold() not in _months()]
    year, day = re.findall(r"(?<!\d)\d{4}(?!\d)", date), re.findall(r"(?<!\d)\d{1,2}(?!\d)", date)
    if named or not (len(months) == len(year) == len(day) == 1):  # a zone, perhaps
        return None
    hour, minute, second = (int(part or 0) for part in clock.groups()[:3])
    if behind in _halves() and hour <= 12:
        hour = hour % 12 + _halves()[behind]
    elif behind not in ("", "uhr"):
        return None
    return clock_to_utc(
        datetime(int(year[0]), months.pop(), int(day[0]), hour, minute, second), zone
    )


def clock_to_utc(shown: datetime, zone: tzinfo) -> datetime | None:
    """What clocks of a zone showed, if they did so once."""
    moment = shown.replace(tzinfo=zone)
    once = moment.utcoffset() == moment.replace(fold=1).utcoffset()
    return moment.astimezone(UTC) if once else None


@cache
def _halves() -> dict[str, int]:
    """The first hour of a half of the day, by the letters that stand for it: am, PM, μ.μ."""
    from babel import Locale

    found: dict[str, int] = {}
    for language in LANGUAGES:
        for names in Locale(language).day_periods["format"].values():
            for half, hour in (("am", 0), ("pm", 12)):
                letters = "".join(filter(str.isalpha, names.get(half, "").casefold()))
                if len(letters) > 1 and found.setdefault(letters, hour) != hour:
                    found[letters] = -1  # the one in one language, the other in another
    return {letters: hour for letters, hour in found.items() if hour >= 0}


@cache
def _months() -> dict[str, int]:
    """Months by their names and abbreviations, in small letters."""
    from babel import Locale

    found: dict[str, int] = {}
    for language in LANGUAGES:
        names = Locale(language).months
        for use in ("format", "stand-alone"):
            for width in ("wide", "abbreviated"):
                for number, name in names[use][width].items():
                    word = normalize("NFKC", name).casefold().rstrip(".")
                    if _WORDS.fullmatch(word) and found.setdefault(word, number) != number:
                        found[word] = 0  # different months in two languages
    return {word: number for word, number in found.items() if number}
