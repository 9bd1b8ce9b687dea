// What explorables share in which a model answers: how it is loaded, its drawing, its inputs, the address.

const SVG = "http://www.w3.org/2000/svg";

/** An element of a drawing. */
export function element(name, attributes, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.textContent = text;
  return node;
}

/** Room for controls above the drawing, where what they change is in view. */
export function above(figure) {
  const room = document.createElement("div");
  room.dataset.part = "above";
  figure.querySelector("figcaption").after(room);
  return room;
}

/** Add a labelled line to type in; `change(text)` hears what stands in it once the reader pauses. */
export function field(controls, { label, value, most, change }) {
  const row = document.createElement("label");
  const name = document.createElement("span");
  const input = document.createElement("input");
  const full = document.createElement("small");
  full.setAttribute("role", "status");
  name.textContent = label;
  Object.assign(input, { type: "text", value, maxLength: most, autocomplete: "off", autocapitalize: "off", spellcheck: false });
  let waiting;
  input.addEventListener("input", () => {
    full.textContent = input.value.length < most ? "" : `No more than ${most} characters fit.`;
    clearTimeout(waiting);
    waiting = setTimeout(() => change(input.value), 150);
  });
  row.append(name, input);
  controls.append(row, full);
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
 * linked to, and the figure with it.
 */
export function addressed(figure, state, most) {
  figure.id ||= `explorable-${figure.dataset.explorable}`;
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
      address.hash = figure.id;
      history.replaceState(history.state, "", address);
    }, 400);
  };
  return { given: given.length > 0, keep };
}

/** What loads a figure's model once: the engine, with the model's parameters and notes. */
export function model({ figure, data }) {
  let loading;
  const load = async () => {
    const [engine, answer] = await Promise.all([import("./trained.js"), fetch(data.model)]);
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

/**
 * What answers once the model is there: `answer(loaded, current)` draws, and is left where `current()`
 * says that another call has come; if it returns true, more is to come, and the figure stays busy.
 * Returns `current`, or nothing where the call was not the last, or there is no model.
 */
export function answering({ figure, load, say }) {
  let turn = 0;
  return async (answer) => {
    const mine = ++turn;
    const current = () => mine === turn;
    figure.setAttribute("aria-busy", "true");
    let more = false;
    try {
      const loaded = await load().catch((error) => {
        console.error(error);
        if (current()) say("The model could not be loaded. Try again.");
      });
      if (!loaded || !current()) return undefined;
      more = (await answer(loaded, current)) === true;
      return current() ? current : undefined;
    } finally {
      if (current() && !more) figure.setAttribute("aria-busy", "false");
    }
  };
}
