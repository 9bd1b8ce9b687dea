// Chapter 12: step through the caption of a letter, and see where the page's captioner looks for each
// word and what it finds likeliest. All weights and shares come from the model; here they are shown.

import { announcer, slider } from "./parts.js";

const SIDE = 32; // pixels of a picture, both ways
const GRID = 8; // places of the memory, both ways

/** The pixels of one level of ink as a path; `digits` has the level of each pixel. */
export function path(digits, level, side) {
  const parts = [];
  [...digits].forEach((digit, i) => {
    if (Number(digit) !== level) return;
    const [x, y] = [4 + side * (i % SIDE), 4 + side * Math.floor(i / SIDE)];
    parts.push(`M${x} ${y}h${side}v${side}h-${side}z`);
  });
  return parts.join("");
}

export function start({ figure, data, part, controls }) {
  const fits = (step) => step.looks.every((map) => map.length === GRID * GRID);
  if (!data.cases.every((one) => one.ink.length === SIDE * SIDE && one.steps.every(fits))) {
    throw new Error("the page's pictures differ from the model's");
  }

  const svg = figure.querySelector("svg");
  const pixels = [...part("pixels").children];
  const tints = [...part("tints").children];
  const words = [...part("words").children];
  const bars = [...part("bars").children];
  const now = { ...data.start };
  const steps = () => data.cases[now.case].steps;

  const row = document.createElement("label");
  const name = document.createElement("span");
  const list = document.createElement("select");
  name.textContent = "letter";
  data.cases.forEach((one, i) => list.add(new Option(one.letter, i)));
  list.value = now.case;
  list.style.cssText = "min-height:2rem;min-width:0;width:100%;font:inherit";
  list.addEventListener("change", () => {
    now.case = Number(list.value);
    now.step = Math.min(now.step, steps().length - 1);
    word.end(steps().length - 1);
    word.set(now.step);
  });
  row.append(name, list);
  controls.append(row);

  function draw() {
    const one = data.cases[now.case];
    const here = one.steps[now.step];
    const looks = here.looks[now.layer];
    const most = Math.max(...looks);
    pixels.forEach((d, i) => d.setAttribute("d", path(one.ink, i + 1, data.cell / 4)));
    tints.forEach((rect, i) =>
      rect.setAttribute("fill-opacity", ((0.7 * looks[i]) / most).toFixed(2)),
    );
    words.forEach((text, i) => {
      text.textContent = one.steps[i]?.word ?? "";
      text.setAttribute("font-weight", i === now.step ? "bold" : "normal");
      text.setAttribute("opacity", i <= now.step ? 1 : 0.35);
    });
    bars.forEach((bar, k) => {
      const [box, said] = bar.children;
      const [token, share] = here.said[k];
      box.setAttribute("width", ((70 * share) / 1000).toFixed(1));
      said.textContent = `${token} ${(share / 1000).toFixed(2)}`;
    });
    const best = looks.indexOf(most);
    const [token, share] = here.said[0];
    const told =
      `The letter ${one.letter}, ${one.new ? "not in the training" : "in the training"}. ` +
      `For ${here.word}, layer ${now.layer} looks most at row ${Math.floor(best / GRID)}, ` +
      `column ${best % GRID}, with ${(most / 1000).toFixed(2)}. Likeliest: ${token}, with ` +
      `${(share / 1000).toFixed(2)}.`;
    say(told);
    svg.setAttribute("aria-label", told);
  }

  const word = slider(controls, {
    label: "word",
    min: 0,
    max: steps().length - 1,
    step: 1,
    value: now.step,
    say: (i) => `word ${i + 1}, ${steps()[i].word}`,
    change: (i) => {
      now.step = i;
      draw();
    },
  });
  slider(controls, {
    label: "layer",
    min: 0,
    max: data.cases[0].steps[0].looks.length - 1,
    step: 1,
    value: now.layer,
    say: (i) => `layer ${i}`,
    change: (i) => {
      now.layer = i;
      draw();
    },
  });
  const say = announcer(controls);
  draw();
}
