// Chapter 9: the GPT trained beforehand writes on from what the reader types, with trained.js:
// the next token's distribution and what is cut off it, where a head looks, and what a cache saves.

import { above, addressed, answering, element, field, model } from "./models.js";
import { announcer, slider } from "./parts.js";
import { cut, draw, luck } from "./sampling.js";

const MOST = 60; // characters of a beginning
const END = 0; // the token that ends a text, and stands before each
// as Python's \w and \s, among the 256 characters that stand for bytes
const LETTERS = "\\wª²³µ¹º¼-¾À-ÖØ-öø-ÿ";
const SPACES = "\\s\\x1c-\\x1f\\x85";
const WORD = new RegExp(` ?[${LETTERS}]+| ?[^${LETTERS}${SPACES}]+|[${SPACES}]+`, "g");

/** The pieces of a word: again and again, the pair that was learnt first is joined at all its places. */
export function byte_pair_encode(word, rank) {
  const pieces = [...word];
  for (;;) {
    const pairs = pieces.slice(1).map((right, i) => `${pieces[i]}\t${right}`);
    const known = pairs.filter((pair) => rank.has(pair));
    if (!known.length) return pieces;
    const first = known.reduce((a, b) => (rank.get(b) < rank.get(a) ? b : a));
    for (let i = 0; i < pieces.length - 1; i++) {
      if (`${pieces[i]}\t${pieces[i + 1]}` === first) pieces.splice(i, 2, pieces[i] + pieces[i + 1]);
    }
  }
}

/** From a text to ids, and back. */
function tokenizer(notes) {
  const merges = notes.merges.split("\n");
  const bytes = Array.from({ length: 256 }, (_, byte) => String.fromCharCode(byte));
  const tokens = ["", ...bytes, ...merges.map((pair) => pair.replace("\t", ""))];
  const rank = new Map(merges.map((pair, place) => [pair, place]));
  const id_of = new Map(tokens.map((token, id) => [token, id]));
  const encode = (text) => {
    const characters = Array.from(new TextEncoder().encode(text), (byte) => bytes[byte]).join("");
    return (characters.match(WORD) ?? []).flatMap((word) => byte_pair_encode(word, rank).map((piece) => id_of.get(piece)));
  };
  const utf_8 = new TextDecoder();
  const decode = (ids) => {
    const all = ids.map((id) => tokens[id]).join("");
    return utf_8.decode(Uint8Array.from(all, (character) => character.charCodeAt(0)));
  };
  return { encode, decode };
}

/** All ids, likeliest first; equals keep their order. */
const ordered = (step) =>
  (step.order ??= Array.from(step.logits.keys()).sort((a, b) => step.logits[b] - step.logits[a]));

/** Where each token's box stands, row by row: as many tokens as the sheet has room for. */
export function places(names, { letter, wide, row, rows }) {
  const found = [];
  let [x, y] = [0, 0];
  for (const name of names) {
    const width = letter * [...name].length + 4;
    if (x && x + width > wide) [x, y] = [0, y + row];
    if (y >= row * rows) break;
    found.push({ x, y, width });
    x += width + 2;
  }
  return found;
}

