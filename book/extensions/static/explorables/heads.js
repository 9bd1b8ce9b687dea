// Chapter 3: the numbers of a (positions, features) array on their way into heads and back, with
// the axes exchanged or everything only reshaped. The order in which numbers lie is computed here,
// after it has been tried on a case whose answer the reference gave.

import { announcer, chooser, slider } from "./parts.js";

const MODES = [
  { split: true, merge: true, name: "exchanged (right)" },
  { split: false, merge: true, name: "split by reshape" },
  { split: true, merge: false, name: "merge by reshape" },
  { split: false, merge: false, name: "both by reshape" },
];

/** Exchange the first two axes of a flat (a, b, c) array. */
export function exchanged(flat, a, b, c) {
  const out = [];
  for (let j = 0; j < b; j++) {
    for (let i = 0; i < a; i++) out.push(...flat.slice((i * b + j) * c, (i * b + j + 1) * c));
  }
  return out;
}

/** The numbers 0, 1, 2, … in the order in which they lie after each of the four steps. */
export function journey(positions, features, heads, mode) {
  const size = features / heads;
  const x = Array.from({ length: positions * features }, (_, i) => i);
  const split = mode.split ? exchanged(x, positions, heads, size) : x;
  const merged = mode.merge ? exchanged(split, heads, positions, size) : split;
  return [x, x, split, merged];
}

export function start({ figure, data, part, controls }) {
  const { positions, features, cell, line, gap, left, top } = data;
  const tried = journey(positions, features, data.test.heads, MODES[0])[2];
  if (tried.join() !== data.test.split.flat(2).join()) {
    throw new Error("the page's heads differ from the reference's");
  }

  const cells = [...part("cells").children];
  const names = [...part("names").children];
  const svg = figure.querySelector("svg");
  const say = announcer(controls);
  const now = { step: data.start.step, heads: data.start.heads, mode: 0 };

  /** Pixels of the number that lies at index k. */
  function place(k) {
    const size = features / now.heads;
    if (now.step === 2) {
      const [head, rest] = [Math.floor(k / (positions * size)), k % (positions * size)];
      const [row, column] = [Math.floor(rest / size), rest % size];
      return [left + head * (size * cell + gap) + column * cell, top + row * line];
    }
    const [row, column] = [Math.floor(k / features), k % features];
    const apart = now.step === 1 ? 6 * Math.floor(column / size) : 0;
    return [left + column * cell + apart, top + row * line];
  }

  function told(orders) {
    const size = features / now.heads;
    const known = orders[2].slice(0, positions * size).map((k) => Math.floor(k / features));
    const seen = [...new Set(known)].sort();
    const same = orders[3].every((k, i) => k === i);
    const heads = `${now.heads} head${now.heads > 1 ? "s" : ""} of ${size} features. `;
    const first =
      `Head 0 knows position${seen.length > 1 ? "s" : ""} ${seen.join(", ")}` +
      `${seen.length < positions ? ", in pieces, and no other" : ""}. `;
    return heads + first + `After the merge, x is ${same ? "back as it was" : "scrambled"}.`;
  }

  function draw() {
    const size = features / now.heads;
    const orders = journey(positions, features, now.heads, MODES[now.mode]);
    orders[now.step].forEach((number, k) => {
      const [x, y] = place(k);
      cells[number].setAttribute("transform", `translate(${x} ${y})`);
    });
    names.forEach((name, h) => {
      const shown = now.step === 2 && h < now.heads;
      name.textContent = shown ? `head ${h}` : "";
      name.setAttribute("x", left + h * (size * cell + gap));
    });
    const shape = [
      `x: (${positions}, ${features})`,
      `cut: (${positions}, ${now.heads}, ${size})`,
      `heads first: (${now.heads}, ${positions}, ${size})`,
      `merged: (${positions}, ${features})`,
    ][now.step];
    part("shape").textContent = shape;
    const text = `${shape}. ${told(orders)}`;
    say(text);
    svg.setAttribute("aria-label", text);
  }

  const choose = (key, read) => (value) => {
    now[key] = read(value);
    draw();
  };
  slider(controls, {
    label: "step",
    min: 0,
    max: 3,
    step: 1,
    value: now.step,
    say: (step) => ["x", "cut", "heads first", "merged"][step],
    change: choose("step", (step) => step),
  });
  slider(controls, {
    label: "number of heads",
    min: 0,
    max: data.heads.length - 1,
    step: 1,
    value: data.heads.indexOf(now.heads),
    say: (index) => `${data.heads[index]} heads`,
    change: choose("heads", (index) => data.heads[index]),
  });
  chooser(controls, {
    label: "axes",
    options: MODES.map((mode) => mode.name),
    change: choose("mode", (mode) => mode),
  });
  draw();
}
