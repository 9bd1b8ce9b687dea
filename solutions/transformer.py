"""The Transformer: encoder and decoder layers, the whole model, its loss, schedule and decoding.

Sources: A. Vaswani et al., "Attention is all you need" (2017); pre-norm after R. Xiong et al., "On
layer normalization in the Transformer architecture" (2020); label smoothing after C. Szegedy et
al., "Rethinking the Inception architecture" (2016); the length penalty after Y. Wu et al.,
"Google's neural machine translation system" (2016). Attention and positions come from `blocks`.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention, sinusoidal_encoding


class EncoderLayer(nn.Module):
    """A layer of the encoder: self-attention, then a feed-forward network.

    Each of the two sublayers F is wrapped in dropout, a residual connection and a
    layer norm, which follows the sum, norm(x + drop(F(x))), or, with `norm_first`,
    precedes the sublayer, x + drop(F(norm(x))). The feed-forward network treats
    each position separately: linear1, ReLU, dropout, linear2. Parts: `self_attn`
    (`blocks.MultiHeadAttention`), `linear1`, `linear2`, `norm1`, `norm2`. Sources:
    Vaswani et al. (2017), section 3.1; for `norm_first`, Xiong et al. (2020).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self, x: Float[Tensor, "B n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B n d_model"]:
        """Let every position gather from the others, then think.

        Shapes: x `(B, n, d_model)` → the same. The mask is boolean, True = *may
        attend*, and broadcasts to `(B, H, n, n)`. `self.self_attn(query, key, value,
        mask=mask, need_weights=False)` returns `(output, None)`; computing the
        weights as well would be slower.
        """

        ### BEGIN SOLUTION
        def attend(h: Tensor) -> Tensor:
            return self.self_attn(h, h, h, mask=mask, need_weights=False)[0]

        def feed_forward(h: Tensor) -> Tensor:
            return self.linear2(self.dropout(torch.relu(self.linear1(h))))

        for sublayer, norm in ((attend, self.norm1), (feed_forward, self.norm2)):
            if self.norm_first:
                x = x + self.dropout(sublayer(norm(x)))
            else:
                x = norm(x + self.dropout(sublayer(x)))
        return x
        ### END SOLUTION


