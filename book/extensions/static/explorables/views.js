// Chapter 2: a sentence, its three views, scores, weights and outputs, as matrices. Choose a cell to
// see from which row and which column it comes; change a number of X or of a W and all that follows.

import { multiply, scaled, softmax, transpose } from "./matrices.js";
import { chooser, drawing, live, slider, words, written } from "./parts.js";

const WORDS = ["she", "sings", "well"];
const FEATURES = ["person", "action", "manner"];
const [WIDE, HIGH] = [29, 22];
/** Where each matrix stands, in pixels, and its name. */
const PLACES = {
  X: [44, 40, "X"], Wq: [192, 40, "W^Q"], Wk: [258, 40, "W^K"], Wv: [324, 40, "W^V"],
  Q: [192, 156, "Q"], K: [258, 156, "K"], V: [324, 156, "V"],
  scores: [44, 272, "QKᵀ/√2"], weights: [184, 272, "softmax"], output: [324, 272, "output"],
}; // prettier-ignore
const NAMES = Object.keys(PLACES);
/** The two factors of a product; of K, its rows. */
const FACTORS = {
  Q: ["X", "Wq"], K: ["X", "Wk"], V: ["X", "Wv"], scores: ["Q", "K"], output: ["weights", "V"],
}; // prettier-ignore

/** All matrices that follow from X and the three projections. */
export function computed({ X, Wq, Wk, Wv }) {
  const [Q, K, V] = [Wq, Wk, Wv].map((W) => multiply(X, W));
  const scores = scaled(multiply(Q, transpose(K)), Math.SQRT1_2);
  const weights = scores.map(softmax);
  return { X, Wq, Wk, Wv, Q, K, V, scores, weights, output: multiply(weights, V) };
}

/** The cells that a cell is made from: of each matrix involved, a row or a column. */
function sources(name, i, j) {
  if (name === "weights") return [["scores", i, null]];
  if (!(name in FACTORS)) return [];
  const [left, right] = FACTORS[name];
  return [[left, i, null], name === "scores" ? [right, j, null] : [right, null, j]];
}

const short = (value, name) =>
  name === "weights" ? value.toFixed(2).replace(/^0/, "") : written(value, Number.isInteger(value) ? 0 : 1);

/** How the chosen cell comes about, in words and numbers. */
function told(all, name, i, j) {
  const value = written(all[name][i][j], Number.isInteger(all[name][i][j]) ? 0 : 2);
  const title = (matrix) => PLACES[matrix][2];
  const byWord = !name.startsWith("W");
  const across = name === "X" ? FEATURES : name === "scores" || name === "weights" ? WORDS : [0, 1];
  const where = `${title(name)}, row ${(byWord ? WORDS : FEATURES)[i]}, column ${across[j]}`;
  if (name === "X") return `${where}: ${value}. It is given.`;
  if (!byWord) return `${where}: ${value}. It is learnt.`;
  if (name === "weights") return `${where}: its share in the exponentials of row ${WORDS[i]} of the scores, ${value}.`;
  const [left, right] = FACTORS[name];
  const column = name === "scores" ? all[right][j] : all[right].map((row) => row[j]);
  const terms = all[left][i].map((a, k) => `${short(a, left)} · ${short(column[k], right)}`).join(" + ");
  const other = name === "scores" ? `row ${WORDS[j]} of K` : `column ${j} of ${title(right)}`;
  const sum = name === "scores" ? `(${terms}) / √2` : terms;
  return `${where}: row ${WORDS[i]} of ${title(left)} times ${other}, ${sum.replaceAll("+ −", "− ")} = ${value}.`;
}

