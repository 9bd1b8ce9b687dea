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

/** Add a labelled line to type in; `change(text)` hears what stands in it once the reader pauses. */
export function field(controls, { label, value, most, change }) {
  const row = document.createElement("label");
  const name = document.createElement("span");
  const input = document.createElement("input");
  name.textContent = label;
  Object.assign(input, { type: "text", value, maxLength: most, autocomplete: "off", spellcheck: false });
  let waiting;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change(input.value), 150);
  });
  row.append(name, input);
  controls.append(row);
  return { set: (next) => (input.value = next) };
}

/** Add boxes to tick under a name; `change(chosen)` hears the set of those that are ticked. */
export function boxes(controls, { label, options, chosen, change }) {
  const group = document.createElement("fieldset");
  const legend = document.createElement("legend");
  legend.textContent = label;
  group.append(legend);
  for (const [key, name] of Object.entries(options)) {
    const row = document.createElement("label");
    const input = document.createElement("input");
    Object.assign(input, { type: "checkbox", checked: chosen.has(key) });
    input.addEventListener("change", () => {
      chosen[input.checked ? "add" : "delete"](key);
      change(chosen);
    });
    row.append(input, name);
    group.append(row);
  }
  controls.append(group);
}

/**
 * What the address says of an explorable: `state` has, for each name, what is the case at first, and
 * `most` how large a number may be. Returns what keeps the state in the address, so that it can be
 * linked to.
 */
export function addressed(state, most) {
  const first = { ...state };
  const asked = new URLSearchParams(location.search);
  const given = Object.keys(state).filter((name) => asked.has(name));
  for (const name of given) {
    const value = typeof state[name] === "number" ? Number(asked.get(name)) : asked.get(name);
    if (!(name in most) || (Number.isInteger(value) && value >= 0 && value <= most[name])) state[name] = value;
  }
  let waiting;
  const keep = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const address = new URL(location);
      for (const [name, value] of Object.entries(state)) {
        if (value === first[name]) address.searchParams.delete(name);
        else address.searchParams.set(name, value);
      }
      history.replaceState(history.state, "", address);
    }, 400);
  };
  return { given: given.length > 0, keep };
}

/** What loads a figure's model once: the engine, with the model's parameters and notes. */
export function model({ figure, data }) {
  let loading;
  const load = async () => {
    const [engine, answer] = await Promise.all([import("./transformer.js"), fetch(data.model)]);
    if (!answer.ok) throw new Error(`${answer.status} ${answer.url}`);
    return { engine, ...engine.unpacked(await answer.arrayBuffer()) };
  };
  const once = () =>
    (loading ??= load().catch((error) => {
      loading = undefined; // to be tried again
      throw error;
    }));
  for (const touch of ["pointerdown", "focusin"]) {
    figure.addEventListener(touch, () => once().catch(() => {}), { once: true });
  }
  return once;
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
