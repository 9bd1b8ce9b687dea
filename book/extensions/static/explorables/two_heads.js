// Chapter 3: the three words of the example by hand, read by two heads of one feature each and by one
// head over both. The keys are moved by hand; weights and outputs are computed here.

import { multiply, softmax, transpose } from "./matrices.js";
import { chooser, drawing, live, slider, words, written } from "./parts.js";

const WORDS = ["she", "sings", "well"];
const VALUES = [[16, 0], [8, 8], [0, 16]]; // prettier-ignore
const COLOURS = ["#0072B2", "#E69F00", "#767676"];
const NAMES = ["head 0, who?", "head 1, how?", "one head"];

/** Weights of head 0, head 1 and one head over both features, for the query (1, 1), and the outputs. */
export function asked(keys) {
  const heads = transpose(keys).map(softmax);
  const one = softmax(keys.map(([who, how]) => (who + how) / Math.SQRT2));
  const two = heads.map((row, h) => row.reduce((sum, weight, j) => sum + weight * VALUES[j][h], 0));
  return { weights: [...heads, one], two, one: multiply([one], VALUES)[0] };
}

export function picture({ keys, word }) {
  const { weights, two, one } = asked(keys);
  const parts = [words(2, 18, "weights of the query “sings”")];
  NAMES.forEach((name, h) => {
    const left = 2 + 120 * h;
    parts.push(words(left, 44, name));
    weights[h].forEach((weight, j) => {
      const x = left + 37 * j;
      const high = 84 * weight;
      parts.push(
        `<rect x="${x}" y="${(144 - high).toFixed(1)}" width="28" height="${high.toFixed(1)}" fill="${COLOURS[h]}"/>`,
        words(x + 14, (140 - high).toFixed(1), weight.toFixed(2).replace("0.", "."), 'text-anchor="middle"'),
        words(x + 14, 160, WORDS[j], `text-anchor="middle" ${j === word ? 'font-weight="bold"' : ""}`),
      );
    });
    parts.push(`<path d="M${left} 144h104" stroke="currentColor" stroke-opacity="0.5"/>`);
  });
  parts.push(words(2, 196, "outputs"));
  [["two heads", two], ["one head", one]].forEach(([name, output], i) => {
    const y = 216 + 46 * i;
    let x = 78;
    parts.push(words(2, y + 13, name));
    output.forEach((value, h) => {
      const wide = 7.2 * value;
      parts.push(
        `<rect x="${x.toFixed(1)}" y="${y}" width="${wide.toFixed(1)}" height="18" fill="${COLOURS[h]}" fill-opacity="${i ? 0.6 : 1}"/>`,
      );
      x += wide;
    });
    parts.push(words(78, y + 34, `who ${output[0].toFixed(1)} + how ${output[1].toFixed(1)} = ${(output[0] + output[1]).toFixed(1)}`));
  });
  const text =
    `Key of “${WORDS[word]}”: (${keys[word].map((key) => written(key)).join(", ")}). ` +
    `Two heads: who ${two[0].toFixed(2)}, how ${two[1].toFixed(2)}. ` +
    `One head: who ${one[0].toFixed(2)}, how ${one[1].toFixed(2)}, together ${(one[0] + one[1]).toFixed(2)}.`;
  return { svg: drawing(356, 306, text, parts.join("")), text };
}

export const first = {
  keys: [[Math.log(5), 0], [Math.log(2), 0], [0, Math.log(6)]], word: 0,
}; // prettier-ignore

export function start({ part, controls }) {
  const state = { keys: first.keys.map((key) => [...key]), word: 0 };
  const show = live({ part, controls }, picture, state);
  chooser(controls, {
    label: "word",
    options: WORDS,
    change: (word) => {
      state.word = word;
      sliders.forEach((one, h) => one.set(state.keys[word][h]));
    },
  });
  const sliders = NAMES.slice(0, 2).map((name, h) =>
    slider(controls, {
      label: `key, ${["who", "how"][h]}`, min: -2, max: 6, step: "any", value: state.keys[0][h],
      say: (key) => written(key),
      change: (key) => {
        state.keys[state.word][h] = key;
        show({});
      },
    }),
  ); // prettier-ignore
}
