// Tables that the reader fills in, and outcomes to predict: says what is right, by the rules of
// `judge` in autograder/student/pencil.py. One list of cases tests both. What is filled in is kept in the
// reader's own browser, where that lets pages keep anything.

const YES = ["✓", "✔", "✓ yes", "yes", "y", "true"];
const NO = ["✗", "✘", "✗ no", "no", "n", "false"];
const FRACTIONS = { "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅛": "1/8", "⅜": "3/8" };
const DIGITS = String.raw`[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?`;
const QUOTIENT = new RegExp(String.raw`^(${DIGITS})\s*(?:/\s*(${DIGITS}))?\s*(%?)$`, "i");
const INFINITY = /^([+-]?)\s*(?:∞|inf|infinity|oo)$/i;
const MARKS = { right: "✓", rough: "≈", wrong: "✗", empty: "" };

const plain = (text) => text.replace(/[−–]/g, "-").trim().replace(/\s+/g, " ").toLowerCase();

function number(text) {
  text = plain(text);
  for (const [sign, quotient] of Object.entries(FRACTIONS)) text = text.replaceAll(sign, quotient);
  let match = text.match(INFINITY);
  if (match) return { value: match[1] === "-" ? -Infinity : Infinity, places: null, percent: false };
  match = text.match(QUOTIENT);
  if (!match) return null;
  const [above, below] = [match[1], match[2] ?? "1"].map((part) => Number(part.replace(",", ".")));
  if (below === 0) return null;
  const decimals = match[1].match(/[.,](\d*)/);
  let places = decimals && match[2] === undefined ? decimals[1].length : null;
  const percent = match[3] === "%";
  if (percent) places = 2 + (places ?? 0);
  return { value: above / below / (percent ? 100 : 1), places, percent };
}

function near(wanted, found, slack) {
  if (!Number.isFinite(wanted.value) || !Number.isFinite(found.value)) {
    return wanted.value === found.value ? "right" : "wrong";
  }
  let [off, places] = [Math.abs(found.value - wanted.value), found.places];
  if (wanted.percent && !found.percent) {
    const asPercent = Math.abs(found.value / 100 - wanted.value);
    if (asPercent < off) [off, places] = [asPercent, places && places + 2];
  }
  const tiny = 1e-9 * Math.max(1, Math.abs(wanted.value));
  if (wanted.places === null && found.places === null && !slack) return off <= tiny ? "right" : "wrong";
  const rounds = places !== null && off <= 0.5 * 10 ** -places + tiny;
  const size = Math.abs(wanted.value);
  let fits;
  if (slack) {
    fits = off <= Number(slack) + tiny;
  } else if (wanted.places === null) {
    fits = off <= Math.min(0.01, 0.01 * size) + tiny || (rounds && places >= 2 && off <= 0.05 * size);
  } else {
    const unit = 10 ** -wanted.places;
    fits = off <= Math.max(0.5 * unit, Math.min(unit, 0.02 * size)) + tiny;
  }
  return fits ? "right" : places && rounds ? "rough" : "wrong";
}

function entries(answer, given) {
  const wanted = answer.slice(1, -1).split(",");
  const inner = given.replace(/^[([]|[)\]]$/g, "");
  const ways = [/,/, /;/, /,\s/, /\s+/].map((pattern) => inner.split(pattern));
  const fit = ways.find((way) => way.length === wanted.length);
  if (!fit) return "wrong";
  const verdicts = wanted.map((one, i) => judge(one, fit[i]));
  if (verdicts.includes("wrong") || verdicts.includes("empty")) return "wrong";
  return verdicts.includes("rough") ? "rough" : "right";
}

function against(answer, given) {
  [answer, given] = [plain(answer), plain(given)];
  for (const kind of [YES, NO]) {
    if (kind.includes(answer)) return kind.includes(given) ? "right" : "wrong";
  }
  if (/^[([].*[)\]]$/.test(answer)) return entries(answer, given);
  const [text, slack = ""] = answer.split("±").map((part) => part.trim());
  const wanted = number(text);
  if (wanted === null) return text === given ? "right" : "wrong";
  const found = number(given.split("=").pop().replace(/^[≈~ ]+/, ""));
  return found === null ? "wrong" : near(wanted, found, slack);
}

/** What is given for an answer is right, rough (rounded too far), wrong or empty. */
function judge(answer, given) {
  if (["", "...", "…"].includes(plain(given))) return "empty";
  const found = answer.split(/\s+or\s+/).map((one) => against(one, given));
  return ["right", "rough", "wrong"].find((verdict) => found.includes(verdict));
}

/** What is known of something wrong that is given in a field; empty if nothing is. */
function slip(field) {
  if (!field.dataset.slips || judge(field.dataset.answer, field.value) !== "wrong") return "";
  const known = Object.entries(JSON.parse(field.dataset.slips));
  return known.find(([wrong]) => judge(wrong, field.value) === "right")?.[1] ?? "";
}

const SAID = { right: "right", rough: "rounded too far", wrong: "not right" };

function mark(field) {
  const verdict = judge(field.dataset.answer, field.value);
  field.dataset.label ??= field.getAttribute("aria-label");
  field.setAttribute("aria-label", [field.dataset.label, SAID[verdict]].filter(Boolean).join(": "));
  field.setAttribute("aria-invalid", String(verdict === "wrong" || verdict === "rough"));
  const blank = field.closest(".blank");
  blank.dataset.verdict = verdict;
  blank.querySelector(".verdict").textContent = MARKS[verdict];
  return verdict;
}

// --- what is kept ---

