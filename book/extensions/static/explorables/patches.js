// Chapter 11: cover a square of patches of a digit, and see what the page's own ViT says of it. All
// probabilities come from the model; here they are only shown.

import { announcer, slider } from "./parts.js";

/** The number of a cover: none, then squares of one, two, three patches a side, row by row. */
export function index(size, row, column, grid) {
  if (size === 0) return 0;
  let before = 1;
  for (let smaller = 1; smaller < size; smaller++) before += (grid - smaller + 1) ** 2;
  return before + row * (grid - size + 1) + column;
}

export function start({ figure, data, part, controls }) {
  const { grid, patch, pixel, left, wide } = data;
  const side = grid * patch;
  const covers = index(3, grid - 3, grid - 3, grid) + 1;
  if (data.cases.some((one) => one.said.length !== covers || one.pixels.length !== side * side)) {
    throw new Error("the page's covers differ from the model's");
  }

  const svg = figure.querySelector("svg");
  const dots = [...part("pixels").children];
  const bars = [...part("bars").children];
  const frame = part("cover");
  const now = { ...data.start };

  const row = document.createElement("label");
  const name = document.createElement("span");
  const list = document.createElement("select");
  name.textContent = "digit";
  data.cases.forEach((one, i) => list.add(new Option(`a ${one.digit}`, i)));
  list.value = now.case;
  list.style.cssText = "min-height:2rem;min-width:0;width:100%;font:inherit";
  list.addEventListener("change", () => {
    now.case = Number(list.value);
    draw();
  });
  row.append(name, list);
  controls.append(row);

  function draw() {
    const one = data.cases[now.case];
    const under = (at, from) => at >= from && at < from + now.size;
    dots.forEach((dot, i) => {
      const [down, across] = [Math.floor(i / side), i % side].map((x) => Math.floor(x / patch));
      const hidden = under(down, now.row) && under(across, now.column);
      dot.setAttribute("fill-opacity", ((hidden ? data.cover : one.pixels)[i] / 99).toFixed(2));
    });
    const span = patch * pixel;
    frame.setAttribute("x", 4 + span * now.column);
    frame.setAttribute("y", 4 + span * now.row);
    frame.setAttribute("width", span * now.size);
    frame.setAttribute("height", span * now.size);
    const said = one.said[index(now.size, now.row, now.column, grid)];
    bars.forEach((bar, k) => {
      const [, box, value] = bar.children;
      box.setAttribute("width", ((wide * said[k]) / 1000).toFixed(1));
      value.setAttribute("x", (left + (wide * said[k]) / 1000 + 5).toFixed(1));
      value.textContent = (said[k] / 1000).toFixed(2);
    });
    const best = said.indexOf(Math.max(...said));
    const where = now.size
      ? `Covered: ${now.size} × ${now.size} patches from row ${now.row}, column ${now.column}.`
      : "Nothing is covered.";
    const told =
      `A ${one.digit}. ${where} The model says ${best} with ${(said[best] / 1000).toFixed(2)}, ` +
      `${best === one.digit ? "which is right" : "which is wrong"}; with nothing covered, ` +
      `${one.digit} had ${(one.said[0][one.digit] / 1000).toFixed(2)}, now ` +
      `${(said[one.digit] / 1000).toFixed(2)}.`;
    say(told);
    svg.setAttribute("aria-label", told);
  }

  const place = (label, key) =>
    slider(controls, {
      label,
      min: 0,
      max: grid - Math.max(1, now.size),
      step: 1,
      value: now[key],
      say: (i) => `${key} ${i}`,
      change: (i) => {
        now[key] = i;
        draw();
      },
    });
  slider(controls, {
    label: "cover",
    min: 0,
    max: 3,
    step: 1,
    value: now.size,
    say: (i) => (i ? `${i} × ${i} patches` : "nothing"),
    change: (size) => {
      now.size = size;
      for (const [key, one] of [["row", down], ["column", across]]) {
        const last = grid - Math.max(1, size);
        now[key] = Math.min(now[key], last);
        one.end(last);
        one.set(now[key]);
      }
    },
  });
  const down = place("row", "row");
  const across = place("column", "column");
  const say = announcer(controls);
  dots.forEach((dot, i) => {
    dot.style.cursor = "pointer";
    dot.addEventListener("click", () => {
      const last = grid - Math.max(1, now.size);
      down.set(Math.min(Math.floor(Math.floor(i / side) / patch), last));
      across.set(Math.min(Math.floor((i % side) / patch), last));
    });
  });
  draw();
}
