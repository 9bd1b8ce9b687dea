"""Explorables: dragged, typed at, and read; the numbers that they say are computed here again."""

import re

import numpy as np
import pytest

from .conftest import chapter_pages
from .exploring import LETTERS, explorables, named, number, said, settled, slider, started, weights


@pytest.mark.share(8)
@pytest.mark.parametrize("name", chapter_pages())
def test_each_explorable_of_a_chapter_works_by_keyboard_and_says_what_it_shows(name, open_tab):
    tab = open_tab()
    names = explorables(tab.open(name))
    assert names
    for one in names:
        moves_by_keyboard(tab.page, tab.page.locator(named(one)))
    assert tab.wrong == []


def moves_by_keyboard(page, figure):
    drawing, changes = figure.locator("svg").first, []
    sliders = figure.locator("input[type=range]:enabled")
    for i in range(sliders.count()):
        one = sliders.nth(i)
        one.focus()
        heard, text = one.get_attribute("aria-valuetext"), said(figure)
        here, low = one.input_value(), one.get_attribute("min")
        one.press("ArrowLeft" if here != low else "ArrowRight")
        settled(figure)
        assert one.get_attribute("aria-valuetext") != heard
        assert one.evaluate("(input) => input.labels.length") == 1
        changes.append(said(figure) != text)
    lists = figure.locator("select")
    for i in range(lists.count()):
        text, now = said(figure), lists.nth(i).input_value()
        values = lists.nth(i).locator("option").evaluate_all("(all) => all.map((o) => o.value)")
        lists.nth(i).select_option(next(v for v in values if v != now))
        settled(figure)
        changes.append(said(figure) != text)
    boxes = figure.locator("[role=checkbox]")
    for i in range(min(2, boxes.count())):
        state = boxes.nth(i).get_attribute("aria-checked")
        boxes.nth(i).focus()
        boxes.nth(i).press("Space")
        changes.append(boxes.nth(i).get_attribute("aria-checked") != state)
        assert changes[-1]
    assert any(changes), "nothing changes"
    assert drawing.get_attribute("role") in {"img", "group"}
    polite = figure.locator("[aria-live=polite]")
    page.wait_for_function(
        "([a, b]) => a.textContent === b.textContent && a.textContent.length > 20",
        arg=[polite.element_handle(), figure.locator("output").first.element_handle()],
    )


@pytest.mark.share(8)
@pytest.mark.parametrize("name", chapter_pages())
def test_without_a_script_an_explorable_is_a_still_picture(name, open_tab):
    page = open_tab(java_script_enabled=False).open(name)
    for figure in page.locator("figure[data-explorable]").all():
        assert figure.locator("svg").first.bounding_box()["width"] > 200
        assert len(figure.locator("svg").first.get_attribute("aria-label")) > 20
        assert figure.locator("input, select, button").count() == 0


@pytest.mark.share(4)
@pytest.mark.parametrize("name", [*chapter_pages(), "book/intro.html"])
def test_an_explorables_letters_can_be_read_on_a_phone(name, open_tab):
    page = open_tab(390).open(name)
    small = {}
    for one in explorables(page):
        drawing = page.locator(f"{named(one)} svg").first
        drawing.scroll_into_view_if_needed()
        small[one] = [pair for pair in drawing.evaluate(LETTERS) if pair[0] < 11.99]
    assert small == dict.fromkeys(small, [])


@pytest.mark.share(6)
@pytest.mark.parametrize("name", chapter_pages())
def test_an_explorable_keeps_still_for_readers_who_want_less_motion(name, open_tab):
    page = open_tab(reduced_motion="reduce").open(name)
    for one in explorables(page):
        figure = page.locator(named(one))
        for _ in range(2):
            figure.locator("input[type=range], [role=checkbox]").first.press("ArrowRight")
        assert figure.evaluate("(f) => f.getAnimations({ subtree: true }).length") == 0


def drawn(figure, part: str, frame: dict) -> np.ndarray:
    """The points of a path in a frame, as data: `(n, 2)`."""
    path = figure.locator(f'[data-part="{part}"]').get_attribute("d")
    pixels = np.array([point.split() for point in path.strip("M").split("L")], dtype=float)
    (left, right), (low, high) = frame["x"], frame["y"]
    across = (pixels[:, 0] - frame["left"]) / (frame["right"] - frame["left"])
    up = (frame["bottom"] - pixels[:, 1]) / (frame["bottom"] - frame["top"])
    return np.stack([left + across * (right - left), low + up * (high - low)], 1)


