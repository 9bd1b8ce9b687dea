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

/** What reads sentences with the picture's network: its weights, and a logit for each sense. */
export function reader({ engine, state, notes }) {
  const known = notes.words.split(" ");
  const table = engine.rows(state["table.weight"]);
  const [W_q, W_k, W_v, output] = ["W_q", "W_k", "W_v", "output"].map((name) => engine.Linear(state, name));
  return (text) => {
    const found = text.toLowerCase().match(/[\p{L}\p{N}]+|\S/gu) ?? [];
    const noun = NOUNS.find((one) => found.includes(one));
    const read = found.filter((word) => known.includes(word));
    if (!noun) return { found, read, noun, weights: read.map(() => 0) };
    const x = read.map((word) => table[known.indexOf(word)]); // (n, 4)
    const query = W_q([x[read.indexOf(noun)]]); // (1, 2)
    const [average, [weights]] = engine.scaled_dot_product_attention(query, W_k(x), W_v(x));
    return { found, read, noun, weights, logits: output(average)[0] };
  };
}

const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);

const quoted = (all) => [...new Set(all)].map((word) => `“${word}”`).join(", ");

export function picture({ found, read, noun, weights, logits }) {
  const parts = [];
  let [x, y, at] = [2, 4, 0];
  for (const word of found) {
    const isKnown = word === read[at];
    const needs = Math.round(Math.max(12 + LETTER * word.length, 34));
    const wide = Math.min(needs, WIDE - 4);
    if (x > 2 && x + wide > WIDE - 2) [x, y] = [2, y + LINE];
    const middle = `text-anchor="middle"`;
    const tight = wide < needs ? ` textLength="${wide - 8}" lengthAdjust="spacingAndGlyphs"` : "";
    const asks = isKnown && at === read.indexOf(noun);
    if (isKnown) {
      parts.push(
        `<rect x="${x}" y="${y}" width="${wide}" height="28" rx="3" fill="#0072B2" ` +
          `fill-opacity="${(0.7 * weights[at]).toFixed(3)}" stroke="${asks ? "#D55E00" : "currentColor"}" ` +
          `stroke-width="${asks ? 3 : 1}" stroke-opacity="${asks ? 1 : 0.3}"/>`,
      );
      if (noun) parts.push(words(x + wide / 2, y + 43, weights[at].toFixed(2), middle));
      at++;
    }
    parts.push(words(x + wide / 2, y + 19, safe(word), `${middle}${tight}${isKnown ? "" : ' text-decoration="line-through"'}`));
    x += wide + 5;
  }
  const shares = logits ? softmax([...logits]) : [];
  y += LINE + 8;
  shares.forEach((share, i) => {
    parts.push(
      words(2, y + 15 + 26 * i, SENSES[i]),
      `<rect x="120" y="${y + 26 * i}" width="${(180 * share).toFixed(1)}" height="20" fill="#009E73"/>`,
      words((126 + 180 * share).toFixed(1), y + 15 + 26 * i, share.toFixed(2)),
    );
  });
  const unknown = found.filter((word) => !read.includes(word));
  const most = weights.indexOf(Math.max(...weights));
  const best = shares.indexOf(Math.max(...shares));
  const text =
    (unknown.length ? `It does not know ${quoted(unknown)}, and reads the rest. ` : "") +
    (noun
      ? `“${noun}” looks most at “${read[most]}”, with ${weights[most].toFixed(2)}: ` +
        `${SENSES[best]}, ${shares[best].toFixed(2)}.`
      : `It answers for ${quoted(NOUNS)}: put one of them in.`);
  return { svg: drawing(WIDE, y + 78, safe(text), parts.join("")), text };
}

export function start({ figure, data, part, controls }) {
  const now = { sentence: first };
  const address = addressed(figure, now, {});
  now.sentence = now.sentence.slice(0, MOST);
  const load = model({ figure, data });
  const top = above(figure);
  const own = field(top, {
    label: "your sentence", value: now.sentence, most: MOST, change: (sentence) => {
      list.set(SENTENCES.indexOf(sentence));
      update({ sentence });
    },
  }); // prettier-ignore
  const list = chooser(top, {
    label: "or one of these", options: SENTENCES, value: SENTENCES.indexOf(now.sentence), change: (i) => {
      own.set(SENTENCES[i]);
      update({ sentence: SENTENCES[i] });
    },
  }); // prettier-ignore
  const say = announcer(controls);
  const answered = answering({ figure, load, say });

  /** Take up what the reader has changed; the first time, load the network. */
  function update(changes) {
    Object.assign(now, changes);
    address.keep();
    return answered((loaded) => {
      const { svg, text } = picture(reader(loaded)(now.sentence));
      part("picture").innerHTML = svg;
      say(text);
    });
  }
  if (address.given) update({});
}
