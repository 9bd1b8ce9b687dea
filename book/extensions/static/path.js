// The essential path or everything: the reader's choice, at the head of a chapter or by a link with
// `?path=short`, kept in the reader's own browser. Without this script, or until somebody chooses,
// everything is there; evidence is folded for everybody.

const KEY = "attention-by-hand-path";
const root = document.documentElement;

function kept() {
  try {
    return localStorage.getItem(KEY) === "short" ? "short" : "whole";
  } catch {
    return "whole";
  }
}

function keep(path) {
  try {
    localStorage.setItem(KEY, path);
  } catch {
    // full, or forbidden: the choice lasts until the page is left
  }
}

const folds = [...document.querySelectorAll("details.fold")];

function show(path) {
  root.dataset.path = path;
  if (path === "short") root.dataset.whole = ""; // so little is left that all of it is laid out
  for (const fold of folds) fold.open = path !== "short";
}

/** Unfold whatever hides the place that an address names. */
function reveal() {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  let hidden = false;
  // a section's heading shows; who goes there wants what is under it
  const own = place.matches("section.off-path") ? place.querySelector("details.fold") : null;
  for (let fold = own ?? place.closest("details"); fold; ) {
    hidden ||= !fold.open;
    fold.open = true;
    fold = fold.parentElement.closest("details");
  }
  if (hidden) place.scrollIntoView();
}

const slot = document.querySelector(".path-slot");
if (slot) {
  const whole = /About (\d+) minutes/.exec(slot.parentElement.textContent)?.[1];
  const choices = [
    ["short", `Essential path, ${slot.dataset.short} min`],
    ["whole", whole ? `Everything, ${whole} min` : "Everything"],
  ];
  const buttons = choices.map(([path, text]) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", textContent: text });
    button.addEventListener("click", () => {
      keep(path);
      choose(path);
    });
    return [path, button];
  });
  const choose = (path) => {
    show(path);
    for (const [own, button] of buttons) button.setAttribute("aria-pressed", own === path);
  };
  slot.setAttribute("role", "group");
  slot.setAttribute("aria-label", "How much of this chapter to show");
  slot.append(...buttons.map(([, button]) => button));
  const asked = new URLSearchParams(location.search).get("path");
  if (choices.some(([path]) => path === asked)) keep(asked);
  choose(asked === "short" ? asked : kept());
  reveal();
  addEventListener("hashchange", reveal);
  // on paper all of the whole is open; what the essential path folds is left out by pages.css
  let shut = [];
  addEventListener("beforeprint", () => {
    if (root.dataset.path === "short") return;
    shut = [...document.querySelectorAll("details.evidence:not([open])")];
    for (const evidence of shut) evidence.open = true;
  });
  addEventListener("afterprint", () => {
    for (const evidence of shut) evidence.open = false;
  });
}
