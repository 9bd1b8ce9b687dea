// Chapter 11: the page's own ViT, in trained.js, names a digit that the reader chooses or draws,
// moves by a pixel or two and covers in part: how sure it is, and where its class token looks.

import { attention_rollout, mean_over_heads, softmax } from "./matrices.js";
import { above, addressed, answering, model } from "./models.js";
import { pad } from "./pad.js";
import { announcer, chooser } from "./parts.js";

const DOWN = [-1, 0, 1]; // moves in pixels; digits leave no room for more above and below
const ACROSS = [-2, -1, 0, 1, 2];
const LEVELS = "0123456789abcdefg"; // of ink, in sixteenths
const VIEWS = ["nothing", "class token's map", "rollout"];
const HEADS = ["mean over heads", "head 0", "head 1", "head 2", "head 3"];
const ARROWS = { "← left": [0, -1], "↑ up": [-1, 0], "↓ down": [1, 0], "→ right": [0, 1] };

/** What names pictures with the chapter's model: logits, probabilities, weights `(layers, heads, n, n)`. */
export function reader({ engine, state, notes }) {
  const vit = new engine.VisionTransformer(state, Number(notes.num_heads));
  return (pixels) => {
    const seen = [];
    const logits = Array.from(vit.logits(pixels, seen)); // (10,)
    return { logits, said: softmax(logits), weights: seen.map(({ attn }) => attn) };
  };
}

/** What a view shows: a weight for the class token, then for each patch. */
export function looks({ weights }, { view, layer, head }) {
  if (view === 2) return attention_rollout(weights)[0];
  return (head ? weights[layer][head - 1] : mean_over_heads(weights[layer]))[0];
}

/** A picture of `side` × `side` pixels moved; what leaves it is lost, and paper comes in. */
export function moved(pixels, side, down, right) {
  return pixels.map((_, i) => {
    const [row, column] = [Math.floor(i / side) - down, (i % side) - right];
    const inside = row >= 0 && row < side && column >= 0 && column < side;
    return inside ? pixels[row * side + column] : 0;
  });
}

