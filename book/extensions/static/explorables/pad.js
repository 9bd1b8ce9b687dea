// What explorables share in which the reader covers a picture, square by square, and draws on it,
// with the pointer or the keyboard. Squares have 4 units both ways, the pen has 2.

import { chooser } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";
const EDGE = 4; // of the drawing, above the picture and to its left
const SQUARE = 4;
const PEN = 2;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

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

/**
 * Lay a field over a picture of `side` units, each `unit` wide in the drawing, whose group is called
 * `sheet`; `pixel` units are a pixel. `marks` has what is covered and drawn, as packed for an address; what is drawn moves with
 * the picture, by `moved()`. `change(first)` hears of each change, with a sentence on it if there is
 * something new to say. Returns the marks as booleans, and what packs and clears them, changes the
 * tool, and looks again at what the square stands on.
 */
export function pad({ svg, controls, side, unit, pixel = 1, squares, drawing, marks, moved = () => [0, 0], change }) {
  const grid = side / SQUARE;
  const covered = unpack(marks.covered, grid ** 2);
  const drawn = unpack(marks.drawn, side ** 2);
  let cursor = [0, 0]; // in units

  // what is covered, and the square that the arrow keys move
  const covers = document.createElementNS(SVG, "path");
  const field = document.createElementNS(SVG, "g");
  const [paper, square] = [0, 1].map(() => document.createElementNS(SVG, "rect"));
  const set = (node, attributes) => Object.entries(attributes).forEach((pair) => node.setAttribute(...pair));
  set(covers, { fill: "#0072B2", "fill-opacity": 0.15, stroke: "#0072B2", "stroke-dasharray": "3 2" });
  set(field, { class: "mask-cell", role: "checkbox", tabindex: 0 });
  set(paper, { x: EDGE, y: EDGE, width: unit * side, height: unit * side, fill: "transparent" });
  set(square, { fill: "none", stroke: "#0072B2", "stroke-width": 2 });
  field.append(paper, square);
  const sheet = svg.querySelector("[data-part=sheet]");
  sheet.append(covers, field);
  svg.setAttribute("role", "group");

  const tool = chooser(controls, {
    label: "on the picture", options: [`cover ${squares}`, "draw"], value: Number(drawing), change: (how) => {
      hold(Boolean(how));
      change("");
    },
  }); // prettier-ignore
  const buttons = document.createElement("div");
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: "uncover all, erase what is drawn" });
  button.addEventListener("click", () => {
    clear();
    change("");
  });
  buttons.className = "mask-buttons";
  buttons.append(button);
  controls.append(buttons);

  /** What the square stands on: the list of what is covered or drawn, and where in it. */
  function under() {
    if (!drawing) return [covered, [(grid * cursor[1] + cursor[0]) / SQUARE]];
    const [left, top] = cursor.map((at, k) => at - moved()[k]);
    const inside = (at) => at >= 0 && at < side;
    const where = [0, 1, 2, 3].map((k) => [left + (k % PEN), top + Math.floor(k / PEN)]);
    return [drawn, where.filter((at) => at.every(inside)).map(([x, y]) => side * y + x)];
  }

  const isMarked = () => Boolean(under()[0][under()[1][0]]);

  function mark(value) {
    const [list, where] = under();
    where.forEach((i) => (list[i] = value));
  }

  /** Move the square to a unit, or to the place that it belongs to; returns what it stands on now. */
  function go(to) {
    const size = drawing ? PEN : SQUARE;
    const fit = (x) => (drawing ? x : SQUARE * Math.floor(x / SQUARE));
    cursor = to.map((x) => Math.min(Math.max(fit(x), 0), side - size));
    const [x, y] = cursor.map((at) => EDGE + unit * at);
    set(square, { x, y, width: unit * size, height: unit * size });
    const spoken = cursor.map((at) => at / (drawing ? pixel : SQUARE));
    const place = `${drawing ? "pixel " : ""}row ${spoken[1]}, column ${spoken[0]}`;
    const what = (isMarked() ? "" : "not ") + (drawing ? "drawn" : "covered");
    set(field, { "aria-checked": isMarked(), "aria-label": `${place}: ${what}` });
    const cell = unit * SQUARE;
    covers.setAttribute(
      "d",
      covered.map((yes, i) => (yes ? `M${EDGE + cell * (i % grid)} ${EDGE + cell * Math.floor(i / grid)}h${cell}v${cell}h-${cell}z` : "")).join(""),
    ); // prettier-ignore
    return `The square is at ${place}, ${what}. `;
  }

  function hold(pen) {
    drawing = pen;
    field.style.touchAction = pen ? "none" : "pan-y"; // else the page moves below the pen
    tool.set(Number(pen));
    go(cursor);
  }

  function clear() {
    covered.fill(false);
    drawn.fill(false);
    go(cursor);
  }

  field.addEventListener("keydown", (event) => {
    if (event.key in STEPS) {
      const step = drawing ? 1 : SQUARE;
      const to = cursor.map((at, k) => at + step * STEPS[event.key][k]);
      if (event.shiftKey) mark(true); // it leaves its mark on the way
      go(to);
      if (event.shiftKey) mark(true);
      change(go(cursor));
    } else if (event.key === "Enter" || event.key === " ") {
      mark(!isMarked());
      change(go(cursor));
    } else return;
    event.preventDefault();
  });

  // the pointer goes on with what it has begun: to cover or uncover, to draw or erase
  let stroke = null;
  let before = covered; // what was covered when the stroke began
  const point = (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(sheet.getScreenCTM().inverse());
    return [x, y].map((at) => Math.floor((at - EDGE) / unit - (drawing ? PEN / 4 : 0)));
  };
  field.addEventListener("pointerdown", (event) => {
    field.setPointerCapture(event.pointerId);
    before = [...covered];
    go(point(event));
    stroke = { value: !isMarked(), at: point(event) };
    mark(stroke.value);
    go(cursor);
    change("");
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
    change("");
  });
  field.addEventListener("pointerup", () => (stroke = null));
  field.addEventListener("pointercancel", () => {
    stroke = null; // the finger moves the page, and was not meant to cover
    covered.splice(0, covered.length, ...before);
    go(cursor);
    change("");
  });

  hold(drawing);
  const packed = () => ({ covered: pack(covered), drawn: pack(drawn) });
  return { covered, drawn, packed, clear, hold, look: () => go(cursor) };
}