def test_chapter_1_the_query_is_dragged_and_the_prediction_is_nadaraya_watsons(open_tab):
    tab, figure, data = started(open_tab, "01")
    box = figure.locator("svg").first.bounding_box()
    seen = set()
    for share in (0.3, 0.7):
        tab.page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60)
        tab.page.mouse.down()
        tab.page.mouse.move(box["x"] + box["width"] * share, box["y"] + 60, steps=4)
        tab.page.mouse.up()
        text = said(figure)
        query = number(r"query ([\d.]+) h", text)
        w = data["w"][int(slider(figure, "w (1/hour)").input_value())]
        row = weights([-0.5 * ((query - x) * w) ** 2 for x in data["x"]])
        assert number(r"prediction (−?-?[\d.]+)", text) == pytest.approx(
            row @ np.array(data["y"]), abs=0.051
        )
        assert number(r"largest weight ([\d.]+)", text) == pytest.approx(row.max(), abs=0.0051)
        seen.add(query)
        slider(figure, "w (1/hour)").press("ArrowRight")
    w = data["w"][int(slider(figure, "w (1/hour)").input_value())]
    line = drawn(figure, "fit", data["upper"])
    times = np.linspace(0, 24, 121)
    assert line[:, 0] == pytest.approx(times, abs=0.003)
    for time, value in zip(times, line[:, 1], strict=True):
        row = weights([-0.5 * ((time - x) * w) ** 2 for x in data["x"]])
        assert value == pytest.approx(row @ np.array(data["y"]), abs=0.02)
    assert len(seen) == 2


def test_chapter_2_a_higher_temperature_evens_the_weights_out(open_tab):
    _, figure, data = started(open_tab, "02", named("temperature"))
    largest = []
    for index in (0, len(data["temperatures"]) - 1):
        slider(figure, "temperature τ").fill(str(index))
        text = said(figure)
        size = int(slider(figure, "size dₖ").input_value())
        d, scores = data["sizes"][size], np.array(data["scores"][size])
        plain, scaled = (
            weights(scores / by / data["temperatures"][index]).max() for by in (1, np.sqrt(d))
        )
        assert number(r"weight ([\d.]+) without", text) == pytest.approx(plain, abs=0.0051)
        assert number(r"([\d.]+) with it", text) == pytest.approx(scaled, abs=0.0051)
        largest.append(scaled)
    assert largest[0] > largest[1]


def test_chapter_3_only_the_right_way_brings_the_heads_back(open_tab):
    _, figure, _ = started(open_tab, "03", named("heads"))
    slider(figure, "number of heads").fill("1")
    told = {}
    for mode in figure.get_by_label("axes").locator("option").all_inner_texts():
        figure.get_by_label("axes").select_option(label=mode)
        told[mode] = said(figure)
    right = [mode for mode, text in told.items() if "back as it was" in text]
    assert "exchanged (right)" in right
    assert "scrambled" in told["split by reshape"]
    assert "scrambled" in told["merge by reshape"]
    assert "and no other" in told["both by reshape"], "right shape, wrong heads"


def test_chapter_4_a_mask_is_painted_and_the_weights_follow(open_tab):
    tab, figure, data = started(open_tab, "04", named("mask"))
    n = len(data["names"])
    cells = figure.locator("[role=checkbox]")

    def row(i: int) -> list[float]:
        labels = [cells.nth(i * n + j).get_attribute("aria-label") for j in range(n)]
        return [float(label.rpartition(" ")[2]) for label in labels]

    figure.get_by_role("button", name="everything").click()
    assert row(0) == pytest.approx(weights(data["scores"][0]), abs=0.0051)
    figure.get_by_role("button", name="causal", exact=True).click()
    assert row(0) == [1, *[0] * (n - 1)]
    assert row(2)[:3] == pytest.approx(weights(data["scores"][2][:3]), abs=0.0051)

    first, last = (cells.nth(k).bounding_box() for k in (0, n - 1))
    y = first["y"] + first["height"] / 2
    tab.page.mouse.move(first["x"] + first["width"] / 2, y)
    tab.page.mouse.down()  # paints what the first cell becomes: hidden
    tab.page.mouse.move(last["x"] + last["width"] / 2, y, steps=12)
    tab.page.mouse.up()
    assert row(0) == [0] * n
    cells.nth(0).press(" ")
    assert row(0)[0] == 1
    figure.get_by_role("button", name="nothing").click()
    figure.get_by_label("hidden scores").select_option("nan")
    assert "NaN" in cells.nth(0).get_attribute("aria-label")


