"""Models that compute in the page: what they say is what torch says, with the same parameters."""

import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_by_hand.data import dates
from attention_by_hand.models.safetensors import unpacked
from solutions.transformer import MultiHeadAttention, Transformer, beam_search, greedy_decode

from .exploring import SAMPLED, WIRE, chooser, comes_back, named, said, settled, slider, started

READ = """async ([name, texts, without]) => {
  const figure = document.querySelector(`[data-explorable="${name}"]`);
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const { model } = await import("/_static/explorables/models.js");
  const { reader } = await import(`/_static/explorables/${name}.js`);
  const read = reader(await model({ figure, data })());
  return texts.map((text) => read(text, new Set(without)))
    .map(({ written, steps }) => [written, steps.map(({ logits }) => Array.from(logits))]);
}"""

PAGE = (Path(__file__).parents[3] / "book" / "07_transformer.md").read_text(encoding="utf-8")
SMOOTHING = float(re.search(r"\(logits, target, smoothing=([\d.]+)\)", PAGE)[1])


@cache
def translator(file: Path) -> tuple[Transformer, list[str], dates.Vocabulary]:
    """Chapter 7's model, with the parameters that the page has, and both alphabets."""
    state, notes = unpacked(file.read_bytes())
    layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("encoder_l"))
    tables = [state[f"{side}_embedding.weight"] for side in ("source", "target")]
    d_model, d_ff = tables[0].shape[1], len(state["encoder_layers.0.linear1.weight"])
    model = Transformer(*map(len, tables), d_model, int(notes["num_heads"]), layers, d_ff, 0.0)
    model.load_state_dict(state)
    return model.eval(), list(notes["source"]), dates.Vocabulary([notes["target"]])


def answered(model, letters, targets, text: str) -> tuple[list[str], torch.Tensor]:
    """What torch writes for a text, token by token, and the logits of each step."""
    source = torch.tensor([[letters.index(letter) + 3 for letter in text]])
    logits: list[torch.Tensor] = []
    hook = model.register_forward_hook(lambda _, __, out: logits.append(out[0, -1]))
    ids = greedy_decode(model, source, dates.BOS, dates.EOS, 12)[0]
    hook.remove()
    tokens = ["pad", "bos", "⏎", *targets.characters[3:]]
    return [tokens[i] for i in ids], torch.stack(logits)


@pytest.fixture
def chapter_7(open_tab, html):
    """The page, the explorable, and torch's model with the same parameters."""
    tab, figure, data = started(open_tab, "07", named("translator"))
    return tab, figure, data, translator(html / "book" / data["model"])


@SAMPLED
def test_chapter_7_s_model_writes_what_torch_writes_for_dates_of_the_test(chapter_7, html, count):
    tab, _, data, (model, letters, targets) = chapter_7
    assert (html / "book" / data["model"]).stat().st_size < WIRE
    texts = [example.text for example in dates.examples("test", count, seed=2)]
    far, different = 0.0, []
    for text, (written, logits) in zip(
        texts, tab.page.evaluate(READ, ["translator", texts, []]), strict=True
    ):
        right, exact = answered(model, letters, targets, text)
        if written != right:
            different.append(text)
            continue
        far = max(far, np.abs(np.array(logits) - exact.numpy()).max())
    assert different == []
    assert far < 1e-3
    assert tab.wrong == []


@pytest.mark.parametrize("part", ["scale", "mask", "positions"])
def test_chapter_7_s_model_without_a_part_writes_what_torch_s_does(chapter_7, part):
    tab, _, _, (whole, letters, targets) = chapter_7
    model = Transformer(len(letters) + 3, len(targets), 64, 4, 2, 256, 0.0)
    model.load_state_dict(whole.state_dict())
    if part == "positions":
        model.positions.zero_()
    for attention in (m for m in model.modules() if isinstance(m, MultiHeadAttention)):
        if part == "scale":
            for parameter in attention.W_q.parameters():
                parameter.data *= math.sqrt(16)
        if part == "mask":
            attention.register_forward_pre_hook(
                lambda _, args, kwargs: (args, kwargs | {"mask": None}), with_kwargs=True
            )
    examples = dates.examples("test", 40, seed=2)
    found = tab.page.evaluate(READ, ["translator", [e.text for e in examples], [part]])
    still_right = 0
    for example, (written, logits) in zip(examples, found, strict=True):
        right, exact = answered(model.eval(), letters, targets, example.text)
        assert written == right
        assert np.abs(np.array(logits) - exact.numpy()).max() < 2e-3
        still_right += written == [*example.iso, "⏎"]
        if part == "mask":
            assert written[0] == answered(whole, letters, targets, example.text)[0][0]
    # what the chapter says of it; how much the mask's absence hurts depends on the training
    assert still_right == 0 if part == "positions" else still_right < 40
    assert still_right > 10 or part != "scale"