/** What writes with the chapter's model: ids, how many the reader typed, and what each step found. */
export function reader({ engine, state, notes }, sheet) {
  const gpt = new engine.GPT(state, Number(notes.num_heads));
  const { encode, decode } = tokenizer(notes);
  const names = [];
  const shown = (id) => (names[id] ??= decode([id]).replaceAll(" ", "␣").replaceAll("\n", "⏎") || "(end)");
  const caches = gpt.blocks.map(() => ({ k: [], v: [] }));
  const steps = []; // of the tokens whose keys and values are in the caches

  /** Read the tokens from a place on, unless this one was read there before. */
  function read(ids, place) {
    if (steps[place]?.id === ids[place]) return;
    keep(place);
    const seen = [];
    gpt.step(ids.slice(place), caches, seen).forEach((logits, i) => {
      const looks = seen.map(({ attn }) => attn.map((rows) => rows[i].slice(0, place + i + 1)));
      steps.push({ id: ids[place + i], logits, looks });
    });
  }

  /** Of what has been read, keep so many tokens. */
  function keep(count) {
    steps.length = count;
    for (const cache of caches) cache.k.length = cache.v.length = count;
  }

  /** `earlier`: before which places other settings held. */
  return ({ text, written, seed, earlier = [], ...latest }, clock = () => 0) => {
    const ids = [END, ...encode(text)];
    const fits = () => ids.length <= gpt.positions.length && places(ids.map(shown), sheet).length === ids.length;
    const whole = ids.length;
    while (!fits()) ids.pop();
    const typed = ids.length;
    const times = [];
    let full = false; // or at the text's end
    for (let place = 0; place < ids.length; place++) {
      read(ids, place);
      if (place + 1 < typed) continue;
      times.push(clock());
      full ||= place >= typed && ids[place] === END;
      if (full || ids.length === typed + written) break;
      const step = steps[place];
      const { temperature, k, p } = earlier.find(({ end }) => place + 1 < end) ?? latest;
      const how = [temperature, k, p, seed].join();
      if (step.how !== how) {
        const chosen = () => {
          const order = ordered(step);
          const { drawn } = cut(order.map((id) => step.logits[id]), temperature, k, p); // prettier-ignore
          return order[draw(drawn, luck(seed, place))];
        };
        Object.assign(step, { how, next: temperature ? chosen() : engine.argmax(step.logits) });
      }
      ids.push(step.next);
      full = !fits();
      if (full) ids.pop();
    }
    keep(ids.length);
    const numbers = caches.flatMap(({ k, v }) => [...k, ...v]).reduce((sum, row) => sum + row.length, 0);
    return { ids, typed, cut_off: whole - typed, full, times, numbers, steps: [...steps], names: ids.map(shown), shown, decode };
  };
}

/**
 * How many numbers of keys and values are computed: in the last call and in all, of which the first
 * reads what was typed; without a cache each call computes all anew.
 */
export function counted(typed, all, numbers) {
  const each = numbers / all;
  let again = 0;
  for (let length = typed; length <= all; length++) again += each * length;
  const last = [each * all, each * (all > typed ? 1 : typed)];
  return { last, sum: [again, numbers], kept: [0, numbers] };
}

