// Chapter 5: an encoding as hands on dials, at two positions, and the dot product of the two rows. The
// tables are computed here, after the formula has been tried on a row that the reference made.

import { sinusoidal_encoding } from "./matrices.js";
import { announcer, scale, slider } from "./parts.js";

const dot = (a, b) => a.reduce((sum, value, c) => sum + value * b[c], 0);

/** Dot products of row p with the rows from p + low to p + high, over the number of pairs. */
export function curve(table, p, [low, high]) {
  const points = [];
  for (let k = low; k <= high; k++) {
    points.push([k, dot(table[p], table[p + k]) / (table[p].length / 2)]);
  }
  return points;
}

/** The angle between hand i at two positions, in degrees from 0 to 180. */
export function angleBetween(table, i, p, q) {
  const [a, b] = [p, q].map((row) => table[row].slice(2 * i, 2 * i + 2));
  const cosine = Math.min(1, Math.max(-1, dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))));
  return (Math.acos(cosine) * 180) / Math.PI;
}

export function start({ figure, data, part, controls }) {
  const { frame, radius, every, bases, positions, test } = data;
  const tables = bases.map((base) => sinusoidal_encoding(positions, test.row.length, base));
  const tried = tables[test.base][test.position];
  if (tried.some((value, c) => !(Math.abs(value - test.row[c]) < 1e-5))) {
    throw new Error("the page's encoding differs from the reference's");
  }

  const at = scale(frame);
  const svg = figure.querySelector("svg");
  const dials = [...part("dials").children];
  const reach = frame.x[1];
  const now = { ...data.start };
  const say = announcer(controls);

  function draw() {
    const table = tables[now.base];
    const p = now.position;
    const q = p + now.distance;
    const base = bases[now.base];
    dials.forEach((dial, i) => {
      const [circle, first, second] = dial.children;
      const [x, y] = ["cx", "cy"].map((name) => Number(circle.getAttribute(name)));
      for (const [hand, row] of [[first, p], [second, q]]) {
        const [sine, cosine] = table[row].slice(2 * i * every, 2 * i * every + 2);
        const tip = [x + radius * sine, y - radius * cosine].map((value) => value.toFixed(1));
        hand.setAttribute("d", `M${x} ${y}L${tip.join(" ")}`);
      }
    });
    const points = curve(table, p, frame.x);
    const path = points.map(([k, value]) => `${at.x(k).toFixed(1)} ${at.y(value).toFixed(1)}`);
    part("curve").setAttribute("d", `M${path.join("L")}`);
    const [, product] = points.find(([k]) => k === now.distance);
    part("mark").setAttribute("cx", at.x(now.distance).toFixed(1));
    part("mark").setAttribute("cy", at.y(product).toFixed(1));
    part("title").textContent = `positions ${p} and ${q}, base ${base}`;
    const last = (dials.length - 1) * every;
    const [near, far] = [0, last].map((i) => angleBetween(table, i, p, q).toFixed(0));
    const text =
      `Positions ${p} and ${q}, base ${base}. Hands apart: ` +
      `pair 0 by ${near}°, pair ${last} by ${far}°. ` +
      `Dot product / ${test.row.length / 2}: ${product.toFixed(2)}.`;
    say(text);
    svg.setAttribute("aria-label", text);
  }

  const change = (key) => (value) => {
    now[key] = value;
    draw();
  };
  slider(controls, {
    label: "position",
    min: reach,
    max: positions - 1 - reach,
    step: 1,
    value: now.position,
    say: (value) => `position ${value}`,
    change: change("position"),
  });
  slider(controls, {
    label: "distance",
    min: frame.x[0],
    max: frame.x[1],
    step: 1,
    value: now.distance,
    say: (value) => `${Math.abs(value)} ${value < 0 ? "earlier" : "later"}`,
    change: change("distance"),
  });
  slider(controls, {
    label: "base",
    min: 0,
    max: bases.length - 1,
    step: 1,
    value: now.base,
    say: (index) => `base ${bases[index]}`,
    change: change("base"),
  });
  draw();
}
