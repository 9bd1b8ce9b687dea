// Chapter 2: one query's scores become weights, at a temperature and a size d_k moved by hand. The
// scores come from the reference's vectors, computed when the book was built; the softmax is done
// here, after it has been tried on a case whose answer the reference gave.

import { softmax } from "./matrices.js";
import { announcer, scale, slider } from "./parts.js";

/** softmax of the scores, each divided by `divisor`. */
export const shares = (scores, divisor) => softmax(scores.map((score) => score / divisor));

const signed = (number) => number.toFixed(1).replace("-0.0", "0.0").replace("-", "−");

export function start({ figure, data, part, controls }) {
  const { size, temperature, weights } = data.test;
  const tried = shares(data.scores[size], temperature * Math.sqrt(data.sizes[size]));
  if (tried.some((weight, i) => !(Math.abs(weight - weights[i]) < 1e-6))) {
    throw new Error("the page's weights differ from the reference's");
  }

  const svg = figure.querySelector("svg");
  const say = announcer(controls);
  const now = { size: data.start.size, temperature: data.start.temperature };
  const panels = [
    { name: "plain", frame: data.upper, divisor: () => 1 },
    { name: "scaled", frame: data.lower, divisor: (d) => Math.sqrt(d) },
  ];

  function draw() {
    const d = data.sizes[now.size];
    const T = data.temperatures[now.temperature];
    const found = panels.map(({ name, frame, divisor }) => {
      const divided = data.scores[now.size].map((score) => score / divisor(d) / T);
      const row = shares(data.scores[now.size], divisor(d) * T);
      const { y } = scale(frame);
      [...part(`${name}-bars`).children].forEach((bar, i) => {
        bar.setAttribute("y", y(row[i]).toFixed(1));
        bar.setAttribute("height", (frame.bottom - y(row[i])).toFixed(1));
      });
      [...part(`${name}-scores`).children].forEach((text, i) => {
        text.textContent = signed(divided[i]);
      });
      return Math.max(...row).toFixed(2);
    });
    const text =
      `dₖ = ${d}, temperature ${T.toPrecision(3)}: largest weight ` +
      `${found[0]} without the scale, ${found[1]} with it.`;
    say(text);
    svg.setAttribute("aria-label", `Weights of one query over eight keys, twice. ${text}`);
  }

  slider(controls, {
    label: "size dₖ",
    min: 0,
    max: data.sizes.length - 1,
    step: 1,
    value: now.size,
    say: (index) => `${data.sizes[index]} features`,
    change: (index) => {
      now.size = index;
      draw();
    },
  });
  slider(controls, {
    label: "temperature τ",
    min: 0,
    max: data.temperatures.length - 1,
    step: 1,
    value: now.temperature,
    say: (index) => data.temperatures[index].toPrecision(3),
    change: (index) => {
      now.temperature = index;
      draw();
    },
  });
  draw();
}
