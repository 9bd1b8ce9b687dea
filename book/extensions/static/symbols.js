// Says what stands behind a symbol of a formula, a term of the glossary or a citation: on pointing at
// it, on a tap, and by keyboard. A displayed formula is one stop of the Tab key; the arrow keys go on
// from there to the symbols of the page. Enter follows to the notation or the glossary, Escape closes.
// The cards of symbols and terms are a file that symbols.py makes.

const article = document.querySelector("article");
const marks = [...article.querySelectorAll("[data-symbol]")].filter((mark) => !mark.closest("a"));
const sources = new Map(); // citations, each with its paper's entry on the page
const terms = new Set(article.querySelectorAll('a[href*="glossary.html#term-"]'));
for (const link of article.querySelectorAll('a.reference.internal[href^="#"]')) {
  const source = document.getElementById(decodeURIComponent(link.hash.slice(1)));
  if (!source?.matches(".citation")) continue;
  sources.set(link, source.querySelector("p"));
  link.removeAttribute("title"); // which says the same, for readers without this script
}
const known = new Set([...marks, ...terms, ...sources.keys()]);

const file = new URL("cards.html", import.meta.url);
let loading;

/** The cards of all symbols and terms; loaded once, when the first one is wanted. */
function load() {
  loading ??= fetch(file).then(async (answer) => {
    const cards = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const link of cards.querySelectorAll("a")) link.href = new URL(link.getAttribute("href"), file);
    return cards;
  });
  return loading;
}

/** What there is to say about a place: some nodes. */
async function card(mark) {
  if (sources.has(mark)) return [...sources.get(mark).childNodes].map((node) => node.cloneNode(true));
  const name = mark.dataset.symbol ?? decodeURIComponent(mark.hash.slice(1));
  const found = (await load()).querySelector(`[data-card~="${name}"]`);
  return found ? [document.importNode(found, true)] : [];
}

function begin() {
  const tip = document.createElement("div");
  tip.className = "symbol-tip";
  tip.id = "symbol-tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);

  let asked = null; // the place that is to be explained
  let shown = null; // the one that the tip is about
  let waiting;

  function show(place, content) {
    clearTimeout(waiting);
    hide();
    tip.replaceChildren(...content);
    tip.hidden = false;
    asked = shown = place;
    place.setAttribute("aria-describedby", tip.id);
    place.classList.add("symbol-shown");
    const at = place.getClientRects()[0] ?? place.getBoundingClientRect();
    const line = place.closest(".formula")?.getBoundingClientRect() ?? at;
    const size = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const left = Math.min(wide - size.width - 8, Math.max(8, at.left + at.width / 2 - size.width / 2));
    const below = line.top < size.height + 70; // what is at the top lies under the page's header
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(below ? line.bottom + 6 : line.top - size.height - 6) + scrollY}px`;
  }

  function hide() {
    clearTimeout(waiting);
    asked = null;
    if (!shown) return;
    shown.removeAttribute("aria-describedby");
    shown.classList.remove("symbol-shown");
    shown = null;
    tip.hidden = true;
  }

  const hideSoon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(hide, 250); // time to move the pointer onto the tip
  };

  async function explain(mark) {
    clearTimeout(waiting);
    if (asked === mark) return;
    asked = mark;
    const content = await card(mark);
    if (asked === mark && content.length) show(mark, content);
  }

  // listeners on the article serve all of its places
  const markOf = (event) => {
    const mark = event.target.closest?.("[data-symbol], a");
    return known.has(mark) ? mark : null;
  };
  let touched = false;
  article.addEventListener("pointerdown", (event) => (touched = event.pointerType === "touch"));
  article.addEventListener("pointerover", (event) => {
    const mark = markOf(event);
    if (mark && event.pointerType !== "touch") explain(mark);
  });
  article.addEventListener("focusin", (event) => {
    const mark = markOf(event);
    if (mark && (!mark.href || mark.matches(":focus-visible"))) explain(mark);
  });
  article.addEventListener("click", (event) => {
    const mark = markOf(event);
    // a first tap explains, a second one follows the link
    if (!mark || (mark.href && (!touched || asked === mark))) return;
    if (mark.href) event.preventDefault();
    explain(mark);
  });
  for (const kind of ["pointerout", "focusout"]) {
    article.addEventListener(kind, (event) => {
      if (markOf(event) && event.pointerType !== "touch") hideSoon();
    });
  }
  tip.addEventListener("pointerenter", () => clearTimeout(waiting));
  tip.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hideSoon());
  document.addEventListener("pointerdown", (event) => {
    if (asked && !tip.contains(event.target) && !asked.contains(event.target)) hide();
  });

  // --- the keyboard ---

  const stops = new Set(article.querySelectorAll(".formula"));
  for (const section of article.querySelectorAll("section")) {
    // a section without a displayed formula: its first one in the text is the stop
    if (section.querySelector(".formula, section")) continue;
    const first = marks.find((mark) => section.contains(mark))?.closest(".math");
    if (first) stops.add(first);
  }
  for (const place of article.querySelectorAll(".math[title], .formula[title]")) {
    place.removeAttribute("title"); // the tip says it now
  }
  for (const stop of stops) {
    if (!stop.querySelector("[data-symbol]")) continue;
    stop.setAttribute("tabindex", "0");
    stop.setAttribute("role", "group");
    stop.setAttribute("aria-label", "Formula. Arrow keys explain its symbols.");
    stop.addEventListener("focus", (event) => {
      if (event.target !== stop || !stop.matches(":focus-visible")) return;
      show(stop, [document.createTextNode("← → explain the symbols")]);
    });
    stop.addEventListener("blur", hideSoon);
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const here = document.activeElement;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    let at = marks.indexOf(here);
    if (at < 0 && !stops.has(here)) return;
    if (event.key === "Enter" && at >= 0) {
      card(here).then(([found]) => (location.href = found.querySelector("a").href));
    } else if (step) {
      if (at < 0) {
        const inside = marks.findIndex((mark) => here.contains(mark));
        if (inside < 0) return;
        at = step > 0 ? inside - 1 : inside;
      }
      const next = marks[Math.min(marks.length - 1, Math.max(0, at + step))];
      next.setAttribute("tabindex", "-1");
      next.focus();
      event.preventDefault();
      event.stopPropagation(); // left and right turn the page elsewhere
    }
  }, true);
}

if (known.size) begin();
