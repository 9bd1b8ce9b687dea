"""Wide figures are cut between their panels, for phones; matplotlib says where these are."""

from itertools import pairwise

import matplotlib.pyplot as plt
import pytest
from panels import panels, view

from attention_by_hand import plots


@pytest.fixture
def draw(tmp_path):
    """A figure of n panels with long letters beside them, its file, and the panels' true edges."""

    def drawn(n: int, legend: bool = False, width: float = 9.0):
        plt.close("all")
        with plt.rc_context(plots.STYLE):
            figure, axes = plt.subplots(1, n, figsize=(width, 2.5), squeeze=False)
            for i, ax in enumerate(axes[0]):
                ax.barh(["a word", f"the longest word of {i}"], [1.0, 2.0 + i], label="bars")
                ax.plot([-5.0, 50.0], [0.0, 1.0])  # partly outside
                ax.set_xlim(0, 4)
                ax.set_title(f"panel {i}")
            if legend:
                figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center")
            path = tmp_path / "figure.svg"
            figure.savefig(path)
            points = 72 / figure.dpi
            boxes = [ax.get_tightbbox() for ax in axes[0]]
            return path, [(b.x0 * points, b.x1 * points) for b in boxes]

    return drawn


@pytest.mark.parametrize("n", [2, 3])
def test_each_panel_is_whole_in_its_part(draw, n):
    path, edges = draw(n)
    parts = panels(path, 250)
    assert [part.held for part in parts] == [1] * n
    for part, (first, last) in zip(parts, edges, strict=True):
        assert part.left <= first + 3 and last - 3 <= part.right
    assert all(a.right < b.left for a, b in pairwise(parts))


def test_panels_that_fit_side_by_side_stay_so(draw):
    path, _ = draw(3)
    assert [part.held for part in panels(path, 660)] == [3]
    assert [part.held for part in panels(path, 480)] == [2, 1]


@pytest.fixture
def shared(tmp_path):
    """The file of two panels that share an axis, changed in some way, and where they begin."""

    def drawn(change, sharey=True):
        plt.close("all")
        with plt.rc_context(plots.STYLE):
            figure, axes = plt.subplots(1, 2, figsize=(9.0, 2.5), sharey=sharey)
            axes[0].plot([0.0, 3.0])
            axes[0].set_ylabel("loss")
            change(axes[1])
            figure.savefig(tmp_path / "figure.svg")
            points = 72 / figure.dpi
            return tmp_path / "figure.svg", [ax.get_window_extent().x0 * points for ax in axes]

    return drawn


@pytest.mark.parametrize(("change", "borrowed"), [
    (lambda ax: None, 2),
    (lambda ax: ax.tick_params(labelleft=True), 1),
    (lambda ax: ax.set_ylabel("something else"), 0),
])  # fmt: skip
def test_a_panel_shows_the_numbers_and_the_label_that_it_shares(shared, change, borrowed):
    path, (first, second) = shared(change)
    one, other = panels(path, 250)
    assert one.borrowed == [] and len(other.borrowed) == borrowed
    for box, step in other.borrowed:
        assert one.left <= box.left < box.right < first
        assert step == pytest.approx(second - first, abs=0.1)
    views = [view(part, "figure.svg", (864, 240)).count("clip-path") for part in (one, other)]
    assert views == [0, borrowed + 1 if borrowed else 0]


def test_a_panel_with_other_numbers_borrows_nothing(shared):
    path, _ = shared(lambda ax: ax.set(ylim=(0, 40)), sharey=False)
    assert [part.borrowed for part in panels(path, 250)] == [[], []]


def test_nothing_is_cut_through(draw):
    path, _ = draw(1)
    assert [part.held for part in panels(path, 100)] == [1]
    path, _ = draw(2, legend=True)
    assert len(panels(path, 250)) == 1  # the legend stands over both
    plt.close("all")
    figure = plt.figure(figsize=(6, 2))
    figure.text(0.1, 0.5, "words   with   wide   gaps   between   them")
    figure.savefig(path)
    assert len(panels(path, 50)) <= 1


def test_a_drawing_that_is_not_matplotlib_s_is_left_whole(tmp_path):
    path = tmp_path / "other.svg"
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg"><g id="mine"/></svg>')
    assert panels(path, 100) == []
