"""Known answers to `hard_negatives`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("hard_negatives", right, globals())
BANK.read()


@BANK.right
def by_the_gumbel_trick(similarity, generator=None):
    """The largest of logits with Gumbel noise is drawn as the softmax says."""
    B = similarity.shape[0]
    if B < 2:
        raise ValueError("nobody is left")
    own = torch.arange(B, device=similarity.device)
    drawn = []
    for s in (similarity.double(), similarity.double().mT):
        u = torch.rand(B, B, generator=generator, device=s.device, dtype=s.dtype)
        noisy = s - torch.log(-torch.log(u.clamp(1e-300, 1 - 1e-16)))
        noisy[own, own] = -torch.inf
        drawn.append(noisy.argmax(dim=1))
    return tuple(drawn)


@BANK.right
def row_by_row(similarity, generator=None):
    B = len(similarity)
    if B == 1:
        raise ValueError("one pair has no negatives")

    def drawn(rows):
        found = []
        for i, row in enumerate(rows):
            others = torch.cat([row[:i], row[i + 1 :]])
            j = int(torch.multinomial(F.softmax(others, 0), 1, generator=generator))
            found.append(j + (j >= i))
        return torch.tensor(found, device=rows.device)

    return drawn(similarity), drawn(similarity.T)


@BANK.right
def by_the_cumulative_sum(similarity, generator=None):
    B, device = len(similarity), similarity.device
    if B == 1:
        raise ValueError("B = 1")
    diagonal = torch.diag(torch.full((B,), float("inf"), device=device)).nan_to_num(nan=0.0)
    diagonal = torch.where(torch.eye(B, device=device) > 0, diagonal, 0)
    out = []
    for table in (similarity, similarity.transpose(0, 1)):
        sums = (table - diagonal).double().softmax(-1).cumsum(-1)
        u = torch.rand(B, 1, generator=generator, device=device, dtype=torch.float64)
        out.append((sums <= u * sums[:, -1:]).sum(-1))
    return out[0], out[1]


@BANK.right
def without_gradients(similarity, generator=None):
    if similarity.size(0) == 1:
        raise ValueError("expected two pairs or more, got 1")
    with torch.no_grad():
        s = similarity.clone().fill_diagonal_(-torch.inf)
        text = torch.multinomial(s.softmax(1), 1, True, generator=generator).squeeze(1)
        image = torch.multinomial(s.softmax(0).mT, 1, True, generator=generator).squeeze(1)
    return text, image
