// The search: ranks the book's passages (made by search.py) in the reader's browser. The search page
// lists them; suggest.js shows the first ones while somebody types.

const SHOWN = 30; // passages
const WORD = /[\p{L}\p{N}_]+/gu;
const FUNCTION_WORDS = new Set(
  `a about all am an and are as at be been between but by can could did difference do does each for from
  had has have how i if in into is it its like me more my need not of on one or our out over should so
  some such than that the their them then there these they this those to versus vs was we were what
  when where which while who why will with without would you your`.split(/\s+/),
);
const ASKING = new Set(["how", "more", "not", "when", "where", "why"]); // as in "Why do more heads help?"
const ASIDE = /^(sources|questions|summary)$/i;
const LISTS = /^(what is often said|mistakes, and what you see)$/i;
const BESIDE = /(about|bibliography|declaring_exercises|running_a_course|what_runs|where_things_are)\.html$/;

const stemmed = new Map();

/** The part of a word that its forms share; British and American spelling are one. */
function stem(word) {
  if (!stemmed.has(word)) stemmed.set(word, shortened(word));
  return stemmed.get(word);
}

function shortened(word) {
  if (word.length < 4 || /[\d_]/.test(word)) return word;
  let part = word.replace(/(?<=\w{3})ies$/, "y").replace(/(?<=x|z|ch|sh|ss)es$/, "");
  part = part.replace(/(?<![sui])s$/, "").replace(/our(?=s?$|al|ed)/, "or");
  part = part.replace(/(?<=\w{4})al$/, "").replace(/(?<=\w{4})ly$/, "");
  part = part.replace(/(?<=\w{4})(is|iz)(ation|e|ed|ing|er)$/, "");
  const bare = part.replace(/(?<=\w{3})(ations?|ated?|ating|ators?|ions?|ing|ed)$/, "");
  if (/[aeiouy]/.test(bare)) part = bare.replace(/([bdgmnprt])\1$/, "$1");
  return part.replace(/(?<=\w{3})e$/, "");
}

/** The words of a text, each with the forms by which it can be found. */
function words(text) {
  const found = [];
  for (const match of text.replaceAll("√", " sqrt ").normalize("NFKC").toLowerCase().matchAll(WORD)) {
    const word = match[0];
    const forms = [stem(word)];
    if (word.includes("_")) {
      forms.push(word.replaceAll("_", ""));
      forms.push(...word.split("_").filter((part) => part.length > 2).map(stem));
    }
    found.push({ word, forms });
  }
  return found;
}

const lower = (part) => stem(part.toLowerCase());
/** Names of functions and classes, word by word: MultiHead as Multi_Head. */
const identifiers = (text) => text.replace(/(?<=[a-z])(?=[A-Z])/g, "_").split(" ").filter(Boolean);
const stems = (text) => words(text).map(({ forms }) => forms[0]);
const wanted = (text) => {
  const all = words(text);
  const said = all.filter(({ word }) => !FUNCTION_WORDS.has(word));
  return (said.length ? said : all).map(({ forms }) => forms[0]);
};

// --- the index ----------------------------------------------------------------------------------

function indexed(pages) {
  const passages = pages.flatMap((page) =>
    page.passages.map((passage) => ({ ...passage, page, url: `${page.url}#${passage.at[0]}` })),
  );
  const found = new Map(); // form → [passage → places in its text]
  const groups = []; // the glossary's entries: names that mean the same
  let length = 0;
  passages.forEach((passage, number) => {
    const add = (form, place) => {
      if (!found.has(form)) found.set(form, new Map());
      const here = found.get(form);
      if (!here.has(number)) here.set(number, []);
      if (place !== null) here.get(number).push(place);
    };
    const text = words(passage.text);
    text.forEach(({ forms }, place) => forms.forEach((form) => add(form, place)));
    passage.defined = identifiers(passage.defines).map((name) => name.split("_").map(lower));
    identifiers(passage.code).forEach((name, k) => {
      // far behind the text, so that no phrase reaches from the one into the other
      name.split("_").forEach((part, j) => add(lower(part), 1e6 + 100 * k + j));
      add(name.replaceAll("_", "").toLowerCase(), null);
      add(name.toLowerCase(), null);
    });
    passage.titles = passage.names.map((name) => words(name));
    passage.titles.flat().forEach(({ forms }) => forms.forEach((form) => add(form, null)));
    passage.titled = new Set(passage.titles.flat().flatMap(({ forms }) => forms));
    passage.paged = new Set(stems(passage.page.title));
    passage.said = passage.names.map((name) => wanted(name).join(" "));
    passage.length = text.length;
    length += text.length;
    if (passage.kind === "term") {
      const names = passage.names.map((name) => stems(name));
      groups.push({ at: passage.at, names, number });
    }
  });
  const group = new Map(groups.flatMap((one) => one.at.map((anchor) => [anchor, one])));
  for (const passage of passages) passage.groups = new Set(passage.terms.map((at) => group.get(at)));
  return { passages, found, groups, mean: length / passages.length };
}

