// Chapter 12: the page's own captioner, in transformer.js, names a letter that the reader chooses or
// draws, and covers in part: where it looks for each word, and what it finds likeliest.

import { softmax } from "./matrices.js";
import { addressed, model } from "./models.js";
import { announcer, chooser, slider } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
const SIDE = 32; // pixels of a picture, both ways
const GRID = 8; // places of the memory, both ways
const SQUARE = SIDE / GRID; // pixels of a place, both ways
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Booleans as text for an address, six in a letter. */
export function pack(bits) {
  let text = "";
  for (let i = 0; i < bits.length; i += 6) {
    text += LETTERS[bits.slice(i, i + 6).reduce((sum, bit, k) => sum + (bit << k), 0)];
  }
  return text.replace(/A+$/, "");
}

/** The booleans that `pack` has made a text of; where the text ends, or is none of these, false. */
export const unpack = (text, count) =>
  Array.from({ length: count }, (_, i) => {
    const number = Math.max(LETTERS.indexOf(text[Math.floor(i / 6)]), 0);
    return Boolean((number >> (i % 6)) & 1);
  });

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
  const address = addressed(now, { letter: cases.length, word: 6, layer: 1 });
  const covered = unpack(now.covered, GRID ** 2);
  const drawn = unpack(now.drawn, SIDE ** 2);
  const svg = figure.querySelector("svg");
  const [pixels, tints, words, bars] = ["pixels", "tints", "words", "bars"].map((name) => [...part(name).children]);
  const load = model({ figure, data });
  let answer = { steps: cases[now.letter]?.steps ?? [] };
  let turn = 0;
  let drawing = Number(now.letter === cases.length);
  let cursor = [0, 0]; // in pixels

  // what is covered, and the square that the arrow keys move
  const covers = document.createElementNS(SVG, "path");
  const field = document.createElementNS(SVG, "g");
  const [paper, square] = [0, 1].map(() => document.createElementNS(SVG, "rect"));
  const set = (node, attributes) => Object.entries(attributes).forEach((pair) => node.setAttribute(...pair));
  set(covers, { fill: "#0072B2", "fill-opacity": 0.15, stroke: "#0072B2", "stroke-dasharray": "3 2" });
  set(field, { class: "mask-cell", role: "checkbox", tabindex: 0 });
  set(paper, { x: 4, y: 4, width: unit * SIDE, height: unit * SIDE, fill: "transparent" });
  set(square, { fill: "none", stroke: "#0072B2", "stroke-width": 2 });
  field.append(paper, square);
  svg.append(covers, field);
  svg.setAttribute("role", "group");

  const list = chooser(controls, {
    label: "letter", options: [...cases.map(({ letter }) => letter), "an empty sheet"], value: now.letter,
    change: (letter) => {
      if (letter === cases.length) hand.set((drawing = 1));
      clear({ letter });
    },
  }); // prettier-ignore
  const hand = chooser(controls, {
    label: "on the picture", options: ["cover squares", "draw"], value: drawing, change: (how) => {
      drawing = how;
      go(cursor);
      update({});
    },
  }); // prettier-ignore
  const buttons = document.createElement("div");
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: "uncover all, erase what is drawn" });
  button.addEventListener("click", () => clear({}));
  buttons.className = "mask-buttons";
  buttons.append(button);
  controls.append(buttons);
  const word = slider(controls, {
    label: "word", min: 0, max: Math.max(answer.steps.length - 1, 0), step: 1, value: now.word,
    say: (i) => `word ${i + 1}, ${answer.steps[i]?.word}`, change: (i) => update({ word: i }),
  }); // prettier-ignore
  slider(controls, {
    label: "layer", min: 0, max: 1, step: 1, value: now.layer,
    say: (i) => `layer ${i}`, change: (layer) => update({ layer }),
  }); // prettier-ignore
  const say = announcer(controls);

  /** The level of ink of each pixel; `whole`: of the letter as it was chosen. */
  const ink = (whole = false) =>
    drawn.map((dark, i) => {
      const place = GRID * Math.floor(i / SIDE / SQUARE) + Math.floor((i % SIDE) / SQUARE);
      if (!whole && covered[place]) return 0;
      return !whole && dark ? levels : Number(cases[now.letter]?.ink[i] ?? 0);
    });

  /** Move the square to a pixel, or to the place that it belongs to. */
  function go(to) {
    const last = drawing ? SIDE - 2 : SIDE - SQUARE;
    cursor = to.map((x) => Math.min(Math.max(drawing ? x : SQUARE * Math.floor(x / SQUARE), 0), last));
    const side = unit * (drawing ? 2 : SQUARE);
    set(square, { x: 4 + unit * cursor[0], y: 4 + unit * cursor[1], width: side, height: side });
    const [marks, [first]] = under();
    const [x, y] = cursor.map((at) => (drawing ? at : at / SQUARE));
    const place = drawing ? `pixel row ${y}, column ${x}` : `row ${y}, column ${x}`;
    const what = drawing ? (marks[first] ? "drawn" : "not drawn") : marks[first] ? "covered" : "not covered";
    set(field, { "aria-checked": marks[first], "aria-label": `${place}: ${what}` });
    return `The square is at ${place}, ${what}. `;
  }

  /** What the square stands on: the list of what is covered or drawn, and where in it. */
  function under() {
    const [x, y] = cursor;
    if (!drawing) return [covered, [(GRID * y + x) / SQUARE]];
    const first = SIDE * y + x;
    return [drawn, [first, first + 1, first + SIDE, first + SIDE + 1]];
  }

  const isMarked = () => under()[0][under()[1][0]];

  function mark(value) {
    const [marks, where] = under();
    where.forEach((i) => (marks[i] = value));
  }

  function clear(changes) {
    covered.fill(false);
    drawn.fill(false);
    go(cursor);
    update(changes);
  }

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
    covers.setAttribute(
      "d",
      covered.map((yes, i) => (yes ? `M${4 + cell * (i % GRID)} ${4 + cell * Math.floor(i / GRID)}h${cell}v${cell}h-${cell}z` : "")).join(""),
    ); // prettier-ignore
    words.forEach((text, i) => {
      text.textContent = steps[i]?.word ?? "";
      text.setAttribute("font-weight", i === at ? "bold" : "normal");
      text.setAttribute("opacity", i <= at ? 1 : 0.35);
    });
    bars.forEach((bar, k) => {
      const [box, said] = bar.children;
      const [token, share] = here.said[k];
      box.setAttribute("width", (70 * share).toFixed(1));
      said.textContent = `${token} ${share.toFixed(2)}`;
    });
    const best = looks.indexOf(most);
    const [token, share] = here.said[0];
    const one = cases[now.letter];
    const changed = now.covered || now.drawn;
    const told =
      first +
      (one ? `The letter ${one.letter}, ${one.new ? "not in the training" : "in the training"}` : "An empty sheet") +
      (now.drawn ? ", drawn on" : "") +
      (now.covered ? `, squares covered: ${covered.filter(Boolean).length}` : "") +
      `. Written: ${sentence(steps)}. ` +
      (changed && one ? `As it was: ${sentence(answer.whole)}. ` : "") +
      `For ${here.word}, layer ${now.layer} looks most at row ${Math.floor(best / GRID)}, ` +
      `column ${best % GRID}, with ${most.toFixed(2)}. Likeliest: ${token}, with ${share.toFixed(2)}.`;
    say(told);
    svg.setAttribute("aria-label", told);
  }

  /** Take up what the reader has changed; the first time, load the model. */
  async function update(changes, first = "") {
    Object.assign(now, changes, { covered: pack(covered), drawn: pack(drawn) });
    address.keep();
    figure.setAttribute("aria-busy", "true");
    const mine = ++turn;
    try {
      const loaded = await load();
      if (mine !== turn) return;
      loaded.read ??= reader(loaded);
      const read = (digits) => loaded.read(digits.map((digit) => digit / levels));
      const asked = [now.letter, now.covered, now.drawn].join();
      if (answer.asked !== asked) {
        const whole = answer.letter === now.letter ? answer.whole : read(ink(true));
        const steps = now.covered || now.drawn ? read(ink()) : whole;
        answer = { asked, letter: now.letter, digits: ink(), whole, steps };
      }
      draw(first);
    } catch (error) {
      say("The model could not be loaded. Try again.");
      console.error(error);
    }
    if (mine === turn) figure.setAttribute("aria-busy", "false");
  }

  field.addEventListener("keydown", (event) => {
    if (event.key in MOVES) {
      const step = drawing ? 1 : SQUARE;
      update({}, go(cursor.map((at, k) => at + step * MOVES[event.key][k])));
    } else if (event.key === "Enter" || event.key === " ") {
      mark(!isMarked());
      update({}, go(cursor));
    } else return;
    event.preventDefault();
  });

  // the pointer goes on with what it has begun: to cover or uncover, to draw or erase
  let stroke = null;
  const point = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [x, y].map((at) => Math.floor((at - 4) / unit - (drawing ? 0.5 : 0)));
  };
  field.addEventListener("pointerdown", (event) => {
    field.setPointerCapture(event.pointerId);
    go(point(event));
    stroke = { value: !isMarked(), at: point(event) };
    mark(stroke.value);
    go(cursor);
    update({});
  });
  field.addEventListener("pointermove", (event) => {
    if (!stroke) return;
    const [from, to] = [stroke.at, point(event)];
    const count = Math.max(...to.map((x, k) => Math.abs(x - from[k])), 1);
    for (let i = 1; i <= count; i++) {
      go(to.map((x, k) => Math.round(from[k] + ((x - from[k]) * i) / count)));
      mark(stroke.value);
    }
    stroke.at = to;
    go(cursor);
    update({});
  });
  for (const end of ["pointerup", "pointercancel"]) field.addEventListener(end, () => (stroke = null));

  go(cursor);
  if (address.given) update({});
}
