"""Pictures of how data flow: nothing is cut off or written over, and all is legible on a phone."""

from collections.abc import Callable, Iterator
from itertools import combinations

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text

from attention_by_hand.figures import dataflow, decoders, encoders, journey, recurrent

PICTURES: dict[str, Callable[[], object]] = {
    "average": lambda: dataflow.attention(dataflow.NUMBERS),
    "attention": dataflow.attention,
    "unscaled": lambda: dataflow.attention(dataflow.UNSCALED),
    "mask": lambda: dataflow.attention(mask=True),
    "self-attention": dataflow.self_attention,
    "heads": dataflow.multi_head,
    "cache": dataflow.cache,
    "positions": dataflow.positions,
    "sublayers": dataflow.sublayers,
    "transformer": dataflow.transformer,
    "one vector or all": recurrent.one_vector_or_all,
    "gru": recurrent.gru,
    "recurrent decoder": recurrent.recurrent_decoder,
    "decoder block": decoders.block,
    "gpt": decoders.gpt,
    "shared keys": decoders.shared_keys,
    "induction": decoders.induction,
    "bert": encoders.bert,
    "two trainings": encoders.two_trainings,
    "vit": encoders.vit,
    "blip": encoders.blip,
    "bottleneck": journey.bottleneck,
    "neighbours": journey.neighbours,
    **{f"here, {n}": lambda n=n: journey.station(n) for n in range(1, 8)},
}
PHONE, LEAST = 358, 10  # CSS pixels: how wide a picture is there, and how large a letter must be


@pytest.fixture(params=PICTURES)
def picture(request) -> Iterator[plt.Figure]:
    plt.close("all")
    PICTURES[request.param]()
    yield plt.gcf()
    plt.close("all")


def words(figure: plt.Figure) -> list[Text]:
    return [text for text in figure.axes[0].texts if text.get_text().strip()]


@pytest.mark.share(6)
def test_nothing_is_cut_off(picture):
    figure = picture.bbox
    for text in words(picture):
        box = text.get_window_extent()
        assert box.x0 >= 0 <= box.y0, text.get_text()
        assert box.x1 <= figure.x1, text.get_text()
        assert box.y1 <= figure.y1, text.get_text()


@pytest.mark.share(6)
def test_no_words_stand_on_others(picture):
    for one, other in combinations(words(picture), 2):
        assert not one.get_window_extent().overlaps(other.get_window_extent()), (
            one.get_text(),
            other.get_text(),
        )


@pytest.mark.share(6)
def test_words_stay_inside_their_boxes(picture):
    boxes = [patch.get_window_extent() for patch in picture.axes[0].patches]
    for text in words(picture):
        inside = text.get_window_extent()
        x, y = (inside.x0 + inside.x1) / 2, (inside.y0 + inside.y1) / 2
        for box in boxes:
            if abs((box.x0 + box.x1) / 2 - x) < 1 and abs((box.y0 + box.y1) / 2 - y) < 4:
                assert inside.width <= box.width, text.get_text()


@pytest.mark.share(6)
def test_on_a_phone_letters_are_large_enough(picture):
    shrunk = min(1, PHONE / (96 * picture.get_figwidth()))
    for text in words(picture):
        assert text.get_fontsize() * 96 / 72 * shrunk >= LEAST, text.get_text()