let loading;
const root = new URL("../", import.meta.url);

/** The index; loaded once. */
export function load() {
  loading ??= fetch(new URL("_static/passages.json", root)).then(async (answer) => {
    if (!answer.ok) throw new Error(`passages.json: ${answer.status}`);
    return indexed(await answer.json());
  });
  return loading;
}

// --- ranking ------------------------------------------------------------------------------------

/** Where some words stand one after the other: passage → how often. */
function places({ found }, phrase) {
  const [first, ...rest] = phrase.map((form) => found.get(form));
  const counts = new Map();
  for (const [number, starts] of first ?? []) {
    const others = rest.map((one) => one?.get(number));
    if (others.some((one) => one === undefined)) continue;
    const sets = others.map((one) => new Set(one));
    const count = starts.filter((at) => sets.every((set, k) => set.has(at + k + 1))).length;
    // "the gradient vanishes" says about as much as "a vanishing gradient"
    const close = (at) => sets.every((set) => [...Array(11).keys()].some((k) => set.has(at + k - 5)));
    const loose = count ? 0 : 0.4 * starts.filter(close).length;
    if (count || loose || !rest.length) counts.set(number, count + loose);
  }
  return counts;
}

const contains = (list, part) =>
  list.some((_, start) => part.every((word, k) => list[start + k] === word));

/** What a query asks for: words, each with what means the same; names of the glossary as a whole. */
function units(index, query, typing) {
  const known = (word) => index.found.has(word) || !word.includes("_");
  const asked = wanted(query).flatMap((word) => (known(word) ? [word] : word.split("_").map(stem)));
  const all = stems(query);
  let list = asked.map((word) => ({ ways: [[word]], group: null, weight: 1 }));
  if (typing && asked.length) {
    const last = words(query).at(-1)?.word ?? "";
    const begun = [...index.found].filter(([form]) => form.startsWith(last) && form !== asked.at(-1));
    begun.sort((a, b) => b[1].size - a[1].size);
    list.at(-1).ways.push(...begun.slice(0, 12).map(([form]) => [form]));
  }
  // a name that has been begun counts as a name
  const begun = (own) => typing && query.length > 2 && own.join(" ").startsWith(all.join(" "));
  const said = (own) => contains(all, own) || begun(own);
  const named = index.groups.filter((one) => one.names.some(said));
  for (const one of named) {
    const name = one.names.filter(said).sort((a, b) => b.length - a.length)[0];
    // "mask" in "causal mask" is no query of its own
    const within = (own) => own.length > name.length && contains(all, own) && contains(own, name);
    if (named.some((other) => other !== one && other.names.some(within))) continue;
    // besides the name, the words of its first form count a little, whichever form was typed
    list = list.filter((unit) => !name.includes(unit.ways[0][0]));
    if (one.names[0].length > 1) {
      list.push(...one.names[0].map((word) => ({ ways: [[word]], group: null, weight: 0.3 })));
    }
    list.push({ ways: one.names, group: one, weight: 1.2 });
  }
  return { list, asked };
}

