"""The decoder alone, a language model: its tokens, its layers, its loss, and writing with it.

Sources: byte pairs after R. Sennrich, B. Haddow, A. Birch, "Neural machine translation of rare
words with subword units" (2016); the model after A. Radford et al., "Language models are
unsupervised multitask learners" (2019), GPT-2; top-p after A. Holtzman et al., "The curious case of
neural text degeneration" (2020); grouped queries after N. Shazeer, "Fast Transformer decoding"
(2019), and J. Ainslie et al., "GQA" (2023). Attention comes from `blocks`.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention


def byte_pair_merges(words: dict[str, int], num_merges: int) -> list[tuple[str, str]]:
    """Learn which neighbouring pieces of words to join, the most frequent pair first.

    `words` holds each word and how often it occurs, 1 or more. Every word begins as
    its characters. Again and again the pair of neighbours that occurs most often
    becomes one piece, wherever it stands; a pair counts once for each place in a
    word, "aaa" holding (a, a) twice, times the word's count. Of equally frequent
    pairs the lexicographically smallest comes first; a word's places are joined from
    left to right. Returns the pairs in the order of merging: `num_merges` of them, or
    fewer if no pair is left. Source: Sennrich, Haddow, Birch (2016), section 3.2.
    """
    ### BEGIN SOLUTION
    pieces = {word: list(word) for word in words}
    counts = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            counts[pair] += count
    merges = []
    while len(merges) < num_merges and any(counts.values()):
        left, right = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append((left, right))
        for word, parts in pieces.items():
            if left not in parts or right not in parts:
                continue
            for pair in pairwise(parts):  # they are counted anew, after the merge
                counts[pair] -= words[word]
            for i in range(len(parts) - 1):
                if parts[i : i + 2] == [left, right]:
                    parts[i : i + 2] = [left + right]
            for pair in pairwise(parts):
                counts[pair] += words[word]
    return merges
    ### END SOLUTION


def byte_pair_encode(word: str, merges: list[tuple[str, str]]) -> list[str]:
    """Cut a word into the pieces that the merges make of its characters.

    Again and again, of all pairs of neighbours the one that stands earliest in
    `merges` becomes one piece, at all its places from left to right, until no pair of
    neighbours is a merge. A pair that stands in `merges` twice counts where it stands
    first. The pieces, joined, give the word; "" has none. Source: Sennrich, Haddow,
    Birch (2016), section 3.2.
    """
    ### BEGIN SOLUTION
    rank = {pair: place for place, pair in reversed([*enumerate(merges)])}
    pieces = list(word)
    while known := [pair for pair in pairwise(pieces) if pair in rank]:
        first = min(known, key=lambda pair: rank[pair])
        for i in range(len(pieces) - 1):
            if pieces[i : i + 2] == [*first]:
                pieces[i : i + 2] = ["".join(first)]
    return pieces
    ### END SOLUTION


class DecoderBlock(nn.Module):
    """A layer of GPT-2: self-attention, then a feed-forward network, each behind a norm.

    x + drop(attn(norm1(x))), then x + drop(linear2(drop(gelu(linear1(norm2(x)))))),
    with the exact GELU. Parts: `norm1`, `attn` (`blocks.MultiHeadAttention`), `norm2`,
    `linear1` (d_model → d_ff), `linear2` (d_ff → d_model). Dropout acts in training
    only, and not on the attention weights. Sources: Radford et al. (2019), section
    2.3; for GELU, Hendrycks, Gimpel (2016).
    """

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0):
        ### BEGIN SOLUTION
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(
        self, x: Float[Tensor, "B n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B n d_model"]:
        """Let every position gather from those that it may see, then think.

        Shapes: x `(B, n, d_model)` → the same. The mask is boolean, True = *may
        attend*, and broadcasts to `(B, H, n, n)`; without one, every position sees all.
        `self.attn(query, key, value, mask=mask, need_weights=False)` returns
        `(output, None)`.
        """
        ### BEGIN SOLUTION
        h = self.norm1(x)
        x = x + self.dropout(self.attn(h, h, h, mask=mask, need_weights=False)[0])
        h = self.dropout(F.gelu(self.linear1(self.norm2(x))))  # (B, n, d_ff)
        return x + self.dropout(self.linear2(h))
        ### END SOLUTION


class GPT(nn.Module):
    """A decoder alone: every position predicts the token that comes after it.

    Token i is embedded as tokens(id) + positions(i), not scaled, with dropout on the
    sum; then come the blocks, under a causal mask, and `norm`; the logits are the dot
    products with the rows of `tokens.weight`. Parts: `tokens` (`nn.Embedding`),
    `positions` (`nn.Embedding` of context_size rows), `blocks` (`nn.ModuleList` of
    num_layers times `DecoderBlock`, with d_ff = 4·d_model and the same dropout),
    `norm` (`nn.LayerNorm`); an attribute `context_size`. No table has a
    `padding_idx`. Source: Radford et al. (2019), section 2.3; both tables begin with
    standard deviation 0.02, as theirs.
    """

    def __init__(
        self,
        vocab_size: int,
        context_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        dropout: float = 0.0,
    ):
        ### BEGIN SOLUTION
        super().__init__()
        self.context_size = context_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_size, d_model)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            DecoderBlock(d_model, num_heads, 4 * d_model, dropout) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        ### END SOLUTION
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, ids: Int[Tensor, "B n"]) -> Float[Tensor, "B n V"]:
        """Score every token of the vocabulary as the next one, at every position.

        Shapes: ids `(B, n)` → logits `(B, n, V)`. Position i sees the tokens 0 … i.
        Raises a `ValueError` that names both numbers if n exceeds `context_size`.
        """
        ### BEGIN SOLUTION
        n = ids.shape[1]
        if n > self.context_size:
            raise ValueError(f"{n} tokens do not fit into a context of {self.context_size}")
        position = torch.arange(n, device=ids.device)  # (n,)
        causal = torch.ones(n, n, dtype=torch.bool, device=ids.device).tril()
        x = self.dropout(self.tokens(ids) + self.positions(position))  # (B, n, d_model)
        for block in self.blocks:
            x = block(x, causal)
        return self.norm(x) @ self.tokens.weight.T  # (B, n, V)
        ### END SOLUTION


def load_gpt2(state_dict: dict[str, Tensor], num_heads: int) -> GPT:
    """Build GPT-2 from the parameters of a published checkpoint.

    Under their names: `wte`, the table of tokens, and `wpe`, that of positions, a `weight`
    each; for block i, `h.i.ln_1`, `h.i.attn.c_attn`, `h.i.attn.c_proj`, `h.i.ln_2`,
    `h.i.mlp.c_fc`, `h.i.mlp.c_proj`; then `ln_f`, all with `weight` and `bias`. The
    weights of the four `c_…` are `(inputs, outputs)`, for x @ weight + bias; the outputs of
    `c_attn` are queries, keys and values, d_model each. Left out: `lm_head.weight`, which is
    `wte.weight` again, and `h.i.attn.bias` and `h.i.attn.masked_bias`, which are masks. Any
    name may begin with `transformer.`, and the order is any. GELU has its tanh form.

    Returns a `GPT` of the checkpoint's sizes, dtype and device, without dropout, in eval
    mode. Its parameters are copies: training it leaves `state_dict` alone. Raises a
    `ValueError` that holds the name of each parameter that is missing, and of each other
    entry that has no place. Sources: Radford et al. (2019) and OpenAI's code for it; the
    names are those of the checkpoint `gpt2` at Hugging Face.
    """
    ### BEGIN SOLUTION

    class Block(DecoderBlock):
        def forward(self, x, mask=None):
            h = self.norm1(x)
            x = x + self.attn(h, h, h, mask=mask, need_weights=False)[0]
            return x + self.linear2(F.gelu(self.linear1(self.norm2(x)), approximate="tanh"))

    given = {name.removeprefix("transformer."): p for name, p in state_dict.items()}
    others = (".attn.bias", ".attn.masked_bias", "lm_head.weight")
    given = {name: p for name, p in given.items() if not name.endswith(others)}
    num_layers = len({name.split(".")[1] for name in given if name.startswith("h.")})
    ours = {"ln_1": "norm1", "attn.c_proj": "attn.W_o", "ln_2": "norm2"}
    ours |= {"mlp.c_fc": "linear1", "mlp.c_proj": "linear2"}
    names = {f"h.{i}.{a}": f"blocks.{i}.{b}" for i in range(num_layers) for a, b in ours.items()}
    packed = {f"h.{i}.attn.c_attn": f"blocks.{i}.attn" for i in range(num_layers)}
    both = [f"{name}.{kind}" for name in ("ln_f", *names, *packed) for kind in ("weight", "bias")]
    if misfits := given.keys() ^ {"wte.weight", "wpe.weight", *both}:
        raise ValueError(f"missing, or without a place: {', '.join(sorted(misfits))}")

    (vocab_size, d_model), context_size = given["wte.weight"].shape, len(given["wpe.weight"])
    state = {"tokens.weight": given["wte.weight"], "positions.weight": given["wpe.weight"]}
    for kind in ("weight", "bias"):
        for theirs, our in {"ln_f": "norm", **names}.items():
            state[f"{our}.{kind}"] = given[f"{theirs}.{kind}"].t()  # a vector stays as it is
        for theirs, our in packed.items():
            for W, p in zip("qkv", given[f"{theirs}.{kind}"].t().chunk(3), strict=True):
                state[f"{our}.W_{W}.{kind}"] = p
    model = GPT(vocab_size, context_size, d_model, num_heads, num_layers)
    model.blocks = nn.ModuleList(Block(d_model, num_heads, 4 * d_model) for _ in range(num_layers))
    model.to(given["wte.weight"]).load_state_dict(state)
    return model.eval()
    ### END SOLUTION


def next_token_loss(
    logits: Float[Tensor, "B n V"], ids: Int[Tensor, "B n"], pad_id: int | None = None
) -> Float[Tensor, ""]:
    """How badly a model predicts a text: mean cross-entropy, in nats a token.

    Shapes: logits `(B, n, V)`, made of ids `(B, n)` → a scalar. The logits at position
    t are for the token at t + 1, so a text of n tokens has n − 1 predictions. Tokens
    that are `pad_id` are not predicted; it need not be the id of a token, such as −100.
    Where nothing is predicted, the loss is 0, and so is its gradient. Source: Radford
    et al. (2019), equation 1.
    """
    ### BEGIN SOLUTION
    target = ids[:, 1:]  # (B, n − 1)
    log_p = logits[:, :-1].log_softmax(dim=-1)  # (B, n − 1, V)
    real = torch.ones_like(target, dtype=torch.bool) if pad_id is None else target != pad_id
    token = target.masked_fill(~real, 0)  # pad_id itself need not be a token
    loss = -log_p.gather(-1, token[..., None])[..., 0].masked_fill(~real, 0.0)
    return loss.sum() / real.sum().clamp(min=1)
    ### END SOLUTION


def bug_in_shifting(vocab_size: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Find two batches for `wrong_next_token_loss`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(logits, ids)` of shapes `(B, n, vocab_size)` and
    `(B, n)`; B is yours, from 1 to 64, and n, from 2 to 64. Logits lie between −1000
    and 1000, ids between 0 and vocab_size − 1. On `shows`, the right loss and the wrong
    one differ by 0.01 or more; on `hides` they are equal, although every row holds at
    least two different tokens, and at every position two logits differ by 0.1 or more.
    """
    ### BEGIN SOLUTION
    logits = torch.zeros(1, 4, vocab_size)
    logits[..., 1] = 3.0  # whatever has been read, token 1 comes next
    begins_and_ends_apart = torch.tensor([[0, 1, 0, 1]])
    begins_and_ends_alike = torch.tensor([[0, 1, 1, 0]])
    return (logits, begins_and_ends_apart), (logits, begins_and_ends_alike)
    ### END SOLUTION