export function start({ figure, data, part, controls }) {
  const { sheet, temperatures, ks, ps, bars, wide } = data;
  const now = { ...data.start, earlier: "" }; // as place.temperature.k.p, the numbers of sliders
  const most = { written: 127, temperature: temperatures.length - 1, k: ks.length - 1, p: ps.length - 1, seed: 9999 };
  const address = addressed(figure, now, { ...most, at: 127, layer: data.layers - 1, head: data.heads - 1 });
  now.text = now.text.slice(0, MOST);
  const svg = figure.querySelector("svg");
  const load = model({ figure, data });
  let answer = null;
  const spoken = (name) => (name === "⏎" ? "new line" : name.replaceAll("␣", "") || "space");

  const top = above(figure);
  field(top, {
    label: "your beginning", value: now.text, most: MOST, change: (text) => update({ text, written: 0, earlier: "", at: 127 }),
  }); // prettier-ignore
  const buttons = document.createElement("div");
  buttons.className = "mask-buttons";
  top.append(buttons);
  const button = (textContent, press) => {
    const one = document.createElement("button");
    Object.assign(one, { type: "button", textContent });
    one.addEventListener("click", press);
    buttons.append(one);
    return one;
  };
  const writes = [1, 20].map((count) => button(count > 1 ? `write ${count}` : "write a token", () => write(count)));
  button("erase what is written", () => update({ written: 0, earlier: "", at: 127 }));
  button("draw all again", () => update({ seed: (now.seed + 1) % 10000, earlier: "", at: 127 }));
  const set = (room, key, label, values, say, change) =>
    slider(room, {
      label, min: 0, max: values.length - 1, step: 1, value: now[key],
      say: (i) => say(values[i]), change: change ?? ((i) => update({ [key]: i })),
    }); // prettier-ignore
  /** What is written stays, and the next token is drawn by the new setting. */
  const from_here = (key) => (i) => {
    const length = answer?.ids.length ?? now.at + 1;
    const { earlier, temperature, k, p } = now;
    const isNew = length > (answer?.typed ?? 0) && length > (periods().at(-1)?.end ?? 0);
    update({ [key]: i, earlier: isNew ? `${earlier} ${length}.${temperature}.${k}.${p}`.trim() : earlier });
  };
  set(top, "temperature", "temperature τ", temperatures, (t) => t.toFixed(1), from_here("temperature"));
  set(top, "k", "top-k", ks, (k) => (k === ks.at(-1) ? "all tokens" : `${k} tokens`), from_here("k"));
  set(top, "p", "top-p", ps, (p) => (p === 1 ? "everything" : `a share of ${p}`), from_here("p"));
  const token = slider(controls, {
    label: "token", min: 0, max: now.at, step: 1, value: now.at,
    say: (i) => `token ${i}${answer ? `, ${spoken(answer.names[i] ?? "")}` : ""}`, change: (at) => update({ at }),
  }); // prettier-ignore
  set(controls, "layer", "layer", [...Array(data.layers).keys()], (i) => `layer ${i}`);
  set(controls, "head", "head", [...Array(data.heads).keys()], (i) => `head ${i}`);
  const say = announcer(controls);
  const answered = answering({ figure, load, say });

  /** The settings that held before, each until a place. */
  const periods = () =>
    now.earlier
      .split(" ")
      .map((period) => period.split(".").map(Number))
      .map(([end, ...at]) => ({ end, temperature: temperatures[at[0]], k: ks[at[1]], p: ps[at[2]] }))
      .filter(({ end, temperature, k, p }) => end > 0 && [temperature, k, p].every((value) => value !== undefined));

  const count = (number) => Math.round(number).toLocaleString("en");

  function drawText(looks, at) {
    const highest = Math.max(...looks);
    part("text").replaceChildren(
      ...places(answer.names, sheet).map(({ x, y, width }, i) => {
        const box = element("g", { class: "translator-cell", transform: `translate(${x + 2} ${y + 26})` });
        const letters = width - 4;
        box.append(
          element("rect", {
            width, height: sheet.row - 3, rx: 3, fill: "#0072B2",
            "fill-opacity": i < looks.length ? ((0.7 * looks[i]) / highest).toFixed(2) : 0,
            stroke: i === at ? "#D55E00" : "currentColor", "stroke-opacity": i === at ? 1 : 0.3,
            "stroke-width": i === at ? 3 : 1,
          }),
          element("text", {
            x: 2, y: 16, "font-family": "monospace", "font-size": 13, textLength: letters,
            lengthAdjust: "spacingAndGlyphs", "font-weight": i < answer.typed ? "bold" : "normal",
          }, answer.names[i]),
        ); // prettier-ignore
        return box;
      }),
    );
  }

  function drawBars(order, found, next) {
    [...part("bars").children].forEach((row, i) => {
      const [label, bar, value] = row.children;
      const rest = i === bars;
      const sum = (all) => (rest ? all.slice(bars).reduce((total, share) => total + share, 0) : all[i]);
      const drawn = sum(found.drawn);
      const share = drawn || sum(found.shares);
      const chosen = rest ? order.indexOf(next) >= bars : order[i] === next;
      label.textContent = rest ? "all others" : answer.shown(order[i]);
      label.setAttribute("font-weight", chosen ? "bold" : "normal");
      bar.setAttribute("width", (wide * share).toFixed(1));
      bar.setAttribute("fill-opacity", drawn ? 1 : 0);
      value.setAttribute("x", (104 + wide * share).toFixed(1));
      value.textContent = drawn ? drawn.toFixed(3) : "0";
    });
  }

  function drawCounts({ last, sum, kept }) {
    [last, sum, kept].forEach((numbers, i) => {
      const cells = [...part("cache").children[i].children].slice(1);
      cells.forEach((cell, way) => (cell.textContent = count(numbers[way])));
    });
  }

  function draw() {
    const { ids, names, steps, typed, cut_off, numbers, full } = answer;
    now.at = Math.min(now.at, ids.length - 1);
    token.end(ids.length - 1);
    token.put(now.at);
    const { at, layer, head } = now;
    const step = steps[at];
    const looks = Array.from(step.looks[layer][head]); // (at + 1,)
    const [temperature, k, p] = [temperatures[now.temperature], ks[now.k], ps[now.p]];
    const order = ordered(step);
    const found = cut(order.map((id) => step.logits[id]), temperature, k, p); // prettier-ignore
    const next = ids[at + 1];
    const sums = counted(typed, ids.length, numbers);
    drawText(looks, at);
    drawBars(order, found, next);
    drawCounts(sums);
    writes.forEach((one) => one.setAttribute("aria-disabled", full));
    const ended = ids.length > typed && ids.at(-1) === END ? "The text has ended" : "The sheet is full";
    part("head").textContent = `the text; tinted: what layer ${layer}, head ${head} looks at`;
    part("how").textContent = `next, at τ = ${temperature.toFixed(1)}, k = ${count(k)}, p = ${p}; filled: kept`;
    const seen = looks.map((look, i) => [look, i]).sort((a, b) => b[0] - a[0]).slice(0, 3); // prettier-ignore
    const text =
      `${full ? `${ended}: erase it or draw it again to go on. ` : ""}` +
      `${cut_off ? "Your beginning is too long: its end is left out. " : ""}At token ${at}, ${spoken(names[at])}, layer ${layer}, head ${head} looks most at ` +
      `${seen.map(([look, i]) => `${spoken(names[i])} (token ${i}, ${Math.round(100 * look)} %)`).join(", ")}. ` +
      `${found.kept} of ${count(order.length)} tokens ${found.kept === 1 ? "is" : "are"} kept, which had ` +
      `${(100 * found.stays).toFixed(1)} %; likeliest: ${spoken(answer.shown(order[0]))}, drawn with ` +
      `${found.drawn[0].toFixed(3)}. ${at + 1 < typed ? "Typed" : "Written"} next: ` +
      `${at + 1 < names.length ? spoken(names[at + 1]) : "nothing yet"}. ` +
      `Keys and values so far: ${count(sums.sum[0])} numbers computed without a cache, ${count(sums.sum[1])} with it. ` +
      `The text: ${answer.decode(ids)}`;
    svg.setAttribute("aria-label", text);
    say(text);
  }

  /** Take up what the reader has changed; the first time, load the model. `more`: to be written next. */
  function update(changes, more = 0) {
    Object.assign(now, changes);
    address.keep();
    return answered((loaded) => {
      loaded.read ??= reader(loaded, sheet);
      const how = { temperature: temperatures[now.temperature], k: ks[now.k], p: ps[now.p] };
      answer = loaded.read({ ...now, ...how, earlier: periods() });
      draw();
      return more > 0 && !answer.full;
    });
  }

  /** Write so many tokens more, each shown before the next, until the reader does something else. */
  async function write(tokens) {
    for (let more = tokens - 1; more >= 0; more--) {
      const written = answer ? answer.ids.length - answer.typed : now.written;
      const current = await update({ written: written + 1, at: 127 }, more);
      if (!current || answer.full) return;
      await new Promise((resolve) => setTimeout(resolve)); // to be seen
      if (!current()) return;
    }
  }

  // a token of the text, in the still picture too
  svg.addEventListener("click", ({ target }) => {
    const at = [...part("text").children].indexOf(target.closest(".translator-cell"));
    if (at >= 0) update({ at });
  });
  if (address.given) update({});
}
