"""Known answers to `GPT`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right
from solutions.language_model import DecoderBlock

BANK = Bank("GPT", right, globals())

BANK.changes("""
not_causal: block(x, causal) → block(x)
    The blocks get no mask: every position sees the token that it should predict. The loss falls to
    next to nothing, and the model cannot write.
causal_in_the_first_block_only
    - for block in self.blocks:
    -     x = block(x, causal)
    + for i, block in enumerate(self.blocks):
    +     x = block(x, causal if i == 0 else None)
    Only the first block gets the causal mask. In the others every position sees all, and with it
    what comes after.
mask_leaks_one: tril() → tril(1)
    Position i sees position i + 1, the very token that it should predict.
mask_without_the_diagonal: tril() → tril(-1)
    A position does not see itself, and the first one sees nothing at all.
mask_inverted: block(x, causal) → block(x, ~causal)
    The mask is inverted: True means *may attend*, and here it stands where a position may not. Each
    position sees what comes after it and not itself, and the last one sees nothing.
mask_the_wrong_way_round: tril() → triu()
    The mask is turned round: every position sees itself and what comes after it, but nothing
    before.
positions_scaled
    ~ self.positions(position) → self.positions(position) * self.norm.weight.numel() ** 0.5
    The positions are multiplied by √d_model. Neither embedding is scaled.
tokens_scaled: self.tokens(ids) + → self.tokens(ids) * self.norm.weight.numel() ** 0.5 +
    The tokens' vectors are multiplied by √d_model, as in the Transformer of 2017. GPT-2 does not
    scale.
positions_forgotten: self.tokens(ids) + self.positions(position) → self.tokens(ids)
    No positions are added: but for the mask, the order of the tokens would not matter.
positions_from_one: self.positions(position) → self.positions((position + 1) % self.context_size)
    The first token is placed at position 1. Positions begin at 0.
positions_from_the_end
    ~ self.positions(position) → self.positions(position + self.context_size - n)
    The last token is always at the last position. The first one should always be at position 0.
positions_from_the_batch
    ~ self.positions(position) → self.positions((position * 0 + len(ids) - 1) % self.context_size)
    Every token gets the same position, read off the wrong axis: that of the batch. Positions run
    along the second axis of ids.
positions_reversed: self.positions(position) → self.positions(position.flip(0))
    The positions run backwards: the last token gets position 0.
positions_are_tokens: self.positions(position) → self.positions(ids % self.context_size)
    The positions are looked up by the ids of the tokens. They should be looked up by 0 … n − 1.
final_norm_missing: self.norm(x) @ → x @
    norm exists but is not used: the last block's output is a sum that nothing has normalised.
norm_after_every_block
    ~ x = block(x, causal) → x = self.norm(block(x, causal))
    ~ self.norm(x) @ → x @
    The final norm is applied after every block instead of after the last one: it is inside the
    loop.
norm_before_the_blocks
    - x = self.dropout(self.tokens(ids) + self.positions(position))
    + x = self.norm(self.dropout(self.tokens(ids) + self.positions(position)))
    ~ self.norm(x) @ → x @
    The norm comes before the first block. It should come after the last one.
blocks_forgotten: x = block(x, causal) → pass
    The blocks are built but never used.
every_block_from_the_beginning
    - x = self.dropout(self.tokens(ids) + self.positions(position))
    + given = x = self.dropout(self.tokens(ids) + self.positions(position))
    ~ x = block(x, causal) → x = block(given, causal)
    Each of the blocks gets the embedded tokens: the loop discards the output of the previous block,
    and only the last block counts.
blocks_in_reverse: in self.blocks: → in reversed(self.blocks):
    The blocks are gone through from the last to the first.
d_ff_of_d_model: 4 * d_model → d_model
    The feed-forward of the blocks is as wide as the model. It should be four times as wide.
untied: @ self.tokens.weight.T → @ self.tokens.weight.detach().T
    The logits use a detached copy of the table: the numbers are right, but the table does not learn
    from the output.
output_layer_of_its_own
    - self.norm = nn.LayerNorm(d_model)
    + self.norm = nn.LayerNorm(d_model); self.head = nn.Linear(d_model, vocab_size, bias=False)
    ~ @ self.tokens.weight.T → @ self.head.weight.T
    The logits come from a linear layer of their own. They should come from tokens.weight, the table
    in which the tokens are looked up.
look_up_detached: self.tokens(ids) + → self.tokens(ids).detach() +
    The look-up is detached: the table learns from the output only.
probabilities: > result = result.softmax(-1)
    forward returns probabilities instead of logits: the loss takes the softmax, and the softmax of
    a softmax is nearly flat.
log_probabilities: > result = result.log_softmax(-1)
    forward returns log-probabilities instead of logits: the loss takes the softmax.
last_position_only: > result = result[:, -1]
    Only the last position's logits are returned. In training, every position is scored.
