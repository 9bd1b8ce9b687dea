// Chapter 9: from logits to the distribution that a token is drawn from: temperature, top-k, top-p,
// each on what the one before it has left.

import { chooser, drawing, live, slider, words, written } from "./parts.js";
import { cut } from "./sampling.js";

const TOKENS = ["deep", "dry", "old", "well"];
const ALL = TOKENS.length;
const COLUMNS = ["logits", "softmax", "top-k", "top-p"];
const [LEFT, ROOM, ROW] = [44, 76, 42];

/** The distribution after each of the three steps, token by token. */
export function stages({ logits, temperature, k, p }) {
  const order = logits.map((_, i) => i).sort((a, b) => logits[b] - logits[a]); // equals keep their order
  const ranked = order.map((i) => logits[i]);
  return [[ALL, 1], [k, 1], [k, p]].map(([most, share]) => {
    const { drawn } = cut(ranked, temperature, most, share);
    return logits.map((_, i) => drawn[order.indexOf(i)]);
  });
} // prettier-ignore

export function picture(state) {
  const { logits, temperature, k, p, token } = state;
  const found = stages(state);
  const columns = [logits, ...found];
  const notes = ["", `of z / ${temperature.toFixed(1)}`, `k = ${k}`, `p = ${p.toFixed(2)}`];
  const parts = columns.flatMap((values, c) => {
    const left = LEFT + ROOM * c;
    const zero = c ? left : left + 32;
    return [
      words(left, 16, COLUMNS[c], 'font-weight="bold"'),
      words(left, 34, notes[c]),
      `<path d="M${zero} 44v${ROW * ALL}" stroke="currentColor" stroke-opacity="0.5"/>`,
      ...values.map((value, i) => {
        const wide = c ? 66 * value : 8 * value;
        const y = 48 + ROW * i;
        const none = c && value === 0;
        return (
          `<rect x="${(wide < 0 ? zero + wide : zero).toFixed(1)}" y="${y}" width="${Math.abs(wide).toFixed(1)}" ` +
          `height="16" fill="${c ? "#0072B2" : "#E69F00"}"/>` +
          words(c ? left + 2 : left, y + 31, none ? "out" : written(value, c ? 3 : 2), none ? 'opacity="0.75"' : "")
        );
      }),
    ];
  });
  TOKENS.forEach((name, i) => parts.push(words(2, 61 + ROW * i, name, i === token ? 'font-weight="bold"' : "")));
  const kept = TOKENS.flatMap((name, i) => (found[2][i] ? [`${name} ${found[2][i].toFixed(3)}`] : []));
  const mass = found[0].reduce((sum, share, i) => sum + (found[2][i] ? share : 0), 0);
  const text =
    `Temperature ${temperature.toFixed(1)}, k = ${k}, p = ${p.toFixed(2)}: drawn from ${kept.join(", ")}. ` +
    `Before the cuts these had ${mass.toFixed(3)}.`;
  return { svg: drawing(352, 222, text, parts.join("")), text };
}

export const first = {
  logits: [Math.log(4), Math.log(2), 0, 0], temperature: 1, k: 4, p: 0.8, token: 0,
}; // prettier-ignore

export function start({ part, controls }) {
  const state = structuredClone(first);
  const show = live({ part, controls }, picture, state);
  slider(controls, {
    label: "temperature τ", min: 0.1, max: 3, step: 0.1, value: 1,
    say: (value) => value.toFixed(1), change: (temperature) => show({ temperature }),
  }); // prettier-ignore
  slider(controls, {
    label: "top-k", min: 1, max: ALL, step: 1, value: ALL, say: (k) => `${k} tokens`, change: (k) => show({ k }),
  }); // prettier-ignore
  slider(controls, {
    label: "top-p", min: 0.05, max: 1, step: 0.05, value: state.p,
    say: (value) => `a share of ${value.toFixed(2)}`, change: (p) => show({ p }),
  }); // prettier-ignore
  chooser(controls, {
    label: "token", options: TOKENS,
    change: (token) => {
      show({ token });
      logit.put(state.logits[token]);
    },
  }); // prettier-ignore
  const logit = slider(controls, {
    label: "its logit", min: -3, max: 4, step: "any", value: state.logits[0], say: (value) => written(value),
    change: (value) => {
      state.logits[state.token] = value;
      show({});
    },
  }); // prettier-ignore
}
