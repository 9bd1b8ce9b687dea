// Chapter 10: how fast an answer of its BERT changes with each attention weight, and what follows
// from that. A part is passed backwards: from the slopes by what came out of it to those by what
// went in, with `dy` for the slopes of the answer by y.

import { add, identity, mean_over_heads, multiply, softmax } from "./matrices.js";
import { dot, erfc, gelu, LayerNorm, Linear, linear, MultiHeadAttention, rows } from "./transformer.js";

const EPS = 1e-12;

const columns = (x) => Array.from(x[0], (_, c) => x.map((row) => row[c]));

const linear_back = (dy, weight) => linear(dy, columns(weight));

function layer_norm_back(x, dy, weight) {
  return x.map((row, i) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const size = Math.sqrt(row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length + EPS);
    const normed = row.map((value) => (value - mean) / size);
    const d = dy[i].map((slope, j) => slope * weight[j]);
    const level = d.reduce((sum, slope) => sum + slope, 0) / d.length;
    const along = dot(d, normed) / d.length;
    return d.map((slope, j) => (slope - level - along * normed[j]) / size);
  });
}

/** GELU is x Φ(x), so its slope is Φ(x) + x φ(x). */
const gelu_back = (x, dy) =>
  x.map((row, i) =>
    row.map((value, j) => {
      const density = Math.exp((-value * value) / 2) / Math.sqrt(2 * Math.PI);
      return dy[i][j] * (erfc(-value / Math.SQRT2) / 2 + value * density);
    }),
  );

/** One head: slopes by its weights, queries, keys and values. */
function attention_back(q, k, v, weights, dy) {
  const scale = q[0].length ** -0.5;
  const slopes = linear(dy, v); // (n, n)
  const scores = slopes.map((row, i) => {
    const mean = dot(row, weights[i]);
    return row.map((slope, j) => weights[i][j] * (slope - mean) * scale);
  });
  return [slopes, linear(scores, columns(k)), linear(columns(scores), columns(q)), linear(columns(weights), columns(dy))];
}

/** A layer of BERT with x going in: slopes by each head's weights, and by x. */
function layer_back(state, name, num_heads, x, dy) {
  const part = (which) => Linear(state, `${name}.${which}`);
  const weight = (which) => rows(state[`${name}.${which}.weight`]);
  const [output, weights] = MultiHeadAttention(state, `${name}.attention`, num_heads)(x, x, x);
  const sum1 = add(x, output);
  const middle = LayerNorm(state, `${name}.norm1`, EPS)(sum1);
  const wide = part("linear1")(middle);
  const sum2 = add(middle, part("linear2")(gelu(wide)));

  let d = layer_norm_back(sum2, dy, state[`${name}.norm2.weight`].data);
  const inner = gelu_back(wide, linear_back(d, weight("linear2")));
  d = add(d, linear_back(inner, weight("linear1")));
  d = layer_norm_back(sum1, d, state[`${name}.norm1.weight`].data);

  const names = ["attention.W_q", "attention.W_k", "attention.W_v"];
  const merged = linear_back(d, weight("attention.W_o")); // (n, d_model)
  const d_k = x[0].length / num_heads;
  const own = names.map((which) => part(which)(x));
  const heads = weights.map((table, h) => {
    const slice = (matrix) => matrix.map((row) => row.subarray(h * d_k, (h + 1) * d_k));
    return attention_back(...own.map(slice), table, slice(merged));
  });
  names.forEach((which, k) => {
    const all = x.map((_, i) => heads.flatMap((head) => [...head[k + 1][i]]));
    d = add(d, linear_back(all, weight(which)));
  });
  return [heads.map(([slopes]) => slopes), d];
}

/** Slopes of log p of a token at a place by all weights, (heads, n, n) for each layer of `seen`. */
export function answer_slopes(state, num_heads, seen, vectors, place, token) {
  const h = Linear(state, "transform")([vectors[place]]);
  const activated = gelu(h);
  const table = rows(state["embeddings.tokens.weight"]);
  const logits = linear(LayerNorm(state, "norm", EPS)(activated), table, state.bias.data)[0];
  let d = [softmax(Array.from(logits)).map((p, id) => (id === token) - p)];
  d = layer_norm_back(activated, linear_back(d, table), state["norm.weight"].data);
  d = linear_back(gelu_back(h, d), rows(state["transform.weight"]));
  d = vectors.map((row, i) => (i === place ? d[0] : row.map(() => 0))); // (n, d_model)
  const slopes = [];
  for (let l = seen.length - 1; l >= 0; l--) {
    [slopes[l], d] = layer_back(state, `layers.${l}`, num_heads, seen[l].x, d);
  }
  return slopes;
}

/** As in the chapter: what each position has drawn from each token. */
export function attention_relevance(weights, slopes) {
  return weights.reduce((R, heads, l) => {
    const speaks_for = (table, h) => table.map((row, i) => row.map((w, j) => Math.max(w * slopes[l][h][i][j], 0)));
    return add(R, multiply(mean_over_heads(heads.map(speaks_for)), R));
  }, identity(weights[0][0].length));
}
