"""Chapter 11's ViT in the page: what it says and where it looks is what torch says."""

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor

from attention_by_hand.models.safetensors import unpacked
from solutions.vision_transformer import VisionTransformer, attention_rollout

from .exploring import SAMPLED, WIRE, chooser, comes_back, named, said, settled, started

PATCHES = named("patches")
MOVES = [(down, right) for down in (-1, 0, 1) for right in (-2, -1, 0, 1, 2)]
READ = """async (pictures) => {
  const figure = document.querySelector('[data-explorable="patches"]');
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const { model } = await import("/_static/explorables/models.js");
  const { reader } = await import("/_static/explorables/patches.js");
  const read = reader(await model({ figure, data })());
  return pictures.map((pixels) => read(pixels).logits);
}"""


@cache
def trained(file: Path) -> VisionTransformer:
    """The model with the parameters that the page has."""
    state, notes = unpacked(file.read_bytes())
    model = VisionTransformer(10, 2, 1, 10, 32, int(notes["num_heads"]), 3)
    model.load_state_dict(state)
    return model.eval()


@cache
def held_out() -> tuple[Tensor, Tensor]:
    """The digits that seed 0 holds out, the first fifth, and what they are."""
    digits = load_digits()
    count = len(digits.target) // 5
    images = torch.tensor(digits.images[:count], dtype=torch.float32)[:, None] / 16
    return F.pad(images, (1, 1, 1, 1)), torch.tensor(digits.target[:count])


@pytest.fixture
def chapter_11(open_tab, html):
    """The page, the explorable, its data, and torch's model with the same parameters."""
    tab, figure, data = started(open_tab, "11", PATCHES)
    return tab, figure, data, trained(html / "book" / data["model"])


def digit(data: dict, case: int) -> Tensor:
    """The picture of a digit that can be chosen, `(1, 10, 10)`."""
    levels = ["0123456789abcdefg".index(letter) for letter in data["cases"][case]["ink"]]
    return torch.tensor(levels).reshape(1, 10, 10) / 16


def moved(images: Tensor, down: int, right: int) -> Tensor:
    """The pictures moved by up to two pixels; what leaves them is lost."""
    return F.pad(images, (2, 2, 2, 2))[..., 2 - down : 12 - down, 2 - right : 12 - right]


@torch.no_grad()
def shares(model: VisionTransformer, image: Tensor) -> Tensor:
    return model(image[None])[0].softmax(-1)


@torch.no_grad()
def weights(model: VisionTransformer, image: Tensor) -> list[Tensor]:
    """The attention weights of each layer, `(1, H, 26, 26)`."""
    found: list[Tensor] = []

    def keep(_, __, out: Tensor) -> None:
        query, key, _ = out.unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        found.append((query @ key.mT / math.sqrt(8)).softmax(-1))

    hooks = [block.attn.qkv.register_forward_hook(keep) for block in model.blocks]
    model(image[None])
    for hook in hooks:
        hook.remove()
    return found


def drawn(figure, part: str, attribute: str) -> list[float]:
    """An attribute of all rectangles of a part of the drawing."""
    return figure.locator(f"[data-part={part}] rect").evaluate_all(
        f"(all) => all.map((one) => Number(one.getAttribute('{attribute}')))"
    )


def bars(figure) -> list[float]:
    texts = figure.locator("[data-part=bars] text:last-child").all_text_contents()
    return [float(text) for text in texts]


def same_shares(figure, model: VisionTransformer, image: Tensor) -> None:
    """The page shows a picture, and says of it what torch says."""
    settled(figure)
    right = shares(model, image)
    assert drawn(figure, "pixels", "fill-opacity") == pytest.approx(
        image.flatten().tolist(), abs=0.0051
    )
    assert bars(figure) == pytest.approx(right.tolist(), abs=0.0051)
    assert f"The model says {int(right.argmax())} with {right.max():.2f}" in said(figure)


@SAMPLED
def test_the_model_names_held_out_digits_as_torch_does(chapter_11, html, count):
    tab, _, data, model = chapter_11
    assert (html / "book" / data["model"]).stat().st_size < WIRE
    images, _ = held_out()
    found = np.array(tab.page.evaluate(READ, images[:count].flatten(1).tolist()))
    with torch.no_grad():
        right = model(images[:count]).numpy()
    assert (found.argmax(1) == right.argmax(1)).all()
    assert np.abs(found - right).max() < 1e-3
    assert tab.wrong == []


