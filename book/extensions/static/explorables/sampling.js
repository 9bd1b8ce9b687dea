// Chapter 9: the next token's distribution under a temperature, top-k and top-p, moved by hand. The
// logits come from the page's own model; the cutting is done here, after it has been tried on cases
// whose answers the reference gave.

import { announcer, chooser, slider } from "./parts.js";

/** Probabilities of logits that stand in falling order: temperature, then top-k, then top-p. */
export function cut(logits, temperature, k, p) {
  const largest = logits[0];
  const counts = logits.map((z) => Math.exp((z - largest) / temperature));
  const whole = counts.reduce((sum, count) => sum + count, 0);
  const shares = counts.map((count) => count / whole);
  const left = shares.slice(0, k).reduce((sum, share) => sum + share, 0);
  let kept = Math.min(k, shares.length);
  if (p < 1) {
    let reached = 0;
    for (kept = 0; kept < Math.min(k, shares.length) && reached < p; kept += 1) {
      reached += shares[kept] / left;
    }
  }
  const stays = shares.slice(0, kept).reduce((sum, share) => sum + share, 0);
  return { shares, kept, stays, drawn: shares.map((s, i) => (i < kept ? s / stays : 0)) };
}

export function start({ figure, data, part, controls }) {
  for (const { temperature, k, p, first } of data.test) {
    const { drawn } = cut(data.entries[0].logits, temperature, k, p);
    if (first.some((share, i) => !(Math.abs(share - drawn[i]) < 1e-6))) {
      throw new Error("the page's probabilities differ from the reference's");
    }
  }

  const svg = figure.querySelector("svg");
  const rows = [...part("bars").children];
  const now = { ...data.start };

  chooser(controls, {
    label: "beginning",
    options: data.entries.map((entry) => `${entry.text} …`),
    change: (entry) => {
      now.entry = entry;
      draw();
    },
  });
  const say = announcer(controls);

  function draw() {
    const entry = data.entries[now.entry];
    const temperature = data.temperatures[now.temperature];
    const found = cut(entry.logits, temperature, data.ks[now.k], data.ps[now.p]);
    const shown = rows.length - 1;
    rows.forEach((row, i) => {
      const [label, bar, value] = row.children;
      const rest = (all) => all.slice(shown).reduce((sum, share) => sum + share, 0);
      const drawn = i < shown ? found.drawn[i] : rest(found.drawn);
      const share = drawn > 0 ? drawn : i < shown ? found.shares[i] : rest(found.shares);
      label.textContent = i < shown ? entry.tokens[i] : "all others";
      bar.setAttribute("width", (data.wide * share).toFixed(1));
      bar.setAttribute("fill-opacity", drawn > 0 ? 1 : 0);
      value.setAttribute("x", (data.left + data.wide * share + 6).toFixed(1));
      value.textContent = drawn > 0 ? drawn.toFixed(3) : "0";
      value.setAttribute("opacity", drawn > 0 ? 1 : 0.6);
    });
    const text =
      `${found.kept} of ${entry.logits.length} tokens ${found.kept === 1 ? "is" : "are"} kept; at ` +
      `temperature ${temperature.toFixed(1)} they had ${(100 * found.stays).toFixed(1)} % of the ` +
      `probability. The likeliest, “${entry.tokens[0]}”, is now drawn with ` +
      `${found.drawn[0].toFixed(3)}.`;
    say(text);
    svg.setAttribute("aria-label", `The likeliest tokens after “${entry.text}”, as bars. ${text}`);
  }

  const sliders = [
    ["temperature τ", "temperature", data.temperatures, (t) => t.toFixed(1)],
    ["top-k", "k", data.ks, (k) => (k === data.ks.at(-1) ? "all tokens" : `${k} tokens`)],
    ["top-p", "p", data.ps, (p) => (p === 1 ? "everything" : `a share of ${p}`)],
  ];
  for (const [label, key, values, spoken] of sliders) {
    slider(controls, {
      label,
      min: 0,
      max: values.length - 1,
      step: 1,
      value: now[key],
      say: (index) => spoken(values[index]),
      change: (index) => {
        now[key] = index;
        draw();
      },
    });
  }
  draw();
}
