"""Chapter 9's GPT in the page: what it writes, cuts off, looks at and keeps is what torch says."""

import random
import re
from functools import cache

import numpy as np
import pytest
import torch

from attention_by_hand import blocks
from attention_by_hand.data import python_manual
from attention_by_hand.models import gpt
from benchmarks.pretrained_gpt import Tokens
from solutions.language_model import GPT, generate, next_token_probabilities

from .exploring import SAMPLED, WIRE, comes_back, named, number, said, settled, slider, started

WRITER = named("writer")
READ = """async ([name, texts, written]) => {
  const figure = document.querySelector(`[data-explorable="${name}"]`);
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const { model } = await import("/_static/explorables/models.js");
  const { reader } = await import(`/_static/explorables/${name}.js`);
  const read = reader(await model({ figure, data })(), { ...data.sheet, rows: 1000 });
  const how = { written, temperature: 0, k: 9, p: 1, seed: 0 };
  return texts.map((text) => read({ ...how, text })).map(({ ids, typed, steps }) =>
    [ids, typed, Array.from(steps[typed - 1].logits), Array.from(steps.at(-1).logits)]);
}"""


@cache
def trained() -> tuple[GPT, Tokens]:
    tokens = Tokens(gpt.merges())
    model = GPT(len(tokens.tokens), **gpt.SIZES)
    model.load_state_dict(gpt.weights())
    return model.eval(), tokens


def encoded(text: str) -> list[int]:
    return trained()[1].encode([text.encode().decode("latin-1")]).tolist()


@torch.no_grad()
def logits(ids: list[int]) -> torch.Tensor:
    return trained()[0](torch.tensor([ids]))[0]  # (n, vocab_size)


