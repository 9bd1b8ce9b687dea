// Chapter 12: the page's own captioner, in transformer.js, names a letter that the reader chooses or
// draws, and covers in part: where it looks for each word, and what it finds likeliest.

import { softmax } from "./matrices.js";
import { above, addressed, answering, model } from "./models.js";
import { pad } from "./pad.js";
import { announcer, chooser, slider } from "./parts.js";

const SIDE = 32; // pixels of a picture, both ways
const GRID = 8; // places of the memory, both ways
const SQUARE = SIDE / GRID; // pixels of a place, both ways

/** The pixels of one level of ink as a path; `digits` has the level of each pixel. */
export function path(digits, level, side) {
  const parts = [];
  digits.forEach((digit, i) => {
    if (digit !== level) return;
    const [x, y] = [4 + side * (i % SIDE), 4 + side * Math.floor(i / SIDE)];
    parts.push(`M${x} ${y}h${side}v${side}h-${side}z`);
  });
  return parts.join("");
}

/** What names pictures with the chapter's model: each word, where it looked, its likeliest three. */
export function reader({ engine, state, notes }) {
  const captioner = new engine.Captioner(state);
  const words = notes.words.split(" ");
  const [dec, latin, eos] = ["[DEC]", "LATIN", "[EOS]"].map((word) => words.indexOf(word));
  const longest = state["positions.weight"].shape[0];
  const mean = (rows) => Array.from(rows[0], (_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length);
  return (pixels) => {
    const memory = captioner.encode(pixels);
    const steps = engine.greedy_decode(captioner, memory, [dec, latin], eos, longest - 1);
    return Array.from(steps, ({ id, logits, seen }) => ({
      word: words[id],
      looks: seen.map(({ cross_attn }) => mean(cross_attn.map((head) => head.at(-1)))), // (layers, 8²)
      said: softmax(Array.from(logits))
        .map((share, k) => [words[k], share])
        .sort((a, b) => b[1] - a[1])
        .slice(0, 3),
    }));
  };
}

export function start({ figure, data, part, controls }) {
  const { cases, cell, levels } = data;
  const unit = cell / SQUARE; // of the drawing, for a pixel
  const now = { letter: data.start.case, word: data.start.step, layer: data.start.layer, covered: "", drawn: "" };
  const address = addressed(figure, now, { letter: cases.length, word: 6, layer: 1 });
  const svg = figure.querySelector("svg");
  const [pixels, tints, words, bars] = ["pixels", "tints", "words", "bars"].map((name) => [...part(name).children]);
  const load = model({ figure, data });
  let answer = { steps: cases[now.letter]?.steps ?? [] };

  chooser(above(figure), {
    label: "letter", options: [...cases.map(({ letter }) => letter), "an empty sheet"], value: now.letter,
    change: (letter) => {
      sheet.hold(letter === cases.length);
      sheet.clear();
      update({ letter });
    },
  }); // prettier-ignore
  const sheet = pad({
    svg, controls, side: SIDE, unit, squares: "squares", drawing: now.letter === cases.length,
    marks: now, change: (first) => update({}, first),
  }); // prettier-ignore
  const { covered, drawn } = sheet;
  const word = slider(controls, {
    label: "word", min: 0, max: Math.max(answer.steps.length - 1, 0), step: 1, value: now.word,
    say: (i) => `word ${i + 1}, ${answer.steps[i]?.word}`, change: (i) => update({ word: i }),
  }); // prettier-ignore
  slider(controls, {
    label: "layer", min: 0, max: 1, step: 1, value: now.layer,
    say: (i) => `layer ${i}`, change: (layer) => update({ layer }),
  }); // prettier-ignore
  const say = announcer(controls);
  const answered = answering({ figure, load, say });

  /** The level of ink of each pixel; `whole`: of the letter as it was chosen. */
  const ink = (whole = false) =>
    drawn.map((dark, i) => {
      const place = GRID * Math.floor(i / SIDE / SQUARE) + Math.floor((i % SIDE) / SQUARE);
      if (!whole && covered[place]) return 0;
      return !whole && dark ? levels : Number(cases[now.letter]?.ink[i] ?? 0);
    });

  const sentence = (steps) => steps.map(({ word }) => word).join(" ").replace(/ ?\[EOS\]$/, "") || "nothing"; // prettier-ignore

  function draw(first) {
    const { steps, digits } = answer;
    const at = Math.min(now.word, steps.length - 1);
    word.end(steps.length - 1);
    word.put(at);
    const here = steps[at];
    const looks = here.looks[now.layer];
    const most = Math.max(...looks);
    pixels.forEach((d, i) => d.setAttribute("d", path(digits, i + 1, unit)));
    tints.forEach((rect, i) => rect.setAttribute("fill-opacity", ((0.7 * looks[i]) / most).toFixed(2)));
    words.forEach((text, i) => {
      text.textContent = steps[i]?.word ?? "";
      text.setAttribute("font-weight", i === at ? "bold" : "normal");
      text.setAttribute("opacity", i <= at ? 1 : 0.65);
    });
    bars.forEach((bar, k) => {
      const [box, said] = bar.children;
      const [token, share] = here.said[k];
      box.setAttribute("width", (70 * share).toFixed(1));
      said.textContent = `${token} ${share.toFixed(2)}`;
    });
    part("most").textContent = `most = ${most.toFixed(2)}`;
    const best = looks.indexOf(most);
    const [token, share] = here.said[0];
    const one = cases[now.letter];
    const changed = now.covered || now.drawn;
    const told =
      first +
      (one ? `The letter ${one.letter}, ${one.new ? "a pair that is not in the training" : "in the training"}` : "An empty sheet") +
      (now.drawn ? ", drawn on" : "") +
      (now.covered ? `, squares covered: ${covered.filter(Boolean).length}` : "") +
      `. Written: ${sentence(steps)}${steps.at(-1).word === "[EOS]" ? "" : ", and so on"}. ` +
      (changed && one ? `Without the change: ${sentence(answer.whole)}. ` : "") +
      `For ${here.word}, layer ${now.layer} looks most at row ${Math.floor(best / GRID)}, ` +
      `column ${best % GRID}, with ${most.toFixed(2)}. Likeliest: ${token}, with ${share.toFixed(2)}.`;
    say(told);
    svg.setAttribute("aria-label", told);
  }

  /** Take up what the reader has changed; the first time, load the model. */
  function update(changes, first = "") {
    Object.assign(now, changes, sheet.packed());
    address.keep();
    return answered((loaded) => {
      loaded.read ??= reader(loaded);
      const read = (digits) => loaded.read(digits.map((digit) => digit / levels));
      const asked = [now.letter, now.covered, now.drawn].join();
      if (answer.asked !== asked) {
        const whole = answer.letter === now.letter ? answer.whole : read(ink(true));
        const steps = now.covered || now.drawn ? read(ink()) : whole;
        answer = { asked, letter: now.letter, digits: ink(), whole, steps };
      }
      draw(first);
    });
  }

  if (address.given) update({});
}
