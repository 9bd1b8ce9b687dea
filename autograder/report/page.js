// Chapters as tabs, search and filter, sorting. Without a script the page shows everything, one
// chapter below the other.
(() => {
  const all = (selector, where = document) => [...where.querySelectorAll(selector)];
  document.documentElement.classList.add("live");

  const tabs = all("[role=tab]");
  const show = (tab, focus) => {
    tabs.forEach((other) => {
      other.setAttribute("aria-selected", String(other === tab));
      other.tabIndex = other === tab ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = other !== tab;
    });
    if (focus) tab.focus();
  };
  tabs.forEach((tab, n) => {
    tab.addEventListener("click", () => show(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: n + 1, ArrowLeft: n - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      show(tabs[(to + tabs.length) % tabs.length], true);
    });
  });
  const linked = tabs.find((tab) => "#" + tab.getAttribute("aria-controls") === location.hash);
  if (tabs.length) show(linked || tabs[0]);

  const search = document.getElementById("search");
  const only = document.getElementById("only");
  const found = document.getElementById("found");
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const filter = () => {
    const words = plain(search.value).split(/\s+/).filter(Boolean);
    const seen = new Set();
    const there = new Set();
    all("[data-who]").forEach((element) => {
      const who = plain(element.dataset.who);
      const flags = (element.dataset.flags || "").split(" ");
      const hit = words.every((word) => who.includes(word));
      const kind = !only.value || !("flags" in element.dataset) || flags.includes(only.value);
      element.hidden = !(hit && kind);
      there.add(element.dataset.who);
      if (hit && kind) seen.add(element.dataset.who);
    });
    found.textContent = seen.size + " of " + there.size + " students";
  };
  if (search) {
    search.addEventListener("input", filter);
    only.addEventListener("change", filter);
    filter();
  }

  const key = (cell) => {
    const given = cell.dataset.sort ?? cell.textContent.trim();
    const number = Number(given);
    return given !== "" && !Number.isNaN(number) ? number : given;
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : typeof a === typeof b ? a.localeCompare(b) : typeof a === "number" ? 1 : -1;
  all("table.sortable").forEach((table) => {
    all("thead th", table).forEach((head, n) => {
      const button = head.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => {
          const cell = row.cells[Math.min(n, row.cells.length - 1)];
          return [row.cells.length > n || n === 0 ? key(cell) : "", row];
        });
        rows.sort(([a], [b]) => (down ? compare(b, a) : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      });
    });
  });
})();