def test_chapter_5_the_dot_product_is_a_sum_of_cosines_of_the_distance(open_tab):
    _, figure, data = started(open_tab, "05", named("positions"))
    for index, distance in enumerate((0, 3, -7)):
        slider(figure, "base").fill(str(index))
        slider(figure, "distance").fill(str(distance))
        text = said(figure)
        base = number(r"base (\d+)", text)
        rates = base ** -(np.arange(0, len(data["test"]["row"]), 2) / len(data["test"]["row"]))
        assert number(r": (−?-?[\d.]+)\.$", text) == pytest.approx(
            np.cos(distance * rates).mean(), abs=0.0051
        )
        for away, product in drawn(figure, "curve", data["frame"]):
            assert product == pytest.approx(np.cos(round(away) * rates).mean(), abs=0.001)


def shortest_way(n: int, way: str) -> int:
    """How many layers or steps until the last output depends on the first input, by products."""
    place = np.arange(n)
    apart = np.abs(place[:, None] - place)
    if way == "recurrence":  # from inputs, 0 to n − 1, and states behind them, one edge at a time
        edges = np.eye(2 * n, k=n) + np.diag([0] * n + [1] * (n - 1), k=1)
        return next(k for k in range(1, 3 * n) if np.linalg.matrix_power(edges, k)[0, -1])
    sees, layers = np.eye(n), 0
    while not sees[-1, 0]:
        reach = {"attention": n, "width 3": 1}.get(way)
        reads = apart <= reach if reach else (apart == 0) | (apart == 2**layers)
        sees, layers = (reads @ sees > 0).astype(float), layers + 1
    return layers


def test_chapter_8_the_way_from_the_last_position_to_the_first(open_tab):
    tab, figure, data = started(open_tab, "08")
    for n in (3, 8, 9, data["most"]):
        slider(figure, "positions").fill(str(n))
        for kind, way in (("width 3", "width 3"), ("width 3, dilated by 1, 2, 4, …", "dilated")):
            figure.locator("select").select_option(label=kind)
            text = said(figure)
            assert text.startswith(f"{n} positions")
            for name, by in (
                ("recurrence", "recurrence"), ("convolution", way), ("attention", "attention"),
            ):  # fmt: skip
                long = shortest_way(n, by)
                assert number(rf"{name} (\d+) step", text) == long
                path = figure.locator(f'[data-part="path-{name}"]').get_attribute("d")
                assert path.count("L") == long
                drawn = figure.locator(f'[data-part="long-{name}"]').text_content()
                assert drawn == f"{long} step{'s' * (long > 1)}"
            assert number(r"compares (\d+) pairs", text) == n**2
    assert tab.wrong == []


def test_the_introduction_follows_one_word_through_both_sentences(open_tab):
    tab, figure, data = started(open_tab, "intro", "#one-word-all-the-way figure[data-explorable]")
    mark = figure.locator('[data-part="mark"]')
    seen = []
    for i, text in enumerate(data["texts"]):
        figure.get_by_label("sentence").select_option(str(i))
        for step in (0, 4, len(data["steps"]) - 1):
            slider(figure, "step").fill(str(step))
            told = said(figure)
            assert told.startswith(
                f"Step {step + 1} of 12, {data['steps'][step]['name']} "
                f"({data['steps'][step]['chapters']}). "
            )
            numbers = [n.strip(",.") for n in re.findall(r"−?(?:\d\.\d\d|∞)", told)]
            assert numbers == text["said"][step]
            drawn = figure.locator('[data-part="bars"] text').all_text_contents()
            assert [one for one in drawn if one in numbers] == numbers
            seen.append((numbers, mark.bounding_box()["y"]))
    table, masked, kind = seen[0], seen[1], seen[2]
    assert table[1] > masked[1] > kind[1], "the mark goes up"
    assert seen[3][0] == table[0], "one row of the table for both"
    assert "−∞" in masked[0] and "−∞" not in seen[4][0]
    assert kind[0].index(max(kind[0])) == 2 and seen[5][0].index(max(seen[5][0])) == 4
    assert tab.wrong == []
