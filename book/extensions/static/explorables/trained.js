// The book's trained models, in the page: each from its parameters, with the layers of transformer.js,
// and decoding as in the references (solutions/). Nothing here trains.

import { add, sinusoidal_encoding, softmax } from "./matrices.js";
import { argmax, batch_norm, causal_mask, each, gelu, linear, max_pool, relu, rows, unfold } from "./transformer.js";
import { DecoderBlock, DecoderLayer, EncoderLayer, LayerNorm, Linear, TokenEmbedding, ViTBlock } from "./transformer.js";

export * from "./transformer.js";
export { sinusoidal_encoding };

/** All layers whose parameters stand under a name, in their order. */
const layers = (state, name, Layer, num_heads) =>
  [...new Set(Object.keys(state).map((key) => key.match(`^${name}\\.\\d+`)?.[0]))]
    .filter(Boolean)
    .map((key) => Layer(state, key, num_heads));

/** Chapter 7's model, for one source without padding. What is in `without` is switched off. */
export class Transformer {
  constructor(state, num_heads) {
    this.source_embedding = new TokenEmbedding(state, "source_embedding");
    this.target_embedding = new TokenEmbedding(state, "target_embedding");
    this.encoder_layers = layers(state, "encoder_layers", EncoderLayer, num_heads);
    this.decoder_layers = layers(state, "decoder_layers", DecoderLayer, num_heads);
    this.without = new Set(); // of "scale", "mask", "positions"
  }

  embed(embedding, ids, past = 0) {
    const x = embedding.forward(ids.slice(past));
    return this.without.has("positions") ? x : add(x, sinusoidal_encoding(ids.length, x[0].length).slice(past)); // (n, d_model)
  }

  get scale() {
    return this.without.has("scale") ? 1 : undefined;
  }

  /** Ids of the source → the memory; `seen` gets an object with weights for each layer. */
  encode(source, seen = []) {
    let x = this.embed(this.source_embedding, source); // (n_s, d_model)
    this.encoder_layers.forEach((layer, i) => (x = layer(x, { scale: this.scale, seen: (seen[i] = {}) })));
    return x;
  }

  /** `caches`, one for each layer, have what is known of the tokens before, which then are not computed again. */
  decode(target, memory, seen = [], caches = []) {
    const mask = this.without.has("mask") ? undefined : causal_mask;
    const kept = mask ? caches : []; // without a mask, the past changes
    const rest = { mask, scale: this.scale };
    let x = this.embed(this.target_embedding, target, kept[0]?.k.length); // (n_t, d_model)
    this.decoder_layers.forEach(
      (layer, i) => (x = layer(x, memory, { ...rest, cache: (kept[i] ??= {}), seen: (seen[i] = {}) })),
    );
    return x;
  }

  logits(target, memory, seen, caches) {
    return this.target_embedding.logits(this.decode(target, memory, seen, caches)); // (n_t, target_vocab)
  }
}

/** Chapter 11's model, for pictures with one channel. */
export class VisionTransformer {
  constructor(state, num_heads) {
    const kernel = state["patches.projection.weight"]; // (d_model, 1, patch, patch)
    this.patches = [rows(kernel), state["patches.projection.bias"].data];
    this.patch_size = kernel.shape[3];
    this.cls_token = state.cls_token.data;
    this.positions = rows({ shape: state.positions.shape.slice(1), data: state.positions.data });
    this.blocks = layers(state, "blocks", ViTBlock, num_heads);
    this.norm = LayerNorm(state, "norm", 1e-6);
    this.head = Linear(state, "head");
  }

  /** Pixels row by row, 0 for paper and 1 for ink; `seen` gets an object with weights for each block. */
  logits(pixels, seen = []) {
    const image = Array.from(pixels, (ink) => Float32Array.of(ink)); // (side², 1)
    const cut = unfold(image, Math.sqrt(pixels.length), this.patch_size, this.patch_size); // (g², patch²)
    let x = add([this.cls_token, ...linear(cut, ...this.patches)], this.positions); // (1 + g², d_model)
    this.blocks.forEach((block, i) => (x = block(x, (seen[i] = {}))));
    return this.head(this.norm([x[0]]))[0]; // (num_classes,)
  }
}

/** Chapter 12's captioner: convolutions, a block of ViT, and a text side that looks at its places. */
export class Captioner {
  constructor(state, num_heads = 4) {
    const norm = (name) => ["running_mean", "running_var", "weight", "bias"].map((part) => state[`${name}.${part}`].data);
    this.stem = [0, 4, 8].map((i) => [rows(state[`stem.${i}.weight`]), state[`stem.${i}.bias`].data, norm(`stem.${i + 1}`)]);
    this.places = rows({ shape: state.places.shape.slice(1), data: state.places.data });
    this.block = ViTBlock(state, "blocks.0", num_heads);
    this.norm = LayerNorm(state, "norm");
    this.tokens = rows(state["tokens.weight"]);
    this.positions = rows(state["positions.weight"]);
    this.layers = ["layers.0", "layers.1"].map((name) => DecoderLayer(state, name, num_heads, gelu));
  }

