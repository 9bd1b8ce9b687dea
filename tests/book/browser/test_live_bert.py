"""Chapter 10's BERT in the page: what it fills in, and what each way says, is what torch says."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_by_hand.models.safetensors import unpacked
from benchmarks.bert import page_definitions

from .exploring import (
    SAMPLED,
    WIRE,
    chooser,
    comes_back,
    named,
    number,
    said,
    settled,
    slider,
    started,
)

GAPS = named("gaps")
WAYS = ("last layer's weights", "rollout", "relevance", "occlusion")
READ = """async ([texts, explain]) => {
  const figure = document.querySelector('[data-explorable="gaps"]');
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const { model } = await import("/_static/explorables/models.js");
  const { reader } = await import("/_static/explorables/gaps.js");
  const slopes = await import("/_static/explorables/slopes.js");
  const read = reader({ ...(await model({ figure, data })()), slopes });
  return texts.map(([text, gaps]) => {
    const answer = read(text, new Set(gaps));
    const filled = gaps.map((i) => answer.filled.get(i));
    const ways = (i) => [answer.attention(0, i), ...answer.followed(i), [...answer.occlusion(i)]];
    const said = filled.map(({ best, logits }) => [best[0].id, Array.from(logits)]);
    return [said, explain ? ways(gaps[0]) : []];
  });
}"""


@cache
def page_and_model(file: Path):
    """What the page's cells define, and its model with the parameters that the page has."""
    page = page_definitions()
    state, notes = unpacked(file.read_bytes())
    assert page["letters"][5:] == list(notes["letters"])
    page["model"] = page["Bert"](len(page["letters"]), 64, 4, 2)
    page["model"].load_state_dict(state)
    return page, page["model"].eval()


@pytest.fixture
def chapter_10(open_tab, html):
    tab, figure, data = started(open_tab, "10", GAPS)
    return tab, figure, data, *page_and_model(html / "book" / data["model"])


def filled_in(page, model, text: str, gaps) -> torch.Tensor:
    """The logits of all places of a text, letters only, with gaps."""
    ids = page["framed"](page["ids_of"](text))
    ids[[i + 1 for i in gaps]] = page["MASK"]
    with torch.no_grad():
        return model(ids[None])[0, 1:-1]


def with_gaps(page, rows) -> list[tuple[str, list[int]]]:
    """Rows as text, each with one to three gaps."""
    luck = torch.Generator().manual_seed(0)
    texts = ["".join(page["letters"][i] if i > 4 else "�" for i in row[1:-1]) for row in rows]
    places = [torch.randperm(46, generator=luck).tolist() for _ in texts]
    return [(texts[k], places[k][: 1 + k % 3]) for k in range(len(texts))]


@SAMPLED
def test_it_fills_gaps_of_held_out_rows_as_torch_does(chapter_10, html, count):
    tab, _, data, page, model = chapter_10
    assert (html / "book" / data["model"]).stat().st_size < WIRE
    texts = with_gaps(page, page["test"][::5][:count])
    assert len(texts) == count
    found = tab.page.evaluate(READ, [texts, False])
    for (text, gaps), (filled, _) in zip(texts, found, strict=True):
        right = filled_in(page, model, text, gaps)[gaps]
        assert [one for one, _ in filled] == right.argmax(-1).tolist()
        assert np.abs(np.array([logits for _, logits in filled]) - right.numpy()).max() < 1e-3
    assert tab.wrong == []


def test_attention_rollout_relevance_and_occlusion_are_the_chapter_s(chapter_10):
    tab, _, _, page, model = chapter_10
    rows = page["test"][::170][:6]
    texts = with_gaps(page, rows)
    found = tab.page.evaluate(READ, [texts, True])
    for row, (_, gaps), (_, ways) in zip(rows, texts, found, strict=True):
        ids = row.clone()
        ids[[i + 1 for i in gaps]] = page["MASK"]
        others, right = page["explained"](model, ids, gaps[0] + 1)
        for name, numbers in zip(WAYS, ways, strict=True):
            here = torch.tensor(numbers)[others - 1]
            assert torch.allclose(here, right[name].float(), atol=2e-5), name
    assert tab.wrong == []


def test_relevance_is_ahead_of_rollout_in_most_rows_but_not_in_all(chapter_10):
    _, _, _, page, model = chapter_10
    by_row = page["agreement"](model, page["test"][::26][:40])
    ahead = (by_row["rollout"] > by_row["relevance"])[1].mean()
    assert 0 < ahead < 0.5


def test_the_picture_without_a_script_is_what_the_model_draws_at_first(chapter_10):
    _, figure, data, _, _ = chapter_10
    drawn = """(figure) => ["text", "rect"].map((name) =>
      [...figure.querySelectorAll(`svg ${name}`)].map((one) =>
        name === "text" ? one.textContent : Number(one.getAttribute("height"))))"""
    still = figure.evaluate(drawn)
    slider(figure, "letter").press("ArrowLeft")
    settled(figure)
    slider(figure, "letter").press("ArrowRight")
    settled(figure)
    again = figure.evaluate(drawn)

    for one, other in zip(*(sorted(texts) for texts, _ in (still, again)), strict=True):
        if re.fullmatch(r"−?0\.\d\d", one):
            assert number("(.*)", one) == pytest.approx(number("(.*)", other), abs=0.03)
        elif one.isdecimal():
            assert int(one) == pytest.approx(int(other), abs=1)
        else:
            assert one == other
    assert np.allclose(*(sorted(heights) for _, heights in (still, again)), atol=0.3)
    assert len(data["texts"]) == 4