export function start({ figure, data, part, controls }) {
  const { cases, cover, grid, patch, pixel, left, wide } = data;
  const side = grid * patch;
  const now = { ...data.start, covered: "", drawn: "" };
  const most = { digit: cases.length, down: 2, right: 4, view: 2, layer: 2, head: 4 };
  const address = addressed(figure, now, most);
  const svg = figure.querySelector("svg");
  const [dots, tints, bars, cut, weights, moves] = ["pixels", "tints", "bars", "cut", "weights", "moves"].map(
    (name) => [...part(name).children],
  );
  const load = model({ figure, data });
  const by = () => [DOWN[now.down], ACROSS[now.right]]; // how far it is moved
  let answer = null;

  chooser(above(figure), {
    label: "digit", options: [...cases.map(({ name }) => name), "an empty sheet"], value: now.digit,
    change: (digit) => {
      sheet.hold(digit === cases.length);
      Object.assign(now, { down: 1, right: 2 });
      sheet.clear();
      update({ digit });
    },
  }); // prettier-ignore
  const sheet = pad({
    svg, controls, side: 2 * side, unit: pixel / 2, pixel: 2, squares: "patches",
    drawing: now.digit === cases.length, marks: now,
    moved: () => by().reverse().map((far) => 2 * far), change: (first) => update({}, first),
  }); // prettier-ignore
  const buttons = document.createElement("div");
  buttons.className = "mask-buttons";
  for (const [name, [down, right]] of [...Object.entries(ARROWS), ["back", []]]) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: name });
    button.addEventListener("click", () => (name === "back" ? move(1, 2) : move(now.down + down, now.right + right)));
    buttons.append(button);
  }
  buttons.setAttribute("role", "group");
  buttons.setAttribute("aria-label", "move the picture by a pixel");
  controls.append(buttons);
  const tinted = chooser(controls, { label: "tinted", options: VIEWS, value: now.view, change: (view) => update({ view }) });
  for (const [label, options] of [["layer", ["layer 0", "layer 1", "layer 2"]], ["head", HEADS]]) {
    chooser(controls, {
      label, options, value: now[label], change: (value) => {
        tinted.set(1); // the view that has layers and heads
        update({ [label]: value, view: 1 });
      },
    }); // prettier-ignore
  }
  const say = announcer(controls);
  const answered = answering({ figure, load, say });

  function move(down, right) {
    now.down = Math.min(Math.max(down, 0), DOWN.length - 1);
    now.right = Math.min(Math.max(right, 0), ACROSS.length - 1);
    sheet.look();
    update({});
  }

  /** The picture as it is chosen and drawn: from 0, paper, to 1. A pixel has four places for the pen. */
  const whole = () =>
    Array.from({ length: side ** 2 }, (_, i) => {
      const first = 4 * side * Math.floor(i / side) + 2 * (i % side);
      const pen = [0, 1, 2 * side, 2 * side + 1].filter((k) => sheet.drawn[first + k]).length;
      return Math.min(LEVELS.indexOf(cases[now.digit]?.ink[i] ?? "0") / 16 + pen / 4, 1);
    });

  /** What the model reads: moved, and where it is covered, the mean of the training's pictures. */
  function ink(down, right) {
    return moved(whole(), side, down, right).map((value, i) => {
      const place = grid * Math.floor(i / side / patch) + Math.floor((i % side) / patch);
      return sheet.covered[place] ? cover[i] : value;
    });
  }

  const best = (said) => said.indexOf(Math.max(...said));
  const unmoved = () => best(answer.around.find(({ down, right }) => !down && !right).said);

  function told(first, pixels, seen) {
    const one = cases[now.digit];
    const { said, around } = answer;
    const name = best(said);
    const [down, right] = by();
    const ways = [];
    if (down) ways.push(`${Math.abs(down)} ${down < 0 ? "up" : "down"}`);
    if (right) ways.push(`${Math.abs(right)} to the ${right < 0 ? "left" : "right"}`);
    const changed = [sheet.drawn.some(Boolean) && "drawn on", ways.length && `moved by ${ways.join(", ")}`].filter(Boolean);
    const count = sheet.covered.filter(Boolean).length;
    if (count) changed.push(`patches covered: ${count}`);
    let text = `${first}${[one ? `${one.digit === 8 ? "An" : "A"} ${one.digit}` : "An empty sheet", ...changed].join("; ")}. `;
    text += `The model says ${name} with ${said[name].toFixed(2)}`;
    text += one ? `, which is ${name === one.digit ? "right" : "wrong"}. ` : ". ";
    if (around) {
      const near = around.filter(({ right }) => Math.abs(right) < 2);
      const other = near.filter(({ said }) => best(said) !== unmoved()).length;
      text += `Of 8 moves by one pixel, ${other || "none"} change${other > 1 ? "" : "s"} its name${other ? " (orange)" : ""}. `;
    }
    if (!seen) return text;
    const patches = Array.from(seen).slice(1);
    const at = best(patches);
    const where = `row ${Math.floor(at / grid)}, column ${at % grid}, with ${patches[at].toFixed(2)}`;
    if (now.view === 2) return `${text}By rollout the class token has drawn most on the patch in ${where}.`;
    return `${text}The class token looks at itself with ${seen[0].toFixed(2)}; of the patches, most at the one in ${where}.`;
  }

  function draw(first = "") {
    const { pixels, said, around } = answer;
    const seen = now.view ? looks(answer, now) : null;
    dots.forEach((dot, i) => dot.setAttribute("fill-opacity", pixels[i].toFixed(2)));
    const top = seen ? Math.max(...Array.from(seen).slice(1)) : 1;
    tints.forEach((rect, i) => rect.setAttribute("fill-opacity", (seen ? (0.7 * seen[i + 1]) / top : 0).toFixed(2)));
    const highest = seen ? Math.max(...seen) : 1;
    weights.forEach((bar, i) => bar.setAttribute("height", (seen ? (24 * seen[i]) / highest : 0).toFixed(1)));
    cut.forEach((square, i) => {
      [...square.children].forEach((dot, k) => {
        const row = patch * Math.floor(i / grid) + Math.floor(k / patch);
        dot.setAttribute("fill-opacity", pixels[row * side + patch * (i % grid) + (k % patch)].toFixed(2));
      });
    });
    bars.forEach((bar, k) => {
      const [, box, value] = bar.children;
      box.setAttribute("width", (wide * said[k]).toFixed(1));
      value.setAttribute("x", (left + wide * said[k] + 5).toFixed(1));
      value.textContent = said[k].toFixed(2);
    });
    part("moves").setAttribute("opacity", around ? 1 : 0.3); // till then, those of the picture before
    if (around) {
      moves.forEach((cell, k) => {
        const [box, name] = cell.children;
        const digit = best(around[k].said);
        const here = k === now.down * ACROSS.length + now.right;
        name.textContent = digit;
        box.setAttribute("fill", digit === unmoved() ? "#0072B2" : "#D55E00");
        box.setAttribute("fill-opacity", (0.5 * around[k].said[digit]).toFixed(2));
        box.setAttribute("stroke-width", here ? 3 : 0);
      });
    }
    const text = told(first, pixels, seen);
    say(text);
    svg.setAttribute("aria-label", text);
  }

  /** Take up what the reader has changed; the first time, load the model. */
  function update(changes, first = "") {
    Object.assign(now, changes, sheet.packed());
    address.keep();
    return answered(async (loaded, current) => {
      loaded.read ??= reader(loaded);
      const asked = [now.digit, now.down, now.right, now.covered, now.drawn].join();
      if (answer?.asked !== asked) {
        const pixels = ink(...by());
        answer = { asked, pixels, ...loaded.read(pixels) };
      }
      draw(first);
      const around = [];
      for (const down of answer.around ? [] : DOWN) {
        for (const right of ACROSS) {
          await new Promise((resolve) => setTimeout(resolve)); // what is there already is shown first
          if (!current()) return;
          around.push({ down, right, said: loaded.read(ink(down, right)).said });
        }
      }
      if (around.length) {
        answer.around = around;
        draw(first);
      }
    });
  }

  moves.forEach((cell, k) => {
    cell.style.cursor = "pointer";
    cell.addEventListener("click", () => move(Math.floor(k / ACROSS.length), k % ACROSS.length));
  });
  if (address.given) update({});
}
