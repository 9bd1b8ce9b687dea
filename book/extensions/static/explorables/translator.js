// Chapter 7: where the trained model looks while it writes a date, and its four best beams. All
// numbers come from the page's own model; nothing is computed here but the layout.

import { announcer, slider } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

/** How many characters two texts have in common at their beginning. */
export function shared(first, second) {
  let k = 0;
  while (k < first.length && k < second.length && first[k] === second[k]) k++;
  return k;
}

/** For each beam: from which column it is drawn, and the earlier beam that it hangs on. */
export function branches(texts) {
  return texts.map((text, row) => {
    let best = { start: 0, parent: 0 };
    for (let r = 0; r < row; r++) {
      const start = shared(text, texts[r]);
      if (start > best.start) best = { start, parent: r };
    }
    return best;
  });
}

export function start({ figure, data, part, controls }) {
  const { entries, cell, wide, left, brief } = data; // brief: on the front page, without the beams
  const now = { entry: data.start.entry, at: data.start.at, layer: 1 };
  const svg = figure.querySelector("svg");

  /** A character in its box; `share` of 1 is darkest. */
  function box(x, y, letter, share, small = "", marked = false) {
    const group = element("g", {});
    group.append(
      element("rect", {
        x,
        y,
        width: cell - 2,
        height: 30,
        rx: 3,
        fill: "#0072B2",
        "fill-opacity": (0.7 * share).toFixed(2),
        stroke: marked ? "#D55E00" : "currentColor",
        "stroke-opacity": marked ? 1 : 0.3,
        "stroke-width": marked ? 3 : 1,
      }),
      element("text", { x: x + 12, y: y + 20, "text-anchor": "middle" }, /\s/.test(letter) ? "␣" : letter),
    );
    if (small !== "") {
      group.append(
        element("text", { x: x + 12, y: y + 42, "text-anchor": "middle", "font-size": 10 }, small),
      );
    }
    return group;
  }

  const choices = {
    text: choose(
      "date",
      entries.map((entry) => `${entry.text} (${entry.locale})`),
      now.entry,
      (value) => {
        now.entry = value;
        draw();
      },
    ),
    layer: choose("decoder layer", ["first", "second"], now.layer, (value) => {
      now.layer = value;
      draw();
    }),
  };
  controls.append(choices.text);
  const position = slider(controls, {
    label: "character",
    min: 0,
    max: 10,
    step: 1,
    value: now.at,
    say: (at) => `${at + 1} of 11: ${spoken(letters()[at])}`,
    change: (at) => {
      now.at = at;
      draw();
    },
  });
  if (!brief) controls.append(choices.layer);
  const say = announcer(controls);

  function letters() {
    return [...entries[now.entry].beams[0][0], "⏎"];
  }

  function spoken(letter) {
    if (letter === undefined) return "nothing";
    return letter === "⏎" ? "the end" : /\s/.test(letter) ? "space" : letter;
  }

  function told(entry) {
    const source = [...entry.text];
    const looks = entry.looks[now.layer][now.at] ?? [];
    const most = looks
      .map((look, k) => [look, k])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3)
      .filter(([look]) => look > 4)
      .map(([look, k]) => `${spoken(source[k])} (${look} %)`);
    const right =
      entry.iso === null
        ? "This text has two readings."
        : entry.iso === entry.beams[0][0]
          ? "That is right."
          : `Right would be ${entry.iso}.`;
    const where =
      `${entry.text} → ${entry.beams[0][0]}. ${right} ` +
      `To write “${spoken(letters()[now.at])}” it looks at ${most.join(", ") || "everything a little"}.`;
    if (brief) return where;
    return (
      `${where} ` +
      `The best beam has probability ${entry.beams[0][1].toFixed(3)}, ` +
      `the second, ${entry.beams[1][0] || "the empty text"}, ${entry.beams[1][1].toFixed(3)}.`
    );
  }

  function draw() {
    const entry = entries[now.entry];
    const looks = entry.looks[now.layer][now.at] ?? [];
    part("source").replaceChildren(
      ...[...entry.text].map((letter, k) => {
        const [x, y] = [left + cell * (k % wide), 30 + 48 * Math.floor(k / wide)];
        return box(x, y, letter, looks[k] / 100, looks[k] || "");
      }),
    );
    part("written").replaceChildren(
      ...letters().map((letter, k) => {
        const group = box(left + cell * k, 196, letter, k === now.at ? 1 : 0, "", k === now.at);
        group.classList.add("translator-cell");
        group.addEventListener("click", () => position.set(k));
        return group;
      }),
    );
    const text = told(entry);
    svg.setAttribute("aria-label", text);
    say(text);
    if (brief) return;
    const beams = [];
    const from = branches(entry.beams.map(([iso]) => iso));
    entry.beams.forEach(([iso, chance, steps], row) => {
      const y = 276 + 50 * row;
      const { start, parent } = from[row];
      steps.forEach((p, k) => {
        if (k < start) return;
        beams.push(box(left + cell * k, y, iso[k] ?? "⏎", p / 100, p));
      });
      beams.push(element("text", { x: left + cell * 11 + 10, y: y + 20 }, chance.toFixed(3)));
      if (row) {
        const d = `M${left + cell * start - 1} ${276 + 50 * parent + 32}V${y + 15}h1`;
        beams.unshift(element("path", { d, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }));
      }
    });
    part("beams").replaceChildren(...beams);
  }

  draw();
}

/** A labelled list to choose from. */
function choose(label, options, value, change) {
  const row = document.createElement("label");
  const name = document.createElement("span");
  const list = document.createElement("select");
  name.textContent = label;
  options.forEach((option, i) => list.add(new Option(option, i)));
  list.value = value;
  list.addEventListener("change", () => change(Number(list.value)));
  row.append(name, list);
  return row;
}
