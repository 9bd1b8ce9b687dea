// Chapter 12: the three uses of BLIP's one text model: what each switches off, which row it reads, and
// how often the models have to run for some pictures and texts.

import { chooser, drawing, live, slider, words } from "./parts.js";

const TOKENS = ["small", "a", "ring"];
const STEPS = 4; // the tokens of a caption that is written: three words and the end
const USES = [
  { name: "search", first: "[CLS]", looks: false, causal: false, out: ["a vector of the text;", "its cosine with the picture's"], loss: "contrastive loss (ITC)" },
  { name: "match", first: "[ENC]", looks: true, causal: false, out: ["linear layer:", "do they belong together?"], loss: "matching loss (ITM)" },
  { name: "write", first: "[DEC]", looks: true, causal: true, out: ["at each position, logits", "of the next token"], loss: "loss of the next token (LM)" },
]; // prettier-ignore

const written = (count) => count.toLocaleString("en");

/** How often the text model runs, for a text or one more token of it, and how many cosines are taken. */
export function runs(use, pictures, texts) {
  if (use === 0) return { text: texts, cosines: pictures * texts };
  return { text: use === 1 ? pictures * texts : pictures * STEPS, cosines: 0 };
}

export function picture({ use, pictures, texts }) {
  const { name, first, looks, causal, out, loss } = USES[use];
  const parts = [];
  const box = (x, y, wide, label, on = true) =>
    parts.push(
      `<rect x="${x}" y="${y}" width="${wide}" height="28" rx="4" fill="#0072B2" fill-opacity="${on ? 0.15 : 0}" ` +
        `stroke="currentColor" stroke-opacity="${on ? 0.8 : 0.3}" ${on ? "" : 'stroke-dasharray="4 3"'}/>`,
      words(x + wide / 2, y + 19, label, `text-anchor="middle" ${on ? "" : 'fill-opacity="0.45"'}`),
    );
  const arrow = (path, x, y, side = false) =>
    parts.push(
      `<path d="${path}L${x} ${y}${side ? "m-6 -4l6 4l-6 4" : "m-4 6l4 -6l4 6"}" fill="none" stroke="currentColor"/>`,
    );
  const middle = 178; // of the text model
  out.forEach((line, i) => parts.push(words(middle, 16 + 17 * i, line, 'text-anchor="middle"')));
  arrow(`M${middle} 62`, middle, 42);
  box(112, 62, 132, "feed-forward");
  if (looks) arrow(`M${middle} 116`, middle, 90);
  box(112, 116, 132, "cross-attention", looks);
  if (looks) arrow(`M${middle} 170`, middle, 144);
  else arrow(`M${middle} 170V156H252V103H${middle}`, middle, 90); // past the picture
  box(112, 170, 132, "self-attention");
  arrow(`M${middle} 218`, middle, 198);
  [first, ...TOKENS].forEach((token, i) => {
    const read = causal || i === 0; // whose rows are used in the end
    parts.push(words([126, 176, 216, 248][i], 236, token, `text-anchor="middle" ${read ? 'font-weight="bold"' : ""}`));
  });
  box(2, 170, 76, "encoder");
  parts.push(words(40, 236, "picture", 'text-anchor="middle"'));
  arrow("M40 218", 40, 198);
  parts.push(words(40, 135, "memory", 'text-anchor="middle"'));
  arrow("M40 170", 40, 142);
  if (looks) arrow("M70 130", 112, 130, true);
  else {
    arrow("M40 118", 40, 42);
    parts.push(words(40, 33, "its vector", 'text-anchor="middle"'));
  }
  parts.push(words(262, 160, "sees"));
  for (let i = 0; i < 4; i++) {
    for (let j = 0; j < 4; j++) {
      const seen = !causal || j <= i;
      const at = `x="${262 + 14 * j}" y="${168 + 14 * i}" width="14" height="14"`;
      parts.push(`<rect ${at} fill="#0072B2" fill-opacity="${seen ? 0.6 : 0}" stroke="currentColor" stroke-opacity="0.4"/>`);
    }
  }
  const count = runs(use, pictures, texts);
  const lines = [
    `encoder runs: ${written(pictures)}, one a picture`,
    `text model runs: ${written(count.text)}, one ${["a text", "a pair", "a token"][use]}`,
    use ? "" : `cosines: ${written(count.cosines)}, one a pair`,
  ];
  parts.push(words(2, 268, `learns from the ${loss}`));
  lines.forEach((line, i) => parts.push(words(2, 294 + 20 * i, line)));
  const text =
    `To ${name}: the first token is ${first}, self-attention sees ${causal ? "what is before" : "both sides"}, ` +
    `cross-attention ${looks ? "looks at the picture" : "is skipped"}. ` +
    `For ${written(pictures)} ${pictures > 1 ? "pictures" : "picture"}` +
    (use < 2 ? ` and ${written(texts)} texts` : "") +
    `, the text model runs ${written(count.text)} times${use ? "" : `, and ${written(count.cosines)} cosines are taken`}.`;
  return { svg: drawing(352, 342, text, parts.join("")), text };
}

export const first = { use: 0, pictures: 1000, texts: 1000000 };

export function start({ part, controls }) {
  const state = { ...first };
  const show = live({ part, controls }, picture, state);
  chooser(controls, { label: "use", options: USES.map(({ name }) => name), change: (use) => show({ use }) });
  for (const [label, low, most] of [["pictures", 0, 6], ["texts", 1, 6]]) {
    slider(controls, {
      label, min: low, max: most, step: 1, value: Math.log10(state[label]),
      say: (power) => written(10 ** power), change: (power) => show({ [label]: 10 ** power }),
    }); // prettier-ignore
  }
}
