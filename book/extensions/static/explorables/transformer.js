// The layers of this book's models, in the page: as in its references (solutions/), with the same
// names in the same order. A matrix is a list of rows, each a Float32Array; sums are taken
// in double precision. Nothing here trains; a model's parameters come from a file of the page's own.

import { add, softmax } from "./matrices.js";

// --- parameters ------------------------------------------------------------------------------------

/** The half-precision numbers, all of them finite, that 16 bits each stand for. */
function halves(bits) {
  const numbers = new Float32Array(bits.length);
  const wider = new Uint32Array(numbers.buffer);
  // the same sign, exponent and fraction where single precision has them, whose exponent counts from −127, not −15
  for (let i = 0; i < bits.length; i++) wider[i] = ((bits[i] & 0x8000) << 16) | ((bits[i] & 0x7fff) << 13);
  for (let i = 0; i < bits.length; i++) numbers[i] *= 2 ** 112;
  return numbers;
}

/** The parameters in a file of the format safetensors, by their names, and the notes beside them. */
export function unpacked(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const { __metadata__: notes, ...tensors } = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const state = {};
  for (const [name, { dtype, shape, data_offsets: [begin, end] }] of Object.entries(tensors)) {
    if (dtype !== "F16") throw new TypeError(`${name} is ${dtype}, not F16`);
    const bits = new Uint16Array(buffer.slice(8 + length + begin, 8 + length + end));
    state[name] = { shape, data: halves(bits) };
  } // prettier-ignore
  return { state, notes };
}

/** A parameter as a matrix: its first axis down, all others across. */
export function rows({ shape, data }) {
  const wide = data.length / shape[0];
  return Array.from({ length: shape[0] }, (_, i) => data.subarray(i * wide, (i + 1) * wide));
}

// --- what layers are made of -----------------------------------------------------------------------

export const each = (x, change) => x.map((row) => row.map(change));

/** The sum of products from one place up to another. */
export function dot(a, b, from = 0, to = a.length) {
  let sum = 0;
  for (let k = from; k < to; k++) sum += a[k] * b[k];
  return sum;
}

export function linear(x, weight, bias) {
  return x.map((row) => {
    const y = new Float32Array(weight.length);
    // four at a time, so that no sum waits for another; what is written beyond the end is lost
    for (let j = 0; j < y.length; j += 4) {
      const a = weight[j];
      const b = weight[j + 1] ?? a;
      const c = weight[j + 2] ?? a;
      const d = weight[j + 3] ?? a;
      let first = 0;
      let second = 0;
      let third = 0;
      let fourth = 0;
      for (let k = 0; k < row.length; k++) {
        const value = row[k];
        first += value * a[k];
        second += value * b[k];
        third += value * c[k];
        fourth += value * d[k];
      }
      y[j] = first;
      y[j + 1] = second;
      y[j + 2] = third;
      y[j + 3] = fourth;
    }
    if (bias) bias.forEach((value, j) => (y[j] += value));
    return y;
  }); // (n, d_out)
}

/** Each row with mean 0 and variance 1 over its features, then times weight plus bias. */
export function layer_norm(x, weight, bias, eps = 1e-5) {
  return x.map((row) => {
    const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    const size = Math.sqrt(variance + eps);
    return row.map((value, j) => ((value - mean) / size) * weight[j] + bias[j]);
  }); // (n, d)
}

/** Each column with the mean and variance that training has found, then times weight plus bias. */
export const batch_norm = (x, mean, variance, weight, bias, eps = 1e-5) =>
  each(x, (value, j) => ((value - mean[j]) / Math.sqrt(variance[j] + eps)) * weight[j] + bias[j]); // (n, d)

export const relu = (x) => each(x, (value) => Math.max(value, 0));

const ERFC = [
  -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
  0.17087277,
];

/** 1 − erf(x), off by 2 · 10⁻⁷ of itself at most (W. H. Press et al., "Numerical Recipes"). */
export function erfc(x) {
  const t = 1 / (1 + Math.abs(x) / 2);
  const tail = t * Math.exp(-x * x + ERFC.reduceRight((sum, c) => sum * t + c, 0));
  return x < 0 ? 2 - tail : tail;
}

export const gelu = (x) => each(x, (value) => (value / 2) * erfc(-value / Math.SQRT2));

