// Chapter 7: the page's own model reads a date that the reader chooses or types, with transformer.js:
// where it looks, what it expects next, its four best beams; and what becomes of it without a part.

import { softmax } from "./matrices.js";
import { above, addressed, answering, boxes, element, field, model } from "./models.js";
import { announcer, chooser, slider } from "./parts.js";

const BOS = 1;
const EOS = 2;
const MOST = 39; // characters of a text
const LONGEST = 12; // tokens of a date, as in the chapter's greedy_decode
const LOOKS = ["cross: written → source", "decoder: written → written", "encoder: source → source"];
const HEADS = ["mean over heads", "head 0", "head 1", "head 2", "head 3"];
const PARTS = { scale: "√dₖ", mask: "mask", positions: "positions" };

/** What tokens spell: without pad, bos and the end. */
const date = (tokens) => tokens.filter((token) => /^[-\d]$/.test(token)).join("");

/** How many characters two texts have in common at their beginning. */
export function shared(first, second) {
  let k = 0;
  while (k < first.length && k < second.length && first[k] === second[k]) k++;
  return k;
}

/** For each beam: from which column it is drawn, and the earlier beam that it hangs on. */
export function branches(texts) {
  return texts.map((text, row) => {
    let best = { start: 0, parent: 0 };
    for (let r = 0; r < row; r++) {
      const start = shared(text, texts[r]);
      if (start > best.start) best = { start, parent: r };
    }
    return best;
  });
}

/** What reads texts with the chapter's model: its answer step by step, and what it looked at. */
export function reader({ engine, state, notes }) {
  const transformer = new engine.Transformer(state, Number(notes.num_heads));
  const source = new Map([...notes.source].map((letter, k) => [letter, EOS + 1 + k]));
  const target = ["pad", "bos", "⏎", ...notes.target];
  return (text, without = new Set(), clock = () => 0) => {
    const known = [...text].filter((letter) => source.has(letter));
    const unknown = [...new Set([...text].filter((letter) => !source.has(letter)))];
    if (!known.length) return { known, unknown, steps: [], written: [], encoder: [], beams: () => [] };
    transformer.without = without;
    const encoder = [];
    const memory = transformer.encode(known.map((letter) => source.get(letter)), encoder);
    const [steps, times] = [[], []];
    for (const step of engine.greedy_decode(transformer, memory, [BOS], EOS, LONGEST)) {
      steps.push(step);
      times.push(clock());
    }
    const spelt = (ids) => ids.map((id) => target[id]);
    const beams = () => {
      transformer.without = without;
      return engine
        .beam_search(transformer, memory, BOS, EOS, LONGEST)
        .map((beam) => ({ ...beam, letters: spelt(beam.ids) }));
    };
    return { known, unknown, steps, written: steps.map(({ id }) => target[id]), encoder, target, beams, times };
  };
}

/** The weights of a step, over what it could look at, and its chances for the next token. */
export function looked(answer, { attention, layer, head, at }) {
  const mean = (rows) => Array.from(rows[0], (_, k) => rows.reduce((sum, row) => sum + row[k], 0) / rows.length);
  const chosen = (heads, row) => mean((head ? [heads[head - 1]] : heads).map((table) => table.at(row)));
  if (attention === 2) return chosen(answer.encoder[layer].self_attn, at);
  return chosen(answer.steps[at].seen[layer][attention ? "self_attn" : "cross_attn"], -1);
}

