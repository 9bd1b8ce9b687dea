// Chapter 9: how a token is chosen from a model's distribution, in the order of
// `next_token_probabilities`: temperature, top-k, top-p, and a draw that a seed decides.

/** Probabilities of logits that stand in falling order. A temperature of 0 keeps the first alone. */
export function cut(logits, temperature, k, p) {
  const [divisor, most] = temperature === 0 ? [1, 1] : [temperature, k];
  const counts = logits.map((z) => Math.exp((z - logits[0]) / divisor));
  const whole = counts.reduce((sum, count) => sum + count, 0);
  const shares = counts.map((count) => count / whole);
  const left = shares.slice(0, most).reduce((sum, share) => sum + share, 0);
  let kept = Math.min(most, shares.length);
  if (p < 1) {
    let reached = 0;
    for (kept = 0; kept < Math.min(most, shares.length) && reached < p; kept += 1) {
      reached += shares[kept] / left;
    }
  }
  const stays = shares.slice(0, kept).reduce((sum, share) => sum + share, 0);
  return { shares, kept, stays, drawn: shares.map((s, i) => (i < kept ? s / stays : 0)) };
}

/** A number from 0 to 1 for a seed and a place of the text; the same two, the same number. */
export function luck(seed, place) {
  let x = Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(place + 1, 0x85ebca6b);
  for (const factor of [0x7feb352d, 0x846ca68b]) x = Math.imul(x ^ (x >>> 16), factor);
  return ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
}

/** Which of some probabilities a number from 0 to 1 falls on. */
export function draw(probabilities, number) {
  let reached = 0;
  const found = probabilities.findIndex((p) => (reached += p) > number);
  return found < 0 ? probabilities.findLastIndex((p) => p > 0) : found; // rounding
}
