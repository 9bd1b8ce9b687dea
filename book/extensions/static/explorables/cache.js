// Chapter 4: a text is written token by token, with and without a cache. Which keys, values and scores
// are made anew in a call, which are kept, and what it comes to, is counted here.

import { drawing, live, slider, words } from "./parts.js";

const TOKENS = ["She", "sings", "well", ".", "The", "well", "is", "deep"];
const SIZE = 8; // numbers in a key, and in a value
const [CELL, TOP] = [17, 62];
const COLOURS = [
  ["made", "made now", "#0072B2", 0.7],
  ["kept", "kept", "#E69F00", 0.75],
  ["hidden", "made, then hidden", "#0072B2", 0.2],
];
const GRIDS = { again: 52, cached: 200 }; // where the two begin

/** What call t makes anew, what is made in all calls up to it, and what is kept: keys and values
 *  in numbers, of one head. */
export function counted(t) {
  const upTo = (one) => Array.from({ length: t }, (_, i) => one(i + 1)).reduce((a, b) => a + b, 0);
  const of = (positions, scores) => ({
    positions: positions(t), scores: scores(t),
    allPositions: upTo(positions), allScores: upTo(scores),
  }); // prettier-ignore
  return {
    again: { ...of((n) => n, (n) => n * n), kept: 0 },
    cached: { ...of(() => 1, (n) => n), kept: 2 * SIZE * t },
  }; // prettier-ignore
}

const square = (left, top) => `M${left} ${top}h16v16h-16z`;
const path = (places, fill, opacity) =>
  `<path d="${places.map(([x, y]) => square(x, y)).join("")}" fill="${fill}" fill-opacity="${opacity}" ` +
  'stroke="currentColor" stroke-opacity="0.25"/>';

export function picture({ token: t }) {
  const found = counted(t);
  const places = { none: [], made: [], kept: [], hidden: [] };
  for (const [way, left] of Object.entries(GRIDS)) {
    for (let j = 0; j < TOKENS.length; j++) {
      const keys = j >= t ? "none" : way === "again" || j === t - 1 ? "made" : "kept";
      places[keys].push([left + CELL * j, 36]);
      for (let i = 0; i < TOKENS.length; i++) {
        const asks = way === "cached" ? i === t - 1 : i < t;
        const scores = !asks || j >= t ? "none" : j <= i ? "made" : "hidden";
        places[scores].push([left + CELL * j, TOP + CELL * i]);
      }
    }
  }
  const parts = [
    words(GRIDS.again + 68, 16, "without a cache", 'text-anchor="middle"'),
    words(GRIDS.cached + 68, 16, "with a cache", 'text-anchor="middle"'),
    path(places.none, "none", 0),
    ...COLOURS.map(([key, , fill, opacity]) => path(places[key], fill, opacity)),
  ];
  parts.push(words(46, 49, "K, V", 'text-anchor="end"'));
  TOKENS.forEach((token, i) => {
    const look = `text-anchor="end" ${i === t - 1 ? 'font-weight="bold"' : i < t ? "" : 'opacity="0.75"'}`;
    parts.push(words(46, TOP + 13 + CELL * i, token, look));
  });
  const rows = [
    ["keys and values, now", "positions"], ["scores, now", "scores"],
    ["keys and values, so far", "allPositions"], ["scores, so far", "allScores"],
    ["numbers kept", "kept"],
  ]; // prettier-ignore
  rows.forEach(([name, key], i) => {
    const y = 226 + 20 * i;
    parts.push(words(2, y, name));
    parts.push(words(236, y, found.again[key], 'text-anchor="end"'));
    parts.push(words(316, y, found.cached[key], 'text-anchor="end"'));
  });
  const last = t === TOKENS.length
    ? `Of these ${found.again.scores} scores, ${counted(t - 1).again.scores} were there before.`
    : ""; // prettier-ignore
  parts.push(words(2, 366, last));
  let x = 2;
  for (const [, name, fill, opacity] of COLOURS) {
    parts.push(path([[x, 327]], fill, opacity), words(x + 21, 340, name));
    x += 44 + 7 * name.length;
  }
  const text =
    `Token ${t} of ${TOKENS.length}, “${TOKENS[t - 1]}”: ${found.again.scores} scores without a cache, ` +
    `${found.cached.scores} with it; so far ${found.again.allScores} and ${found.cached.allScores}. ` +
    `Kept: keys and values of ${t} position${t > 1 ? "s" : ""}, ${found.cached.kept} numbers. ${last}`.trim();
  return { svg: drawing(340, 374, text, parts.join("")), text };
}

export const first = { token: 5 };

export function start({ part, controls }) {
  const show = live({ part, controls }, picture, { ...first });
  slider(controls, {
    label: "token", min: 1, max: TOKENS.length, step: 1, value: first.token,
    say: (token) => `token ${token}, ${TOKENS[token - 1]}`, change: (token) => show({ token }),
  }); // prettier-ignore
}