export function start({ figure, data, part, controls }) {
  const { dates, cell, wide, left, base, brief } = data; // brief: on the front page, without the beams
  const now = { text: dates[0][0], at: data.at, attention: 0, layer: 1, head: 0, without: "" };
  const address = addressed(figure, now, { at: MOST - 1, attention: LOOKS.length - 1, layer: 1, head: HEADS.length - 1 });
  now.text = now.text.slice(0, MOST);
  const without = new Set(now.without.split(" ").filter((name) => name in PARTS));
  const svg = figure.querySelector("svg");
  const load = model({ figure, data });
  let answer = null;

  /** A character in its box; `share` of 1 is darkest. */
  function box(x, y, letter, share, small = "", marked = false) {
    const group = element("g", {});
    group.append(
      element("rect", {
        x,
        y,
        width: cell - 2,
        height: 30,
        rx: 3,
        fill: "#0072B2",
        "fill-opacity": (0.7 * share).toFixed(2),
        stroke: marked ? "#D55E00" : "currentColor",
        "stroke-opacity": marked ? 1 : 0.3,
        "stroke-width": marked ? 3 : 1,
      }),
      element("text", { x: x + 12, y: y + 20, "text-anchor": "middle" }, /\s/.test(letter) ? "␣" : letter),
    );
    if (small !== "") {
      group.append(
        element("text", { x: x + 12, y: y + 42, "text-anchor": "middle", "font-size": 10 }, small),
      );
    }
    return group;
  }

  const percent = (share) => Math.round(100 * share) || "";
  const top = above(figure);
  const own = field(top, {
    label: "your date", value: now.text, most: MOST, change: (text) => {
      list.set(dates.findIndex(([known]) => known === text));
      update({ text });
    },
  }); // prettier-ignore
  const list = chooser(top, {
    label: "or one of these", options: dates.map(([text, locale]) => `${text} (${locale})`),
    value: dates.findIndex(([text]) => text === now.text), change: (i) => {
      own.set(dates[i][0]);
      update({ text: dates[i][0] });
    },
  }); // prettier-ignore
  const position = slider(controls, {
    label: "character", min: 0, max: now.attention === 2 ? now.text.length - 1 : 10, step: 1, value: now.at,
    say: (at) => `${at + 1}: ${spoken(letters()[at])}`, change: (at) => update({ at }),
  }); // prettier-ignore
  if (!brief) {
    chooser(controls, { label: "attention", options: LOOKS, value: now.attention, change: (attention) => update({ attention }) });
    chooser(controls, { label: "layer", options: ["layer 0", "layer 1"], value: now.layer, change: (layer) => update({ layer }) });
    chooser(controls, { label: "head", options: HEADS, value: now.head, change: (head) => update({ head }) });
    boxes(controls, {
      label: "take away", options: PARTS, chosen: without,
      change: (chosen) => update({ without: [...chosen].join(" ") }),
    }); // prettier-ignore
  }
  const say = announcer(controls);
  const answered = answering({ figure, load, say });

  /** The characters among which the slider moves. */
  function letters() {
    if (!answer) return [];
    return now.attention === 2 ? answer.known : answer.written;
  }

  function spoken(letter) {
    if (letter === undefined) return "nothing";
    return letter === "⏎" ? "the end" : /\s/.test(letter) ? "space" : letter;
  }

  /** What is looked at most, said in words. */
  function most(looks, names) {
    const sorted = looks.map((look, k) => [look, k]).sort((a, b) => b[0] - a[0]);
    const seen = sorted.slice(0, 3).filter(([look]) => look > 0.045);
    return seen.map(([look, k]) => `${spoken(names[k])} (${percent(look)} %)`).join(", ") || "everything a little";
  }

  function told(looks, chances, beams) {
    const { known, unknown, written } = answer;
    const missing = unknown.length ? `It has no token for ${unknown.join(" ")}, and reads the text without. ` : "";
    if (!known.length) return `${missing}There is nothing to read: type a date.`;
    const iso = date(written);
    const entry = dates.find(([text]) => text === now.text);
    const right = !entry ? "" : !entry[2] ? "This text has two readings. "
      : entry[2] === iso ? "That is right. " : `Right would be ${entry[2]}. `; // prettier-ignore
    const first = `${missing}${now.text} → ${iso || "nothing"}. ${right}`;
    if (now.attention === 2) return `${first}In the encoder, “${spoken(known[now.at])}” looks at ${most(looks, known)}.`;
    const names = now.attention ? ["bos", ...written] : known;
    const where = `${first}To write “${spoken(written[now.at])}” it looks at ${most(looks, names)}.`;
    if (brief) return where;
    const next = Array.from(chances, (p, id) => [p, answer.target[id]])
      .slice(EOS) // pad and bos have no bar
      .sort((a, b) => b[0] - a[0])
      .slice(0, 2)
      .map(([p, letter]) => `${spoken(letter)} has probability ${p.toFixed(3)}`);
    const aim = 0.9 + 0.1 / answer.target.length; // as the chapter's smoothing has it
    const here = `${where} Here ${next.join(", ")}; label smoothing aims at ${aim.toFixed(3)} for the right one, not at 1.`;
    if (document.documentElement.dataset.path === "short") return here; // beams are off the path
    const best = beams.slice(0, 2).map(({ letters, log_p }) => {
      return `${date(letters) || "the empty text"} ${Math.exp(log_p).toFixed(3)}`;
    });
    return `${here} The best beams: ${best.join(", ")}.`;
  }

  function draw() {
    const count = letters().length;
    position.enable(count > 0);
    position.end(Math.max(count - 1, 0));
    if (count) now.at = Math.min(now.at, count - 1);
    position.put(now.at);
    const looks = count ? looked(answer, now) : [];
    const inSource = now.attention === 2;
    part("source").replaceChildren(
      ...answer.known.map((letter, k) => {
        const [x, y] = [left + cell * (k % wide), 30 + 48 * Math.floor(k / wide)];
        const share = now.attention === 1 ? 0 : (looks[k] ?? 0);
        return box(x, y, letter, share, percent(share), inSource && k === now.at);
      }),
    );
    part("written").replaceChildren(
      ...["bos", ...answer.written].map((letter, k) => {
        const here = !inSource && k === now.at + 1;
        const share = now.attention === 1 ? (looks[k] ?? 0) : 0;
        const group = box(left + cell * k, 196, letter, here ? 1 : share, percent(share), here);
        if (k) group.classList.add("translator-cell");
        return group;
      }),
    );
    const step = inSource ? undefined : answer.steps[now.at];
    const chances = step ? softmax(Array.from(step.logits)) : [];
    const beams = answer.found ?? [];
    if (!brief) drawMore(chances, beams);
    const text = told(looks, chances, beams);
    svg.setAttribute("aria-label", text);
    say(text);
  }

  /** What the front page does without: the chances of the next token, and the beams. */
  function drawMore(chances, beams) {
    const shown = chances.length ? [...chances.slice(EOS + 1), chances[EOS]] : [];
    part("next").previousElementSibling.setAttribute("visibility", shown.length ? "visible" : "hidden");
    part("next").replaceChildren(
      ...shown.flatMap((p, k) => {
        const [x, high] = [left + cell * k, 44 * p];
        const middle = { x: x + 12, "text-anchor": "middle" };
        return [
          element("rect", { x: x + 3, y: base - high, width: 18, height: high, fill: "#0072B2" }),
          element("text", { ...middle, y: base - high - 4, "font-size": 10 }, percent(p)),
          element("text", { ...middle, y: base + 17 }, answer.target[EOS + 1 + k] ?? "⏎"),
        ];
      }),
    );
    const parts = [];
    const from = branches(beams.map(({ letters }) => letters));
    beams.forEach(({ letters, steps, log_p }, row) => {
      const y = base + 58 + 50 * row;
      const { start, parent } = from[row];
      letters.forEach((letter, k) => {
        if (k >= start && k < 11) parts.push(box(left + cell * k, y, letter, steps[k], percent(steps[k])));
      });
      parts.push(element("text", { x: left + cell * 11 + 10, y: y + 20 }, Math.exp(log_p).toFixed(3)));
      if (row) {
        const d = `M${left + cell * start - 1} ${base + 58 + 50 * parent + 32}V${y + 15}h1`;
        parts.unshift(element("path", { d, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }));
      }
    });
    part("beams").replaceChildren(...parts);
  }

  /** Take up what the reader has changed; the first time, load the model. */
  function update(changes) {
    Object.assign(now, changes);
    address.keep();
    return answered(async (loaded, current) => {
      loaded.read ??= reader(loaded);
      if (!answer || answer.text !== now.text || answer.without !== now.without) {
        answer = { ...loaded.read(now.text, new Set(without)), text: now.text, without: now.without };
      }
      draw();
      if (!brief && !answer.found) {
        await new Promise((resolve) => setTimeout(resolve)); // what is there already is shown first
        if (!current()) return;
        answer.found = answer.beams();
        draw();
      }
    });
  }

  // a character that is written, in the still picture too
  svg.addEventListener("click", (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const [k, i] = [Math.floor((x - left) / cell), Math.floor((y - 30) / 48) * wide];
    if (now.attention === 2 && y >= 30 && y < 180) update({ at: i + k });
    else if (now.attention !== 2 && y >= 196 && y < 226 && k > 0 && k <= 11) update({ at: k - 1 });
  });
  if (address.given) update({});
}
