"""Panels of wide figures, each on its own on a phone: with numbers at their axes, and labels."""

import pytest

from .conftest import chapter_pages

# Of each panel, the axes that stand there without numbers or without the label of their row. What
# matplotlib wrote is measured in the figure's file, and looked for in each view of it.
BARE = """async (src) => {
  document.querySelectorAll("article *").forEach((e) => (e.style.contentVisibility = "visible"));
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  const room = document.body.appendChild(document.createElement("div"));
  const box = (e) => { const { x, y, width, height } = e.getBoundingClientRect();
    return { x: [x, x + width], y: [y, y + height] }; };
  const middle = ([a, b]) => (a + b) / 2;
  const within = (part, whole) => ["x", "y"].every((way) =>
    part[way][0] >= whole[way][0] - 1 && part[way][1] <= whole[way][1] + 1);
  const texts = (e, where) => [...e.querySelectorAll(where)].map(box);
  const bare = [];
  let seen = 0;
  for (const figure of document.querySelectorAll("article .panels")) {
    const source = figure.querySelector("img").src;
    for (const image of figure.querySelectorAll("img")) {
      image.loading = "eager";
      await image.decode(); // before, it has no height
    }
    room.innerHTML = await (await fetch(source)).text();
    const whole = room.querySelector("svg").getBoundingClientRect();
    const axes = [...room.querySelectorAll('[id^="axes_"]')].flatMap((panel) =>
      ["x", "y"].flatMap((way) => {
        const axis = panel.querySelector(`[id^="${way}tick_"]`)?.parentElement;
        return axis ? [{ way, id: panel.id, panel: box(panel.firstElementChild),
          ticks: [...axis.querySelectorAll(`:scope > [id^="${way}tick_"]`)],
          numbers: texts(axis, `[id^="${way}tick_"] > [id^="text_"]`),
          labels: texts(axis, `:scope > [id^="text_"]`) }] : [];
      }));
    for (const part of figure.querySelectorAll(".panel > span")) {
      const cut = box(part);
      const views = [...part.querySelectorAll("img")].map((image) => {
        const { x, y, width, height } = image.getBoundingClientRect();
        const [top, right, bottom, left] = (getComputedStyle(image).clipPath.match(/[-\\d.]+/g)
          ?? [0, 0, 0, 0]).map((share) => share / 100);
        const window = { x: [x + left * width, x + (1 - right) * width],
          y: [y + top * height, y + (1 - bottom) * height] };
        const move = ({ x: [a, b], y: [c, d] }) => ({
          x: [a, b].map((at) => x + (at - whole.x) * width / whole.width),
          y: [c, d].map((at) => y + (at - whole.y) * height / whole.height) });
        return (one) => [move(one)].filter((at) => within(at, window) && within(at, cut));
      });
      const shown = (all) => all.flatMap((one) => views.flatMap((view) => view(one)));
      for (const { way, id, panel, ticks } of axes) {
        const [here] = views[0](panel);
        if (!here) continue;
        seen += 1;
        const along = way, across = way === "x" ? "y" : "x";
        const row = axes.filter((other) => other.way === way
          && other.panel[along].every((edge, i) => Math.abs(edge - panel[along][i]) < 0.1)
          && other.ticks.length === ticks.length);
        const beside = (one) => one[across][1] <= here[across][0] + 1
          || one[across][0] >= here[across][1] - 1;
        const marks = ticks.flatMap((tick) => texts(tick, "use[y]").flatMap(views[0]));
        const at = marks.map((mark) => middle(mark[along]));
        const numbers = shown(axes.flatMap((other) => other.way === way ? other.numbers : []))
          .filter((one) => beside(one) && (at.length
            ? at.some((y) => Math.abs(y - middle(one[along])) < 3)
            : middle(one[along]) > here[along][0] && middle(one[along]) < here[along][1]));
        const labels = shown(row.flatMap((other) => other.labels)).filter(beside);
        if (ticks.length && !numbers.length) bare.push(`${source} ${id}: no numbers along ${way}`);
        if (row.some((other) => other.labels.length) && !labels.length)
          bare.push(`${source} ${id}: no label along ${way}`);
      }
    }
  }
  room.remove();
  return [bare, seen];
}"""


@pytest.mark.share(9)
@pytest.mark.parametrize("name", chapter_pages())
def test_no_panel_that_stands_alone_has_an_axis_without_numbers_or_label(open_tab, name):
    page = open_tab(390).open(name)
    bare, seen = page.evaluate(BARE)
    assert bare == []
    assert seen >= 2 * page.locator(".panels").count()
