// The introduction: one word's vector on its way through an encoder. All numbers were written down
// by benchmarks/one_token.py; here they are only drawn.

import { announcer, chooser, slider } from "./parts.js";

const SVG = "http://www.w3.org/2000/svg";

function add(parent, name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  parent.append(element);
}

export function start({ figure, data, part, controls }) {
  const { steps, texts, frame } = data;
  const svg = figure.querySelector("svg");
  const now = { step: data.start, text: 0 };
  const say = announcer(controls);

  function draw() {
    const { name, chapters, does, labels = texts[now.text].words } = steps[now.step];
    const said = texts[now.text].said[now.step];
    const values = said.map((number) => Number(number.replace("−", "-")) || 0); // −∞ has no bar
    const largest = Math.max(...values.map(Math.abs));
    part("mark").setAttribute("y", frame.floor - frame.row * now.step - 12);
    const panel = part("bars");
    panel.replaceChildren();
    const room = (frame.right - frame.left) / values.length;
    values.forEach((value, i) => {
      const x = frame.left + (i + 0.5) * room;
      const height = (Math.abs(value) / largest) * frame.tallest;
      const y = value > 0 ? frame.middle - height : frame.middle;
      const fill = value > 0 ? "#0072B2" : "#D55E00";
      add(panel, "rect", { x: x - 12, y, width: 24, height, fill });
      const number = value >= 0 ? y - 6 : frame.middle + height + 17;
      const word = (value >= 0 ? frame.middle : number) + 19; // close under its bar
      add(panel, "text", { x, y: number }, said[i]);
      add(panel, "text", { x, y: word, "font-style": "italic" }, labels[i]);
    });
    const numbers = said.map((number, i) => (labels[i] ? `${labels[i]} ${number}` : number));
    const text = `Step ${now.step + 1} of ${steps.length}, ${name} (${chapters}). ${does} ${numbers.join(", ")}.`;
    say(text);
    svg.setAttribute("aria-label", `A tower of ${steps.length} steps. ${text}`);
  }

  chooser(controls, {
    label: "sentence",
    options: texts.map(({ words }) => words.join(" ").replace(/ \.$/, ".")),
    change: (text) => {
      now.text = text;
      draw();
    },
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
