// Chapter 1: one query and the inverse bandwidth w, moved by hand. Weights and predictions are computed
// here from the readings, after the formula has been tried on a case whose answer the reference gave.

import { softmax } from "./matrices.js";
import { announcer, scale, slider } from "./parts.js";

const STEPS = 120; // of the line of predictions

/** softmax over the keys of −½((query − key) w)². */
export const gaussianWeights = (query, keys, w) => softmax(keys.map((key) => -0.5 * ((query - key) * w) ** 2));

const average = (weights, values) => weights.reduce((sum, weight, i) => sum + weight * values[i], 0);

export function start({ figure, data, part, controls }) {
  const tried = gaussianWeights(data.test.query, data.x, data.test.w);
  if (tried.some((weight, i) => !(Math.abs(weight - data.test.weights[i]) < 1e-6))) {
    throw new Error("the page's weights differ from the reference's");
  }

  const [upper, lower] = [scale(data.upper), scale(data.lower)];
  const [from, to] = data.upper.x;
  const times = Array.from({ length: STEPS + 1 }, (_, i) => from + ((to - from) * i) / STEPS);
  const readings = [...part("readings").children];
  const stems = [...part("stems").children];
  const svg = figure.querySelector("svg");
  const say = announcer(controls);
  const now = { w: data.start.w, query: data.start.query };

  function draw() {
    const w = data.w[now.w];
    const weights = gaussianWeights(now.query, data.x, w);
    const answer = average(weights, data.y);
    const line = times.map((time) => {
      const value = average(gaussianWeights(time, data.x, w), data.y);
      return `${upper.x(time).toFixed(1)} ${upper.y(value).toFixed(1)}`;
    });
    const across = upper.x(now.query).toFixed(1);
    part("fit").setAttribute("d", `M${line.join("L")}`);
    part("query").setAttribute("d", `M${across} ${data.upper.top}V${data.lower.bottom}`);
    part("answer").setAttribute("cx", across);
    part("answer").setAttribute("cy", upper.y(answer).toFixed(1));
    weights.forEach((weight, i) => {
      const x = lower.x(data.x[i]).toFixed(1);
      stems[i].setAttribute("d", `M${x} ${data.lower.bottom}V${lower.y(weight).toFixed(1)}`);
      readings[i].setAttribute("r", (3 + 10 * Math.sqrt(weight)).toFixed(1));
    });
    const text =
      `w = ${w.toFixed(2)} per hour (bandwidth ${(1 / w).toFixed(2)} h), ` +
      `query ${now.query.toFixed(1)} h: prediction ${answer.toFixed(1)} °C, ` +
      `largest weight ${Math.max(...weights).toFixed(2)}.`;
    say(text);
    svg.setAttribute("aria-label", `Readings, true curve, prediction and weights. ${text}`);
  }

  slider(controls, {
    label: "w (1/hour)",
    min: 0,
    max: data.w.length - 1,
    step: 1,
    value: now.w,
    say: (index) => `${data.w[index].toFixed(2)} per hour`,
    change: (index) => {
      now.w = index;
      draw();
    },
  });
  const asked = slider(controls, {
    label: "query (time, h)",
    min: from,
    max: to,
    step: 0.1,
    value: now.query,
    say: (hour) => `${hour.toFixed(1)} hours`,
    change: (hour) => {
      now.query = hour;
      draw();
    },
  });

  const follow = (event) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const box = svg.getBoundingClientRect();
    const pixel = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    asked.set(Math.min(to, Math.max(from, upper.invertX(pixel))));
  };
  svg.style.touchAction = "pan-y";
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointermove", follow);
  draw();
}