def bits_per_byte(
    logits: Float[Tensor, "B n V"], ids: Int[Tensor, "B n"], byte_lengths: Int[Tensor, "V"]
) -> float:
    """How many bits a model needs for a byte of text, whatever its tokens are.

    Σ −log₂ p(ids[t + 1]) / Σ byte_lengths[ids[t + 1]], both sums over all predicted
    tokens of the batch. Shapes: logits `(B, n, V)` of ids `(B, n)`, byte_lengths
    `(V,)`, how many bytes each token stands for (0 for a marker, which costs its bits
    all the same) → a float, 0 without predictions.
    """
    ### BEGIN SOLUTION
    target = ids[:, 1:]  # (B, n − 1)
    log_p = logits[:, :-1].log_softmax(dim=-1).gather(-1, target[..., None])  # (B, n − 1, 1)
    if target.numel() == 0:
        return 0.0
    return float(-log_p.sum() / math.log(2) / byte_lengths[target].sum())
    ### END SOLUTION


def training_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    ids: Int[Tensor, "B n"],
    step: int,
    num_steps: int,
    warm_up: int,
    most: float,
    max_norm: float = 1.0,
) -> tuple[float, float]:
    """Train a model on one batch of texts: step number `step` of `num_steps`, from 1 on.

    The loss is `next_token_loss` of ids `(B, n)` and the logits `model(ids)`. The norm is
    the length of its gradient, that of all parameters together; a gradient longer than
    `max_norm` is shortened to it, any other stays as it is. The rate, of every parameter
    group, is most · min(step / warm_up, (1 + cos(π step / num_steps)) / 2).

    Returns the loss and the norm, both as floats from before the step, the norm before it
    was shortened. Gradients that are left from earlier do not count. Where loss or norm is
    infinite or NaN, parameters and the optimizer's state stay as they were. The model's mode
    is its caller's. Sources: Radford et al. (2018), section 4.1, for the rate; R. Pascanu,
    T. Mikolov, Y. Bengio, "On the difficulty of training recurrent neural networks" (2013),
    section 3.2, for the norm.
    """
    ### BEGIN SOLUTION
    loss = next_token_loss(model(ids), ids)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    rate = most * min(step / warm_up, (1 + math.cos(math.pi * step / num_steps)) / 2)
    for group in optimizer.param_groups:
        group["lr"] = rate
    if loss.isfinite() and norm.isfinite():
        optimizer.step()
    return loss.item(), norm.item()
    ### END SOLUTION


