// Chapter 10: the page's own BERT, in trained.js, fills the gaps that a reader makes in a text.
// For one of them: what attention, rollout and relevance say of the other letters, and occlusion.

import { attention_rollout, mean_over_heads, softmax } from "./matrices.js";
import { above, addressed, answering, element, field, model } from "./models.js";
import { announcer, chooser, slider, written } from "./parts.js";

const SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const [, UNK, CLS, SEP, MASK] = SPECIAL.keys();
const MOST = 46; // letters of a row
const HEADS = 4;
const LOOKS = ["last layer, mean over heads"];
for (let k = 0; k < 2 * HEADS; k++) LOOKS.push(`layer ${Math.floor(k / HEADS)}, head ${k % HEADS}`);
const FEWEST = 10; // letters that a rank correlation is told of

/** As the chapter's: small letters, single spaces, at most three of the same mark in a row. */
export const plain = (text) =>
  text.toLowerCase().replace(/\s+/g, " ").replace(/([^\p{L}\p{N}_\s])\1{3,}/gu, "$1$1$1"); // prettier-ignore

/** The rank of each number; equal numbers share the mean of theirs. */
const ranks = (x) =>
  x.map((value) => x.filter((other) => other < value).length + (x.filter((other) => other === value).length - 1) / 2);

export function rank_correlation(x, y) {
  const [a, b] = [x, y].map((numbers) => ranks(numbers).map((rank) => rank - (numbers.length - 1) / 2));
  const along = (c, d) => c.reduce((sum, value, i) => sum + value * d[i], 0);
  return along(a, b) / Math.sqrt(along(a, a) * along(b, b));
}

/** What fills gaps with the chapter's model, and says what the other letters have to do with an answer. */
export function reader({ engine, state, notes, slopes }) {
  const bert = new engine.Bert(state, HEADS);
  const letters = [...SPECIAL, ...notes.letters];
  const number = new Map(letters.map((letter, id) => [letter, id]));
  const log_softmax = (logits) => softmax(Array.from(logits)).map(Math.log);
  return (text, gaps) => {
    const all = [...text];
    const ids = [CLS, ...all.map((letter, i) => (gaps.has(i) ? MASK : (number.get(letter) ?? UNK))), SEP];
    const seen = [];
    const vectors = bert.encode(ids, seen);
    const weights = seen.map(({ self_attn }) => self_attn); // (layers, heads, n, n)
    const filled = new Map(
      [...gaps].map((i) => {
        const [logits] = bert.fill([vectors[i + 1]]);
        const log_p = log_softmax(logits);
        const sorted = log_p.map((_, id) => id).sort((a, b) => log_p[b] - log_p[a]);
        return [i, { logits, best: sorted.map((id) => ({ id, letter: letters[id], share: Math.exp(log_p[id]) })) }];
      }),
    );
    /** A row of a table over all tokens, as it is over the letters. */
    const of_letters = (row) => Array.from(row).slice(1, -1);
    return {
      text: all, filled,
      unknown: [...new Set(all.filter((letter) => !number.has(letter)))],
      attention(look, i) {
        const heads = look ? [weights[Math.floor((look - 1) / HEADS)][(look - 1) % HEADS]] : weights.at(-1);
        return of_letters(mean_over_heads(heads)[i + 1]);
      },
      followed(i) {
        const by = slopes.answer_slopes(state, HEADS, seen, vectors, i + 1, filled.get(i).best[0].id);
        const tables = [attention_rollout(weights), slopes.attention_relevance(weights, by)];
        return tables.map((table) => of_letters(table[i + 1]));
      },
      /** Letter by letter: how far the answer's log-probability falls when it is hidden, too. */
      *occlusion(i) {
        const { id, share } = filled.get(i).best[0];
        for (let j = 0; j < all.length; j++) {
          if (gaps.has(j)) yield 0;
          else {
            const without = ids.map((one, k) => (k === j + 1 ? MASK : one));
            yield Math.log(share) - log_softmax(bert.fill(bert.encode(without, [], [i + 1]))[0])[id];
          }
        }
      },
    }; // prettier-ignore
  };
}

