// What a reader has done, kept in the reader's own browser: boxes to tick for the exercises and
// sections of a chapter, the sums in the sidebar, bars in the front page's table of the chapters.
// Without this script, or where a browser keeps nothing, none of it is there.

const KEY = "attention-by-hand-progress";

/** {chapter: {done: [anchors], total}}; null where the browser does not let pages keep anything. */
function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return kept !== null && typeof kept === "object" ? kept : {};
  } catch (error) {
    return error instanceof SyntaxError ? {} : null;
  }
}

function save(kept) {
  try {
    localStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    // full, or forbidden: what is ticked lasts until the page is left
  }
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const nameOf = (path) => path.split("/").pop().replace(/\.html$/, "");
const words = (node) => {
  const copy = node.cloneNode(true);
  copy.querySelectorAll(".headerlink, .section-number").forEach((part) => part.remove());
  return copy.textContent.trim();
};

/** The things to do on a chapter's page, in order: sections, with their exercises inside. */
function things(article) {
  const found = [];
  for (const place of article.querySelectorAll("section > h2, .exercise-head[id]")) {
    if (place.matches("h2")) {
      found.push({ id: place.parentElement.id, title: words(place), exercise: false });
    } else {
      const title = place.querySelector("strong").textContent;
      found.push({ id: place.id, title, exercise: true, head: place });
    }
  }
  return found;
}

/** Boxes for a chapter: in the list under its title, and at the head of each exercise. */
function chapter(slot, kept, name, redraw) {
  const all = things(slot.closest("article"));
  const ids = new Set(all.map((thing) => thing.id));
  const done = () => new Set((load() ?? kept)[name]?.done.filter((id) => ids.has(id)) ?? []);
  const boxes = [];

  function tick(id, value) {
    const now = load() ?? kept;
    const ticked = done();
    ticked[value ? "add" : "delete"](id);
    now[name] = { done: [...ticked], total: all.length };
    kept[name] = now[name];
    save(now);
    redraw();
  }

  function box(thing) {
    const input = element("input", { type: "checkbox" });
    input.addEventListener("change", () => tick(thing.id, input.checked));
    boxes.push([thing.id, input]);
    return input;
  }

  const sum = element("span");
  const list = element("ul");
  for (const thing of all) {
    const what = element("a", { href: `#${thing.id}` }, thing.title);
    const input = box(thing);
    input.setAttribute("aria-label", `${thing.title}: done`);
    list.append(element("li", { className: thing.exercise ? "of-section" : "" }, input, " ", what));
    if (thing.head) {
      const hidden = element("span", { className: "visually-hidden" }, `: ${thing.title}`);
      const label = element("label", { className: "exercise-done" }, box(thing), " done", hidden);
      thing.head.querySelector("p").append(label);
    }
  }
  const note = element("p", {}, "Kept in this browser, and nowhere else.");
  slot.append(
    element("details", { className: "progress-list" }, element("summary", {}, sum), list, note),
  );

  return () => {
    const ticked = done();
    for (const [id, input] of boxes) input.checked = ticked.has(id);
    sum.textContent = `Your progress: ${ticked.size} of ${all.length} done`;
  };
}

/** Bars in the front page's table of the chapters. */
function front(cells, kept) {
  const rows = cells.map((cell) => {
    const { chapter: name, total } = cell.dataset;
    const title = cell.parentElement.querySelector("a").textContent;
    const bar = element("progress", { max: Number(total), value: 0 });
    const sum = element("span", { className: "progress-sum" });
    bar.setAttribute("aria-label", `${title}: done`);
    cell.append(bar, sum);
    return { name, total: Number(total), bar, sum };
  });
  return () => {
    const now = load() ?? kept;
    for (const { name, total, bar, sum } of rows) {
      const count = Math.min(total, now[name]?.done.length ?? 0);
      bar.value = count;
      sum.textContent = `${count} of ${total}`;
    }
  };
}

/** Sums beside the chapters in the sidebar, for those that have been begun. */
function sidebar(kept) {
  const links = [...document.querySelectorAll(".bd-sidebar-primary .bd-links a.reference")];
  return () => {
    const now = load() ?? kept;
    for (const link of links) {
      const { done = [], total = 0 } = now[nameOf(new URL(link.href).pathname)] ?? {};
      let sum = link.querySelector(".progress-sum");
      if (!done.length || !total) {
        sum?.remove();
      } else {
        sum ??= link.appendChild(element("span", { className: "progress-sum" }));
        sum.textContent = ` ${done.length}/${total}`;
        sum.title = `${done.length} of ${total} sections and exercises done`;
      }
    }
  };
}

const kept = load();
if (kept !== null) {
  const draws = [sidebar(kept)];
  const redraw = () => draws.forEach((draw) => draw());
  const slot = document.querySelector(".progress-slot");
  if (slot) {
    draws.push(chapter(slot, kept, nameOf(location.pathname), redraw));
  }
  const cells = [...document.querySelectorAll("td.chapter-done")];
  if (cells.length) draws.push(front(cells, kept));
  redraw();
  window.addEventListener("storage", redraw); // ticked in another tab
  window.addEventListener("pageshow", redraw); // or on a page from which the reader comes back
}
