// Says what a symbol in a formula means: on pointing at it, on a tap, and by keyboard. A displayed
// formula is one stop of the Tab key; the arrow keys go on from there to the symbols of the page.
// Enter opens the notation page, Escape closes. The cards stand in the page, made when it was built.

const cards = document.querySelector("template#symbols")?.content;
const article = document.querySelector("article");
const marks = [...article.querySelectorAll("[data-symbol]")].filter((mark) => !mark.closest("a"));

if (cards && marks.length) begin();

function begin() {
  const tip = document.createElement("div");
  tip.className = "symbol-tip";
  tip.id = "symbol-tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);

  let shown = null; // the symbol, or the formula, that the tip is about
  let waiting;

  function show(place, content) {
    clearTimeout(waiting);
    if (shown === place) return;
    hide();
    tip.replaceChildren(content);
    tip.hidden = false;
    shown = place;
    place.setAttribute("aria-describedby", tip.id);
    place.classList.add("symbol-shown");
    const at = place.getBoundingClientRect();
    const line = (place.closest(".formula") ?? place).getBoundingClientRect();
    const size = tip.getBoundingClientRect();
    const wide = document.documentElement.clientWidth;
    const left = Math.min(wide - size.width - 8, Math.max(8, at.left + at.width / 2 - size.width / 2));
    const below = line.top < size.height + 70; // what is at the top lies under the page's header
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(below ? line.bottom + 6 : line.top - size.height - 6) + scrollY}px`;
  }

  function hide() {
    clearTimeout(waiting);
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
  const card = (mark) =>
    cards.querySelector(`[data-card="${mark.dataset.symbol}"]`).cloneNode(true);
  const explain = (mark) => show(mark, card(mark));

  // listeners on the article serve all of its symbols
  const known = new Set(marks);
  const markOf = (event) => {
    const mark = event.target.closest?.("[data-symbol]");
    return known.has(mark) ? mark : null;
  };
  for (const kind of ["pointerover", "click", "focusin"]) {
    article.addEventListener(kind, (event) => {
      const mark = markOf(event);
      if (mark) explain(mark);
    });
  }
  for (const kind of ["pointerout", "focusout"]) {
    article.addEventListener(kind, (event) => {
      if (markOf(event)) hideSoon();
    });
  }
  tip.addEventListener("pointerenter", () => clearTimeout(waiting));
  tip.addEventListener("pointerleave", hideSoon);
  document.addEventListener("pointerdown", (event) => {
    if (shown && !tip.contains(event.target) && !shown.contains(event.target)) hide();
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
      show(stop, document.createTextNode("← → explain the symbols"));
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
      location.href = card(here).querySelector("a").href;
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