export function start({ figure, data, part, controls }) {
  const { texts, cell, wide, left, line, ways, bar } = data; // ways: name, baseline and height of its bars, place of the name
  const [first, its] = texts[0];
  const now = { text: first, gaps: its, at: Number(its.split(" ")[0]), look: 0 };
  const address = addressed(figure, now, { at: MOST - 1, look: LOOKS.length - 1 });
  now.text = now.text.slice(0, MOST);
  const svg = figure.querySelector("svg");
  const whole = model({ figure, data });
  const load = () => Promise.all([whole(), import("./slopes.js")]).then(([loaded, slopes]) => Object.assign(loaded, { slopes }));
  let answer = null;

  const letters = () => [...plain(now.text)].slice(0, MOST);
  const hidden = () => {
    const places = now.gaps.split(" ").filter((place) => /^\d+$/.test(place) && Number(place) < letters().length);
    return new Set(places.map(Number).sort((a, b) => a - b));
  };
  const spoken = (letter) => (letter === " " ? "space" : `“${letter}”`);

  /** Hide a letter, or show it again. */
  function toggle(i) {
    const gaps = hidden();
    if (!gaps.delete(i)) gaps.add(i);
    update({ gaps: [...gaps].sort((a, b) => a - b).join(" "), at: i });
  }

  const top = above(figure);
  const own = field(top, {
    label: "your text", value: now.text, most: MOST, change: (text) => {
      list.set(texts.findIndex(([known]) => known === text));
      update({ text });
    },
  }); // prettier-ignore
  const list = chooser(top, {
    label: "or one of these", options: texts.map(([text]) => text),
    value: texts.findIndex(([text]) => text === now.text), change: (i) => {
      const [text, gaps] = texts[i];
      own.set(text);
      update({ text, gaps, at: Number(gaps.split(" ")[0]) });
    },
  }); // prettier-ignore
  const place = slider(controls, {
    label: "letter", min: 0, max: Math.max(letters().length - 1, 0), step: 1, value: now.at,
    say: (i) => (i < letters().length ? `letter ${i + 1}, ${spoken(letters()[i])}${hidden().has(i) ? ", hidden" : ""}` : "no letter"),
    change: (at) => update({ at }),
  }); // prettier-ignore
  const buttons = document.createElement("div");
  const button = document.createElement("button");
  button.type = "button";
  button.addEventListener("click", () => toggle(now.at));
  buttons.className = "mask-buttons";
  buttons.append(button);
  controls.append(buttons);
  chooser(controls, { label: "attention of", options: LOOKS, value: now.look, change: (look) => update({ look }) });
  const say = announcer(controls);
  const answered = answering({ figure, load, say });

  const middle = { "text-anchor": "middle" };
  const shown = (letter) => (letter === " " ? "␣" : letter);
  const label = () => {
    button.textContent = hidden().has(now.at) ? "show this letter" : "hide this letter";
    button.disabled = !letters().length;
  };

  /** The letters, line by line, and below each what the ways say of it. */
  function lines(gaps, asked, said) {
    return answer.text.map((letter, i) => {
      const group = element("g", { transform: `translate(${left + cell * (i % wide)} ${8 + line * Math.floor(i / wide)})` });
      const best = answer.filled.get(i)?.best[0];
      const box = element("rect", {
        width: cell - 2, height: 36, rx: 3, fill: "transparent",
        stroke: best ? "#D55E00" : i === now.at ? "#0072B2" : "currentColor",
        "stroke-width": i === asked ? 3 : best || i === now.at ? 1.5 : 0.5,
      }); // prettier-ignore
      const what = { ...middle, x: cell / 2 - 1, y: best ? 16 : 23, "font-weight": best ? "bold" : "normal" };
      group.append(box, element("text", what, shown(best?.letter ?? letter)));
      if (best) {
        const percent = Math.round(100 * best.share);
        const narrow = percent > 99 ? { textLength: 16, lengthAdjust: "spacingAndGlyphs" } : {};
        group.append(element("text", { ...middle, ...narrow, x: cell / 2 - 1, y: 32 }, percent));
      }
      ways.forEach(([, base, high], w) => {
        if (i === asked || !said[w]) return;
        const size = high * said[w].scaled[i];
        const [y, height] = [base - Math.max(size, 0), Math.abs(size)];
        group.append(element("rect", { x: 2, y, width: cell - 6, height, fill: size < 0 ? "#D55E00" : "#0072B2" }));
      });
      return group;
    });
  }

  function names(count) {
    return Array.from({ length: count }, (_, l) =>
      ways.map(([name, , , y]) => element("text", { x: 0, y: 8 + line * l + y }, name)),
    ).flat();
  }

  /** The likeliest five at the gap, and how far each way agrees with occlusion. */
  function below(best, correlations) {
    const bars = best.slice(0, 5).flatMap(({ letter, share }, k) => [
      element("text", { ...middle, x: 12, y: 44 + 22 * k }, shown(letter)),
      element("rect", { x: 28, y: 32 + 22 * k, width: bar * share, height: 15, fill: "#0072B2" }),
      element("text", { x: 34 + bar * share, y: 44 + 22 * k }, share.toFixed(2)),
    ]);
    const table = correlations.flatMap((r, w) => {
      const weight = w ? "bold" : "normal"; // the two that the chapter's question compares
      const at = { x: 404, y: 66 + 22 * w, "text-anchor": "end", "font-weight": weight };
      return [element("text", { x: 222, y: at.y }, ways[w][0]), element("text", at, number(r))];
    });
    const layer = `(${LOOKS[now.look].replace(" over heads", "")})`;
    const heads = [[0, 18, "likeliest in the gap"], [222, 18, "agreement with how far"], [222, 40, "the answer falls"], [222, 132, layer]]; // prettier-ignore
    return [...heads.map(([x, y, text]) => element("text", { x, y }, text)), ...bars, ...table];
  }

  const number = (r) => (Number.isFinite(r) ? written(r) : "–");

  /** Where a letter stands, seen from the gap. */
  const where = (i, asked) => `${Math.abs(i - asked)} to the ${i < asked ? "left" : "right"}`;

  function told(gaps, asked, said, correlations) {
    const missing = answer.unknown.length ? `It has no token for ${answer.unknown.join(" ")}, and reads [UNK] there. ` : "";
    if (!answer.text.length) return "There is nothing to read: type a text.";
    if (asked === undefined) return `${missing}Nothing is hidden: choose a letter, and hide it.`;
    const { letter, share } = answer.filled.get(asked).best[0];
    const whole = answer.text.map((one, i) => answer.filled.get(i)?.best[0].letter ?? one).join("");
    const right = [...gaps].filter((i) => answer.filled.get(i).best[0].letter === answer.text[i]).length;
    const count = gaps.size > 1 ? `${right} of ${gaps.size} gaps are filled in right: “${whole}”. ` : "";
    const outcome = letter === answer.text[asked] ? "which is right" : "which is wrong";
    const largest = said.map(({ scaled }, w) => {
      const i = scaled.indexOf(Math.max(...scaled));
      if (!(scaled[i] > 0)) return `${ways[w][0]} nothing`;
      return `${ways[w][0]} ${gaps.has(i) ? "a gap" : spoken(answer.text[i])}, ${where(i, asked)}`;
    });
    const least = said[3] && said[3].scaled.indexOf(Math.min(...said[3].scaled));
    const against = said[3]?.scaled[least] < 0 ? ` Most against: ${spoken(answer.text[least])}, ${where(least, asked)}.` : "";
    const agree = correlations.map((r, w) => `${ways[w][0]} ${number(r)}`);
    const seen = `Attention is that of the ${LOOKS[now.look]}. `;
    return (
      `${missing}${count}Letter ${asked + 1} was ${spoken(answer.text[asked])}. The model says ${spoken(letter)} ` +
      `with ${share.toFixed(2)}, ${outcome}. ` +
      (answer.text.length > 1 ? `${seen}Largest: ${largest.join("; ")}.${against}` : "") +
      (agree.length && number(correlations[0]) !== "–" ? ` Rank correlation with how far the answer falls: ${agree.join(", ")}.` : "")
    );
  }

  function draw(gaps, asked) {
    const count = Math.max(Math.ceil(answer.text.length / wide), 1);
    place.enable(answer.text.length > 0);
    place.end(Math.max(answer.text.length - 1, 0));
    place.put(now.at);
    label();
    const all = asked === undefined ? [] : [answer.attention(now.look, asked), ...answer.ways];
    const said = all.map((numbers) => {
      const others = numbers.map((value, i) => (i === asked ? 0 : value));
      const most = Math.max(...others.map(Math.abs)) || 1;
      return { others: numbers.filter((_, i) => !gaps.has(i)), scaled: others.map((value) => value / most) };
    });
    const fall = said[3]?.others;
    const correlations = !fall ? [] : said.slice(0, 3).map(({ others }) =>
      fall.length < FEWEST ? NaN : rank_correlation(others, fall)); // prettier-ignore
    svg.setAttribute("viewBox", `0 0 406 ${8 + line * count + 150}`);
    part("names").replaceChildren(...names(count));
    part("lines").replaceChildren(...lines(gaps, asked, said));
    part("below").setAttribute("transform", `translate(0 ${8 + line * count})`);
    part("below").replaceChildren(...(asked === undefined ? [] : below(answer.filled.get(asked).best, correlations)));
    const text = told(gaps, asked, said, correlations);
    svg.setAttribute("aria-label", text);
    say(text);
  }

  /** Take up what the reader has changed; the first time, load the model. */
  function update(changes) {
    Object.assign(now, changes);
    now.at = Math.min(now.at, Math.max(letters().length - 1, 0));
    address.keep();
    return answered(async (loaded, current) => {
      loaded.read ??= reader(loaded);
      const gaps = hidden();
      const [asked] = [...gaps].sort((a, b) => Math.abs(a - now.at) - Math.abs(b - now.at));
      const [text, key] = [letters().join(""), [...gaps].join(" ")];
      if (answer?.key !== key || answer.text.join("") !== text) answer = { ...loaded.read(text, gaps), key };
      if (asked !== undefined && answer.asked !== asked) Object.assign(answer, { asked, ways: [] });
      draw(gaps, asked);
      const pause = () => new Promise((resolve) => setTimeout(resolve)); // what is there already is shown first
      if (asked !== undefined && !answer.ways.length) {
        await pause();
        if (!current()) return;
        answer.ways = answer.followed(asked);
        draw(gaps, asked);
      }
      if (asked !== undefined && answer.ways.length < 3) {
        const falls = [];
        for (const fall of answer.occlusion(asked)) {
          falls.push(fall);
          if (falls.length % 2) continue;
          await pause();
          if (!current()) return;
        }
        answer.ways.push(falls);
        draw(gaps, asked);
      }
    });
  }

  // a letter that is clicked is hidden, or asked about, or shown again; in the still picture, too
  svg.addEventListener("click", (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const [column, row] = [Math.floor((x - left) / cell), Math.floor((y - 8) / line)];
    const i = row * wide + column;
    if (column < 0 || column >= wide || y < 8 || (y - 8) % line > 40 || i >= letters().length) return;
    if (hidden().has(i) && i !== now.at) update({ at: i });
    else toggle(i);
  });
  label();
  if (address.given) update({});
}
