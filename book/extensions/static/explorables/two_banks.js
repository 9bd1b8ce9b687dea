// The introduction: the network of the book's first picture answers for a sentence that the reader types,
// which bank is meant, and which words it looked at.

import { softmax } from "./matrices.js";
import { above, addressed, answering, field, model } from "./models.js";
import { announcer, chooser, drawing, words } from "./parts.js";

const MOST = 64; // characters of a sentence
const NOUNS = ["bank", "shore", "lake", "shop", "firm"]; // the first of them that is there asks
const SENSES = ["by the water", "with money", "nobody can tell"];
const SENTENCES = [
  "The bank is muddy.", "The bank is closed.", "Today she sees the old bank.", "The muddy shop is near.",
]; // prettier-ignore
const [WIDE, LINE, LETTER] = [352, 50, 8.6];

const first = SENTENCES[0];

/**
 * What reads sentences with the picture's network: its weights, and a logit for each sense. The first
 * noun asks, or the word that is so far on among those that are known, from 1.
 */
export function reader({ engine, state, notes }) {
  const known = notes.words.split(" ");
  const table = engine.rows(state["table.weight"]);
  const [W_q, W_k, W_v, output] = ["W_q", "W_k", "W_v", "output"].map((name) => engine.Linear(state, name));
  return (text, asks = 0) => {
    const found = text.toLowerCase().match(/[\p{L}\p{N}]+|\S/gu) ?? [];
    const noun = NOUNS.find((one) => found.includes(one));
    const read = found.filter((word) => known.includes(word));
    const place = asks > 0 && asks <= read.length ? asks - 1 : read.indexOf(noun);
    if (place < 0) return { found, read, place, weights: read.map(() => 0) };
    const x = read.map((word) => table[known.indexOf(word)]); // (n, 4)
    const query = W_q([x[place]]); // (1, 2)
    const [average, [weights]] = engine.scaled_dot_product_attention(query, W_k(x), W_v(x));
    return { found, read, place, weights, logits: output(average)[0] };
  };
}

const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);

const quoted = (all) => [...new Set(all)].map((word) => `“${word}”`).join(", ");

export function picture({ found, read, place, weights, logits }) {
  const parts = [];
  const trained = NOUNS.includes(read[place]);
  let [x, y, at] = [2, 4, 0];
  for (const word of found) {
    const isKnown = word === read[at];
    const needs = Math.round(Math.max(12 + LETTER * word.length, 34));
    const wide = Math.min(needs, WIDE - 4);
    if (x > 2 && x + wide > WIDE - 2) [x, y] = [2, y + LINE];
    const middle = `text-anchor="middle"`;
    const tight = wide < needs ? ` textLength="${wide - 8}" lengthAdjust="spacingAndGlyphs"` : "";
    const asks = isKnown && at === place;
    if (isKnown) {
      parts.push(
        `<g class="translator-cell"><rect x="${x}" y="${y}" width="${wide}" height="28" rx="3" fill="#0072B2" ` +
          `fill-opacity="${(0.7 * weights[at]).toFixed(3)}" stroke="${asks ? "#D55E00" : "currentColor"}" ` +
          `stroke-width="${asks ? 3 : 1}" stroke-opacity="${asks ? 1 : 0.3}"/>`,
      );
      if (place >= 0) parts.push(words(x + wide / 2, y + 43, weights[at].toFixed(2), middle));
      at++;
    }
    parts.push(words(x + wide / 2, y + 19, safe(word), `${middle}${tight}${isKnown ? "" : ' text-decoration="line-through"'}`));
    if (isKnown) parts.push("</g>");
    x += wide + 5;
  }
  const shares = logits ? softmax([...logits]) : [];
  y += LINE + 8;
  shares.forEach((share, i) => {
    parts.push(
      words(2, y + 15 + 26 * i, SENSES[i]),
      `<rect x="120" y="${y + 26 * i}" width="${(180 * share).toFixed(1)}" height="20" fill="#009E73"${trained ? "" : ' fill-opacity="0.4"'}/>`,
      words((126 + 180 * share).toFixed(1), y + 15 + 26 * i, share.toFixed(2)),
    );
  });
  const unknown = found.filter((word) => !read.includes(word));
  const most = weights.indexOf(Math.max(...weights));
  const best = shares.indexOf(Math.max(...shares));
  const text =
    (unknown.length ? `It does not know ${quoted(unknown)}, and reads the rest. ` : "") +
    (place >= 0
      ? `“${read[place]}” looks most at “${read[most]}”, with ${weights[most].toFixed(2)}: ` +
        `${SENSES[best]}, ${shares[best].toFixed(2)}.` +
        (trained ? "" : ` In training only ${quoted(NOUNS)} asked: nothing has told “${read[place]}” what to look at.`)
      : `It answers for ${quoted(NOUNS)}: put one of them in.`);
  return { svg: drawing(WIDE, y + 78, safe(text), parts.join("")), text };
}

export function start({ figure, data, part, controls }) {
  const now = { sentence: first, asks: 0 };
  const address = addressed(figure, now, { asks: MOST });
  now.sentence = now.sentence.slice(0, MOST);
  const load = model({ figure, data });
  const top = above(figure);
  const own = field(top, {
    label: "your sentence", value: now.sentence, most: MOST, change: (sentence) => {
      list.set(SENTENCES.indexOf(sentence));
      update({ sentence, asks: 0 });
    },
  }); // prettier-ignore
  const list = chooser(top, {
    label: "or one of these", options: SENTENCES, value: SENTENCES.indexOf(now.sentence), change: (i) => {
      own.set(SENTENCES[i]);
      update({ sentence: SENTENCES[i], asks: 0 });
    },
  }); // prettier-ignore
  const say = announcer(controls);
  const answered = answering({ figure, load, say });

  /** Take up what the reader has changed; the first time, load the network. */
  function update(changes) {
    Object.assign(now, changes);
    address.keep();
    return answered((loaded) => {
      const { svg, text } = picture(reader(loaded)(now.sentence, now.asks));
      const focused = boxes().indexOf(document.activeElement);
      part("picture").innerHTML = svg;
      offer();
      boxes()[focused]?.focus();
      say(text);
    });
  }

  const boxes = () => [...part("picture").querySelectorAll(".translator-cell")];

  /** Each word that is known is a button: it asks. */
  function offer() {
    part("picture").firstElementChild.setAttribute("role", "group");
    for (const box of boxes()) {
      const asks = Boolean(box.querySelector('[stroke="#D55E00"]'));
      const attributes = { role: "button", tabindex: 0, "aria-pressed": asks };
      for (const [key, value] of Object.entries(attributes)) box.setAttribute(key, value);
    }
  }

  const ask = ({ target }) => {
    const asks = boxes().indexOf(target.closest(".translator-cell")) + 1;
    if (asks) update({ asks });
  };
  part("picture").addEventListener("click", ask);
  part("picture").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    ask(event);
  });
  offer();
  if (address.given) update({});
}