/** What a convolution sees at each place. Pixels row by row `(side², C)` → `(places, C · kernel²)`. */
export function unfold(x, side, kernel, stride = 1, padding = 0) {
  const places = (side + 2 * padding - kernel) / stride + 1;
  const channels = x[0].length;
  return Array.from({ length: places ** 2 }, (_, place) => {
    const top = Math.floor(place / places) * stride - padding;
    const left = (place % places) * stride - padding;
    const seen = new Float32Array(channels * kernel ** 2); // 0 beyond the edge
    for (let k = 0; k < kernel ** 2; k++) {
      const [i, j] = [top + Math.floor(k / kernel), left + (k % kernel)];
      if (i < 0 || j < 0 || i >= side || j >= side) continue;
      for (let c = 0; c < channels; c++) seen[c * kernel ** 2 + k] = x[i * side + j][c];
    }
    return seen;
  });
}

/** The largest of each two by two pixels: `(side², C)` → `((side/2)², C)`. */
export const max_pool = (x, side) =>
  unfold(x, side, 2, 2).map((seen) =>
    Float32Array.from({ length: seen.length / 4 }, (_, c) => Math.max(...seen.subarray(4 * c, 4 * c + 4))),
  );

/**
 * Weighted averages of values: q `(n_q, d_k)`, k and v `(n_k, d_k)` → output and weights; for one of
 * several heads, its d_k features are those `from` a place `to` another.
 */
export function scaled_dot_product_attention(q, k, v, mask, scale, from = 0, to = q[0].length) {
  scale ??= (to - from) ** -0.5;
  const weights = q.map((query, i) => {
    const scores = k.map((key, j) => (mask && !mask(i, j) ? -Infinity : dot(query, key, from, to) * scale));
    return softmax(scores);
  }); // (n_q, n_k)
  const output = weights.map((row) => {
    const sum = new Float64Array(to - from);
    row.forEach((weight, j) => {
      for (let c = 0; weight && c < sum.length; c++) sum[c] += weight * v[j][from + c];
    });
    return sum;
  }); // (n_q, d_k)
  return [output, weights];
}

export const causal_mask = (i, j) => j <= i;

export const argmax = (row) => row.indexOf(Math.max(...row));

// --- layers: each takes the parameters under a name, and returns its forward ------------------------

export function Linear(state, name) {
  const [weight, bias] = [rows(state[`${name}.weight`]), state[`${name}.bias`]?.data];
  return (x) => linear(x, weight, bias);
}

export function LayerNorm(state, name, eps) {
  const [weight, bias] = [state[`${name}.weight`].data, state[`${name}.bias`].data];
  return (x) => layer_norm(x, weight, bias, eps);
}

/** Attention of each head to its own slice of the features: merged output `(n_q, d)` and weights. */
function by_head(q, k, v, num_heads, mask, scale) {
  const d_k = q[0].length / num_heads;
  const heads = Array.from({ length: num_heads }, (_, h) => {
    return scaled_dot_product_attention(q, k, v, mask, scale, h * d_k, (h + 1) * d_k);
  });
  const merged = q.map((row, i) => {
    const all = new Float32Array(row.length);
    heads.forEach(([output], h) => all.set(output[i], h * d_k));
    return all;
  });
  return [merged, heads.map(([, weights]) => weights)];
}

/**
 * `mask(i, j)` says whether query i may attend to key j. `cache`, an object, keeps keys and values
 * for the queries to come; `scale` stands in for 1 / √d_k. Returns output and weights, head by head.
 * Keys and values may come from vectors of another width, as in chapter 12's `CrossAttention`.
 */
export function MultiHeadAttention(state, name, num_heads) {
  const [W_q, W_k, W_v, W_o] = ["W_q", "W_k", "W_v", "W_o"].map((part) => Linear(state, `${name}.${part}`));
  return (query, key, value, { mask, cache = {}, scale } = {}) => {
    const q = W_q(query); // (n_q, d_model)
    const k = (cache.k = [...(cache.k ?? []), ...W_k(key)]); // (n_k, d_model)
    const v = (cache.v = [...(cache.v ?? []), ...W_v(value)]); // (n_k, d_model)
    const past = k.length - key.length;
    const [merged, weights] = by_head(q, k, v, num_heads, mask && ((i, j) => mask(past + i, j)), scale);
    return [W_o(merged), weights];
  };
}

/** Self-attention with one projection for queries, keys and values. */
export function PackedAttention(state, name, num_heads) {
  const [qkv, proj] = ["qkv", "proj"].map((part) => Linear(state, `${name}.${part}`));
  return (x) => {
    const all = qkv(x); // (n, 3 d_model)
    const d_model = x[0].length;
    const [q, k, v] = [0, 1, 2].map((i) => all.map((row) => row.subarray(i * d_model, (i + 1) * d_model)));
    const [merged, weights] = by_head(q, k, v, num_heads);
    return [proj(merged), weights];
  };
}

