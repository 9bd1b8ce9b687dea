"""The explorables of the trained models, chapters 9 to 12: what they say is computed here again."""

import numpy as np
import pytest

from .exploring import named, number, said, slider, started, weights


def test_chapter_9_what_is_cut_off_a_distribution_is_what_the_three_sliders_say(open_tab):
    _, figure, data = started(open_tab, "09", named("sampling"))
    counts = []
    for entry, temperature, k, p in ((0, 4, 9, 8), (0, 1, 9, 8), (1, 6, 4, 11), (2, 6, 4, 4)):
        figure.locator("select").select_option(str(entry))
        for label, index in (("temperature τ", temperature), ("top-k", k), ("top-p", p)):
            slider(figure, label).fill(str(index))
        logits = np.array(data["entries"][entry]["logits"])
        row = weights(logits / data["temperatures"][temperature])
        first = row[: data["ks"][k]] / row[: data["ks"][k]].sum()
        share = data["ps"][p]
        kept = len(first) if share == 1 else int(np.argmax(first.cumsum() >= share - 1e-12)) + 1
        text = said(figure)
        assert int(number(r"(\d+) of", text)) == kept
        assert number(r"had ([\d.]+) %", text) == pytest.approx(100 * row[:kept].sum(), abs=0.051)
        largest = row[0] / row[:kept].sum()
        assert number(r"drawn with ([\d.]+)", text) == pytest.approx(largest, abs=0.00051)
        filled = figure.locator("[data-part=bars] rect").evaluate_all(
            "(bars) => bars.map((bar) => bar.getAttribute('fill-opacity') === '1')"
        )
        shown = len(filled) - 1
        assert filled[:shown] == [i < kept for i in range(shown)]
        assert filled[shown] == (kept > shown)
        counts.append(kept)
    assert counts[1] < counts[0], "a lower temperature leaves fewer tokens"


def test_chapter_10_a_hidden_letter_gets_what_the_model_says_and_a_head_looks_somewhere(open_tab):
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    tab, figure, data = started(open_tab, "10")
    heads = set()
    for entry, letter, head in ((0, 22, 0), (0, 0, 3), (1, 5, 5), (2, 31, 7)):
        figure.locator("select").select_option(str(entry))
        for label, value in (("hidden letter", letter), ("head", head)):
            slider(figure, label).fill(str(value))
        sentence, text = data["sentences"][entry], said(figure)
        gap = sentence["gaps"][letter]
        best, share = gap["best"][0]
        assert number(r"with ([\d.]+), which", text) == pytest.approx(share, abs=0.0051)
        assert ("which is right" in text) == (best == sentence["text"][letter])
        row = [digits.index(code) / 61 for code in gap["heads"][head]][1:-1]
        most = row.index(max(row))
        assert number(r"with ([\d.]+)\.$", text) == pytest.approx(row[most], abs=0.0051)
        step = most - letter
        where = f"{abs(step)} to the {'left' if step < 0 else 'right'}" if step else "gap itself"
        assert where in text
        tints = figure.locator("[data-part=letters] g rect:nth-child(2)").evaluate_all(
            "(all) => all.map((one) => Number(one.getAttribute('fill-opacity')))"
        )
        assert tints[: len(row)] == pytest.approx(row, abs=0.001)
        heads.add(data["heads"][head])
    assert len(heads) == 4
    figure.locator("[data-part=letters] g").nth(2).click()
    assert slider(figure, "hidden letter").input_value() == "2"
    assert "letter 3" in said(figure)
    assert tab.wrong == []