@torch.no_grad()
def looks(ids: list[int], layer: int, head: int, at: int) -> list[float]:
    """The weights of a head at a position, over it and those before it."""
    model, _ = trained()
    seen, attend = [], model.blocks[layer].attn
    hooks = [
        attend.register_forward_pre_hook(
            lambda _, args, kwargs: (args, kwargs | {"need_weights": True}), with_kwargs=True
        ),
        attend.register_forward_hook(lambda _, __, out: seen.append(out[1][0])),
    ]
    model(torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    return seen[0][head, at, : at + 1].tolist()


def luck(seed: int, place: int) -> float:
    """The number that decides a draw, as `sampling.js` makes it."""
    x = ((seed + 1) * 0x9E3779B1 ^ (place + 1) * 0x85EBCA6B) & 0xFFFFFFFF
    for factor in (0x7FEB352D, 0x846CA68B):
        x = (x ^ x >> 16) * factor & 0xFFFFFFFF
    return (x ^ x >> 16) / 2**32


def drawn(
    text: str | list[int], count: int, temperature: float, k: int, p: float, seed: int
) -> list[int]:
    """What torch's probabilities and these numbers write after a text, or after its ids."""
    ids = encoded(text) if isinstance(text, str) else [*text]
    for _ in range(count):
        row = logits(ids)[-1]
        chances = next_token_probabilities(row.double(), temperature, k, p)
        order = row.argsort(descending=True, stable=True)
        reached = chances[order].cumsum(0)
        ids.append(order[int((reached <= luck(seed, len(ids) - 1)).sum())].item())
        if ids[-1] == 0:
            break
    return ids


def press(figure, name: str) -> None:
    figure.get_by_role("button", name=name, exact=True).press("Enter")
    settled(figure)


def put(figure, **values: int) -> None:
    """Move sliders to places, by the words beside them."""
    for label, value in values.items():
        words = {"temperature": "temperature τ", "k": "top-k", "p": "top-p"}
        slider(figure, words.get(label, label)).fill(str(value))
    settled(figure)


def typed(figure, text: str) -> None:
    figure.get_by_label("your beginning", exact=True).fill(text)
    figure.page.wait_for_function(
        "([figure, text]) => figure.querySelector('output').textContent.endsWith(text)",
        arg=[figure.element_handle(), f"The text: {text}"],
    )
    settled(figure)


def names(figure) -> list[str]:
    return figure.locator("[data-part=text] text").all_text_contents()


def shown(ids: list[int]) -> list[str]:
    decode = trained()[1].decode
    return [decode([i]).replace(" ", "␣").replace("\n", "⏎") or "(end)" for i in ids]


@SAMPLED
def test_it_writes_what_torch_writes_after_beginnings_of_held_out_texts(open_tab, html, count):
    tab, _, data = started(open_tab, "09", WRITER)
    assert (html / "book" / data["model"]).stat().st_size < WIRE
    text, draw = "\n".join(python_manual.documents("test").values()), random.Random(0)
    texts = ["", "Größe: 5 €…", "Å\u2003 x", "  two  spaces ", "日本語", "a_b² ½"]
    while len(texts) < count:
        first = draw.randrange(len(text) - 60)
        texts.append(text[first : first + draw.randint(1, 60)])
    found, far = tab.page.evaluate(READ, ["writer", texts, 3]), 0.0
    for text, (ids, known, first, last) in zip(texts, found, strict=True):
        right = encoded(text)
        assert ids[:known] == right, text
        written = generate(trained()[0], torch.tensor([right]), 3, temperature=0)[0].tolist()
        assert ids == written[: len(ids)], text
        assert len(ids) == len(written) or ids[-1] == 0
        exact = logits(ids).numpy()
        far = max(far, np.abs(exact[[known - 1, -1]] - np.array([first, last])).max())
    assert far < 1e-3
    assert tab.wrong == []


def test_the_picture_without_a_script_is_what_the_model_says_at_first(open_tab):
    tab, figure, data = started(open_tab, "09", WRITER)

    def picture():
        texts = figure.locator("svg text").all_text_contents()
        return texts, figure.locator("svg rect").evaluate_all(
            """(all) => all.map((one) => ["x", "width", "height", "fill-opacity", "stroke",
                 "stroke-width"].map((name) => one.getAttribute(name) ?? ""))"""
        )

    (texts, rects), start = picture(), data["start"]
    put(figure, head=1)
    put(figure, head=start["head"])
    again, drawn_again = picture()
    assert again == texts
    for one, other in zip(rects, drawn_again, strict=True):
        assert one[0] == other[0] and one[4] == other[4]
        assert [float(v or 1) for v in one[1:4]] == pytest.approx(
            [float(v or 1) for v in other[1:4]], abs=0.11
        )
    assert names(figure) == shown(drawn(start["text"], start["written"], 0, 1, 1.0, 0))
    assert tab.wrong == []


@pytest.mark.parametrize(
    ("text", "temperature", "k", "p", "again"),
    [("The value of a", 4, 9, 8, 0), ("If the object", 6, 5, 11, 1), ("Größe", 8, 7, 9, 3)],
)
def test_what_is_cut_off_and_what_is_drawn_is_what_the_reference_says(
    open_tab, text, temperature, k, p, again
):
    tab, figure, data = started(open_tab, "09", WRITER)
    put(figure, temperature=temperature, k=k, p=p)
    typed(figure, text)
    for _ in range(again):
        press(figure, "draw all again")
    press(figure, "write 20")
    press(figure, "write a token")
    how = (data["temperatures"][temperature], data["ks"][k], data["ps"][p])
    ids = drawn(text, 21, *how, seed=again)
    assert names(figure) == shown(ids)
    count = len(encoded(text))
    for at in (count - 1, len(ids) - 2, len(ids) - 1):
        put(figure, token=at)
        row = logits(ids)[at]
        right = next_token_probabilities(row.double(), *how)
        order = row.argsort(descending=True, stable=True)
        colder = (row.double() / how[0]).softmax(-1)
        kept = right > 0
        assert int(number(r"(\d+) of", said(figure))) == kept.sum()
        stays = 100 * colder[kept].sum().item()
        assert number(r"which had ([\d.]+) %", said(figure)) == pytest.approx(stays, abs=0.051)
        first = right.max().item()
        assert number(r"drawn with ([\d.]+)\.", said(figure)) == pytest.approx(first, abs=0.00051)
        best, shares = order[:8], figure.locator("[data-part=bars] text:last-child")
        numbers = [float(n) for n in shares.all_text_contents()]
        rest = right[order[8:]].sum().item()
        assert numbers == pytest.approx([*right[best].tolist(), rest], abs=0.00051)
        labels = figure.locator("[data-part=bars] text:first-child").all_text_contents()
        assert labels == [*shown(best.tolist()), "all others"]
        filled = figure.locator("[data-part=bars] rect").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('fill-opacity') === '1')"
        )
        assert filled == [*kept[best].tolist(), kept[order[8:]].any().item()]
    assert tab.wrong == []