/** The passages that fit a query, best first; `typing` takes the last word for a beginning. */
export async function search(query, typing = false) {
  const index = await load();
  const { passages, mean } = index;
  const { list, asked } = units(index, query, typing);
  const scores = new Map();
  let most = 0;
  for (const unit of list) {
    const counts = new Map();
    for (const way of unit.ways) {
      for (const [number, count] of places(index, way)) {
        counts.set(number, (counts.get(number) ?? 0) + count);
      }
      if (way.length > 1) {
        passages.forEach(({ titles }, number) => {
          if (titles.some((name) => contains(name.map(({ forms }) => forms[0]), way))) {
            counts.set(number, counts.get(number) ?? 0);
          }
        });
      }
    }
    const rare = Math.log(1 + (passages.length - counts.size + 0.5) / (counts.size + 0.5));
    most += rare * unit.weight;
    for (const [number, count] of counts) {
      const passage = passages[number];
      const long = 0.4 + (0.6 * passage.length) / mean;
      const inTitle = unit.ways.some((way) => way.every((form) => passage.titled.has(form)));
      let fit = (2.2 * count) / (count + 1.2 * long);
      for (const name of passage.defined) {
        // CausalMask for a causal mask, FeedForward for a feed-forward layer: here it is written
        const ways = unit.ways.filter((way) => way.length > 1);
        if (name.length > 1 && ways.some((way) => contains(way, name))) fit += 3;
        else if (ways.some((way) => contains(name, way))) fit += 1.5;
      }
      if (inTitle) fit += 1.2 + 1.6 / Math.max(1, passage.titles[0].length / 3);
      if (unit.ways.some((way) => way.every((form) => passage.paged.has(form)))) fit += 0.3;
      if (unit.group && passage.groups.has(unit.group)) fit += 1.2;
      if (unit.group && unit.group.number === number) fit += 2;
      const so = scores.get(number) ?? { sum: 0, met: 0 };
      so.sum += rare * unit.weight * fit;
      so.met += rare * unit.weight;
      scores.set(number, so);
    }
  }
  const rest = asked.filter((word) => list.some((unit) => unit.ways[0][0] === word && unit.weight === 1));
  const near = rest.slice(1).map((word, k) => places(index, [rest[k], word]));
  const typed = query.trim().toLowerCase();
  const whole = asked.join(" ");
  const asking = new Set(stems(query).filter((word) => ASKING.has(word)));
  const ranked = [...scores].map(([number, { sum, met }]) => {
    const passage = passages[number];
    const names = passage.names.map((name) => name.toLowerCase());
    let score = sum * (met / most) ** 1.5;
    score *= 1 + 0.15 * near.filter((counts) => counts.get(number)).length;
    if (passage.defined.some((name) => name.join(" ") === whole)) score *= 1.5;
    const alike = [...asking].filter((word) => passage.titled.has(word)).length;
    if (alike && asked.some((word) => passage.titled.has(word))) score *= 1 + 0.25 * alike;
    if (names.includes(typed)) score += 500;
    if (passage.said.includes(whole)) score = score * 1.5 + (passage.kind === "term" ? 1000 : 5);
    if (passage.kind === "section" && ASIDE.test(passage.names[0])) score *= 0.5;
    if (LISTS.test(passage.names[0])) score *= 0.85;
    if (passage.kind === "symbol") score *= 0.6;
    if (typing && names.some((name) => name.startsWith(typed))) score = 2 * score + 5;
    if (BESIDE.test(passage.page.url)) score *= 0.4;
    return { passage, score, met };
  });
  ranked.sort((a, b) => b.score - a.score);
  const close = (one) => !typing || one.met > 0.4 * most;
  return ranked.filter(close).map(({ passage, score }) => ({
    score,
    url: new URL(passage.url, root).href,
    title: passage.kind === "symbol" ? passage.names.join(": ") : passage.names.slice(0, 3).join(", "),
    page: passage.page.title,
    text: passage.text,
    forms: new Set(list.flatMap((unit) => unit.ways.flat())),
  }));
}

// --- the search page ----------------------------------------------------------------------------

/** The part of a passage's text where most of what was looked for stands, with marks. */
function excerpt({ text, forms }) {
  const found = [...text.matchAll(WORD)];
  const hits = found.map(([word]) => words(word).some((one) => one.forms.some((form) => forms.has(form))));
  const LONG = 32;
  let [best, start] = [-1, 0];
  for (let k = 0; k < found.length; k += 4) {
    const count = hits.slice(k, k + LONG).filter(Boolean).length;
    if (count > best) [best, start] = [count, k];
  }
  const shown = found.slice(start, start + LONG);
  const parts = [start ? "… " : ""];
  let at = shown[0]?.index ?? 0;
  shown.forEach((match, k) => {
    parts.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const mark = document.createElement(hits[start + k] ? "mark" : "span");
    mark.textContent = match[0];
    parts.push(hits[start + k] ? mark : match[0]);
  });
  parts.push(start + LONG < found.length ? " …" : text.slice(at));
  return parts;
}

function line(passage) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: passage.url });
  link.textContent = passage.title;
  const where = document.createElement("span");
  where.className = "search-where";
  where.textContent = passage.page === passage.title ? "" : ` · ${passage.page}`;
  const told = document.createElement("p");
  told.append(...excerpt(passage));
  item.append(link, where, told);
  return item;
}

async function show(place, query) {
  const found = await search(query);
  const passages = found.slice(0, SHOWN);
  const count = document.createElement("p");
  count.className = "search-count";
  count.setAttribute("role", "status");
  const many = found.length > SHOWN ? `, of which these ${SHOWN} fit best` : "";
  count.textContent = passages.length
    ? `${found.length} passage${found.length > 1 ? "s" : ""}${many}.`
    : `Nothing in the book matches “${query}”. Try fewer words.`;
  const list = document.createElement("ol");
  list.append(...passages.map(line));
  place.replaceChildren(count, list);
}

const place = document.getElementById("search-results");
const query = place && new URLSearchParams(location.search).get("q")?.trim();
if (query) {
  for (const input of document.querySelectorAll("form.bd-search input[name=q]")) input.value = query;
  place.textContent = "Searching …";
  show(place, query).catch((error) => {
    place.textContent = "The search could not be loaded.";
    console.error(error);
  });
}
