"""What chapter 1's page says of its own cells, held to what they print."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from autograder.publishing.chapter_runs import CELL

PAGE = (Path(__file__).parents[2] / "book" / "01_kernel_regression.md").read_text("utf-8")


@pytest.fixture(scope="module")
def run():
    """What the page's cells print, and what they define."""
    scope, texts = {}, []
    for cell in CELL.findall(PAGE):
        if "check(" in cell:  # answers to exercises
            continue
        with redirect_stdout(io.StringIO()) as text:
            exec(cell, scope)
        texts.append(text.getvalue())
    return "\n".join(texts), scope


@pytest.fixture(scope="module")
def printed(run):
    return run[0]


def numbers(pattern, text):
    (found,) = re.findall(pattern, text, re.S)
    return [float(number) for number in found]


@pytest.mark.share(0)
def test_the_pages_best_kernels_are_those_of_its_table(printed):
    told = numbers(
        r"reach ([\d.]+) and ([\d.]+) °C\. Epanechnikov now seems to beat the Gaussian, which has "
        r"([\d.]+) over all .*? the Gaussian has ([\d.]+)\.",
        PAGE,
    )
    row = r"^{} +[\d.]+ +([\d.]+) +[\d.]+ +([\d.]+) +([\d.]+) +\d+$"
    boxcar, arch, bell = (
        [*map(float, re.search(row.format(kernel), printed, re.M).groups())]
        for kernel in ("boxcar", "epanechnikov", "gaussian")
    )
    assert told == [boxcar[1], arch[1], bell[0], arch[2]]
    assert bell[0] < min(boxcar[0], arch[0])  # "either way"
    assert all(rival < own for _, own, rival in (boxcar, arch))
    wins = re.findall(r"the Gaussian beats (\w+) there on (\d+) of 50 other days", printed)
    assert len(wins) == 2 and all(int(days) >= 45 for _, days in wins)  # "nearly every other"


@pytest.mark.share(0)
def test_the_lazy_answers_miss_by_what_the_page_says(run):
    """Each reading from the others: their plain average, and the value of the nearest."""
    told = numbers(r"the average of all others ([\d.]+) °C², the nearest ([\d.]+)\.", PAGE)
    x, y = run[1]["x"], run[1]["y"]
    average, nearest = [], []
    for i, reading in enumerate(y):
        times, others = np.delete(x, i), np.delete(y, i)
        average.append(reading - others.mean())
        nearest.append(reading - others[abs(times - x[i]).argmin()])
    assert told == pytest.approx([np.square(off).mean() for off in (average, nearest)], abs=0.005)


@pytest.mark.share(0)
def test_four_idle_columns_spoil_as_much_as_the_path_says(printed):
    most, least = numbers(r"\n0 +[\d.]+ to ([\d.]+).*?\n4 +([\d.]+) to", printed)
    assert f"take the error from at most {most:.2f} to at least {least:.2f}." in PAGE


@pytest.mark.share(0)
def test_lines_miss_by_what_the_page_prints_and_by_less_than_averages(run, printed):
    """By the formula that the hard problem asks for; and between neighbours, but for both ends."""
    straight, fitted = numbers(
        r"between neighbours: ([\d.]+) °C²\nlines fitted to the others, .*?: ([\d.]+) °C²", printed
    )
    (averaged,) = re.findall(r"the loss falls from [\d.]+ to ([\d.]+) °C²", PAGE)
    assert fitted < float(averaged) and "What does better is a straight line" in PAGE
    x, y = run[1]["x"], run[1]["y"]
    off = [y[0] - y[1], y[-1] - y[-2]]
    for i in range(1, len(x) - 1):
        share = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1])
        off.append(y[i] - (1 - share) * y[i - 1] - share * y[i + 1])
    assert straight == pytest.approx(np.square(off).mean(), abs=0.005)

    def by_formula(w):
        errors = []
        for i in range(len(x)):
            away, others = np.delete(x, i) - x[i], np.delete(y, i)
            share = np.exp(-((away * w) ** 2) / 2)
            s_0, s_1, s_2 = (share @ away**power for power in range(3))
            errors.append((share * (s_2 - s_1 * away)) @ others / (s_0 * s_2 - s_1**2) - y[i])
        return np.square(errors).mean()

    tried = np.arange(0.5, 3, 0.05)
    found = [by_formula(w) for w in tried]
    assert fitted == pytest.approx(min(found), abs=0.005)
    assert run[1]["line_error"](tried[20]) == pytest.approx(found[20])


@pytest.mark.share(0)
def test_the_pages_map_overflows_where_it_says(printed):
    largest, share = numbers(r"reach (\d+), and there it shows at (\d+)% of the places", PAGE)
    assert numbers(r"largest score (\d+)\nqueries whose exp overflows: (\d+) %", printed) == [
        largest,
        share,
    ]
    assert f"{share:.0f}% of this map would be `nan`" in PAGE


@pytest.mark.share(0)
def test_the_pages_promises_are_those_of_its_thousand_walks(printed):
    spreads = re.findall(r"spread of their ratio (\d+) %", printed)
    assert spreads and min(map(int, spreads)) > 20  # "a standard deviation of more than a fifth"
    kept = r": promised ([\d.]+) m, found ([\d.]+) m"
    for drawn in ("the learnt w *", "w chosen anew"):
        promised, found = numbers(drawn + kept, printed)
        assert abs(promised - found) < 1  # "kept to within a metre"
    (fixed, margin), (anew, its) = (
        map(int, pair) for pair in re.findall(r"found²: (-?\d+) ± (\d+) m²", printed)
    )
    assert abs(fixed) < margin  # "not clear of 0"
    assert anew < -its  # "its interval lies below 0"
    promise, finding = numbers(
        r"promises an error of ([\d.]+) m\nthe 323 places held out: ([\d.]+) m", printed
    )
    assert round(abs(promise / finding - 1), 1) == 0.1  # "off by about a tenth"


@pytest.mark.share(0)
def test_the_pages_walk_has_three_minima_and_the_widest_is_the_best(printed):
    found = re.findall(r"minimum at w = +([\d.]+): promised ([\d.]+) m, found ([\d.]+)", printed)
    minima = [tuple(map(float, row)) for row in found]
    assert len(minima) == 3
    assert min(minima) == min(minima, key=lambda row: row[2])
    assert max(minima) == max(minima, key=lambda row: row[2])
    promises = [row[1] for row in minima]
    assert max(promises) / min(promises) < 1.02
