// What explorables are made of: scales, labelled sliders, a line of text that is read aloud.
// Apart from core.js, which a page loads under a versioned address and which must run once only.

/** Map data to pixels as `Frame.point` in attention_by_hand/plots.py does. */
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
  const hear = () => {
    row.dataset.value = say(Number(input.value)); // a style may show it
    input.setAttribute("aria-valuetext", row.dataset.value);
  };
  input.addEventListener("input", () => {
    hear();
    change(Number(input.value));
  });
  hear();
  row.append(name, input);
  controls.append(row);
  return {
    /** Whether the reader may move it now. */
    enable: (yes) => (input.disabled = !yes),
    /** Let the slider end at another value; one that is beyond it moves there. */
    end(last) {
      input.max = last;
      hear();
    },
    /** Move it without a word to `change`. */
    put(next) {
      input.value = next;
      hear();
    },
    set(next) {
      this.put(next);
      change(Number(input.value));
    },
  };
}

/** Add a labelled list to choose from; `change(index)` hears which of the `options` it is. */
export function chooser(controls, { label, options, value = 0, change }) {
  const row = document.createElement("label");
  const name = document.createElement("span");
  const list = document.createElement("select");
  name.textContent = label;
  options.forEach((option, i) => list.add(new Option(option, i)));
  list.value = value;
  list.addEventListener("change", () => change(Number(list.value)));
  row.append(name, list);
  controls.append(row);
  return { set: (next) => (list.value = next) };
}

/** Show what `picture(state)` makes of the state, its `svg` and its `text`; returns what changes it. */
export function live({ part, controls }, picture, state) {
  const say = announcer(controls);
  const show = (changes) => {
    Object.assign(state, changes);
    const { svg, text } = picture(state);
    part("picture").innerHTML = svg;
    say(text);
  };
  show({});
  return show;
}

/** An SVG element that is as wide as a phone at first, and says what it shows. */
export function drawing(width, height, text, body) {
  return (
    `<svg class="live" viewBox="0 0 ${width} ${height}" role="img" aria-label="${text}" ` +
    `fill="currentColor" style="width:100%;max-width:27rem">${body}</svg>`
  );
}

/** A text in a drawing; `more` are further attributes. */
export const words = (x, y, text, more = "") => `<text x="${x}" y="${y}" ${more}>${text}</text>`;

/** A number as it is written, with a true minus and no minus before a zero. */
export function written(number, digits = 2) {
  const text = number.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
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