def test_a_head_looks_where_torch_s_looks(open_tab):
    tab, figure, data = started(open_tab, "09", WRITER)
    ids = drawn(data["start"]["text"], data["start"]["written"], 0, 1, 1.0, 0)
    for layer, head, at in ((2, 0, 41), (0, 3, 12), (1, 1, 0), (2, 2, 31)):
        put(figure, token=at, layer=layer, head=head)
        row = looks(ids, layer, head, at)
        tints = figure.locator("[data-part=text] rect").evaluate_all(
            "(all) => all.map((one) => Number(one.getAttribute('fill-opacity')))"
        )
        whole = [0.7 * look / max(row) for look in row] + [0] * (len(ids) - at - 1)
        assert tints == pytest.approx(whole, abs=0.0051)
        assert f"At token {at}, " in said(figure)
        place, share = re.search(
            r"looks most at .*?\(token (\d+), (\d+) %\)", said(figure)
        ).groups()
        assert int(place) == int(np.argmax(row))
        assert int(share) == pytest.approx(100 * max(row), abs=0.51)
    assert tab.wrong == []


@pytest.mark.parametrize(("text", "count"), [("The well is", 0), ("She sings well. The", 21)])
def test_the_numbers_with_and_without_a_cache_are_those_that_torch_computes(open_tab, text, count):
    tab, figure, _ = started(open_tab, "09", WRITER)
    typed(figure, text)
    for name in ["write 20", "write a token"][: 2 * bool(count)]:
        press(figure, name)
    model = blocks.GPT(len(trained()[1].tokens), **gpt.SIZES).eval()
    model.load_state_dict(gpt.weights())
    made: list[int] = []
    for block in model.blocks:
        for part in (block.attn.W_k, block.attn.W_v):
            part.register_forward_hook(lambda _, __, out: made.append(out.numel()))
    ids = encoded(text)
    again, cached, kept = [], [], None
    with torch.no_grad():
        for t in range(count + 1):
            before = sum(made)
            row, kept = model.step(torch.tensor([ids[-1:] if t else ids]), kept)
            cached.append(sum(made) - before)
            before = sum(made)
            model(torch.tensor([ids]))
            again.append(sum(made) - before)
            ids.append(row[0, -1].argmax().item())
    size = sum(tensor.numel() for pair in kept for tensor in pair)
    cells = figure.locator("[data-part=cache] text").all_text_contents()
    assert [int(c.replace(",", "")) for i, c in enumerate(cells) if i % 3] == [
        again[-1], cached[-1], sum(again), sum(cached), 0, size,
    ]  # fmt: skip
    assert names(figure) == shown(ids[:-1])
    assert tab.wrong == []


def test_at_temperature_0_the_circle_begins_where_the_chapter_says(open_tab):
    tab, figure, data = started(open_tab, "09", WRITER)
    put(figure, token=data["start"]["at"])
    sentences = said(figure).partition("The text: ")[2].split("\n")
    assert len(set(sentences[:3])) == 2 and sentences[1] == sentences[2]
    # what is written stays; hotter, it finds a way out
    before = names(figure)
    put(figure, temperature=4)
    assert names(figure) == before
    press(figure, "write 20")
    assert names(figure)[: len(before)] == before
    press(figure, "draw all again")
    hot = said(figure).partition("The text: ")[2].split("\n")
    assert len(set(hot)) == len(hot)


