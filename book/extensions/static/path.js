// The essential path or everything: the reader's choice, at the head of a chapter or by a link with
// `?path=short`, kept in the reader's own browser; `?path=begin` chooses the path if nobody has
// chosen. Without this script, or until somebody chooses, everything is there; evidence is folded for
// everybody. On the path one line (`.path-more`) opens all that is folded before it; code only shows
// with everything.

const KEY = "attention-by-hand-path";
const root = document.documentElement;

function kept(otherwise = "whole") {
  try {
    return localStorage.getItem(KEY) ?? otherwise;
  } catch {
    return otherwise;
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

/** Let each line open and close the folds since the line before it. */
function lines() {
  let own = [];
  for (const part of document.querySelectorAll("details.fold:not(.code), .path-more > button")) {
    if (part.matches("details")) {
      own.push(part);
      continue;
    }
    const [mine, line] = [own, part];
    own = [];
    line.addEventListener("click", () => {
      const opens = line.getAttribute("aria-expanded") !== "true";
      for (const fold of mine) fold.open = opens;
      line.setAttribute("aria-expanded", opens);
      if (opens) (mine[0].closest(".off-path") ?? mine[0]).scrollIntoView();
      else line.scrollIntoView({ block: "center" });
    });
  }
}

/** Grey in the list of contents what is off the path. */
function grey() {
  for (const link of document.querySelectorAll(".toc-entry > a[href^='#']")) {
    const place = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    link.classList.toggle("off", Boolean(place?.closest(".off-path")));
  }
}

/** Unfold whatever hides the place that an address names. */
function reveal() {
  const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  let hidden = false;
  // who goes to a section wants what is under its heading
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
  const times = /About (\d+) minutes to read(?:, (\d+) more)?/.exec(slot.parentElement.textContent);
  const whole = times && Number(times[1]) + Number(times[2] ?? 0); // with a pencil, like the path's
  const choices = [
    ["short", `Essential path, ${slot.dataset.short} min`],
    ["whole", whole ? `Everything<span>, ${whole} min</span>` : "Everything"],
  ];
  const buttons = choices.map(([path, text]) => {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", innerHTML: text });
    button.addEventListener("click", () => {
      keep(path);
      choose(path);
    });
    return [path, button];
  });
  const choose = (path) => {
    show(path);
    for (const [own, button] of buttons) button.setAttribute("aria-pressed", own === path);
    for (const line of document.querySelectorAll(".path-more > button")) {
      line.setAttribute("aria-expanded", "false");
    }
  };
  lines();
  grey();
  slot.setAttribute("role", "group");
  slot.setAttribute("aria-label", "How much of this chapter to show");
  slot.append(...buttons.map(([, button]) => button));
  let asked = new URLSearchParams(location.search).get("path");
  if (asked === "begin") asked = kept("short");
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
