"""Explorables that compute in the page, each against NumPy or the course's own references."""

import os
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from solutions.captioning import contrastive_loss
from solutions.language_model import next_token_probabilities

from .conftest import ROOT
from .exploring import chooser, named, number, said, slider, started, weights

STILLS = ROOT / "book" / "extensions" / "stills"
WHERE = {
    "alike": "06", "cache": "04", "cosines": "12", "dials": "05", "pipeline": "09",
    "three_uses": "12", "two_heads": "03", "views": "02",
}  # fmt: skip
KINDS = ("none", "pre-norm", "post-norm")
MODULE = "(x) => import(`/_static/explorables/${x}.js`).then((m) => %s)"


def opened(open_tab, name: str):
    """The page and an explorable on it."""
    tab, figure, _ = started(open_tab, WHERE[name], named(name))
    return tab, figure


def shown(figure, selector: str = "text") -> list[str]:
    return figure.locator(f"svg {selector}").all_text_contents()


def choose(figure, label: str, value: object) -> None:
    chooser(figure, label).select_option(str(value))


def test_each_directive_is_tried_here():
    found = {}
    for page in sorted((ROOT / "book").glob("[0-9]*.md")):
        for name in re.findall(
            r"^:::+\{explorable\} (\w+)", page.read_text(encoding="utf-8"), re.M
        ):
            found[name] = page.name[:2]
    assert found == WHERE
    assert {path.stem for path in STILLS.glob("*.svg")} == {*WHERE, "two_banks"}  # test_live_banks


