"""Times as Moodle's tables write them, in the site's language.

*Monday, 3 March 2025, 10:15 AM*, *Montag, 3. März 2025, 10:15*: a day, a month's name, a year, a
time to the minute. The names come from Unicode's CLDR data as shipped with Babel, of the languages
below. A month that is a number is not understood, since 3/4 is two days, nor is a
zone that stands behind.
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
_WORDS = re.compile(r"[^\W\d_]+")


def moment_in(text: str, zone: tzinfo) -> datetime | None:
    """The moment that a text names, by the clock of `zone` unless it says another; else None."""
    try:
        return _moment_in(normalize("NFKC", text).strip(), zone)
    except (ValueError, OverflowError):  # a day or a year that there is not
        return None


def _moment_in(text: str, zone: tzinfo) -> datetime | None:
    if found := _ISO.fullmatch(text):
        stamp = datetime.fromisoformat(text.replace(" UTC", "+00:00").replace("UTC", "+00:00"))
        return (stamp if found[3] else stamp.replace(tzinfo=zone)).astimezone(UTC)
    months = {_months()[w] for w in _WORDS.findall(text.casefold()) if w in _months()}
    named = [w for w in re.findall(r"\b[A-Z]{3,5}\b", text) if w.casefold() not in _months()]
    if named or re.search(r"[+-]\d\d:?\d\d$", text):  # a zone, perhaps
        return None
    year = re.findall(r"(?<!\d)\d{4}(?!\d)", text)
    clock = re.findall(r"(?<!\d)(\d{1,2})[:.](\d\d)(?::\d\d)?(?!\d)\s*([AaPp]\.?[Mm])?", text)
    rest = re.sub(r"\d{4}|\d{1,2}[:.]\d\d(?::\d\d)?", " ", text)
    day = re.findall(r"(?<!\d)\d{1,2}(?!\d)", rest)
    if not (len(months) == len(year) == len(clock) == len(day) == 1):
        return None
    hour, minute, half = int(clock[0][0]), int(clock[0][1]), clock[0][2].casefold()[:1]
    if half:
        hour = hour % 12 + 12 * (half == "p")
    local = datetime(int(year[0]), months.pop(), int(day[0]), hour, minute, tzinfo=zone)
    return local.astimezone(UTC)


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