def test_tokens_keep_the_settings_that_they_were_drawn_with(open_tab):
    tab, figure, data = started(open_tab, "09", WRITER)
    typed(figure, "If the object")
    settings = ((0, 9, 11), (6, 5, 11), (8, 9, 9))
    ids = encoded("If the object")
    for temperature, k, p in settings:
        put(figure, temperature=temperature, k=k, p=p)
        for _ in range(2):
            press(figure, "write a token")
        how = (data["temperatures"][temperature], data["ks"][k], data["ps"][p])
        ids = drawn(ids, 2, *how, seed=0)
        assert names(figure) == shown(ids)
    tab.page.wait_for_function("() => /written=6&/.test(location.search)")  # of all three settings
    other = open_tab()
    other.page.goto(tab.page.url)
    other.page.wait_for_selector(f"{WRITER}[aria-busy=false] output")
    assert names(other.page.locator(WRITER)) == names(figure)
    other.page.wait_for_function(  # the link leads to the figure
        "(which) => { const { top } = document.querySelector(which).getBoundingClientRect(); "
        "return top >= 0 && top < 200; }",
        arg=WRITER,
    )
    assert tab.wrong == other.wrong == []


def test_keys_move_every_control_and_the_sheet_ends(open_tab):
    tab, figure, _ = started(open_tab, "09", WRITER)
    for label in ("token", "layer"):
        slider(figure, label).press("ArrowLeft")
    slider(figure, "head").press("ArrowRight")
    settled(figure)
    assert "At token 40, " in said(figure) and "layer 1, head 1 looks" in said(figure)
    for _ in range(5):
        slider(figure, "temperature τ").press("ArrowRight")
    for label in ("top-k", "top-p"):
        slider(figure, label).press("ArrowLeft")
    settled(figure)
    assert figure.locator("[data-part=how]").text_content() == (
        "next, at τ = 1.0, k = 200, p = 0.99; filled: kept"
    )
    spoken = figure.locator("label[data-value]").evaluate_all(
        "(all) => all.map((one) => [getComputedStyle(one, '::after').content, one.dataset.value])"
    )
    assert [value for _, value in spoken] == [
        "1.0", "200 tokens", "a share of 0.99", "token 40, The", "layer 1", "head 1"
    ]  # fmt: skip
    assert all(f'"{value}"' in content for content, value in spoken)
    for _ in range(6):
        press(figure, "write 20")
    assert said(figure).startswith(("The sheet is full: ", "The text has ended: "))
    assert figure.locator("button[aria-disabled=true]").count() == 2
    boxes = figure.locator("[data-part=text] g").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().bottom)"
    )
    assert max(boxes) < figure.locator("[data-part=how]").bounding_box()["y"]
    press(figure, "erase what is written")
    assert names(figure) == shown(encoded("The well is"))
    assert tab.wrong == []


def test_the_state_in_the_address_gives_the_same_text(open_tab):
    tab, figure, _ = started(open_tab, "09", WRITER)
    put(figure, temperature=5)
    typed(figure, "A token & 5 €")
    press(figure, "draw all again")
    press(figure, "write 20")
    put(figure, layer=1, head=3, token=9)
    tab.page.wait_for_function("() => /at=9/.test(location.search)")
    again = comes_back(
        open_tab,
        tab,
        WRITER,
        "book/09_language_model.html?at=999&layer=9&head=-1&k=x&p=99&seed=1.5&earlier=x.1+9.99.0.0"
        "&written=1000&text=" + "%F0%9F%98%80" * 80,
        ["The text: 😀"],
    )
    assert slider(again, "token").input_value() == "9"
