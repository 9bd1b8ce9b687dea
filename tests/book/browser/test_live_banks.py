"""The first picture's network in the introduction: what it answers is what torch answers."""

import os
import random
import re
from functools import cache
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect

from attention_by_hand.figures.two_banks import TEXTS
from attention_by_hand.models.safetensors import unpacked
from benchmarks.two_banks import PLACES, WORDS, Model, sentences

from .conftest import ROOT
from .exploring import (
    LETTERS,
    SAMPLED,
    chooser,
    comes_back,
    is_open,
    named,
    said,
    settled,
    started,
    touched,
)

BANKS = named("two_banks")
STILL = ROOT / "book" / "extensions" / "stills" / "two_banks.svg"
FIRST = "The bank is muddy."  # which the address does not name
SENSES = ("by the water", "with money", "nobody can tell")
READ = """async (texts) => {
  const figure = document.querySelector('[data-explorable="two_banks"]');
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const { model } = await import("/_static/explorables/models.js");
  const { reader, picture } = await import("/_static/explorables/two_banks.js");
  const read = reader(await model({ figure, data })());
  const answers = texts.map((text) => read(text));
  return answers.map(({ weights, logits }) => [[...weights], [...logits]]);
}"""
ADDRESSED = """([text, first]) =>
  (new URLSearchParams(location.search).get("sentence") ?? first) === text"""
DRAW = READ.replace("({ weights, logits }) => [[...weights], [...logits]]", "(a) => picture(a).svg")


@cache
def network(file: Path) -> Model:
    """The network with the parameters that the page has."""
    state, notes = unpacked(file.read_bytes())
    assert notes["words"].split() == WORDS
    model = Model()
    model.load_state_dict(state)
    return model


@torch.no_grad()
def answered(
    model: Model, words: list[str], place: int | None = None
) -> tuple[list[float], list[float]]:
    """Torch's weights and logits; a bank asks, or else another noun, or the word at a place."""
    if place is None:
        place = words.index(next(noun for noun in ("bank", *PLACES) if noun in words))
    ids = torch.tensor([[WORDS.index(word) for word in words]])
    logits, _, weights, _ = model(ids, torch.tensor([place]))
    return weights[0].tolist(), logits[0].tolist()


@pytest.fixture
def introduction(open_tab, html):
    """The page, the explorable, and torch's network with the same parameters."""
    tab, figure, data = started(open_tab, "intro", BANKS)
    return tab, figure, network(html / "book" / data["model"])


def asked(tab, figure, text: str) -> str:
    """What it says of a sentence that is typed."""
    figure.get_by_label("your sentence", exact=True).fill(text)
    tab.page.wait_for_function(ADDRESSED, arg=[text, FIRST])
    settled(figure)
    return said(figure)


@SAMPLED
def test_it_answers_what_torch_answers_for_sentences_of_the_words_it_knows(introduction, count):
    tab, _, model = introduction
    draw = random.Random(7)
    trained = {" ".join(words) for words, _ in sentences()}
    texts: list[str] = []
    while len(texts) < count:
        words = [draw.choice(["bank", *PLACES]), *draw.choices(WORDS, k=draw.randint(1, 11))]
        draw.shuffle(words)
        if " ".join(words) not in trained:
            texts.append(" ".join(words))
    for text, (weights, logits) in zip(texts, tab.page.evaluate(READ, texts), strict=True):
        right, exact = answered(model, text.split())
        assert weights == pytest.approx(right, abs=1e-3)
        assert logits == pytest.approx(exact, abs=1e-3), text
    assert tab.wrong == []


def test_it_shows_the_numbers_of_the_first_picture(introduction):
    tab, figure, _ = introduction
    for text, found in reversed(TEXTS.items()):  # the first of them is there from the start
        asked(tab, figure, text.capitalize().replace(" .", "."))
        drawn = figure.locator("svg text").all_text_contents()
        assert [n for n in drawn if re.fullmatch(r"[01]\.\d\d", n)] == [
            f"{number:.2f}" for number in (*found["weights"], *found["answer"])
        ]
        assert [word for word in drawn if word in found["words"]] == found["words"]
    assert tab.wrong == []


def test_what_it_says_and_tints_is_what_it_computes(introduction):
    tab, figure, model = introduction
    for text in ("the rich shop is near today", "Is the bank wide, or is she rich?", "firm"):
        told = asked(tab, figure, text)
        words = [word for word in re.findall(r"\w+|\S", text.lower()) if word in WORDS]
        weights, logits = answered(model, words)
        noun = next(noun for noun in ("bank", *PLACES) if noun in words)
        best = max(range(3), key=lambda i: logits[i])
        most = max(range(len(words)), key=lambda i: weights[i])
        share = torch.tensor(logits).softmax(0)[best].item()
        assert told.endswith(
            f"“{noun}” looks most at “{words[most]}”, with {weights[most]:.2f}: "
            f"{SENSES[best]}, {share:.2f}."
        )
        boxes = figure.locator("svg rect[rx]").evaluate_all(
            "(all) => all.map((one) => Number(one.getAttribute('fill-opacity')))"
        )
        assert boxes == pytest.approx([0.7 * weight for weight in weights], abs=0.001)
        marked = figure.locator('svg rect[stroke="#D55E00"]')
        assert marked.count() == 1
    assert tab.wrong == []


