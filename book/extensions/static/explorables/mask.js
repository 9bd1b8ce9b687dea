// Chapter 4: a mask to paint cell by cell, with the weights that follow. The scores come from the
// page; the weights are computed here, after the formula has been tried on a case whose answer the
// reference gave, a row with nothing to see among its rows.

import { softmax } from "./matrices.js";
import { announcer } from "./parts.js";

const TREATMENTS = {
  zeros: "−∞ and zeros (masked_softmax)",
  nan: "−∞ alone (softmax)",
  average: "−1e9 (softmax)",
};

/** softmax over the keys of each row, hidden keys treated as `how` says. */
export function maskedWeights(scores, mask, how = "zeros") {
  const hidden = how === "average" ? -1e9 : -Infinity;
  return scores.map((row, i) => {
    if (how === "zeros" && !mask[i].some(Boolean)) return row.map(() => 0);
    return softmax(row.map((score, j) => (mask[i][j] ? score : hidden))); // of −∞ alone NaN, as in torch
  });
}

export function start({ figure, data, part, controls }) {
  const { names, scores, test } = data;
  const tried = maskedWeights(scores, test.mask);
  if (tried.some((row, i) => row.some((w, j) => !(Math.abs(w - test.weights[i][j]) < 1e-6)))) {
    throw new Error("the page's weights differ from the reference's");
  }

  const n = names.length;
  const mask = data.mask.map((row) => row.map(Boolean));
  const svg = figure.querySelector("svg");
  const group = part("cells");
  const cells = [...group.children];
  const sums = [...part("sums").children];
  let how = "zeros";
  let focus = 0;
  let paint = null;

  const buttons = document.createElement("div");
  buttons.className = "mask-buttons";
  const presets = {
    everything: () => true,
    padding: (i, j) => j < n - 1,
    causal: (i, j) => j <= i,
    "padding and causal": (i, j) => j <= i && j < n - 1,
    nothing: () => false,
  };
  for (const [name, rule] of Object.entries(presets)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", () => {
      for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) mask[i][j] = rule(i, j);
      draw(`Mask: ${name}.`);
    });
    buttons.append(button);
  }
  controls.append(buttons);

  const label = document.createElement("label");
  label.className = "mask-how";
  const choice = document.createElement("select");
  const caption = document.createElement("span");
  caption.textContent = "hidden scores";
  for (const [value, text] of Object.entries(TREATMENTS)) choice.add(new Option(text, value));
  choice.addEventListener("change", () => {
    how = choice.value;
    draw(`Hidden scores: ${TREATMENTS[how]}.`);
  });
  label.append(caption, choice);
  controls.append(label);
  const say = announcer(controls);

  const shown = (weight) => (Number.isNaN(weight) ? "NaN" : weight.toFixed(2));

  function sentence(i, weights) {
    const row = weights[i];
    const seen = row
      .map((weight, j) => [weight, j])
      .filter(([weight, j]) => mask[i][j] || Number.isNaN(weight) || weight > 0)
      .map(([weight, j]) => `“${names[j]}” with ${shown(weight)}${mask[i][j] ? "" : " (hidden)"}`);
    return `“${names[i]}” attends to ${seen.length ? seen.join(", ") : "nothing"}.`;
  }

  function draw(first = "") {
    const weights = maskedWeights(scores, mask, how);
    cells.forEach((cell, index) => {
      const [i, j] = [Math.floor(index / n), index % n];
      const [rect, cross, text] = cell.children;
      const weight = weights[i][j];
      const seen = mask[i][j];
      rect.setAttribute("fill", Number.isNaN(weight) || !seen ? "#D55E00" : "#0072B2");
      rect.setAttribute("fill-opacity", (0.62 * (Number.isNaN(weight) ? 0.4 : weight)).toFixed(3));
      cross.setAttribute("stroke-opacity", seen ? 0 : 0.35);
      text.textContent = seen || !(weight === 0) ? shown(weight) : "";
      cell.setAttribute("aria-checked", seen);
      cell.setAttribute(
        "aria-label",
        `query ${names[i]}, key ${names[j]}: ${seen ? "may attend" : "hidden"}, weight ${shown(weight)}`,
      );
      cell.setAttribute("tabindex", index === focus ? 0 : -1);
    });
    weights.forEach((row, i) => {
      sums[i].textContent = shown(row.reduce((sum, weight) => sum + weight, 0));
    });
    say(`${first} ${sentence(Math.floor(focus / n), weights)}`.trim());
  }

  function set(index, value) {
    mask[Math.floor(index / n)][index % n] = value;
    focus = index;
    draw();
  }

  svg.setAttribute("role", "group");
  svg.setAttribute("aria-label", "A mask of five queries and five keys. Arrow keys move, space toggles.");
  cells.forEach((cell, index) => {
    cell.classList.add("mask-cell");
    cell.setAttribute("role", "checkbox");
    cell.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      cell.releasePointerCapture?.(event.pointerId); // so that a finger, too, enters other cells
      paint = cell.getAttribute("aria-checked") !== "true";
      set(index, paint);
      cell.focus({ preventScroll: true });
    });
    cell.addEventListener("pointerenter", (event) => {
      if (paint !== null && event.buttons) set(index, paint);
    });
    cell.addEventListener("focus", () => {
      if (focus !== index) {
        focus = index;
        draw();
      }
    });
    cell.addEventListener("keydown", (event) => {
      const [i, j] = [Math.floor(index / n), index % n];
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      if (event.key === " " || event.key === "Enter") {
        set(index, !mask[i][j]);
      } else if (event.key in steps) {
        const [down, right] = steps[event.key];
        const to = Math.min(n - 1, Math.max(0, i + down)) * n + Math.min(n - 1, Math.max(0, j + right));
        cells[to].focus({ preventScroll: true });
      } else {
        return;
      }
      event.preventDefault();
    });
  });
  window.addEventListener("pointerup", () => (paint = null));
  window.addEventListener("pointercancel", () => (paint = null));
  draw();
}
