// Chapter 5: a query and a key of two pairs each, turned by their positions. The score is computed here
// from the turned vectors, and drawn against the distance.

import { drawing, live, scale, slider, words, written } from "./parts.js";

const RATES = [30, 8]; // degrees by which each pair turns at each position
const KEY = 40; // degrees from query to key before anything is turned
const FRAME = { x: [-12, 12], y: [-2, 2], left: 34, right: 330, top: 210, bottom: 330 };
const CENTRES = [[84, 104], [256, 104]]; // prettier-ignore
const RADIUS = 62;

/** A vector of pairs, each turned counter-clockwise by the position times its rate. */
export function turned(pairs, position) {
  return pairs.map(([u, w], i) => {
    const angle = (position * RATES[i] * Math.PI) / 180;
    return [u * Math.cos(angle) - w * Math.sin(angle), u * Math.sin(angle) + w * Math.cos(angle)];
  });
}

const at = (degrees) => [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
const QUERY = RATES.map(() => at(0));
const KEYS = RATES.map(() => at(KEY));

/** The score of the query at one position and the key at another. */
export function score(p, r) {
  const [q, k] = [turned(QUERY, p), turned(KEYS, r)];
  return q.flat().reduce((sum, value, i) => sum + value * k.flat()[i], 0);
}

export function picture({ query: p, distance }) {
  const r = p + distance;
  const parts = [];
  CENTRES.forEach(([x, y], i) => {
    const hands = [["q", turned(QUERY, p)[i], "#0072B2"], ["k", turned(KEYS, r)[i], "#D55E00"]];
    parts.push(words(x, 18, `pair ${i}: ${RATES[i]}° a step`, 'text-anchor="middle"'));
    parts.push(`<circle cx="${x}" cy="${y}" r="${RADIUS}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>`);
    for (const [name, [u, w], colour] of hands) {
      const tip = (length) => [x + length * u, y - length * w].map((value) => value.toFixed(1));
      const [tx, ty] = tip(RADIUS + 11);
      parts.push(
        `<path d="M${x} ${y}L${tip(RADIUS).join(" ")}" stroke="${colour}" stroke-width="3.5" stroke-linecap="round"/>`,
        words(tx, Number(ty) + 5, name, 'text-anchor="middle" font-weight="bold"'),
      );
    }
  });
  const { x, y } = scale(FRAME);
  const points = Array.from({ length: 97 }, (_, i) => {
    const apart = -12 + i / 4;
    return `${x(apart).toFixed(1)} ${y(score(0, apart)).toFixed(1)}`;
  });
  const here = score(p, r);
  parts.push(
    words(2, 196, "score"),
    `<path d="M${FRAME.left} ${FRAME.top}V${FRAME.bottom}M${FRAME.left} ${y(0)}H${FRAME.right}" stroke="currentColor" stroke-opacity="0.5"/>`,
    `<path d="M${points.join("L")}" fill="none" stroke="currentColor" stroke-opacity="0.75" stroke-width="2"/>`,
    `<circle cx="${x(distance).toFixed(1)}" cy="${y(here).toFixed(1)}" r="6" fill="#D55E00"/>`,
    ...[-2, 0, 2].map((tick) => words(28, y(tick) + 5, written(tick, 0), 'text-anchor="end"')),
    ...[-12, -6, 0, 6, 12].map((tick) => words(x(tick), 350, written(tick, 0), 'text-anchor="middle"')),
    words(182, 370, "distance from query to key", 'text-anchor="middle"'),
  );
  const hands = RATES.map((rate) => (((p * rate) % 360) + 360) % 360);
  const text =
    `Query at ${p}, key at ${r}. The query's hands stand at ${hands[0]}° and ${hands[1]}°. ` +
    `Distance ${written(distance, 0)}: score ${written(here)}.`;
  return { svg: drawing(340, 378, text, parts.join("")), text };
}

export const first = { query: 13, distance: 1 };

export function start({ part, controls }) {
  const show = live({ part, controls }, picture, { ...first });
  slider(controls, {
    label: "move both", min: 12, max: 40, step: 1, value: first.query,
    say: (query) => `query at ${query}`, change: (query) => show({ query }),
  }); // prettier-ignore
  slider(controls, {
    label: "distance", min: -12, max: 12, step: 1, value: first.distance,
    say: (distance) => `key ${Math.abs(distance)} ${distance < 0 ? "before" : "after"} the query`,
    change: (distance) => show({ distance }),
  }); // prettier-ignore
}