export function picture(state) {
  const all = computed(state);
  const [chosen, row, column] = state.hover ?? state.cell;
  const made = sources(chosen, row, column);
  const parts = [];
  for (const [name, [left, top, title]] of Object.entries(PLACES)) {
    const matrix = all[name];
    const largest = Math.max(1, ...matrix.flat().map(Math.abs));
    parts.push(words(left, top - 22, title.replace(/\^(.)/, '<tspan dy="-4">$1</tspan>'), 'font-weight="bold"'), words(left, top - 6, `(${matrix.length}, ${matrix[0].length})`));
    matrix.forEach((values, i) => {
      const label = name === "Wq" ? FEATURES[i] : left === 44 || name === "Q" ? WORDS[i] : "";
      if (label) parts.push(words(left - 4, top + 16 + HIGH * i, label, 'text-anchor="end"'));
      values.forEach((value, j) => {
        const [x, y] = [left + WIDE * j, top + HIGH * i];
        const here = name === chosen && i === row && j === column;
        const source = made.some(([from, r, c]) => from === name && (r === i || c === j));
        parts.push(
          `<g data-cell="${name} ${i} ${j}"><rect x="${x}" y="${y}" width="${WIDE - 2}" height="${HIGH - 2}" ` +
            `fill="${value < 0 ? "#D55E00" : "#0072B2"}" fill-opacity="${((0.5 * Math.abs(value)) / largest).toFixed(2)}" ` +
            `stroke="${here ? "#D55E00" : source ? "#E69F00" : "currentColor"}" stroke-width="${here || source ? 3 : 1}" ` +
            `stroke-opacity="${here || source ? 1 : 0.25}"/>` +
            words(x + WIDE / 2 - 1, y + 15, short(value, name), 'text-anchor="middle"') + "</g>",
        );
      });
    });
  }
  FEATURES.forEach((feature, j) => {
    const [x, y] = [PLACES.X[0] + WIDE * j + 17, PLACES.X[1] + 3 * HIGH + 3];
    parts.push(words(x, y, feature, `text-anchor="end" transform="rotate(-90 ${x} ${y})"`));
  });
  const text = told(all, chosen, row, column);
  return { svg: drawing(386, 344, text, parts.join("")), text };
}

export const first = {
  X: [[1, 0, 0], [0, 1, 0], [0, 1, 1]], // a person, an action, a manner
  Wq: [[0, 0], [3, 1], [-3, -1]], Wk: [[1, 0], [0, 0], [0, 2]], Wv: [[4, 0], [2, 2], [-2, 2]],
  cell: ["scores", 1, 0], hover: null,
}; // prettier-ignore

export function start({ part, controls }) {
  const state = structuredClone(first);
  const show = live({ part, controls }, picture, state);
  const [matrix, row, column, number] = [
    chooser(controls, {
      label: "matrix", options: NAMES.map((name) => PLACES[name][2]), value: NAMES.indexOf(state.cell[0]),
      change: (i) => choose([NAMES[i], ...state.cell.slice(1)]),
    }),
    ...["row", "column"].map((label, axis) =>
      slider(controls, {
        label, min: 0, max: 2, step: 1, value: state.cell[1 + axis], say: (i) => `${label} ${i}`,
        change: (i) => choose(axis ? [...state.cell.slice(0, 2), i] : [state.cell[0], i, state.cell[2]]),
      }),
    ),
    slider(controls, {
      label: "its number", min: -4, max: 4, step: 0.5, value: 0, say: (value) => `${value}`,
      change: (value) => {
        const [name, i, j] = state.cell;
        if (name in state) state[name][i][j] = value;
        show({});
      },
    }),
  ]; // prettier-ignore

  function choose([name, i, j]) {
    const values = computed(state)[name];
    const cell = [name, i, Math.min(j, values[0].length - 1)];
    show({ cell, hover: null });
    matrix.set(NAMES.indexOf(name));
    column.end(values[0].length - 1);
    row.put(i);
    column.put(cell[2]);
    number.enable(name in state);
    number.put(values[i][cell[2]]);
  }

  const under = (event) => {
    const found = event.target.closest("[data-cell]")?.dataset.cell.split(" ");
    return found ? [found[0], Number(found[1]), Number(found[2])] : null;
  };
  part("picture").addEventListener("pointermove", (event) => {
    const hover = event.pointerType === "mouse" ? under(event) : null;
    if (`${hover}` !== `${state.hover}`) show({ hover });
  });
  part("picture").addEventListener("pointerleave", () => state.hover && show({ hover: null }));
  part("picture").addEventListener("click", (event) => under(event) && choose(under(event)));
  choose(state.cell);
}
