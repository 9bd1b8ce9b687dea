// Chapter 6: tokens on their way through a stack of random attention layers, with and without a path
// around each and a norm. All is computed here: what a layer leaves, and how much of it is a token's own.

import { add, multiply, norm, normalised, normals, scaled, softmax, transpose } from "./matrices.js";
import { chooser, drawing, live, slider, words } from "./parts.js";

const TOKENS = ["she", "sings", "well", ".", "the", "well", "is", "deep"];
const SIZE = 12;
const MOST = 24;
const NORMS = ["none", "pre-norm", "post-norm"];
const PATHS = ["x + F(x)", "F(x) alone"];

/** The tokens' vectors, and four matrices for each layer. */
export function made(seed = 4) {
  const draw = normals(seed);
  const matrix = (rows, deviation) =>
    Array.from({ length: rows }, () => Array.from({ length: SIZE }, () => deviation * draw()));
  const x = matrix(TOKENS.length, 1);
  x[5] = x[2].map((value) => value + 0.6 * draw()); // the two wells: one word at two places
  const layers = Array.from({ length: MOST }, () =>
    Array.from({ length: 4 }, () => matrix(SIZE, SIZE ** -0.5)),
  );
  return { x, layers };
}

/** softmax((X W_q)(X W_k)ᵀ/√d) X W_v W_o */
function attention(x, [Wq, Wk, Wv, Wo]) {
  const scores = scaled(multiply(multiply(x, Wq), transpose(multiply(x, Wk))), SIZE ** -0.5);
  return multiply(multiply(scores.map(softmax), multiply(x, Wv)), Wo);
}

/** What each layer leaves, the input first. */
export function passed({ x, layers }, residual, kind) {
  const all = [kind === "post-norm" ? normalised(x) : x];
  for (const layer of layers) {
    const before = all.at(-1);
    const found = attention(kind === "pre-norm" ? normalised(before) : before, layer);
    const sum = residual ? add(before, found) : found;
    all.push(kind === "post-norm" ? normalised(sum) : sum);
  }
  return all;
}

/** The share of the tokens' length that is not common to all of them. */
export function own(x) {
  const mean = transpose(x).map((column) => column.reduce((sum, value) => sum + value, 0) / x.length);
  return norm(x.map((row) => row.map((value, j) => value - mean[j]))) / norm(x);
}

const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

function share(value) {
  if (value >= 0.0095) return value.toFixed(2);
  if (value < 1e-12) return "next to nothing";
  const power = Math.floor(Math.log10(value));
  return `${(value / 10 ** power).toFixed(0)} · 10⁻${[...String(-power)].map((d) => RAISED[d]).join("")}`;
}

const MODEL = made();

export function picture({ residual, kind, layer }) {
  const all = passed(MODEL, residual, kind);
  const x = all[layer];
  const rms = norm(x) / Math.sqrt(x.length * SIZE);
  const cells = x.flatMap((row, i) =>
    row.map((value, j) => {
      const depth = Math.min(1, Math.abs(value) / rms / 2.2);
      return (
        `<rect x="${58 + 23 * j}" y="${30 + 21 * i}" width="22" height="20" ` +
        `fill="${value < 0 ? "#D55E00" : "#0072B2"}" fill-opacity="${depth.toFixed(2)}"/>`
      );
    }),
  );
  const names = TOKENS.map((name, i) => words(52, 45 + 21 * i, name, 'text-anchor="end"'));
  const across = (n) => (58 + (270 * n) / MOST).toFixed(1);
  const down = (value) => (246 + 26 * Math.min(6, -Math.log10(value))).toFixed(1);
  const points = all.map((y, n) => `${across(n)} ${down(own(y))}`);
  const ticks = [0, 2, 4, 6].map((power) =>
    words(52, 251 + 26 * power, power ? `10⁻${RAISED[power]}` : "1", 'text-anchor="end"'),
  );
  const layers = [0, 6, 12, 18, 24].map((n) => words(across(n), 420, n, 'text-anchor="middle"'));
  const text =
    `After layer ${layer}, ${PATHS[PATHS.length - 1 - Number(residual)]}, norm: ${kind}. ` +
    `Share that is a token's own: ${share(own(x))}. Size of the numbers: ${rms.toPrecision(2)}.`;
  const svg = drawing(340, 446, `${TOKENS.length} tokens of ${SIZE} numbers. ${text}`, [
    words(58, 18, `the tokens after layer ${layer}`), ...names, ...cells,
    words(2, 226, "share that is a token's own"),
    '<path d="M58 240V402H328" fill="none" stroke="currentColor" opacity="0.6"/>', ...ticks, ...layers,
    `<path d="M${across(layer)} 240V402" stroke="currentColor" stroke-opacity="0.4"/>`,
    `<path data-part="own" d="M${points.join("L")}" fill="none" stroke="#0072B2" stroke-width="2.5"/>`,
    words(196, 440, "layer", 'text-anchor="middle"'),
  ].join("")); // prettier-ignore
  return { svg, text };
}

export const first = { residual: true, kind: "pre-norm", layer: 12 };

export function start({ part, controls }) {
  const show = live({ part, controls }, picture, { ...first });
  slider(controls, {
    label: "layer", min: 0, max: MOST, step: 1, value: first.layer,
    say: (layer) => `layer ${layer}`, change: (layer) => show({ layer }),
  }); // prettier-ignore
  chooser(controls, {
    label: "what goes on", options: PATHS, change: (i) => show({ residual: i === 0 }),
  }); // prettier-ignore
  chooser(controls, {
    label: "norm", options: NORMS, value: 1, change: (i) => show({ kind: NORMS[i] }),
  }); // prettier-ignore
}
