// Tables that the reader fills in, and outcomes to predict: says what is right, by the rules of
// `judge` in autograder/student/pencil.py. One list of cases tests both. Nothing is kept.

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

function table(box) {
  const fields = [...box.querySelectorAll(":scope [data-answer]")];
  const told = box.querySelector(".told");

  function tell() {
    const verdicts = fields.map((field) => field.closest(".blank").dataset.verdict ?? "empty");
    const count = (kind) => verdicts.filter((verdict) => verdict === kind).length;
    const parts = [`${count("right")} of ${fields.length} right`];
    if (count("wrong")) parts.push(`${count("wrong")} not (✗)`);
    if (count("rough")) parts.push(`${count("rough")} rounded too far (≈)`);
    told.textContent = count("empty") === fields.length ? "" : `${parts.join(", ")}.`;
  }

  fields.forEach((field, i) => {
    field.addEventListener("change", () => {
      mark(field);
      tell();
    });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || field.tagName === "SELECT") return;
      mark(field);
      tell();
      fields[i + 1]?.focus();
    });
  });
  // what the browser has kept over a reload
  addEventListener("pageshow", () => {
    fields.filter((field) => field.value).forEach(mark);
    tell();
  });
}

function choices(box) {
  const buttons = [...box.querySelectorAll("input[type=radio]")];
  const told = box.querySelector(".told");
  for (const button of buttons) {
    button.addEventListener("change", () => {
      const right = "right" in button.dataset;
      for (const other of buttons) {
        const verdict = other === button ? (right ? "right" : "wrong") : "empty";
        const label = other.closest("label");
        label.dataset.verdict = verdict;
        label.querySelector(".verdict").textContent = MARKS[verdict] && ` ${MARKS[verdict]}`;
      }
      told.textContent = right ? "✓ That is what comes out." : "✗ Something else comes out.";
    });
  }
}

for (const box of document.querySelectorAll(".reader")) {
  if (box.querySelector("[data-answer]")) table(box);
  if (box.querySelector("input[type=radio]")) choices(box);
}

// on paper the answers follow the blanks
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details.answers:not([open])")];
  closed.forEach((fold) => (fold.open = true));
});
addEventListener("afterprint", () => closed.forEach((fold) => (fold.open = false)));
