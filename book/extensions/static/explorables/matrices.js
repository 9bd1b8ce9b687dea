// Small matrices as lists of rows, for explorables that compute; no more than what they need.

export const multiply = (a, b) =>
  a.map((row) => b[0].map((_, j) => row.reduce((sum, value, k) => sum + value * b[k][j], 0)));

export const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));

export const add = (a, b) => a.map((row, i) => row.map((value, j) => value + b[i][j]));

export const scaled = (a, factor) => a.map((row) => row.map((value) => value * factor));

export const norm = (a) => Math.sqrt(a.flat().reduce((sum, value) => sum + value ** 2, 0));

/** Weights of a row of scores; −∞ gets 0. */
export function softmax(scores) {
  const largest = Math.max(...scores);
  const counts = scores.map((score) => Math.exp(score - largest));
  const total = counts.reduce((sum, count) => sum + count, 0);
  return counts.map((count) => count / total);
}

export const identity = (n) => Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => Number(i === j)));

/** The mean of tables, one for each head. */
export const mean_over_heads = (heads) =>
  heads[0].map((row, i) => Array.from(row, (_, j) => heads.reduce((sum, table) => sum + table[i][j], 0) / heads.length));

/** What each position has drawn from each token: half of the weights and half of itself, layer by layer. */
export const attention_rollout = (weights) =>
  weights.reduce(
    (product, heads) =>
      multiply(scaled(add(identity(product.length), mean_over_heads(heads)), 1 / 2), product), // (n, n)
    identity(weights[0][0].length),
  );

/** Each row with mean 0 and variance 1, as a layer norm that has learnt nothing leaves it. */
export function normalised(a) {
  return a.map((row) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    return row.map((value) => (value - mean) / Math.sqrt(variance + 1e-5));
  });
}

/** Sines in the even columns, cosines in the odd ones: `(length, d_model)`. */
export const sinusoidal_encoding = (length, d_model, base = 10000) =>
  Array.from({ length }, (_, position) =>
    Float32Array.from({ length: d_model }, (_, j) => {
      const angle = position * base ** (-2 * Math.floor(j / 2) / d_model);
      return j % 2 ? Math.cos(angle) : Math.sin(angle);
    }),
  );

/** A function that draws from a normal distribution; the same seed, the same numbers. */
export function normals(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}