@pytest.mark.share(4)
@pytest.mark.parametrize("name", WHERE)
def test_a_still_is_what_the_script_draws_at_first(name, open_tab):
    tab, figure = opened(open_tab, name)
    drawn = tab.page.evaluate(MODULE % "m.picture(structuredClone(m.first)).svg", name)
    path: Path = STILLS / f"{name}.svg"
    if os.environ.get("WRITE_STILLS"):
        path.write_text(drawn + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8").strip() == drawn
    assert figure.locator("svg").get_attribute("aria-label").endswith(said(figure))
    assert tab.wrong == []


# --- chapter 6 ------------------------------------------------------------------------------------


def normalised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def through(model: dict, residual: bool, kind: str, layers: int) -> tuple[float, float]:
    """The share that is the tokens' own and the size of the numbers, after so many layers."""
    x = np.array(model["x"])
    x = normalised(x) if kind == "post-norm" else x
    for W_q, W_k, W_v, W_o in np.array(model["layers"])[:layers]:
        seen = normalised(x) if kind == "pre-norm" else x
        scores = (seen @ W_q) @ (seen @ W_k).T / np.sqrt(x.shape[1])
        found = np.stack([weights(row) for row in scores]) @ seen @ W_v @ W_o
        x = x + found if residual else found
        x = normalised(x) if kind == "post-norm" else x
    own = np.linalg.norm(x - x.mean(0)) / np.linalg.norm(x)
    return float(own), float(np.sqrt((x**2).mean()))


def read_share(text: str) -> tuple[float, float]:
    """A share as it is told, and how far off it may be."""
    told = re.search(r"own: (.*?)\. Size", text)[1]
    if told == "next to nothing":
        return 0, 1e-12
    figures, _, power = told.partition(" · 10⁻")
    ten = 10.0 ** -int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")) or 0)
    return float(figures) * ten, 0.51 * ten if power else 0.0051


def test_chapter_6_tokens_become_alike_as_numpy_says(open_tab):
    tab, figure = opened(open_tab, "alike")
    model = tab.page.evaluate(MODULE % "m.made()", "alike")
    found = {}
    for (way, residual), (i, kind) in product(enumerate((True, False)), enumerate(KINDS)):
        choose(figure, "what goes on", way)
        choose(figure, "norm", i)
        for layer in (0, 2, 6, 24):
            slider(figure, "layer").fill(str(layer))
            text = said(figure)
            own, size = through(model, residual, kind, layer)
            share, off = read_share(text)
            assert share == pytest.approx(own, abs=off)
            assert number(r"numbers: (.*)\.$", text) == pytest.approx(size, rel=0.06)
            found[residual, kind, layer] = own
    # what the chapter says of it
    assert max(found[False, kind, 6] for kind in KINDS) < 1e-12
    assert found[True, "pre-norm", 24] == pytest.approx(0.2, abs=0.01)
    assert found[True, "post-norm", 24] == pytest.approx(0.003, abs=0.0005)
    assert tab.wrong == []


# --- chapter 4 ------------------------------------------------------------------------------------


def test_chapter_4_what_a_call_makes_and_keeps_is_counted(open_tab):
    tab, figure = opened(open_tab, "cache")
    again = cached = again_positions = 0
    for t in range(1, 9):
        slider(figure, "token").fill(str(t))
        queries, keys = np.zeros((t, 8)), np.zeros((t, 8))
        now, alone = (queries @ keys.T).size, (queries[-1:] @ keys.T).size
        again, cached, again_positions = again + now, cached + alone, again_positions + t
        text = said(figure)
        assert f"{now} scores without a cache, {alone} with it" in text
        assert f"so far {again} and {cached}." in text
        assert number(r"(\d+) numbers", text) == 2 * keys.size
        assert (f"Of these {t * t} scores, {(t - 1) ** 2} were" in text) == (t == 8)
        table = shown(figure)
        for name, *two in (
            ("keys and values, now", t, 1), ("scores, now", now, alone),
            ("keys and values, so far", again_positions, t), ("scores, so far", again, cached),
            ("numbers kept", 0, 2 * keys.size),
        ):  # fmt: skip
            at = table.index(name)
            assert table[at + 1 : at + 3] == [str(n) for n in two]
        squares = figure.locator("svg path").evaluate_all(
            "(all) => all.map((path) => path.getAttribute('d').split('z').length - 1)"
        )
        seen = int(np.tril(np.ones((t, t))).sum())
        # made: keys and scores of both sides; kept: the keys before; made, then hidden
        assert squares[1:4] == [t + seen + 1 + t, t - 1, t * t - seen]
    assert tab.wrong == []


# --- chapter 3 ------------------------------------------------------------------------------------


def test_chapter_3_one_heads_outputs_share_what_two_heads_have_each(open_tab):
    tab, figure = opened(open_tab, "two_heads")
    keys = np.array([[np.log(5), 0], [np.log(2), 0], [0, np.log(6)]])
    values = np.array([[16, 0], [8, 8], [0, 16]])
    for word, h, key in ((None, 0, 0), (0, 0, 4), (2, 1, 5.5), (1, 1, -1.5), (1, 0, -2)):
        if word is not None:
            choose(figure, "word", word)
            slider(figure, f"key, {['who', 'how'][h]}").fill(str(key))
            keys[word, h] = key
        two = [weights(keys[:, c]) @ values[:, c] for c in (0, 1)]
        one = weights(keys.sum(1) / np.sqrt(2)) @ values
        text = said(figure)
        for name, (who, how) in (("Two heads", two), ("One head", one)):
            assert number(rf"{name}: who ([\d.]+)", text) == pytest.approx(who, abs=0.0051)
            assert number(rf"{name}: who [\d.]+, how ([\d.]+)", text) == pytest.approx(
                how, abs=0.0051
            )
        assert number(r"together ([\d.]+)", text) == 16
    assert min(two) > 15 > max(one)
    assert tab.wrong == []


# --- chapter 5 ------------------------------------------------------------------------------------


def test_chapter_5_the_score_of_turned_vectors_depends_on_the_distance_alone(open_tab):
    tab, figure = opened(open_tab, "dials")
    rates = np.radians([30, 8])
    for distance in (0, 1, 5, 10, -12):
        slider(figure, "distance").fill(str(distance))
        scores = set()
        for p in (12, 19, 40):
            slider(figure, "move both").fill(str(p))
            query = np.exp(1j * p * rates)
            key = np.exp(1j * (np.radians(40) + (p + distance) * rates))
            text = said(figure)
            told = number(r"score (−?[\d.]+)\.$", text)
            assert told == pytest.approx((query * key.conj()).real.sum(), abs=0.0051)
            turned = [float(n) for n in re.search(r"stand at (\d+)° and (\d+)°", text).groups()]
            assert turned == pytest.approx(np.degrees(p * rates) % 360)
            scores.add(told)
        assert len(scores) == 1
        if distance in (5, 10):  # as the chapter says: below 0, and risen again
            assert (max(scores) < 0) == (distance == 5)
    assert tab.wrong == []


# --- chapter 2 ------------------------------------------------------------------------------------


def matrices(figure) -> dict[str, np.ndarray]:
    """The numbers of all matrices, as they are written."""
    cells = figure.locator("[data-cell]").evaluate_all(
        "(all) => all.map((one) => [one.dataset.cell, one.textContent])"
    )
    found: dict[str, dict] = {}
    for place, text in cells:
        name, i, j = place.split()
        found.setdefault(name, {})[int(i), int(j)] = float(text.replace("−", "-"))
    return {
        name: np.array([[c[i, j] for j in range(1 + max(c)[1])] for i in range(1 + max(c)[0])])
        for name, c in found.items()
    }


def framed(figure) -> set[str]:
    return set(
        figure.locator('[data-cell]:has(rect[stroke="#E69F00"])').evaluate_all(
            "(all) => all.map((one) => one.dataset.cell)"
        )
    )


def test_chapter_2_each_matrix_is_what_numpy_makes_and_a_cell_shows_its_row_and_column(open_tab):
    tab, figure = opened(open_tab, "views")
    for change in (None, ("Wq", 1, 1, 2), ("X", 2, 0, -1.5), ("Wv", 0, 1, 3)):
        if change:
            name, i, j, value = change
            figure.locator(f'[data-cell="{name} {i} {j}"] text').click()
            slider(figure, "its number").fill(str(value))
        found = matrices(figure)
        if change:
            assert found[name][i, j] == value
        Q, K, V = (found["X"] @ found[W] for W in ("Wq", "Wk", "Wv"))
        scores = Q @ K.T / np.sqrt(2)
        shares = np.stack([weights(row) for row in scores])
        for name, right, off in (
            ("Q", Q, 0.051), ("K", K, 0.051), ("V", V, 0.051), ("scores", scores, 0.051),
            ("weights", shares, 0.0051), ("output", shares @ V, 0.051),
        ):  # fmt: skip
            np.testing.assert_allclose(found[name], right, atol=off)
        if change and change[0] == "Wq":  # as the chapter says
            assert found["weights"][1] == pytest.approx([0.32, 0.04, 0.64])
    whole = {
        "Q": ({f"X 2 {k}" for k in range(3)}, {f"Wq {k} 1" for k in range(3)}),
        "scores": ({f"Q 2 {k}" for k in range(2)}, {f"K 1 {k}" for k in range(2)}),
        "weights": ({f"scores 2 {k}" for k in range(3)}, set()),
        "output": ({f"weights 2 {k}" for k in range(3)}, {f"V {k} 1" for k in range(3)}),
        "X": (set(), set()),
    }
    options = dict(
        zip(
            ("X", "Wq", "Wk", "Wv", "Q", "K", "V", "scores", "weights", "output"),
            range(10), strict=True,
        )
    )  # fmt: skip
    for name, (rows, columns) in whole.items():  # by keyboard
        choose(figure, "matrix", options[name])
        slider(figure, "row").fill("2")
        slider(figure, "column").fill("1")
        assert framed(figure) == rows | columns
        given = name == "X"
        assert slider(figure, "its number").is_enabled() == given
    figure.locator('[data-cell="output 0 0"]').hover()
    assert framed(figure) == {f"weights 0 {k}" for k in range(3)} | {f"V {k} 0" for k in range(3)}
    assert tab.wrong == []


# --- chapter 9 ------------------------------------------------------------------------------------


def test_chapter_9_the_columns_are_what_the_reference_makes_of_the_logits(open_tab):
    tab, figure = opened(open_tab, "pipeline")
    logits = torch.tensor([4.0, 2.0, 1.0, 1.0], dtype=torch.float64).log()
    for temperature, k, p, moved in (
        (1.0, 4, 0.8, None), (0.5, 4, 0.8, None), (1.0, 2, 0.7, None),
        (2.5, 3, 0.9, (3, 1.75)), (0.3, 4, 1.0, (0, -2.5)), (1.0, 1, 0.05, (1, 3.1)),
    ):  # fmt: skip
        for label, value in (("temperature τ", temperature), ("top-k", k), ("top-p", p)):
            slider(figure, label).fill(str(value))
        if moved:
            choose(figure, "token", moved[0])
            slider(figure, "its logit").fill(str(moved[1]))
            logits[moved[0]] = moved[1]
        table = [n.replace("−", "-") for n in shown(figure) if re.fullmatch(r"−?\d\.\d+|out", n)]
        right = [logits, *(
            next_token_probabilities(logits, temperature, most, share)
            for most, share in ((None, None), (k, None), (k, p))
        )]  # fmt: skip
        for column, values in enumerate(right):
            told = [0 if n == "out" else float(n) for n in table[4 * column : 4 * column + 4]]
            assert told == pytest.approx(values.tolist(), abs=0.0051 if column == 0 else 0.00051)
        kept = right[-1] > 0
        assert number(r"had ([\d.]+)\.$", said(figure)) == pytest.approx(
            right[1][kept].sum().item(), abs=0.00051
        )
    assert tab.wrong == []


# --- chapter 12 -----------------------------------------------------------------------------------


def test_chapter_12_each_use_has_its_parts_and_its_number_of_runs(open_tab):
    tab, figure = opened(open_tab, "three_uses")
    seen = "svg rect[width='14'][fill-opacity='0.6']"
    for use, first, cells, skips in ((0, "[CLS]", 16, 1), (1, "[ENC]", 16, 0), (2, "[DEC]", 10, 0)):
        choose(figure, "use", use)
        for pictures, texts in ((0, 1), (3, 6)):
            slider(figure, "pictures").fill(str(pictures))
            slider(figure, "texts").fill(str(texts))
            pairs = 10 ** (pictures + texts)
            runs = (10**texts, pairs, 10**pictures * len(["small", "a", "ring", "[SEP]"]))[use]
            assert f"the text model runs {runs:,} times" in said(figure)
            assert (f"{pairs:,} cosines are taken" in said(figure)) == (use == 0)
        assert f"the first token is {first}" in said(figure) and first in shown(figure)
        assert figure.locator(seen).count() == cells
        assert figure.locator("svg rect[stroke-dasharray]").count() == skips
    assert tab.wrong == []


def test_chapter_12_the_loss_is_the_references_and_the_shares_are_of_rows_or_columns(open_tab):
    tab, figure = opened(open_tab, "cosines")
    pictures, texts = np.radians([0, 90, 180, 270]), [35.0, 60.0, 215.0, 250.0]
    temperatures = [1, 0.5, 0.2, 0.1, 0.07, 0.05, 0.02]
    losses = {}
    turns = ((None, 2, 0), ((1, 240), 3, 1), ((1, 90), 0, 0), ((0, 0), 0, 1), ((2, 180), 0, 0),
             ((3, 270), 0, 0), (None, 4, 1))  # fmt: skip
    for turn, index, way in turns:
        if turn:
            choose(figure, "text", turn[0])
            slider(figure, "its direction").fill(str(turn[1]))
            texts[turn[0]] = turn[1]
        slider(figure, "temperature").fill(str(index))
        choose(figure, "shares", way)
        table = np.cos(pictures[:, None] - np.radians(texts))
        cells = shown(figure)
        told = [float(c.replace("−", "-")) for c in cells if re.fullmatch(r"−?\d\.\d\d", c)]
        assert told == pytest.approx(table.ravel(), abs=0.0051)
        logits = table / temperatures[index]
        shares = np.stack([weights(row) for row in (logits.T if way else logits)])
        shares = shares.T if way else shares
        told = [float(c[:-2]) for c in cells if c.endswith(" %")]
        assert told == pytest.approx(100 * shares.ravel(), abs=0.51)
        vectors = [
            torch.tensor(np.stack([np.cos(a), np.sin(a)], 1)) for a in (pictures, np.radians(texts))
        ]
        loss = contrastive_loss(*vectors, temperature=temperatures[index]).item()
        assert number(r"loss ([\d.]+);", said(figure)) == pytest.approx(loss, abs=0.00051)
        losses[temperatures[index]] = loss
    assert losses[1] == pytest.approx(0.63, abs=0.005), "as the chapter says"
    assert 0.5e-6 < losses[0.07] < 2e-6
    assert tab.wrong == []
