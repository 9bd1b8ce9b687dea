// Chapter 8: three ways to mix positions, each with the shortest way on which the last output
// depends on the first input. What is drawn follows from the number of positions alone.

import { announcer, slider } from "./parts.js";

const NAMES = ["recurrence", "convolution", "attention"];

/** The rows of nodes, the edges between them, and the path, as [row, position]. */
export function mixed(way, n) {
  const places = [...Array(n).keys()];
  if (way === "recurrence") {
    const up = places.map((i) => [[0, i], [1, i]]);
    const along = places.slice(1).map((i) => [[1, i - 1], [1, i]]);
    return { rows: 1, edges: [...up, ...along], path: [[0, 0], ...places.map((i) => [1, i])] };
  }
  if (way === "attention") {
    const edges = places.flatMap((i) => places.map((j) => [[0, j], [1, i]]));
    return { rows: 1, edges, path: [[0, 0], [1, n - 1]] };
  }
  const dilated = way === "dilated";
  const rows = dilated ? Math.ceil(Math.log2(n)) : n - 1;
  const edges = [];
  const path = [[0, 0]];
  for (let row = 0; row < rows; row++) {
    const step = dilated ? 2 ** row : 1;
    for (const i of places) {
      for (const j of [i - step, i, i + step]) {
        if (j >= 0 && j < n) edges.push([[row, j], [row + 1, i]]);
      }
    }
    const moves = dilated ? (n - 1) & step : 1;
    path.push([row + 1, path.at(-1)[1] + (moves ? step : 0)]);
  }
  return { rows, edges, path };
}

const steps = (count) => `${count} step${count === 1 ? "" : "s"}`;

export function start({ figure, data, part, controls }) {
  const svg = figure.querySelector("svg");
  const now = { n: data.start, convolution: "convolution" };
  const say = announcer(controls);

  function draw() {
    const found = NAMES.map((name, number) => {
      const way = name === "convolution" ? now.convolution : name;
      const { rows, edges, path } = mixed(way, now.n);
      const left = data.left + data.gap * number;
      const spot = ([row, i]) => {
        const x = left + (data.wide / (now.n - 1)) * i;
        const y = data.top + data.high - Math.min(40, data.high / rows) * row;
        return `${x.toFixed(1)} ${y.toFixed(1)}`;
      };
      const lines = edges.map(([a, b]) => `M${spot(a)}L${spot(b)}`);
      part(`edges-${name}`).setAttribute("d", lines.join(""));
      const dots = [];
      for (let row = 0; row <= rows; row++) {
        for (let i = 0; i < now.n; i++) dots.push(`M${spot([row, i])}h0`);
      }
      part(`nodes-${name}`).setAttribute("d", dots.join(""));
      part(`path-${name}`).setAttribute("d", `M${path.map(spot).join("L")}`);
      part(`long-${name}`).textContent = steps(path.length - 1);
      return path.length - 1;
    });
    const kind = now.convolution === "dilated" ? "dilated convolution" : "convolution";
    const text =
      `${now.n} positions, from the last output to the first input: recurrence ${steps(found[0])}, ` +
      `${kind} ${steps(found[1])}, attention ${steps(found[2])}; ` +
      `attention compares ${now.n ** 2} pairs.`;
    say(text);
    svg.setAttribute("aria-label", `Positions mixed in three ways. ${text}`);
  }

  slider(controls, {
    label: "positions",
    min: 3,
    max: data.most,
    step: 1,
    value: now.n,
    say: (n) => `${n} positions`,
    change: (n) => {
      now.n = n;
      draw();
    },
  });
  const row = document.createElement("label");
  const words = document.createElement("span");
  words.textContent = "convolution";
  const choice = document.createElement("select");
  for (const [value, told] of [
    ["convolution", "width 3"],
    ["dilated", "width 3, dilated by 1, 2, 4, …"],
  ]) {
    choice.append(new Option(told, value));
  }
  choice.addEventListener("change", () => {
    now.convolution = choice.value;
    draw();
  });
  row.append(words, choice);
  controls.append(row);
  draw();
}