def next_token_probabilities(
    logits: Float[Tensor, "*batch V"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "*batch V"]:
    """The distribution from which the next token is drawn.

    Shapes: logits `(..., V)` → probabilities `(..., V)` in the order of the logits.
    First the logits are divided by the temperature; at 0, the likeliest token gets
    everything, the first one if several are. Then only the `top_k` likeliest tokens
    stay (all, if there are fewer). Then of these, by their shares of what is left,
    only the fewest that together reach `top_p`, likeliest first, the one that crosses
    it included. What stays is renormalised. Of equal tokens, the lower ids stay.
    Raises a `ValueError` that names the number for a temperature below 0, a top_k
    below 1, a top_p that is not in (0, 1]. Source: Holtzman et al. (2020), section 3.
    """
    ### BEGIN SOLUTION
    if temperature < 0:
        raise ValueError(f"a temperature is not negative, but this one is {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"at least one token must stay: top_k = {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p lies above 0 and up to 1, but is {top_p}")
    if temperature == 0:
        temperature, top_k = 1.0, 1
    ranked, order = logits.sort(dim=-1, descending=True, stable=True)
    p = (ranked / temperature).softmax(dim=-1)  # (..., V), likeliest first
    if top_k is not None:
        p[..., top_k:] = 0.0
        p = p / p.sum(dim=-1, keepdim=True)
    if top_p is not None and top_p < 1:
        before = p.cumsum(dim=-1) - p  # the share of all likelier tokens
        p = p.masked_fill(before >= top_p, 0.0)
        p = p / p.sum(dim=-1, keepdim=True)
    return torch.zeros_like(p).scatter(-1, order, p)
    ### END SOLUTION


def generate(
    model: nn.Module,
    ids: Int[Tensor, "B n"],
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "B length"]:
    """Write on from the given tokens, one token at a time, each drawn at random.

    Shapes: ids `(B, n)`, n ≥ 1 → `(B, n + max_new_tokens)`, the given ones first.
    `model(ids)` gives logits `(B, length of ids, V)`; it reads the last
    `model.context_size` tokens at most. Each step draws a token for every row by
    `torch.multinomial`, with `generator`, from
    `next_token_probabilities(logits, temperature, top_k, top_p)`. Decodes in eval
    mode, without gradients, and leaves each module's mode as it was.
    """
    ### BEGIN SOLUTION
    modes = {module: module.training for module in model.modules()}
    model.eval()
    with torch.no_grad():
        for _ in range(max_new_tokens):
            logits = model(ids[:, -model.context_size :])[:, -1]  # (B, V)
            p = next_token_probabilities(logits, temperature, top_k, top_p)
            drawn = torch.multinomial(p, 1, generator=generator)  # (B, 1)
            ids = torch.cat([ids, drawn], dim=1)
    for module, training in modes.items():
        module.training = training
    return ids
    ### END SOLUTION


class ArithmeticCoder:
    """A language model that compresses without loss: tokens to bits, and bits to tokens.

    The model is `frequencies(past)`: for a list of token ids, those that come before, it returns a
    list of integers, one for each id that may come next. All are 1 or more; their sum may be any
    number, and another one for another past. Token c has the share counts[c] / sum(counts).

    A text has an interval of numbers. It begins as 0 ≤ x < 1. For each token, in order, it is cut
    into pieces with the shares of all ids, id 0 at the lower end, and the token's piece is kept.
    A piece holds its lower end, not its upper. Everything is exact, however long the text.

    k bits name an interval, too: all numbers whose binary digits behind the point begin with
    them, 2^−k of them all; none name 0 ≤ x < 1. Sources: J. Rissanen, G. G. Langdon, "Arithmetic
    coding" (1979); I. H. Witten, R. M. Neal, J. G. Cleary, "Arithmetic coding for data
    compression" (1987).
    """

    def __init__(self, frequencies: Callable[[list[int]], list[int]]):
        self.frequencies = frequencies

    def encode(self, ids: list[int]) -> str:
        """Write a text as bits, a string of "0" and "1".

        The fewest bits that name an interval within the text's; of several such strings, the
        smallest. So they are fewer than the sum of −log2 of the tokens' shares, plus 2.
        """
        ### BEGIN SOLUTION
        low, width = Fraction(0), Fraction(1)
        for t, token in enumerate(ids):
            counts = self.frequencies(ids[:t])
            width /= sum(counts)
            low += width * sum(counts[:token])
            width *= counts[token]
        k = 0
        while math.ceil(low * 2**k) + 1 > (low + width) * 2**k:
            k += 1
        return format(2**k + math.ceil(low * 2**k), "b")[1:]  # with the zeros in front
        ### END SOLUTION

    def decode(self, bits: str, length: int) -> list[int]:
        """Read the first `length` tokens of the text whose interval the bits name.

        `bits` may go on behind those of `encode`, with any others: what they name then is smaller,
        and still within the text's interval.
        """
        ### BEGIN SOLUTION
        ids, place = [], Fraction(int("0" + bits, 2), 2 ** len(bits))
        for _ in range(length):
            counts = self.frequencies(ids)
            place *= sum(counts)
            token = bisect_right([*accumulate(counts)], place)
            place = (place - sum(counts[:token])) / counts[token]  # within the token's piece
            ids.append(token)
        return ids
        ### END SOLUTION


class GroupedQueryAttention(nn.Module):
    """Self-attention in which several query heads share the keys and values of one head.

    With d_k = d_model / num_heads, `W_q` and `W_o` map d_model → d_model, `W_k` and
    `W_v` d_model → num_kv_heads·d_k, all without bias. Query head h uses key/value
    head h // (num_heads / num_kv_heads): neighbours share. With
    num_kv_heads = num_heads this is multi-head, with 1 multi-query attention. Raises a
    `ValueError` that names both numbers if num_heads does not divide d_model, or
    num_kv_heads not num_heads. Sources: Shazeer (2019); Ainslie et al. (2023).
    """

    def __init__(self, d_model: int, num_heads: int, num_kv_heads: int):
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
        if num_heads % num_kv_heads != 0:
            raise ValueError(f"{num_heads} heads cannot share {num_kv_heads} key/value heads")
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        d_kv = num_kv_heads * (d_model // num_heads)
        self.W_q = nn.Linear(d_model, d_model, bias=False)
        self.W_k = nn.Linear(d_model, d_kv, bias=False)
        self.W_v = nn.Linear(d_model, d_kv, bias=False)
        self.W_o = nn.Linear(d_model, d_model, bias=False)
        ### END SOLUTION

    def forward(
        self, x: Float[Tensor, "B n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> tuple[Float[Tensor, "B n d_model"], Float[Tensor, "B num_heads n n"]]:
        """Attend with every query head, and return `(output, weights)`.

        Shapes: x `(B, n, d_model)` → output `(B, n, d_model)`, weights
        `(B, num_heads, n, n)`. The mask is boolean, True = *may attend*, and broadcasts
        to the weights. A query that may attend to nothing gets zero weights.
        """
        ### BEGIN SOLUTION
        q = self.W_q(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, H, n, d_k)
        k = self.W_k(x).unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
        v = self.W_v(x).unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
        shared_by = self.num_heads // self.num_kv_heads
        k = k.repeat_interleave(shared_by, dim=1)  # (B, H, n, d_k)
        v = v.repeat_interleave(shared_by, dim=1)  # (B, H, n, d_k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, n, n)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.finfo(scores.dtype).max)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)  # for a query that may attend to nothing
        return self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights
        ### END SOLUTION
