"""Known answers to `TokenEmbedding`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right

BANK = Bank("TokenEmbedding", right, globals())

BANK.changes("""
root_forgotten: self.weight) * math.sqrt(self.weight.shape[1]) → self.weight)
    The vectors are not multiplied by √d_model. They are √d_model times too small, and get drowned
    by the positions that are added.
times_d_model: math.sqrt(self.weight.shape[1]) → self.weight.shape[1]
    The vectors are multiplied by d_model instead of its square root.
divided_by_the_root: * math.sqrt → / math.sqrt
    The vectors are divided by √d_model, like scores in attention. Here they should be multiplied.
root_of_the_vocabulary: shape[1] → shape[0]
    The vectors are multiplied by the square root of the number of tokens: the weight's first axis
    is the vocabulary, its second d_model.
root_in_the_logits_too: h @ self.weight.T → h @ self.weight.T * math.sqrt(self.weight.shape[1])
    The logits are multiplied by √d_model as well. The factor belongs to the input side only.
root_in_the_logits_only
    ~ self.weight) * math.sqrt(self.weight.shape[1]) → self.weight)
    ~ h @ self.weight.T → h @ self.weight.T * math.sqrt(self.weight.shape[1])
    √d_model multiplies the logits instead of the vectors: the wrong side of the two.
logits_through_softmax: h @ self.weight.T → (h @ self.weight.T).softmax(-1)
    `logits` returns probabilities. The loss takes its own softmax of them, a double softmax, and
    learns slowly, never becoming certain of anything.
logits_by_distance: h @ self.weight.T → F.normalize(h, dim=-1) @ F.normalize(self.weight, dim=-1).T
    The logits are cosines: vectors are normalised before the dot product, and no score can exceed
    1.
padding_without_gradient: (ids, self.weight) → (ids, self.weight, padding_idx=0)
    Token 0 learns nothing: with padding_idx=0, its row gets no gradient from the look-up. Which
    token is padding is not for the embedding to decide.
only_the_look_up_learns: h @ self.weight.T → h @ self.weight.detach().T
    The logits use a detached weight, which then learns from the input side only.
only_the_logits_learn: (ids, self.weight) → (ids, self.weight.detach())
    The look-up is cut off from the graph (torch.no_grad, .detach(), NumPy, torch.tensor …): the
    weight learns from the output side only.
weight_scaled_in_place
    + with torch.no_grad():
    +     self.weight.mul_(math.sqrt(self.weight.shape[1]))
    ~ self.weight) * math.sqrt(self.weight.shape[1]) → self.weight)
    Each call multiplies the parameter itself by √d_model: the vectors of the second call are
    √d_model times as long as those of the first, and the logits grow with them.
always_a_batch_of_rows
    + ids = ids.flatten(1) if ids.dim() > 1 else ids[None]
    ~ h @ self → (h.flatten(1, -2) if h.dim() > 2 else h) @ self
    ids are taken for (B, n) whatever their shape: for any other, the result has the wrong one.
embedding_in_single: h @ self.weight.T → (h @ self.weight.T).float() ; > result = result.float()
    The vectors and logits are float32 whatever the weight is.
ids_shifted_in_place
    ~ (ids, self.weight) → (ids.clone(), self.weight)
    > ids.clamp_(max=len(self.weight) - 2)
    Token ids out of range are clamped in the caller's own tensor.
table_drawn_otherwise: (vocab_size, d_model) * d_model**-0.5 → (vocab_size, d_model)
    The table's numbers are not drawn with standard deviation 1/√d_model. With 1, say, the vectors
    drown the positions that are added, after the look-up's √d_model, and the first logits are far
    too large; with `d_model ** -1 / 2`, which is 1 / (2 d_model), the positions drown the vectors.
embedding_switches_the_default: > torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


@BANK.right
class embedding_of_the_blocks(blocks.TokenEmbedding):
    pass


@BANK.right
class embedding_by_one_hot(right.TokenEmbedding):
    def forward(self, ids):
        rows = F.one_hot(ids, len(self.weight)).to(self.weight) @ self.weight
        return rows * self.weight.shape[1] ** 0.5

    def logits(self, h):
        return torch.einsum("...d,vd->...v", h, self.weight)


@BANK.right
class embedding_scaled_before(right.TokenEmbedding):
    def forward(self, ids):
        return F.embedding(ids, self.weight * math.sqrt(self.weight.shape[1]))

    def logits(self, h):
        return F.linear(h, self.weight)


@BANK.right
class embedding_gathered(right.TokenEmbedding):
    def forward(self, ids):
        rows = self.weight.index_select(0, ids.reshape(-1))
        return rows.view(*ids.shape, -1) * self.weight.new_tensor(self.weight.shape[1]).sqrt()

    def logits(self, h):
        return (h.unsqueeze(-2) * self.weight).sum(-1)


forgotten(BANK, "ids")
