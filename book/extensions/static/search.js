// The search page: lists the passages that Pagefind's index (made by search.py) finds.

const SHOWN = 30; // passages
const PAGES = 12; // whose passages are compared
const place = document.getElementById("search-results");

const SMALL = new Set("a an and are as at by do does for from how in is it of on or over the to what when which why with".split(" "));

/** How well a passage fits: rare words count more than frequent ones, a title's more than all. */
export function fit(passage, words) {
  const found = passage.weighted_locations ?? [];
  const hits = new Map(); // several words beat one word several times
  for (const { balanced_score, location } of found) hits.set(location, balanced_score);
  const title = passage.title.toLowerCase();
  const named = words.filter((word) => !SMALL.has(word) && title.includes(word)).length;
  return [...hits.values()].reduce((sum, score) => sum + score, 0) * (1 + named);
}

/** Whether a marked word is one that was typed, or a form of it: Pagefind takes "x" for "xylophone". */
export function meant(excerpt, words) {
  const marked = [...excerpt.matchAll(/<mark>(.*?)<\/mark>/g)].map((found) => found[1].toLowerCase());
  const shared = (a, b) => {
    let k = 0;
    while (k < a.length && a[k] === b[k]) k++;
    return k;
  };
  return marked.some((mark) => words.some((word) => shared(mark, word) >= 0.6 * word.length));
}

function line(passage) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = passage.url;
  link.textContent = passage.title;
  const where = document.createElement("span");
  where.className = "search-where";
  where.textContent = passage.page === passage.title ? "" : ` · ${passage.page}`;
  const excerpt = document.createElement("p");
  excerpt.innerHTML = passage.excerpt; // escaped by Pagefind, but for its own <mark>
  item.append(link, where, excerpt);
  return item;
}

async function show(query) {
  const pagefind = await import("../pagefind/pagefind.js");
  const { results } = await pagefind.search(query);
  const pages = await Promise.all(results.slice(0, PAGES).map((result) => result.data()));
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const passages = pages.flatMap((page) =>
    page.sub_results
      .filter((part) => meant(part.excerpt, words))
      .map((part) => ({ ...part, page: page.meta.title, fit: fit(part, words) })),
  );
  passages.sort((a, b) => b.fit - a.fit);
  const count = document.createElement("p");
  count.className = "search-count";
  count.setAttribute("role", "status");
  const many = passages.length > SHOWN ? `, of which these ${SHOWN} fit best` : "";
  count.textContent = passages.length
    ? `${passages.length} passage${passages.length > 1 ? "s" : ""}${many}.`
    : `Nothing in the book matches “${query}”. Try fewer words.`;
  const list = document.createElement("ol");
  list.append(...passages.slice(0, SHOWN).map(line));
  place.replaceChildren(count, list);
}

const query = new URLSearchParams(location.search).get("q")?.trim();
if (query) {
  for (const input of document.querySelectorAll("form.bd-search input[name=q]")) input.value = query;
  place.textContent = "Searching …";
  show(query).catch((error) => {
    place.textContent = "The search could not be loaded.";
    console.error(error);
  });
}