/** ViT's layer: both sublayers behind a norm. */
export function ViTBlock(state, name, num_heads) {
  const attn = PackedAttention(state, `${name}.attn`, num_heads);
  const [linear1, linear2] = ["linear1", "linear2"].map((part) => Linear(state, `${name}.${part}`));
  const [norm1, norm2] = ["norm1", "norm2"].map((part) => LayerNorm(state, `${name}.${part}`, 1e-6));
  return (x, seen = {}) => {
    const [output, weights] = attn(norm1(x));
    seen.attn = weights;
    x = add(x, output);
    return add(x, linear2(gelu(linear1(norm2(x))))); // (n, d_model)
  };
}

/** GPT-2's layer: both sublayers behind a norm, under a mask and with a cache. */
export function DecoderBlock(state, name, num_heads) {
  const attn = MultiHeadAttention(state, `${name}.attn`, num_heads);
  const [linear1, linear2] = ["linear1", "linear2"].map((part) => Linear(state, `${name}.${part}`));
  const [norm1, norm2] = ["norm1", "norm2"].map((part) => LayerNorm(state, `${name}.${part}`));
  return (x, { mask, cache, seen = {} } = {}) => {
    const h = norm1(x);
    const [output, weights] = attn(h, h, h, { mask, cache });
    seen.attn = weights;
    x = add(x, output);
    return add(x, linear2(gelu(linear1(norm2(x))))); // (n, d_model)
  };
}

/**
 * Self-attention, then a feed-forward network. What its attention looks at is left in `seen`. BERT's
 * has GELU, another `eps` in its norms, and another name for its attention. `queries` may be some of x.
 */
export function EncoderLayer(state, name, num_heads, { attention = "self_attn", activation = relu, eps } = {}) {
  const self_attn = MultiHeadAttention(state, `${name}.${attention}`, num_heads);
  const [linear1, linear2] = ["linear1", "linear2"].map((part) => Linear(state, `${name}.${part}`));
  const [norm1, norm2] = ["norm1", "norm2"].map((part) => LayerNorm(state, `${name}.${part}`, eps));
  return (x, { mask, scale, seen = {}, queries = x } = {}) => {
    const attend = (h) => {
      const [output, weights] = self_attn(h, x, x, { mask, scale });
      seen.self_attn = weights;
      return output;
    };
    const feed_forward = (h) => linear2(activation(linear1(h)));
    const h = norm1(add(queries, attend(queries)));
    return norm2(add(h, feed_forward(h))); // (n, d_model)
  };
}

/** Self-attention, cross-attention to a memory, then a feed-forward network; chapter 12's has GELU. */
export function DecoderLayer(state, name, num_heads, activation = relu) {
  const self_attn = MultiHeadAttention(state, `${name}.self_attn`, num_heads);
  const cross_attn = MultiHeadAttention(state, `${name}.cross_attn`, num_heads);
  const [linear1, linear2] = ["linear1", "linear2"].map((part) => Linear(state, `${name}.${part}`));
  const [norm1, norm2, norm3] = ["norm1", "norm2", "norm3"].map((part) => LayerNorm(state, `${name}.${part}`));
  let kept = {};
  return (x, memory, { mask, scale, cache, seen = {} } = {}) => {
    const attend = (h) => {
      const [output, weights] = self_attn(h, h, h, { mask, scale, cache });
      seen.self_attn = weights;
      return output;
    };
    const consult = (h) => {
      const news = memory === kept.memory ? [] : memory; // its keys and values do not change
      if (news.length) kept = { memory, cache: {} };
      const [output, weights] = cross_attn(h, news, news, { scale, cache: kept.cache });
      seen.cross_attn = weights;
      return output;
    };
    const feed_forward = (h) => linear2(activation(linear1(h)));
    x = norm1(add(x, attend(x)));
    x = norm2(add(x, consult(x)));
    return norm3(add(x, feed_forward(x))); // (n_q, d_model)
  };
}

/** A vector for each token, times √d_model; and, from the same numbers, a score for each token. */
export class TokenEmbedding {
  constructor(state, name) {
    this.weight = rows(state[`${name}.weight`]);
  }

  forward(ids) {
    const factor = Math.sqrt(this.weight[0].length);
    return ids.map((id) => this.weight[id].map((value) => value * factor)); // (n, d_model)
  }

  logits(h) {
    return linear(h, this.weight); // (n, vocab_size)
  }
}