def test_a_typed_text_loses_letters_by_keyboard_and_gets_them_back(chapter_10):
    tab, figure, _, page, model = chapter_10
    text = "a name is bound to an object."
    figure.get_by_label("your text", exact=True).fill("A  name is bound to an object.")
    tab.page.wait_for_function(
        "([figure, count]) => figure.querySelector('[data-part=lines]').children.length === count",
        arg=[figure.element_handle(), len(text)],
    )
    button = figure.get_by_role("button")
    slider(figure, "letter").fill("23")  # the cursor; the gap of before is still there
    settled(figure)
    assert button.inner_text() == "show this letter"
    gaps: list[int] = [23]
    for at in (11, 13):
        slider(figure, "letter").fill(str(at))
        button.press("Enter")
        settled(figure)
        gaps = sorted([*gaps, at])
        logits = filled_in(page, model, text, gaps)
        share, best = logits[at].softmax(-1).max(-1)
        heard = said(figure)
        letter = page["letters"][best].replace(" ", "space")
        assert f"Letter {at + 1} was “{text[at]}”. The model says" in heard
        assert f"{letter}" in heard and f"with {share:.2f}" in heard
        right = sum(page["letters"][logits[i].argmax()] == text[i] for i in gaps)
        assert f"{right} of {len(gaps)} gaps are filled in right" in heard
        cells = figure.locator("[data-part=lines] g")
        assert cells.count() == len(text)
        shown = cells.nth(at).locator("text").all_text_contents()
        assert shown == [page["letters"][best].replace(" ", "␣"), f"{100 * share:.0f}"]
    bars = figure.locator("[data-part=below] rect").evaluate_all(
        "(all) => all.map((one) => Number(one.getAttribute('width')))"
    )
    five = logits[at].softmax(-1).topk(5).values * 110
    assert bars == pytest.approx(five.tolist(), abs=0.1)
    for at in gaps:
        slider(figure, "letter").fill(str(at))
        button.press("Space")
        settled(figure)
    assert "Nothing is hidden" in said(figure)
    figure.get_by_label("your text", exact=True).fill("é")
    tab.page.wait_for_function(
        "(figure) => /no token for é/.test(figure.querySelector('output').textContent)",
        arg=figure.element_handle(),
    )
    figure.get_by_label("your text", exact=True).fill("")
    tab.page.wait_for_function(
        "(figure) => !figure.querySelector('[data-part=lines]').children.length",
        arg=figure.element_handle(),
    )
    assert tab.wrong == []


def test_each_head_s_weights_can_be_looked_at(chapter_10):
    tab, figure, data, page, model = chapter_10
    text, gap = data["texts"][1][0], int(data["texts"][1][1])
    chooser(figure, "or one of these").select_option("1")
    ids = page["framed"](page["ids_of"](text))
    ids[gap + 1] = page["MASK"]
    weights, *_ = page["looked_into"](model, ids[None], torch.tensor([gap + 1]))
    for layer, head in ((0, 1), (1, 2)):
        options = chooser(figure, "attention of").locator("option").all_text_contents()
        label = next(name for name in options if name == f"layer {layer}, head {head}")
        chooser(figure, "attention of").select_option(label=label)
        settled(figure)
        row = weights[layer][0, head, gap + 1, 1:-1].clone()
        row[gap] = 0
        heights = figure.locator("[data-part=lines] g").evaluate_all(
            "(all) => all.map((g) => g.querySelectorAll('rect')[1]?.getAttribute('height') ?? 0)"
        )
        assert [*map(float, heights)] == pytest.approx((16 * row / row.max()).tolist(), abs=0.02)
        below = figure.locator("[data-part=below] text").all_text_contents()
        assert below.count(f"({label})") == 1
        assert f"Attention is that of the {label}. Largest: attention " in said(figure)
    assert tab.wrong == []


def test_what_the_question_compares_is_bold_and_few_letters_have_no_ranks(chapter_10):
    tab, figure, *_ = chapter_10

    def table():
        texts = figure.locator("[data-part=below] text")
        return texts.evaluate_all(
            "(all) => all.map((one) => "
            "[one.textContent, one.getAttribute('font-weight') === 'bold'])"
        )

    still = table()
    slider(figure, "letter").press("ArrowLeft")
    settled(figure)
    for shown in (still, table()):
        rows = {name: shown[i + 1] for i, (name, _) in enumerate(shown) if name in WAYS}
        assert [one for one, bold in shown if bold] == [rows[way][0] for way in WAYS[1:3]]
    for letters, ranks in (("abcdefghijk", True), ("abcdefghij", False)):
        figure.get_by_label("your text", exact=True).fill(letters)
        tab.page.wait_for_function(
            "([figure, all]) => figure.querySelector('[data-part=lines]').children.length === all",
            arg=[figure.element_handle(), len(letters)],
        )
        slider(figure, "letter").fill("0")
        settled(figure)
        if "Nothing is hidden" in said(figure):
            figure.get_by_role("button").press("Enter")
            settled(figure)
        assert ("Rank correlation" in said(figure)) == ranks  # of ten others, and of nine
        assert (["–", True] in table()) != ranks
    assert tab.wrong == []


def test_what_is_hidden_stands_in_the_address_and_comes_back_from_it(chapter_10, open_tab):
    tab, figure, *_ = chapter_10
    chooser(figure, "or one of these").select_option("2")
    slider(figure, "letter").fill("18")
    chooser(figure, "attention of").select_option("3")
    tab.page.wait_for_function(
        "() => /look=3/.test(location.search) && /at=18/.test(location.search)"
    )
    settled(figure)
    broken = "book/10_bert.html?text=%3Cb%3E%E2%82%AC&gaps=x+99+1+1&at=77&look=-1"
    comes_back(open_tab, tab, GAPS, broken, ["no token for €", "Letter 2 was “b”"])
