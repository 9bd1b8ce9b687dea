// Chapter 12: four pictures and four texts as directions in a plane. Turn a text, and see the table of
// cosines, what a temperature makes of it, row by row or column by column, and the contrastive loss.

import { scaled, softmax, transpose } from "./matrices.js";
import { chooser, drawing, live, slider, words, written } from "./parts.js";

const PICTURES = [0, 90, 180, 270]; // degrees
const B = PICTURES.length;
const TEMPERATURES = [1, 0.5, 0.2, 0.1, 0.07, 0.05, 0.02];
const WAYS = ["a picture looks for its text", "a text looks for its picture"];
const radians = (degrees) => (degrees * Math.PI) / 180;

/** Cosines, a row for each picture; the shares of rows and of columns; and the loss of both. */
export function compared(texts, temperature) {
  const table = PICTURES.map((a) => texts.map((b) => Math.cos(radians(a - b))));
  const logits = scaled(table, 1 / temperature);
  const rows = logits.map(softmax);
  const columns = transpose(transpose(logits).map(softmax));
  const cost = (shares) => -shares.reduce((sum, row, i) => sum + Math.log(row[i]), 0) / B;
  return { table, shares: [rows, columns], loss: (cost(rows) + cost(columns)) / 2 };
}

export function picture({ texts, temperature, way, text: chosen }) {
  const { table, shares, loss } = compared(texts, temperature);
  const [cx, cy, r] = [64, 122, 38];
  const place = (degrees, far) => [cx + far * Math.cos(radians(degrees)), cy - far * Math.sin(radians(degrees))];
  const parts = [`<circle cx="${cx}" cy="${cy}" r="${r}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>`];
  PICTURES.forEach((degrees, i) => {
    const [x, y] = place(degrees, r);
    const [tx, ty] = place(degrees, r + 15).map(Math.round);
    parts.push(
      `<path d="M${cx} ${cy}L${x.toFixed(1)} ${y.toFixed(1)}" stroke="#0072B2" stroke-width="3"/>`,
      words(tx, ty + 5, `P${i}`, 'text-anchor="middle"'),
    );
  });
  texts.forEach((degrees, j) => {
    const [x, y] = place(degrees, r).map((v) => v.toFixed(1));
    parts.push(`<circle cx="${x}" cy="${y}" r="${j === chosen ? 8 : 5}" fill="#E69F00"/>`);
  });
  table.forEach((row, i) => {
    parts.push(words(146, 58 + 46 * i, `P${i}`, 'text-anchor="end"'));
    row.forEach((cosine, j) => {
      const [x, y] = [152 + 48 * j, 30 + 46 * i];
      const share = shares[way][i][j];
      if (!i) parts.push(words(x + 23, 20, `T${j}`, `text-anchor="middle" ${j === chosen ? 'font-weight="bold"' : ""}`));
      parts.push(
        `<rect x="${x}" y="${y}" width="46" height="44" fill="#0072B2" fill-opacity="${(0.55 * share).toFixed(3)}" ` +
          `stroke="${i === j ? "#E69F00" : "currentColor"}" stroke-width="${i === j ? 2.5 : 1}" stroke-opacity="${i === j ? 1 : 0.25}"/>`,
        words(x + 23, y + 18, written(cosine), 'text-anchor="middle"'),
        words(x + 23, y + 37, `${(100 * share).toFixed(0)} %`, 'text-anchor="middle"'),
      );
    });
  });
  parts.push(words(2, 240, `in each cell: cosine, and share of its ${way ? "column" : "row"}`));
  const text =
    `Temperature ${temperature}: loss ${loss.toFixed(3)}; ln ${B} = ${Math.log(B).toFixed(3)}. ` +
    `Text ${chosen} at ${written(texts[chosen], 0)}°, its picture at ${PICTURES[chosen]}°: ` +
    `cosine ${written(table[chosen][chosen])}, share ${shares[way][chosen][chosen].toFixed(3)}.`;
  return { svg: drawing(348, 250, text, parts.join("")), text };
}

export const first = { texts: [35, 60, 215, 250], temperature: 0.2, way: 0, text: 0 };

export function start({ part, controls }) {
  const state = structuredClone(first);
  const show = live({ part, controls }, picture, state);
  slider(controls, {
    label: "temperature", min: 0, max: TEMPERATURES.length - 1, step: 1, value: TEMPERATURES.indexOf(state.temperature),
    say: (i) => `${TEMPERATURES[i]}`, change: (i) => show({ temperature: TEMPERATURES[i] }),
  }); // prettier-ignore
  chooser(controls, { label: "shares", options: WAYS, change: (way) => show({ way }) });
  chooser(controls, {
    label: "text", options: PICTURES.map((_, i) => `text ${i}`),
    change: (text) => {
      show({ text });
      angle.put(state.texts[text]);
    },
  }); // prettier-ignore
  const angle = slider(controls, {
    label: "its direction", min: 0, max: 355, step: 5, value: state.texts[0], say: (degrees) => `${degrees} degrees`,
    change: (degrees) => {
      state.texts[state.text] = degrees;
      show({});
    },
  }); // prettier-ignore
}