const KEY = "attention-by-hand-entries";
const PAGE = location.pathname.split("/").pop();

/** {page: {box: entries}}; nothing where the browser keeps nothing, or something else. */
function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY));
    return found !== null && typeof found === "object" ? found : {};
  } catch {
    return {};
  }
}

function keep(box, entries) {
  try {
    const all = kept();
    all[PAGE] = { ...all[PAGE], [box.id]: entries };
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // full, or forbidden: entries last until the page is left
  }
}

/** A button that takes back what was entered in a box; there only while something is. */
function clearing(box, clear) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "clear", textContent: "Clear", hidden: true });
  button.title = "What you enter is kept in this browser, and nowhere else.";
  button.addEventListener("click", () => {
    clear();
    keep(box, undefined);
    button.hidden = true;
    box.querySelector("input, select").focus();
  });
  box.querySelector(".told").after(button);
  return button;
}

function table(box) {
  const fields = [...box.querySelectorAll(":scope [data-answer]")];
  const told = box.querySelector(".told");
  const button = clearing(box, () => {
    fields.forEach((field) => (field.value = ""));
    fields.forEach(mark);
    tell();
  });

  function tell() {
    const verdicts = fields.map((field) => field.closest(".blank").dataset.verdict ?? "empty");
    const count = (kind) => verdicts.filter((verdict) => verdict === kind).length;
    const parts = [`${count("right")} of ${fields.length} right`];
    if (count("wrong")) parts.push(`${count("wrong")} not (✗)`);
    if (count("rough")) parts.push(`${count("rough")} rounded too far (≈)`);
    const none = count("empty") === fields.length;
    const slips = [...new Set(fields.map(slip).filter(Boolean))];
    told.textContent = none ? "" : [`${parts.join(", ")}.`, ...slips].join(" ");
    button.hidden = none;
  }

  function changed(field) {
    mark(field);
    tell();
    keep(box, fields.map(({ value }) => value));
  }

  fields.forEach((field, i) => {
    field.addEventListener("change", () => changed(field));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || field.tagName === "SELECT") return;
      changed(field);
      fields[i + 1]?.focus();
    });
  });
  const before = kept()[PAGE]?.[box.id];
  if (Array.isArray(before) && before.length === fields.length) {
    fields.forEach((field, i) => (field.value = before[i]));
  }
  // and what the browser itself has kept over a reload
  addEventListener("pageshow", () => {
    fields.filter((field) => field.value).forEach(mark);
    tell();
  });
}

function choices(box) {
  const buttons = [...box.querySelectorAll("input[type=radio]")];
  const told = box.querySelector(".told");
  const clear = clearing(box, () => {
    buttons.forEach((button) => (button.checked = false));
    tell();
  });

  function tell() {
    const chosen = buttons.find((button) => button.checked);
    const right = chosen && "right" in chosen.dataset;
    for (const button of buttons) {
      const verdict = button === chosen ? (right ? "right" : "wrong") : "empty";
      const label = button.closest("label");
      label.dataset.verdict = verdict;
      label.querySelector(".verdict").textContent = MARKS[verdict] && ` ${MARKS[verdict]}`;
    }
    const said = right ? "✓ That is what comes out." : "✗ Something else comes out.";
    told.textContent = chosen ? said : "";
    clear.hidden = !chosen;
  }

  buttons.forEach((button, i) => {
    button.addEventListener("change", () => {
      tell();
      keep(box, i);
    });
  });
  const before = buttons[kept()[PAGE]?.[box.id]];
  if (before) before.checked = true;
  addEventListener("pageshow", tell);
}

for (const box of document.querySelectorAll(".reader")) {
  if (box.querySelector("[data-answer]")) table(box);
  if (box.querySelector("input[type=radio]")) choices(box);
}

// A phone's number pad has no minus and no fraction bar: a row of keys has them.
function signs() {
  const keys = document.createElement("div");
  keys.className = "pencil-keys";
  keys.setAttribute("role", "group");
  keys.setAttribute("aria-label", "Signs");
  keys.hidden = true;
  let field;
  let changed = false; // by a key: the browser then reports no change of its own
  for (const sign of ["−", "/", "%", "∞"]) {
    const key = Object.assign(document.createElement("button"), { type: "button", textContent: sign });
    key.tabIndex = -1;
    key.addEventListener("click", () => {
      field.setRangeText(sign, field.selectionStart, field.selectionEnd, "end");
      field.dispatchEvent(new Event("input", { bubbles: true }));
      changed = true;
    });
    keys.append(key);
  }
  keys.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  document.body.append(keys);
  document.addEventListener("focusin", (event) => {
    if (!event.target.matches?.(".blank input[inputmode]")) return;
    field = event.target;
    changed = false;
    keys.hidden = false;
    const at = field.getBoundingClientRect();
    const left = Math.min(at.left, document.documentElement.clientWidth - keys.offsetWidth - 8);
    keys.style.left = `${Math.max(8, left) + scrollX}px`;
    keys.style.top = `${at.bottom + 6 + scrollY}px`;
  });
  document.addEventListener("focusout", () => {
    keys.hidden = true;
    if (changed) field.dispatchEvent(new Event("change", { bubbles: true }));
    changed = false;
  });
}

if (document.querySelector(".blank input[inputmode]") && matchMedia("(pointer: coarse)").matches) signs();

// on paper the answers follow the blanks
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details.answers:not([open])")];
  closed.forEach((fold) => (fold.open = true));
});
addEventListener("afterprint", () => closed.forEach((fold) => (fold.open = false)));