def test_what_the_chapter_says_of_moved_digits_holds_for_the_page_s_model(chapter_11):
    _, _, _, model = chapter_11
    images, labels = held_out()
    with torch.no_grad():
        before = model(images).softmax(-1)
        after = torch.stack(
            [
                model(moved(images, *move)).argmax(-1)
                for move in MOVES
                if move != (0, 0) and abs(move[1]) < 2
            ]
        )
        room = images[:, 0][:, :, [0, 1, 8, 9]].sum((1, 2)) == 0
        sideways = [
            [model(moved(images[room], 0, way * far)).argmax(-1) for way in (-1, 1)]
            for far in (1, 2)
        ]
    sure, name = before.max(-1)
    # "about as many are right as before"
    assert abs((name == labels).float().mean() - (after == labels).float().mean()) < 0.04
    changes = (after != name).any(0)
    assert 0.2 < changes.float().mean() < 0.4  # "some three in ten change"
    assert sure[changes].median() < sure[~changes].median()  # "less sure of those"
    one, two = ((torch.stack(names) != name[room]).float().mean() for names in sideways)
    assert two > 2 * one  # "far more names change"


def test_a_digit_that_is_chosen_is_named_and_looked_at_as_in_torch(chapter_11):
    tab, figure, data, model = chapter_11
    images, labels = held_out()
    assert [one["digit"] for one in data["cases"]] == [k for k in range(10) for _ in range(3)]
    for case, layer, head in ((0, 0, 0), (14, 1, 4), (22, 2, 1)):
        image, one = digit(data, case), data["cases"][case]
        assert torch.equal(images[labels == one["digit"]][case % 3], image)
        chooser(figure, "digit").select_option(str(case))
        for label, value in (("layer", layer), ("head", head)):
            chooser(figure, label).select_option(str(value))
        same_shares(figure, model, image)
        right = int(shares(model, image).argmax()) == one["digit"]
        assert ("which is right" in said(figure)) == right
        heads = weights(model, image)
        looks = heads[layer][0].mean(0)[0] if head == 0 else heads[layer][0, head - 1, 0]
        rollout = attention_rollout(heads)[0, 0]
        for view, seen in (("1", looks), ("2", rollout)):
            chooser(figure, "tinted").select_option(view)
            settled(figure)
            tints = (0.7 * seen[1:] / seen[1:].max()).tolist()
            assert drawn(figure, "tints", "fill-opacity") == pytest.approx(tints, abs=0.0052)
            heights = (24 * seen / seen.max()).tolist()
            assert drawn(figure, "weights", "height") == pytest.approx(heights, abs=0.052)
            row, column = divmod(int(seen[1:].argmax()), 5)
            where = f"row {row}, column {column}, with {seen[1:].max():.2f}"
            assert where in said(figure)
        chooser(figure, "tinted").select_option("0")
        settled(figure)
        assert set(drawn(figure, "tints", "fill-opacity")) == {0}
        patches = F.unfold(image[None], 2, stride=2)[0].T.flatten().tolist()
        assert drawn(figure, "cut", "fill-opacity") == pytest.approx(patches, abs=0.0051)
    assert tab.wrong == []


