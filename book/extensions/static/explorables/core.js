// Brings a page's explorables to life: <figure data-explorable="name"> holds a still SVG and its
// data as JSON; explorables/name.js exports start(), which adds controls and moves the SVG.
// Nothing moves by itself, so there is nothing to switch off for prefers-reduced-motion.

const STYLE = `
.explorable [data-part=controls] { display: grid; gap: .4rem; max-width: 40rem; margin: .5rem auto; }
.explorable label { display: grid; grid-template-columns: 9rem 1fr; align-items: center; gap: .6rem; }
.explorable input[type=range] { width: 100%; min-height: 2rem; accent-color: #0072B2; }
.explorable output { display: block; min-height: 3em; font-variant-numeric: tabular-nums; }
.explorable svg { max-width: 100%; height: auto; display: block; margin: 0 auto; }
`;

/** Map data to pixels as `Frame.point` in autograder/plots.py does. */
export function scale(frame) {
  const along = (value, [low, high]) => (value - low) / (high - low);
  return {
    x: (value) => frame.left + along(value, frame.x) * (frame.right - frame.left),
    y: (value) => frame.bottom - along(value, frame.y) * (frame.bottom - frame.top),
    invertX: (pixel) =>
      frame.x[0] + ((pixel - frame.left) / (frame.right - frame.left)) * (frame.x[1] - frame.x[0]),
  };
}

/** Add a labelled range input; `say(value)` is what a screen reader hears for a position. */
export function slider(controls, { label, min, max, step, value, say, change }) {
  const row = document.createElement("label");
  const name = document.createElement("span");
  const input = document.createElement("input");
  name.textContent = label;
  Object.assign(input, { type: "range", min, max, step });
  input.value = value;
  const hear = () => input.setAttribute("aria-valuetext", say(Number(input.value)));
  input.addEventListener("input", () => {
    hear();
    change(Number(input.value));
  });
  hear();
  row.append(name, input);
  controls.append(row);
  return {
    set(next) {
      input.value = next;
      hear();
      change(Number(input.value));
    },
  };
}

/** Add a line of text under the sliders that is read aloud once the reader pauses. */
export function announcer(controls) {
  const visible = document.createElement("output");
  visible.setAttribute("aria-live", "off");
  const heard = document.createElement("span");
  heard.setAttribute("aria-live", "polite");
  heard.style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)";
  controls.append(visible, heard);
  let waiting;
  return (text) => {
    visible.textContent = text;
    clearTimeout(waiting);
    waiting = setTimeout(() => (heard.textContent = text), 400);
  };
}

async function begin(figure) {
  const name = figure.dataset.explorable;
  if (!/^[a-z_]+$/.test(name)) throw new Error(`no explorable is called ${name}`);
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const part = (key) => figure.querySelector(`[data-part="${key}"]`);
  const { start } = await import(`./${name}.js`);
  start({ figure, data, part, controls: part("controls") });
  figure.dataset.ready = "true";
}

const figures = document.querySelectorAll("figure[data-explorable]");
if (figures.length) {
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.head.append(style);
  for (const figure of figures) {
    begin(figure).catch((error) => {
      figure.dataset.ready = "failed"; // the still picture stays
      console.error(error);
    });
  }
}