def test_chapter_7_a_typed_date_is_read_character_by_character(chapter_7):
    tab, figure, data, (model, letters, targets) = chapter_7
    box = figure.get_by_label("your date", exact=True)
    assert box.input_value() == data["dates"][0][0]
    for text in ("9 mars 2027", "2027年3月9日", "25/9/27"):
        box.fill(text)
        tab.page.wait_for_function(
            "([figure, text]) => figure.querySelector('output').textContent.includes(text)",
            arg=[figure.element_handle(), text + " →"],
        )
        settled(figure)
        right, logits = answered(model, letters, targets, text)
        assert figure.locator("[data-part=source] text").all_text_contents()[0] == text[0]
        for at in (0, 5, 9):
            slider(figure, "character").fill(str(at))
            settled(figure)
            told = said(figure)
            assert told.startswith(f"{text} → {''.join(right[:-1])}. ")
            assert f"To write “{right[at]}”" in told
            shares = logits[at].softmax(-1)
            best = shares.max().item()
            assert float(re.search(r"Here \S+ has probability ([\d.]+)", told)[1]) == (
                pytest.approx(best, abs=0.0006)
            )
            aim = 1 - SMOOTHING + SMOOTHING / logits.shape[-1]
            assert f"; label smoothing aims at {aim:.3f} for the right one, not at 1." in told
            assert best < aim + 0.05, "a bar hardly goes beyond"
        source = torch.tensor([[letters.index(letter) + 3 for letter in text]])
        beams = beam_search(model, source, dates.BOS, dates.EOS, 12, 4, 0.0)
        numbers = re.search(r"The best beams: (.*)\.$", said(figure))[1].split(", ")
        for (ids, score), one in zip(beams, numbers, strict=False):
            iso, chance = one.rsplit(" ", 1)
            assert iso in (targets.decode(ids), "the empty text")
            assert float(chance) == pytest.approx(math.exp(score), abs=0.0006)
    assert tab.wrong == []


@pytest.mark.parametrize("attention", ["cross", "decoder", "encoder"])
def test_chapter_7_shows_the_weights_of_the_layer_and_head_that_is_chosen(chapter_7, attention):
    tab, figure, data, (model, letters, targets) = chapter_7
    text = data["dates"][0][0]
    at = 4
    lists = {"attention": attention, "layer": "layer 0", "head": "head 2"}
    for label, start in lists.items():
        options = chooser(figure, label).locator("option").all_text_contents()
        chooser(figure, label).select_option(
            label=next(name for name in options if name.startswith(start))
        )
    slider(figure, "character").fill(str(at))
    settled(figure)
    source = torch.tensor([[letters.index(letter) + 3 for letter in text]])
    right, _ = answered(model, letters, targets, text)
    ids = torch.tensor([[dates.BOS, *(targets.number[token] for token in right[:at])]])
    layer = (model.encoder_layers if attention == "encoder" else model.decoder_layers)[0]
    attend = layer.get_submodule("cross_attn" if attention == "cross" else "self_attn")
    seen = []
    hooks = [
        attend.register_forward_pre_hook(
            lambda _, args, kwargs: (args, kwargs | {"need_weights": True}), with_kwargs=True
        ),
        attend.register_forward_hook(lambda _, __, out: seen.append(out[1][0])),
    ]
    with torch.no_grad():
        model(source, ids)
    for hook in hooks:
        hook.remove()
    weights = seen[0][2, at].tolist()
    row = "written" if attention == "decoder" else "source"
    drawn = figure.locator(f"[data-part={row}] rect").evaluate_all(
        "(all) => all.map((one) => Number(one.getAttribute('fill-opacity')))"
    )[: len(weights)]
    assert drawn == pytest.approx([0.7 * weight for weight in weights], abs=0.0051)
    assert tab.wrong == []


def test_chapter_7_what_is_chosen_stands_in_the_address_and_comes_back_from_it(open_tab):
    tab, figure, _ = started(open_tab, "07", named("translator"))
    figure.get_by_label("your date", exact=True).fill("31/12/99")
    chooser(figure, "head").select_option("3")
    figure.get_by_label("√dₖ", exact=True).press("Space")
    slider(figure, "character").fill("1")
    tab.page.wait_for_function(
        "() => /at=1/.test(location.search) && /31%2F12%2F99/.test(location.search)"
    )
    settled(figure)
    broken = (
        "book/07_transformer.html?at=99&head=x&layer=-1&attention=7&without=roof&text=q%E2%82%AC"
    )
    again = comes_back(open_tab, tab, named("translator"), broken, ["no token for €"])
    assert again.get_by_label("√dₖ", exact=True).is_checked()
    assert chooser(again, "head").input_value() == "3"


def test_a_model_that_cannot_be_loaded_is_said_to_be_missing_and_the_picture_stays(open_tab):
    tab, figure, _ = started(open_tab, "07", named("translator"))
    still = figure.locator("svg").first.inner_html()
    tab.page.route("**/models/*", lambda route: route.abort())
    slider(figure, "character").press("ArrowRight")
    settled(figure)
    assert "could not be loaded" in said(figure)
    assert figure.locator("svg").first.inner_html() == still
    tab.page.unroute("**/models/*")
    slider(figure, "character").press("ArrowRight")
    settled(figure)
    assert "To write" in said(figure)