def test_a_picture_moves_with_the_buttons_and_the_names_around_it_are_torch_s(chapter_11):
    tab, figure, data, model = chapter_11
    case = 15  # a 5 that is hard to read
    chooser(figure, "digit").select_option(str(case))
    settled(figure)
    image = digit(data, case)
    names = [int(shares(model, moved(image, *move)).argmax()) for move in MOVES]
    shown = figure.locator("[data-part=moves] text").all_text_contents()
    assert [int(name) for name in shown] == names
    near = [names[k] for k, (_, right) in enumerate(MOVES) if abs(right) < 2]
    other = sum(name != names[7] for name in near)
    assert f"Of 8 moves by one pixel, {other or 'none'} change" in said(figure)
    frame = figure.locator("[data-part=around] > rect").bounding_box()
    boxes = [one.bounding_box() for one in figure.locator("[data-part=moves] rect").all()]
    framed = [
        all(
            frame[a] < box[a] + box[b] / 2 < frame[a] + frame[b]
            for a, b in (("x", "width"), ("y", "height"))
        )
        for box in boxes
    ]
    assert framed == [abs(right) < 2 for _, right in MOVES]
    assert "2 sideways (framed: 1)" in figure.locator("svg text").all_text_contents()
    for arrow, right in (("→", 1), ("→", 2), ("→", 2)):  # no farther than by two
        figure.get_by_role("button", name=arrow).press("Enter")
        same_shares(figure, model, moved(image, 0, right))
        assert f"moved by {right} to the right. " in said(figure)
    figure.get_by_role("button", name="↑").press("Enter")
    same_shares(figure, model, moved(image, -1, 2))
    assert "moved by 1 up, 2 to the right. " in said(figure)
    figure.get_by_role("button", name="back").press("Enter")
    same_shares(figure, model, image)
    figure.locator("[data-part=moves] g").nth(11).click()
    same_shares(figure, model, moved(image, *MOVES[11]))
    for arrow, move in (("←", (1, -2)), ("↑", (0, -2)), ("↓", (1, -2))):
        figure.get_by_role("button", name=arrow).press("Enter")
        same_shares(figure, model, moved(image, *move))
    assert tab.wrong == []


def test_a_patch_that_is_covered_by_keyboard_shows_the_mean_of_the_training(chapter_11):
    tab, figure, data, model = chapter_11
    digits = load_digits()
    mean = F.pad(torch.tensor(digits.images[len(held_out()[0]) :]).mean(0) / 16, (1, 1, 1, 1))
    cover = torch.tensor(data["cover"]).view(1, 10, 10)
    assert (cover[0] - mean).abs().max() < 0.0006
    image = digit(data, 9)
    square = figure.get_by_role("checkbox")
    square.press("ArrowDown")
    for column in (1, 2):
        square.press("ArrowRight")
        square.press("Enter")
        image[:, 2:4, 2 * column : 2 * column + 2] = cover[:, 2:4, 2 * column : 2 * column + 2]
        same_shares(figure, model, image)
        assert square.get_attribute("aria-label") == f"row 1, column {column}: covered"
        assert f"A 3; patches covered: {column}. " in said(figure)
    square.press("Space")
    settled(figure)
    assert square.get_attribute("aria-checked") == "false"
    figure.get_by_role("button", name="uncover").press("Enter")
    same_shares(figure, model, digit(data, 9))
    assert tab.wrong == []


def test_what_is_drawn_is_ink_moves_along_and_comes_back_from_the_address(chapter_11, open_tab):
    tab, figure, data, model = chapter_11
    chooser(figure, "digit").select_option(str(len(data["cases"])))
    settled(figure)
    square = figure.get_by_role("checkbox")
    for key in ["ArrowRight"] * 9 + ["ArrowDown"] * 2 + ["Shift+ArrowDown"] * 14:
        square.press(key)
    image = torch.zeros(1, 10, 10)
    image[:, 1:9, 4:6] = 0.5  # a pen as wide as a pixel, between two
    same_shares(figure, model, image)
    assert square.get_attribute("aria-label") == "pixel row 8, column 4.5: drawn"
    box = square.locator("rect").first.bounding_box()
    wide = box["width"] / 10
    tab.page.mouse.move(box["x"] + 2.5 * wide, box["y"] + 1.5 * wide)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 7.5 * wide, box["y"] + 1.5 * wide)
    tab.page.mouse.up()
    image[:, 1, 2:8] = 1
    same_shares(figure, model, image)
    figure.get_by_role("button", name="←").press("Enter")
    same_shares(figure, model, moved(image, 0, -1))
    assert said(figure).startswith("An empty sheet; drawn on; moved by 1 to the left. ")
    chooser(figure, "tinted").select_option("2")
    tab.page.wait_for_function("() => /view=2/.test(location.search)")
    settled(figure)
    broken = (
        "book/11_vision_transformer.html?digit=99&down=x&right=-1&view=7&head=5&covered=%E2%82%AC"
    )
    again = comes_back(open_tab, tab, PATCHES, broken, ["A 3. The model says "])
    same_shares(again, model, moved(image, 0, -1))
