"""What chapter 12's page says of the queue and of CapFilt, held to what was measured."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.second import noisy_captions as second

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "book" / "12_captioning.md").read_text("utf-8")


def runs_of(name):
    stored = json.loads((ROOT / "benchmarks" / f"{name}.json").read_text("utf-8"))
    assert {"script", "date", "machine", "torch"} <= set(stored["made"])
    assert "/" not in stored["made"]["machine"]
    return stored["runs"]


CLEANED, OLDER = runs_of("noisy_captions"), runs_of("older_negatives")
PARTS = ("new", "font")


def percents(shares):
    return " ".join(f"{100 * share:.0f}" for share in shares)


def right(name):
    return np.array([run["right"][name] for run in CLEANED])


def recall(name, part):
    return np.array([run[name][part] for run in OLDER])


def interval(differences):
    """The mean of some seeds' differences and half of its 95 % interval, in points."""
    half = stats.t.ppf(0.975, len(differences) - 1) * stats.sem(differences)
    return 100 * np.mean(differences), 100 * half


def told(differences):
    mean, half = interval(differences)
    return f"{mean:+.1f} ± {half:.1f}".replace("-", "−")


def cleaned_row(shown, name):
    pairs = np.mean([run["pairs"].get(name, np.nan) for run in CLEANED])
    count = "–" if np.isnan(pairs) else f"{pairs:,.0f}"
    change = "–" if name == "noisy" else told(right(name) - right("noisy"))
    return f"| {shown} | {count} | {percents(right(name))} | {change} |"


def older_row(shown, name):
    cells = [percents(recall(name, part)) for part in ("new", "font")]
    change = "–" if name == "batch" else told(recall(name, "font") - recall("batch", "font"))
    return f"| {shown} | {' | '.join(cells)} | {change} |"


CLEANED_ROWS = {
    "none; the 200 alone": "the few alone",
    "as found": "noisy",
    "found, fewer at random": "fewer at random",
    "found, filtered": "filtered",
    "written, unfiltered": "written",
    "found and written, filtered": "filtered and written",
    "all true": "clean",
    "*the first writer itself*": "writer",
}
OLDER_ROWS = {
    "those of the batch": "batch",
    "and a queue, from the encoders": "queue",
    "those of the batch, from a slow copy": "copy",
    "and a queue, from a slow copy": "queue, copy",
    "those of the batch, four times the steps": "four times the steps",
    "64 pairs a step, in four groups of 16": "64 in groups of 16",
    "those of a batch of 64": "batch of 64",
}


def test_at_least_three_seeds():
    assert len(CLEANED) >= 3
    assert len(OLDER) >= 3


@pytest.mark.parametrize("shown", CLEANED_ROWS)
def test_the_table_of_cleaned_captions_is_what_is_stored(shown):
    assert cleaned_row(shown, CLEANED_ROWS[shown]) in PAGE


@pytest.mark.parametrize("shown", OLDER_ROWS)
def test_the_table_of_older_wrong_answers_is_what_is_stored(shown):
    assert older_row(shown, OLDER_ROWS[shown]) in PAGE


def above(differences):
    mean, half = interval(differences)
    return mean > half


def test_what_the_page_says_of_older_wrong_answers_is_what_is_stored():
    assert "Older vectors from the encoders themselves ruin the search" in PAGE
    assert all(above(recall("batch", part) - recall("queue", part)) for part in PARTS)
    assert "they help in the unseen font; for the unseen pairs, the interval has 0 in it" in PAGE
    slow = {part: recall("queue, copy", part) - recall("batch", part) for part in PARTS}
    assert above(slow["font"])
    assert not above(slow["new"])
    assert "The copy alone changes nothing that three seeds could show" in PAGE
    for part in PARTS:
        alone = recall("copy", part) - recall("batch", part)
        assert not above(alone)
        assert not above(-alone)
    mean = {name: f"{100 * recall(name, 'font').mean():.0f}" for name in OLDER_ROWS.values()}
    assert f"they found {mean['batch']} in a hundred partners with 16 pairs a batch" in PAGE
    assert f"16 pairs a batch, {mean['batch of 64']} with 64, at one learning rate" in PAGE
    assert f"with four times the steps, found {mean['four times the steps']}." in PAGE
    assert f"helped our 16 pairs to {mean['queue, copy']} in a hundred" in PAGE
    assert f"the encoders themselves it was {mean['queue']}." in PAGE
    wrong, work = (
        {part: recall("batch of 64", part) - recall(name, part) for part in PARTS}
        for name in ("64 in groups of 16", "four times the steps")
    )
    itself, of_pairs, at_equal_work = map(told, (wrong["font"], wrong["new"], work["font"]))
    assert f"behind by {itself[1:]} points in the font and {of_pairs[1:]} among" in PAGE
    assert f"| *the last against the one before* | | | {itself} |" in PAGE
    assert f"find the partner at once for {at_equal_work[1:]} more in a hundred" in PAGE
    assert f"and are behind by {at_equal_work[1:]} in the font" in PAGE
    assert f"| *and against four times the steps* | | | {at_equal_work} |" in PAGE
    assert all(above(wrong[part]) for part in PARTS)
    assert above(work["font"])
    gained = recall("four times the steps", "font") - recall("batch", "font")
    assert gained.mean() > work["font"].mean()  # "most of that"
    assert "A batch of 64 helps more in the font" in PAGE
    assert above(recall("batch of 64", "font") - recall("queue, copy", "font"))


def test_what_the_page_says_of_unseen_pairs_is_what_the_other_code_found():
    unseen = second.__doc__.partition("unseen pairs, as found")[2].partition(".")[0]
    found, filtered = (re.findall(r"\d+", shares) for shares in unseen.split(", filtered"))
    assert "as found, {}, {} and {} in a hundred are right".format(*found) in PAGE
    assert "filtered, {}, {} and {}, for three seeds".format(*filtered) in PAGE


def test_what_the_page_says_of_cleaning_is_what_is_stored():
    assert above(pays := right("filtered") - right("noisy"))
    assert f"Filtering pays ({told(pays)} points), and not because there are fewer pairs" in PAGE
    many, few = (100 * right(name).mean() for name in ("filtered", "noisy"))
    assert f"{many:.0f}% are named right instead of {few:.0f}%" in PAGE
    assert above(right("filtered") - right("fewer at random"))
    assert "of the right captions it keeps about half, of the wrong ones at most two in a" in PAGE
    assert all(0.45 < run["kept of the right"] < 0.6 for run in CLEANED)
    assert all(run["kept of the wrong"] <= 0.02 for run in CLEANED)
    assert "Writing does not pay here. Three in four of the written captions are wrong" in PAGE
    assert not above(right("written") - right("noisy"))
    assert above(right("filtered") - right("filtered and written"))
    assert all(0.7 < 1 - run["written right"] < 0.8 for run in CLEANED)
    assert "the filter lets more than half of these pass" in PAGE
    assert all(run["kept of the written, wrong"] > 0.5 for run in CLEANED)