class DecoderLayer(nn.Module):
    """A layer of the decoder: self-attention, cross-attention, then feed-forward.

    Cross-attention takes its queries from the decoder, its keys and values from the
    encoder. Each of the three sublayers is wrapped in dropout, a residual
    connection and a layer norm, as in `EncoderLayer`. Parts: `self_attn`,
    `cross_attn` (`blocks.MultiHeadAttention`), `linear1`, `linear2`, and `norm1`,
    `norm2`, `norm3` in the order of the sublayers. Sources: Vaswani et al. (2017),
    section 3.1; for `norm_first`, Xiong et al. (2020).
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.cross_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Float[Tensor, "B n_q d_model"],
        memory: Float[Tensor, "B n_k d_model"],
        self_mask: Bool[Tensor, "..."] | None = None,
        cross_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B n_q d_model"]:
        """Gather from the target so far, then from the source, then think.

        Shapes: x `(B, n_q, d_model)`, memory (the encoder's output)
        `(B, n_k, d_model)` → `(B, n_q, d_model)`. The masks are boolean, True = *may
        attend*: `self_mask` broadcasts to `(B, H, n_q, n_q)`, `cross_mask` to
        `(B, H, n_q, n_k)`. The memory is used as it is: only x is normalised, even
        with `norm_first`.
        """

        ### BEGIN SOLUTION
        def attend(h: Tensor) -> Tensor:
            return self.self_attn(h, h, h, mask=self_mask, need_weights=False)[0]

        def consult(h: Tensor) -> Tensor:
            return self.cross_attn(h, memory, memory, mask=cross_mask, need_weights=False)[0]

        def feed_forward(h: Tensor) -> Tensor:
            return self.linear2(self.dropout(torch.relu(self.linear1(h))))

        sublayers = (attend, consult, feed_forward)
        norms = (self.norm1, self.norm2, self.norm3)
        for sublayer, norm in zip(sublayers, norms, strict=True):
            if self.norm_first:
                x = x + self.dropout(sublayer(norm(x)))
            else:
                x = norm(x + self.dropout(sublayer(x)))
        return x
        ### END SOLUTION


class TokenEmbedding(nn.Module):
    """A vector for each token and, from the same numbers, a score for each token.

    One parameter, `weight` `(vocab_size, d_model)`, initialised with standard
    deviation d_model^−½. Sources: Vaswani et al. (2017), section 3.4; O. Press,
    L. Wolf, "Using the output embedding to improve language models" (2017).
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model) * d_model**-0.5)

    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """Look up the vectors of ids, 0 to vocab_size − 1, and multiply them by √d_model."""
        ### BEGIN SOLUTION
        return F.embedding(ids, self.weight) * math.sqrt(self.weight.shape[1])  # (..., d_model)
        ### END SOLUTION

    def logits(self, h: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """Score every token: the dot product of h with each row of `weight`."""
        ### BEGIN SOLUTION
        return h @ self.weight.T  # (..., vocab_size)
        ### END SOLUTION


class Transformer(nn.Module):
    """An encoder reads the source; a decoder writes the target, token by token.

    Parts: `source_embedding`, `target_embedding` (`TokenEmbedding`; the target's
    also computes the logits), `encoder_layers`, `decoder_layers` (`num_layers` of
    each) and, with `norm_first`, `encoder_norm` and `decoder_norm`, which normalise
    the output of the last layer. `pad_id` fills up rows of ids that are too short;
    no query may attend to it. Source: Vaswani et al. (2017), section 3, figure 1.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int = 512,
        num_heads: int = 8,
        num_layers: int = 6,
        d_ff: int = 2048,
        dropout: float = 0.1,
        pad_id: int = 0,
        norm_first: bool = False,
    ):
        super().__init__()
        sizes = (d_model, num_heads, d_ff, dropout, norm_first)
        self.source_embedding = TokenEmbedding(source_vocab, d_model)
        self.target_embedding = TokenEmbedding(target_vocab, d_model)
        self.encoder_layers = nn.ModuleList(EncoderLayer(*sizes) for _ in range(num_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(num_layers))
        self.encoder_norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.decoder_norm = nn.LayerNorm(d_model) if norm_first else nn.Identity()
        self.dropout = nn.Dropout(dropout)
        self.pad_id = pad_id
        # Not persistent: recomputed for each model and left out of its state dict.
        self.register_buffer("positions", sinusoidal_encoding(512, d_model), persistent=False)
        for layer in (*self.encoder_layers, *self.decoder_layers):
            for parameter in layer.parameters():
                if parameter.dim() == 2:
                    nn.init.xavier_uniform_(parameter)

    def embed(
        self, embedding: nn.Module, ids: Int[Tensor, "B n"], offset: int = 0
    ) -> Float[Tensor, "B n d_model"]:
        """Add the tokens' vectors and those of their positions, then apply dropout.

        Shapes: ids `(B, n)` → `(B, n, d_model)`. The first token is at position
        `offset`. `self.positions` is the table of sinusoids, one row per position;
        when it is too short, a longer one is computed.
        """
        end = offset + ids.shape[1]
        if end > len(self.positions):
            longer = sinusoidal_encoding(2 * end, self.positions.shape[1])
            self.positions = longer.to(self.positions)
        ### BEGIN SOLUTION
        return self.dropout(embedding(ids) + self.positions[offset:end])  # (B, n, d_model)
        ### END SOLUTION

    def encode(self, source: Int[Tensor, "B n"]) -> Float[Tensor, "B n d_model"]:
        """Turn the source into the decoder's *memory*; no query attends to `pad_id`."""
        ### BEGIN SOLUTION
        mask = (source != self.pad_id)[:, None, None, :]  # (B, 1, 1, n)
        x = self.embed(self.source_embedding, source)  # (B, n, d_model)
        for layer in self.encoder_layers:
            x = layer(x, mask)
        return self.encoder_norm(x)
        ### END SOLUTION

    def decode(
        self,
        target: Int[Tensor, "B n_t"],
        memory: Float[Tensor, "B n_s d_model"],
        source: Int[Tensor, "B n_s"],
    ) -> Float[Tensor, "B n_t d_model"]:
        """Run the decoder on the target, given the memory of the source.

        The source's ids tell where the memory is padding. Position i of the target
        attends to positions 0 … i of the target and to the whole source; never to
        padding.
        """
        ### BEGIN SOLUTION
        n = target.shape[1]
        causal = torch.ones(n, n, dtype=torch.bool, device=target.device).tril()
        self_mask = causal & (target != self.pad_id)[:, None, None, :]  # (B, 1, n_t, n_t)
        cross_mask = (source != self.pad_id)[:, None, None, :]  # (B, 1, 1, n_s)
        x = self.embed(self.target_embedding, target)  # (B, n_t, d_model)
        for layer in self.decoder_layers:
            x = layer(x, memory, self_mask, cross_mask)
        return self.decoder_norm(x)
        ### END SOLUTION

    def forward(
        self, source: Int[Tensor, "B n_s"], target: Int[Tensor, "B n_t"]
    ) -> Float[Tensor, "B n_t target_vocab"]:
        """Score each token as the next at every position of the target, which begins with bos."""
        ### BEGIN SOLUTION
        hidden = self.decode(target, self.encode(source), source)  # (B, n_t, d_model)
        return self.target_embedding.logits(hidden)  # (B, n_t, target_vocab)
        ### END SOLUTION


def shift_right(target: Int[Tensor, "*batch n"], bos_id: int) -> Int[Tensor, "*batch n"]:
    """What the decoder reads in training: the target one step late, bos in front.

    Shapes: target ids `(..., n)`, n ≥ 1 → the same; the last token drops out. Source:
    Vaswani et al. (2017), 3.1: "the output embeddings are offset by one position".
    """
    ### BEGIN SOLUTION
    bos = target.new_full((*target.shape[:-1], 1), bos_id)  # (..., 1)
    return torch.cat([bos, target[..., :-1]], dim=-1)  # (..., n)
    ### END SOLUTION


def label_smoothed_cross_entropy(
    logits: Float[Tensor, "*batch V"],
    target: Int[Tensor, "*batch"],
    smoothing: float = 0.1,
    pad_id: int = 0,
) -> Float[Tensor, ""]:
    """Cross-entropy with the target (1 − ε)·one-hot + ε/V, averaged over real tokens.

    Shapes: logits `(..., V)`, target ids `(...)` → a scalar. ε is `smoothing`.
    Positions whose target is `pad_id` do not count; if all are, the loss is 0.
    Sources: Vaswani et al. (2017), section 5.4; Szegedy et al. (2016), section 7.
    """
    ### BEGIN SOLUTION
    real = target != pad_id
    log_p = logits.log_softmax(dim=-1)  # (..., V)
    ids = target.masked_fill(~real, 0)  # pad_id itself need not be a token
    log_p_target = log_p.gather(-1, ids[..., None])[..., 0]
    loss = -(1 - smoothing) * log_p_target - smoothing * log_p.mean(dim=-1)
    return loss.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
    ### END SOLUTION


def bug_in_loss(vocab_size: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Find two batches for `wrong_loss`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(logits, target)` of shapes `(B, n, vocab_size)` and
    `(B, n)`; B and n are yours, from 1 to 64. Logits lie between −1000 and 1000, ids
    between 0, which is padding, and vocab_size − 1; no row is padding only. On `shows`,
    the right loss and the wrong one differ by 0.01 or more; on `hides` they are equal,
    although B is at least 2, there is padding, and the rows' own losses differ by 0.1 or
    more.
    """
    ### BEGIN SOLUTION
    logits = torch.zeros(2, 3, vocab_size)
    logits[0, :, 1] = 3.0  # the first row is predicted well, the second is not
    short_and_long = torch.tensor([[1, 0, 0], [1, 1, 1]])
    alike = torch.tensor([[1, 1, 0], [1, 1, 0]])
    return (logits, short_and_long), (logits, alike)
    ### END SOLUTION


def greedy_decode(
    model: nn.Module, source: Int[Tensor, "B n"], bos_id: int, eos_id: int, max_len: int
) -> Int[Tensor, "B length"]:
    """Write the target one token at a time, always taking the likeliest.

    Shapes: source ids `(B, n)` → ids `(B, length)`, length ≤ max_len, without bos;
    eos is kept, and after it a row holds `model.pad_id`. Stops as soon as every row
    has its eos. `model(source, ids)` gives logits `(B, length of ids, V)`. Decodes
    in eval mode, without gradients, and leaves each module's mode as it was.
    """
    ### BEGIN SOLUTION
    modes = {module: module.training for module in model.modules()}
    model.eval()
    ids = torch.full((len(source), 1), bos_id, device=source.device)  # (B, 1)
    done = torch.zeros(len(source), dtype=torch.bool, device=source.device)  # (B,)
    with torch.no_grad():
        while ids.shape[1] <= max_len and not done.all():
            chosen = model(source, ids)[:, -1].argmax(dim=-1)  # (B,)
            chosen = chosen.masked_fill(done, model.pad_id)
            ids = torch.cat([ids, chosen[:, None]], dim=1)  # (B, length + 1)
            done = done | (chosen == eos_id)
    for module, training in modes.items():
        module.training = training
    return ids[:, 1:]
    ### END SOLUTION


def beam_search(
    model: nn.Module,
    source: Int[Tensor, "1 n"],
    bos_id: int,
    eos_id: int,
    max_len: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
) -> list[tuple[Int[Tensor, "length"], float]]:
    """Write the target, following the `beam_size` likeliest beginnings at once.

    Shapes: source ids `(1, n)` → at most `beam_size` pairs `(ids, score)`, best
    first. The ids `(length,)`, length ≤ max_len, are without bos; they end with eos
    or are unfinished at max_len. Each step keeps the `beam_size` likeliest of all
    extensions; those that end with eos are put aside. (Whether they take up places
    in the next step is not judged.) The score is a float,
    log p(ids) / ((5 + length) / 6)^length_penalty, where length counts eos. With
    `beam_size` 1 the ids are those of `greedy_decode`. Decodes in eval mode, without
    gradients, and leaves each module's mode as it was.
    Source: Wu et al. (2016), section 7.
    """
    ### BEGIN SOLUTION
    modes = {module: module.training for module in model.modules()}
    model.eval()
    ids = torch.full((1, 1), bos_id, device=source.device)  # (beams, length)
    log_p = torch.zeros(1, device=source.device)  # (beams,)
    found = []
    with torch.no_grad():
        while ids.shape[1] <= max_len and len(ids) > 0:
            logits = model(source.expand(len(ids), -1), ids)[:, -1]  # (beams, V)
            total = (log_p[:, None] + logits.log_softmax(dim=-1)).flatten()  # (beams · V,)
            log_p, best = total.topk(min(beam_size, len(total)))
            parent, token = best // logits.shape[1], best % logits.shape[1]
            ids = torch.cat([ids[parent], token[:, None]], dim=1)
            done = token == eos_id
            found += zip(ids[done], log_p[done], strict=True)
            ids, log_p = ids[~done], log_p[~done]
    found += zip(ids, log_p, strict=True)  # unfinished
    for module, training in modes.items():
        module.training = training
    scored = [(i[1:], float(p) / ((4 + len(i)) / 6) ** length_penalty) for i, p in found]
    return sorted(scored, key=lambda pair: pair[1], reverse=True)[:beam_size]
    ### END SOLUTION