def test_another_word_asks_by_click_or_key_and_only_nouns_were_taught_to(introduction, open_tab):
    tab, figure, model = introduction
    words = ["the", "bank", "is", "old", "the", "lake", "is", "deep"]
    first = asked(tab, figure, " ".join(words))
    boxes = figure.get_by_role("button")
    assert boxes.count() == len(words)
    for place, key in ((5, ""), (0, "Enter"), (3, "Space"), (1, "Enter")):
        one = boxes.nth(place)
        expect(one).to_have_accessible_name(re.compile(rf"\b{words[place]}$"))
        one.press(key) if key else one.click()
        settled(figure)
        weights, logits = answered(model, words, place)
        most = max(range(len(words)), key=lambda i: weights[i])
        best = max(range(3), key=lambda i: logits[i])
        told = said(figure)
        share = torch.tensor(logits).softmax(0)[best].item()
        assert told.startswith(
            f"“{words[place]}” looks most at “{words[most]}”, with {weights[most]:.2f}: "
            f"{SENSES[best]}, {share:.2f}."
        )
        taught = words[place] in ("bank", *PLACES)
        assert (f"nothing has told “{words[place]}” what to look at" in told) != taught
        pressed = boxes.evaluate_all("(all) => all.map((one) => one.getAttribute('aria-pressed'))")
        assert [yes == "true" for yes in pressed] == [i == place for i in range(len(words))]
        if key:
            assert one.evaluate("(one) => one === document.activeElement")
    assert told == first, "the bank asks again"
    boxes.nth(5).press("Enter")
    tab.page.wait_for_function("() => /asks=6/.test(location.search)")
    settled(figure)
    assert said(comes_back(open_tab, tab, BANKS)) != first
    assert "“bank” looks" in asked(tab, figure, "the bank is old"), "of a new text, the noun"
    assert tab.wrong == []


def test_a_word_that_it_does_not_know_is_struck_through_and_told(introduction):
    tab, figure, _ = introduction
    told = asked(tab, figure, 'The <b>river</b> bank is "deep"')
    assert told.startswith('It does not know “<”, “b”, “>”, “river”, “/”, “"”, and reads the rest.')
    struck = figure.locator('svg text[text-decoration="line-through"]').all_text_contents()
    assert struck == ["<", "b", ">", "river", "<", "/", "b", ">", '"', '"']
    assert figure.locator("svg").get_attribute("aria-label") == told
    assert figure.locator("svg b").count() == 0, "what is typed stays text"
    plain = asked(tab, figure, "The bank is deep")
    assert told.endswith(plain), "the rest is read as if it stood alone"
    for text in ("she is rich", "money", ""):
        assert asked(tab, figure, text or " ").endswith(
            "It answers for “bank”, “shore”, “lake”, “shop”, “firm”: put one of them in."
        )
    assert tab.wrong == []


def test_a_still_is_what_the_network_draws_at_first(introduction):
    tab, figure, _ = introduction
    still = figure.locator("[data-part=picture]").inner_html()
    assert figure.get_by_label("your sentence", exact=True).input_value() == FIRST
    (drawn,) = tab.page.evaluate(DRAW, [FIRST])
    if os.environ.get("WRITE_STILLS"):
        STILL.write_text(drawn + "\n", encoding="utf-8")
    assert STILL.read_text(encoding="utf-8").strip() == drawn
    choose = chooser(figure, "or one of these")
    choose.select_option("1")
    settled(figure)
    assert figure.locator("[data-part=picture]").inner_html() != still
    choose.select_option("0")
    settled(figure)
    assert figure.locator("[data-part=picture]").inner_html() == still
    assert tab.wrong == []


def test_a_model_is_loaded_at_the_first_touch_and_from_this_host_alone(open_tab, html):
    tab = open_tab()
    _, model = touched(tab, "intro", BANKS, lambda figure: asked(tab, figure, "the shop is wide"))
    assert (html / model.removeprefix(f"{tab.server}/")).stat().st_size < 1000


def test_the_sentence_stands_in_the_address_and_comes_back_from_it(open_tab):
    tab, figure, _ = started(open_tab, "intro", BANKS)
    asked(tab, figure, "the lake is <rich>")
    again = comes_back(open_tab, tab, BANKS)
    assert again.get_by_label("your sentence", exact=True).input_value() == "the lake is <rich>"


def test_a_network_that_cannot_be_loaded_is_said_to_be_missing_and_the_picture_stays(open_tab):
    tab, figure, _ = started(open_tab, "intro", BANKS)
    still = figure.locator("svg").inner_html()
    tab.page.route("**/models/*", lambda route: route.abort())
    assert "could not be loaded" in asked(tab, figure, "the old bank")
    assert figure.locator("svg").inner_html() == still
    tab.page.unroute("**/models/*")
    assert "nobody can tell" in asked(tab, figure, "the small bank")


@pytest.mark.share(6)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_is_open_to_everyone_and_fits(open_tab, width, scheme):
    tab, figure, _ = started(open_tab, "intro", BANKS, width=width, scheme=scheme)
    box = figure.get_by_label("your sentence", exact=True)
    box.focus()
    tab.page.keyboard.press("ControlOrMeta+a")
    tab.page.keyboard.type("Today the unmuddied bank is closed and the lake is deep, she sees")
    tab.page.wait_for_function("() => document.querySelector('[aria-busy=false] output')")
    settled(figure)
    assert min(high for high, _ in figure.locator("svg").evaluate(LETTERS)) >= 11.99
    inside = figure.locator("svg").evaluate(
        "(svg) => [...svg.querySelectorAll('text')].every((one) => { const box = one.getBBox(); "
        "return box.x >= 0 && box.x + box.width <= 352 })"
    )
    assert inside
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.press("ArrowDown")
    settled(figure)
    assert chooser(figure, "or one of these").input_value() == "0"
    assert "looks most at “muddy”" in said(figure)
    is_open(tab, BANKS)
