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
  const hear = () => input.setAttribute("aria-valuetext", say(Number(input.value)));
  input.addEventListener("input", () => {
    hear();
    change(Number(input.value));
  });
  hear();
  row.append(name, input);
  controls.append(row);
  return {
    /** Let the slider end at another value; one that is beyond it moves there. */
    end(last) {
      input.max = last;
      hear();
    },
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
