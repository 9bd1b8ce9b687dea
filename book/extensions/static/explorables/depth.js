// Chapter 6: the gradient that reaches each layer of a stack, in three ways of stacking. All numbers
// were measured with the reference when the book was built; here they are only drawn.

import { announcer, scale, slider } from "./parts.js";

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A length from its logarithm, in few characters: 0.0021, or 3 · 10⁻⁷. */
export function length(log) {
  if (log > -4) return (10 ** log).toPrecision(2);
  const power = Math.floor(log);
  const raised = [...String(-power)].map((digit) => RAISED[digit]).join("");
  return `${(10 ** (log - power)).toFixed(0)} · 10⁻${raised}`;
}

export function start({ figure, data, part, controls }) {
  const { heights, kinds, names, logs, frame } = data;
  for (const kind of kinds) {
    if (heights.some((n, i) => logs[kind][i].length !== n)) {
      throw new Error(`the page's numbers for ${kind} do not fit the heights`);
    }
  }

  const svg = figure.querySelector("svg");
  const { x, y } = scale(frame);
  const now = { height: data.start, layer: heights[data.start] };
  const say = announcer(controls);

  function draw() {
    const layers = heights[now.height];
    const layer = Math.min(now.layer, layers);
    for (const kind of kinds) {
      const points = logs[kind][now.height].map((log, i) => `${x(i + 1).toFixed(1)} ${y(log).toFixed(1)}`);
      part(kind).setAttribute("d", `M${points.join("L")}`);
    }
    part("cursor").setAttribute("d", `M${x(layer).toFixed(1)} ${frame.top}V${frame.bottom}`);
    const found = kinds.map((kind) => `${names[kind]} ${length(logs[kind][now.height][layer - 1])}`);
    const text = `Layer ${layer} of ${layers}: ${found.join("; ")}.`;
    say(text);
    svg.setAttribute("aria-label", `Length of the gradient of each layer, logarithmic. ${text}`);
  }

  slider(controls, {
    label: "layers",
    min: 0,
    max: heights.length - 1,
    step: 1,
    value: now.height,
    say: (index) => `${heights[index]} layers`,
    change: (index) => {
      now.height = index;
      now.layer = Math.min(now.layer, heights[index]);
      layer.end(heights[index]);
      draw();
    },
  });
  const layer = slider(controls, {
    label: "layer to read",
    min: 1,
    max: heights[now.height],
    step: 1,
    value: now.layer,
    say: (layer) => `layer ${Math.min(layer, heights[now.height])}`,
    change: (layer) => {
      now.layer = layer;
      draw();
    },
  });
  draw();
}
