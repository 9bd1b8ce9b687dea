"""Chapter 12's captioner in the page: what it writes and where it looks is what torch says."""

from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attention_by_hand.models import captioner
from attention_by_hand.models.safetensors import unpacked
from solutions.captioning import write_caption

from .exploring import WIRE, chooser, comes_back, named, number, said, settled, slider, started

GLANCES = named("glances")


@cache
def trained(file: Path) -> tuple[captioner.Captioner, list[str]]:
    """The model with the parameters that the page has, and its words."""
    state, notes = unpacked(file.read_bytes())
    model = captioner.Captioner()
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing)
    return model.eval(), notes["words"].split()


@pytest.fixture
def chapter_12(open_tab, html):
    """The page, the explorable, its data, and torch's model with the same parameters."""
    tab, figure, data = started(open_tab, "12", GLANCES)
    return tab, figure, data, trained(html / "book" / data["model"])


def letter(data: dict, case: int) -> Tensor:
    """The picture of a letter that can be chosen, `(32, 32)`."""
    digits = torch.tensor([int(digit) for digit in data["cases"][case]["ink"]])
    return digits.reshape(32, 32) / data["levels"]


@torch.no_grad()
def written(model_and_words, picture: Tensor) -> tuple[list[str], Tensor, Tensor]:
    """What torch writes after LATIN, its probabilities and where it looks, word by word."""
    model, words = model_and_words
    images = picture[None]
    ids = write_caption(model, images, captioner.prompt(), captioner.EOS, captioner.longest())
    memory = model.encode(images)
    shares = model.decode(ids, memory)[0, 1:-1].softmax(-1)  # (words, V)
    looks = model.looks(ids, memory)[0].mean(1)[:, 1:-1]  # (layers, words, 8, 8)
    return [words[i] for i in ids[0, 2:].tolist()], shares, looks


def caption(words: list[str]) -> str:
    return " ".join(word for word in words if word != "[EOS]") or "nothing"


def test_a_letter_that_is_chosen_is_named_as_torch_names_it(chapter_12, html):
    tab, figure, data, model = chapter_12
    assert (html / "book" / data["model"]).stat().st_size < WIRE
    for case, one in enumerate(data["cases"]):
        words, shares, looks = written(model, letter(data, case))
        chooser(figure, "letter").select_option(str(case))
        settled(figure)
        for at, layer in ((0, 1), (2, 0), (len(words) - 1, 1)):
            slider(figure, "word").fill(str(at))
            slider(figure, "layer").fill(str(layer))
            settled(figure)
            text, map_ = said(figure), looks[layer, at]
            assert f"The letter {one['letter']}, " in text
            assert ("not in the training" in text) == one["new"]
            assert f"Written: {caption(words)}. " in text
            row, column = divmod(int(map_.argmax()), 8)
            where = f"For {words[at]}, layer {layer} looks most at row {row}, column {column}"
            assert where in text
            most = map_.max().item()
            assert number(r"with ([\d.]+)\. Likeliest", text) == pytest.approx(most, abs=0.0051)
            shown = figure.locator("[data-part=most]").text_content()
            assert number("^most = (.*)$", shown) == pytest.approx(most, abs=0.0051)
            best = shares[at].max().item()
            assert f"Likeliest: {words[at]}, with" in text
            assert number(r"with ([\d.]+)\.$", text) == pytest.approx(best, abs=0.0051)
            tints = figure.locator("[data-part=tints] rect").evaluate_all(
                "(all) => all.map((one) => Number(one.getAttribute('fill-opacity')))"
            )
            assert tints == pytest.approx((0.7 * map_ / most).flatten().tolist(), abs=0.0051)
        shown = figure.locator("[data-part=words] text").all_text_contents()
        assert [word for word in shown if word] == words
        squares = figure.locator("[data-part=pixels] path").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('d').split('M').length - 1)"
        )
        assert squares == [one["ink"].count(str(level)) for level in range(1, data["levels"] + 1)]
    assert tab.wrong == []


def test_what_is_covered_by_keyboard_is_paper_to_the_model(chapter_12):
    tab, figure, data, model = chapter_12
    picture = letter(data, 1)
    whole = caption(written(model, picture)[0])
    chooser(figure, "letter").select_option("1")
    square = figure.get_by_role("checkbox")
    square.focus()
    captions = {whole}
    for row in range(2):  # where the mark is
        for _ in range(7):
            square.press("ArrowLeft")
        for column in range(8):
            square.press("Enter")
            settled(figure)
            picture[4 * row : 4 * row + 4, 4 * column : 4 * column + 4] = 0
            assert square.get_attribute("aria-checked") == "true"
            assert square.get_attribute("aria-label") == f"row {row}, column {column}: covered"
            words, _, _ = written(model, picture)
            assert f"Written: {caption(words)}. Without the change: {whole}. " in said(figure)
            captions.add(caption(words))
            square.press("ArrowRight")
        square.press("ArrowDown")
    assert len(captions) > 1
    square.press("ArrowUp")
    square.press("Space")  # the last one is uncovered
    settled(figure)
    assert square.get_attribute("aria-checked") == "false"
    assert "squares covered: 15" in said(figure)
    figure.get_by_role("button").press("Enter")
    settled(figure)
    assert f"Written: {whole}. For" in said(figure)
    assert tab.wrong == []


def test_what_is_drawn_is_ink_and_comes_back_from_the_address(chapter_12, open_tab):
    tab, figure, data, model = chapter_12
    chooser(figure, "letter").select_option(str(len(data["cases"])))
    settled(figure)
    square = figure.get_by_role("checkbox")
    box = square.locator("rect").first.bounding_box()
    picture = torch.zeros(32, 32)
    across, down = (box[side] / 32 for side in ("width", "height"))
    ends = (
        [box["x"] + 16 * across, box["y"] + 6 * down],
        [box["x"] + 16 * across, box["y"] + 26 * down],
    )
    mouse = tab.page.mouse
    mouse.move(*ends[0])
    mouse.down()
    mouse.move(*ends[1])
    mouse.up()
    settled(figure)
    count = figure.locator("[data-part=pixels] path").last.get_attribute("d").count("M")
    assert count == 2 * 22  # a line of 21 squares of 2 × 2 pixels
    picture[5:27, 15:17] = 1
    words, _, _ = written(model, picture)
    assert f"drawn on. Written: {caption(words)}. " in said(figure)
    tab.page.wait_for_function("() => /drawn=/.test(location.search)")
    broken = "book/12_captioning.html?letter=99&word=-1&layer=x&covered=%E2%82%AC&drawn=~B"
    comes_back(open_tab, tab, GLANCES, broken, ["Written: "])
