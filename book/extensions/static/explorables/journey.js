// The introduction: one word's vector on its way through an encoder. All numbers were written down
// by benchmarks/one_token.py; here they are only drawn.

import { announcer, slider } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";

function add(parent, name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  parent.append(element);
}

/** The word list with which a text is chosen. */
function chooser(controls, texts, change) {
  const row = document.createElement("label");
  const name = document.createElement("span");
  const list = document.createElement("select");
  name.textContent = "sentence";
  for (const text of texts) list.add(new Option(text.replace(/ \.$/, "."), text));
  list.addEventListener("change", () => change(list.value));
  row.append(name, list);
  controls.append(row);
}

export function start({ figure, data, part, controls }) {
  const { steps, texts, frame } = data;
  const svg = figure.querySelector("svg");
  const now = { step: data.start, text: Object.keys(texts)[0] };
  const say = announcer(controls);

  function draw() {
    const { name, chapters } = steps[now.step];
    const { does, labels, said, bars } = texts[now.text][now.step];
    part("mark").setAttribute("y", frame.floor - frame.row * now.step - 12);
    const panel = part("bars");
    panel.replaceChildren();
    const room = (frame.right - frame.left) / bars.length;
    bars.forEach((bar, i) => {
      const x = frame.left + (i + 0.5) * room;
      const height = Math.abs(bar) * frame.tallest;
      const y = bar > 0 ? frame.middle - height : frame.middle;
      const fill = bar > 0 ? "#0072B2" : "#D55E00";
      add(panel, "rect", { x: x - 12, y, width: 24, height, fill });
      const number = bar >= 0 ? y - 6 : frame.middle + height + 17;
      const word = (bar >= 0 ? frame.middle : number) + 19; // close under its bar
      add(panel, "text", { x, y: number }, said[i]);
      add(panel, "text", { x, y: word, "font-style": "italic" }, labels[i]);
    });
    const numbers = said.map((number, i) => (labels[i] ? `${labels[i]} ${number}` : number));
    const text = `Step ${now.step + 1} of ${steps.length}, ${name} (${chapters}). ${does} ${numbers.join(", ")}.`;
    say(text);
    svg.setAttribute("aria-label", `A tower of ${steps.length} steps. ${text}`);
  }

  chooser(controls, Object.keys(texts), (text) => {
    now.text = text;
    draw();
  });
  slider(controls, {
    label: "step",
    min: 0,
    max: steps.length - 1,
    step: 1,
    value: now.step,
    say: (index) => `${index + 1}: ${steps[index].name}`,
    change: (index) => {
      now.step = index;
      draw();
    },
  });
  draw();
}