too_long_is_cut
    - raise ValueError(f"{n} tokens do not fit into a context of {self.context_size}")
    + ids = ids[:, -self.context_size :]; n = self.context_size
    Where there are too many tokens, the first ones are left out without a word. It should be a
    ValueError: the caller would take the logits for those of other positions.
too_long_by_one: n > self.context_size → n > self.context_size + 1
    One token more than the context holds is not refused: an IndexError of the table says so, but
    not how many there may be.
full_context_refused: n > self.context_size → n >= self.context_size
    As many tokens as context_size are refused. They fit.
error_without_numbers
    ~ f"{n} tokens do not fit into a context of {self.context_size}" → "too many tokens"
    The error does not say how many tokens there are, nor how many fit.
another_kind_of_error: raise ValueError( → raise IndexError(
    The error is no ValueError.
context_size_not_kept
    ~ self.context_size = context_size → self.n = context_size
    ~ self.context_size → self.n ×2
    There is no attribute context_size, so nobody can ask the model how much it reads.
no_dropout: self.dropout(self.tokens → (self.tokens
    There is no dropout on the sum of the embeddings.
dropout_on_the_tokens_only
    - self.dropout(self.tokens(ids) + self.positions(position))
    + self.dropout(self.tokens(ids)) + self.positions(position)
    Dropout acts on the tokens' vectors before the positions are added. It should act on the sum.
dropout_not_handed_on: 4 * d_model, dropout) → 4 * d_model)
    The blocks do not get the dropout: they drop nothing.
dropout_in_eval
    - self.dropout(self.tokens(ids) + self.positions(position))
    + F.dropout(self.tokens(ids) + self.positions(position), self.dropout.p)
    Dropout on the embeddings goes on in eval mode. nn.Dropout knows the mode of its module;
    F.dropout has to be told.
one_block_object_n_times
    - DecoderBlock(d_model, num_heads, 4 * d_model, dropout) for _ in range(num_layers)
    + [DecoderBlock(d_model, num_heads, 4 * d_model, dropout)] * num_layers
    All blocks are the same object, `[block] * num_layers`: the stack has the parameters of a single
    block, applied again and again.
logits_in_single: > result = result.float()
    The logits are float32 whatever the model is.
ids_clamped_in_place: > ids.clamp_(max=len(self.tokens.weight) - 2)
    Ids are changed in the caller's own tensor.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


class _Parts(right.GPT):
    """The model in small parts."""

    def embed(self, ids):
        place = torch.arange(ids.shape[1], device=ids.device)
        return self.dropout(self.tokens(ids) + self.positions(place))

    def mask(self, n, device):
        return torch.ones(n, n, dtype=torch.bool, device=device).tril()

    def score(self, h):
        return F.linear(h, self.tokens.weight)

    def forward(self, ids):
        n = ids.shape[1]
        if n > self.context_size:
            raise ValueError(f"{n} > {self.context_size}")
        x, mask = self.embed(ids), self.mask(n, ids.device)
        for block in self.blocks:
            x = block(x, mask)
        return self.score(self.norm(x))


@BANK.right
class gpt_of_the_blocks(_Parts):
    """Its blocks are the course's; all the rest is its own."""

    def __init__(self, vocab_size, context_size, d_model, num_heads, num_layers, dropout=0.0):
        nn.Module.__init__(self)
        self.context_size = context_size
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(context_size, d_model)
        self.dropout, self.norm = nn.Dropout(dropout), nn.LayerNorm(d_model)
        sizes = (d_model, num_heads, 4 * d_model, dropout)
        self.blocks = nn.ModuleList([blocks.DecoderBlock(*sizes) for _ in range(num_layers)])


@BANK.right
class gpt_with_rows_of_positions(_Parts):
    def embed(self, ids):
        vectors = self.tokens.weight[ids] + self.positions.weight[: ids.shape[1]]
        return F.dropout(vectors, self.dropout.p, self.training)

    def score(self, h):
        return torch.einsum("bnd,vd->bnv", h, self.tokens.weight)


@BANK.right
class gpt_with_a_mask_in_a_buffer(_Parts):
    def __init__(self, vocab_size, context_size, *sizes, **kwargs):
        super().__init__(vocab_size, context_size, *sizes, **kwargs)
        past = torch.ones(context_size, context_size, dtype=torch.bool).tril()
        self.register_buffer("past", past)

    def mask(self, n, device):
        return self.past[:n, :n]


@BANK.right
class gpt_with_a_mask_by_comparison(_Parts):
    def mask(self, n, device):
        place = torch.arange(n, device=device)
        return (place[None, :] <= place[:, None])[None, None]


@BANK.right
class gpt_with_a_tied_linear_layer(_Parts):
    """A linear layer for the output, made anew so that the state dict has no second name for it."""

    def score(self, h):
        head = nn.Linear(*self.tokens.weight.shape[::-1], bias=False, device="meta")
        head.weight = self.tokens.weight
        return head(h)


forgotten(BANK, "ids")