  /** A picture, 32 × 32 pixels row by row, 0 for paper and 1 for ink → the memory, 8 × 8 places. */
  encode(pixels) {
    let x = Array.from(pixels, (ink) => Float32Array.of(ink)); // (32², 1)
    this.stem.forEach(([weight, bias, norm], i) => {
      const side = 32 / 2 ** i;
      x = relu(batch_norm(linear(unfold(x, side, 3, 1, 1), weight, bias), ...norm));
      if (i < 2) x = max_pool(x, side); // (16², 32), then (8², 32)
    });
    return this.norm(this.block(add(x, this.places))); // (8², d_encoder)
  }

  logits(ids, memory, seen = []) {
    let x = ids.map((id, i) => this.tokens[id].map((value, j) => value + this.positions[i][j])); // (n, d_model)
    this.layers.forEach((layer, i) => (x = layer(x, memory, { mask: causal_mask, seen: (seen[i] = {}) })));
    return linear(x, this.tokens); // (n, vocab_size)
  }
}

/** Chapter 9's language model. */
export class GPT {
  constructor(state, num_heads) {
    [this.tokens, this.positions] = ["tokens", "positions"].map((part) => rows(state[`${part}.weight`]));
    this.blocks = layers(state, "blocks", DecoderBlock, num_heads);
    this.norm = LayerNorm(state, "norm");
  }

  /** The logits of new tokens; `caches`, one for each block, have the keys and values of those before. */
  step(ids, caches, seen = []) {
    const past = caches[0].k?.length ?? 0;
    const embed = (id, i) => this.tokens[id].map((value, j) => value + this.positions[past + i][j]);
    let x = ids.map(embed); // (n, d_model)
    this.blocks.forEach((block, i) => (x = block(x, { mask: causal_mask, cache: caches[i], seen: (seen[i] = {}) })));
    return linear(this.norm(x), this.tokens); // (n, vocab_size)
  }
}

/** Chapter 10's BERT, for one text in segment 0. */
export class Bert {
  constructor(state, num_heads = 4) {
    const how = { attention: "attention", activation: gelu, eps: 1e-12 };
    const tables = ["tokens", "positions", "segments"].map((part) => rows(state[`embeddings.${part}.weight`]));
    [this.tokens, this.positions, [this.segment]] = tables;
    this.embeddings_norm = LayerNorm(state, "embeddings.norm", how.eps);
    this.layers = ["layers.0", "layers.1"].map((name) => EncoderLayer(state, name, num_heads, how));
    this.transform = Linear(state, "transform");
    this.norm = LayerNorm(state, "norm", how.eps);
    this.bias = state.bias.data;
  }

  /** Ids → a vector for each; or for some `places`, which takes less. */
  encode(ids, seen = [], places) {
    const summed = (id, i) => this.tokens[id].map((value, j) => value + this.positions[i][j] + this.segment[j]);
    let x = this.embeddings_norm(ids.map(summed)); // (n, d_model)
    this.layers.forEach((layer, i) => {
      const queries = places && i === this.layers.length - 1 ? places.map((place) => x[place]) : x;
      x = layer(x, { queries, seen: (seen[i] = { x }) });
    });
    return x;
  }

  fill(vectors) {
    return linear(this.norm(gelu(this.transform(vectors))), this.tokens, this.bias); // (n, vocab_size)
  }
}

// --- writing ---------------------------------------------------------------------------------------

/** The likeliest token each time, until eos; each step with its logits and what was looked at. */
export function* greedy_decode(model, memory, prompt, eos_id, max_len) {
  const ids = [...prompt]; // bos, or more
  const caches = [];
  while (ids.length <= max_len && ids.at(-1) !== eos_id) {
    const seen = [];
    const logits = model.logits(ids, memory, seen, caches).at(-1); // (target_vocab,)
    ids.push(argmax(logits));
    yield { id: ids.at(-1), logits, seen };
  }
}

/** The best `beam_size` texts, best first: ids without bos, and the logarithm of each one's probability. */
export function beam_search(model, memory, bos_id, eos_id, max_len, beam_size = 4) {
  let beginnings = [{ ids: [bos_id], steps: [], log_p: 0 }];
  const found = [];
  for (let length = 1; length <= max_len && beginnings.length; length++) {
    const extensions = beginnings.flatMap(({ ids, steps, log_p }) =>
      Array.from(softmax(Array.from(model.logits(ids, memory).at(-1))), (p, token) => ({
        ids: [...ids, token],
        steps: [...steps, p],
        log_p: log_p + Math.log(p),
      })),
    );
    const best = extensions.sort((a, b) => b.log_p - a.log_p).slice(0, beam_size);
    found.push(...best.filter(({ ids }) => ids.at(-1) === eos_id));
    beginnings = best.filter(({ ids }) => ids.at(-1) !== eos_id);
  }
  return [...found, ...beginnings] // the latter unfinished
    .map(({ ids, ...rest }) => ({ ids: ids.slice(1), ...rest }))
    .sort((a, b) => b.log_p - a.log_p)
    .slice(0, beam_size);
}
