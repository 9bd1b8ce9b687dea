// Chapter 10: hide a letter of a sentence, and see what the page's own model puts in its place and
// where its heads look from there. All numbers come from the model; here they are only shown.

import { announcer, slider } from "./parts.js";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Weights from a string with a character for each: 0 is nothing, z the whole. */
export function weights(code) {
  return [...code].map((character) => DIGITS.indexOf(character) / (DIGITS.length - 1));
}

export function start({ figure, data, part, controls }) {
  const { start: first, heads, wide } = data;
  const tried = weights(data.test.code);
  if (tried.some((weight, i) => !(Math.abs(weight - data.test.weights[i]) < 0.01))) {
    throw new Error("the page's weights differ from the model's");
  }

  const svg = figure.querySelector("svg");
  const cells = [...part("letters").children];
  const bars = [...part("bars").children];
  const now = { ...first };

  const sentence = chooser("sentence", data.sentences.map((s) => s.text), (value) => {
    now.sentence = value;
    now.letter = Math.min(now.letter, data.sentences[value].text.length - 1);
    place.end(data.sentences[value].text.length - 1);
    place.set(now.letter);
  });
  controls.append(sentence);
  const say = announcer(controls);
  const named = (letter) => (letter === " " ? "space" : letter);

  function draw() {
    const { text, gaps } = data.sentences[now.sentence];
    const gap = gaps[now.letter];
    const seen = weights(gap.heads[now.head]); // [CLS], the letters, [SEP]
    cells.forEach((cell, i) => {
      const [box, tint, letter] = cell.children;
      cell.setAttribute("visibility", i < text.length ? "visible" : "hidden");
      const hidden = i === now.letter;
      box.setAttribute("stroke", hidden ? "#D55E00" : "currentColor");
      box.setAttribute("stroke-width", hidden ? 3 : 0.5);
      tint.setAttribute("fill-opacity", (seen[i + 1] ?? 0).toFixed(3));
      letter.textContent = hidden ? "" : text[i] === " " ? "␣" : text[i];
    });
    bars.forEach((row, i) => {
      const [letter, share] = gap.best[i];
      const [label, bar, value] = row.children;
      label.textContent = letter === " " ? "␣" : letter;
      bar.setAttribute("width", (wide * share).toFixed(1));
      value.setAttribute("x", (data.left + wide * share + 6).toFixed(1));
      value.textContent = share.toFixed(2);
    });
    const inside = seen.slice(1, text.length + 1);
    const most = inside.indexOf(Math.max(...inside));
    const step = most - now.letter;
    const where =
      step === 0 ? "the gap itself" : `${Math.abs(step)} to the ${step < 0 ? "left" : "right"}`;
    const right = gap.best[0][0] === text[now.letter] ? "which is right" : "which is wrong";
    const told =
      `Hidden is letter ${now.letter + 1}, “${named(text[now.letter])}”. The model says ` +
      `“${named(gap.best[0][0])}” with ${gap.best[0][1].toFixed(2)}, ${right}. The ${heads[now.head]} ` +
      `looks mostly at “${named(text[most])}”, ${where}, with ${inside[most].toFixed(2)}.`;
    say(told);
    svg.setAttribute("aria-label", told);
  }

  const place = slider(controls, {
    label: "hidden letter",
    min: 0,
    max: data.sentences[now.sentence].text.length - 1,
    step: 1,
    value: now.letter,
    say: (i) => `letter ${i + 1}, ${named(data.sentences[now.sentence].text[i])}`,
    change: (i) => {
      now.letter = i;
      draw();
    },
  });
  slider(controls, {
    label: "head",
    min: 0,
    max: heads.length - 1,
    step: 1,
    value: now.head,
    say: (i) => heads[i],
    change: (i) => {
      now.head = i;
      draw();
    },
  });
  cells.forEach((cell, i) => {
    cell.style.cursor = "pointer";
    cell.addEventListener("click", () => place.set(i));
  });
  draw();
}

/** A labelled list to choose from. */
function chooser(label, options, change) {
  const row = document.createElement("label");
  const name = document.createElement("span");
  const list = document.createElement("select");
  name.textContent = label;
  options.forEach((option, i) => list.add(new Option(option, i)));
  list.style.cssText = "min-height:2rem;min-width:0;width:100%;font:inherit";
  list.addEventListener("change", () => change(Number(list.value)));
  row.append(name, list);
  return row;
}
