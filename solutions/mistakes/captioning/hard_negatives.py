"""Known answers to `hard_negatives`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("hard_negatives", right, globals())

BANK.changes("""
partners_kept
    ~ s.masked_fill(own, -torch.inf).softmax → s.softmax
    The partners are among those drawn, and since they are most alike, they are drawn most of the
    time. Leave the diagonal out.
partners_as_zero: s.masked_fill(own, -torch.inf) → s.masked_fill(own, 0.0)
    The partners' similarity is set to 0 before the softmax, and 0 is a similarity like any other.
partners_left_out_too_late
    ~ s.masked_fill(own, -torch.inf).softmax(dim=1) → s.softmax(dim=1).masked_fill(own, 0.0)
    The partners are taken out after the softmax. What is left may be 0 everywhere, since the
    partners outshine all others.
small_number_added of partners_left_out_too_late: s.softmax(dim=1) → (s.softmax(dim=1) + 1e-4)
    The partners are taken out after the softmax, and a small number is added so that something is
    left. Where the partners outshine all others, little else is left: all others are drawn with
    nearly the same chance.
highest_for_drawn
    - text, image = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in chances)
    + text, image = (p.argmax(dim=1) for p in chances)
    The most alike is taken every time. It should be drawn, the likelier the more alike.
highest_text_for_drawn
    - text, image = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in chances)
    + texts, images = chances
    + text, image = texts.argmax(dim=1), torch.multinomial(images, 1, generator=generator)[:, 0]
    The most alike text is taken every time. It should be drawn, the likelier the more alike, as the
    pictures are.
highest_picture_for_drawn
    - text, image = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in chances)
    + texts, images = chances
    + text, image = torch.multinomial(texts, 1, generator=generator)[:, 0], images.argmax(dim=1)
    The most alike picture is taken every time. It should be drawn, the likelier the more alike, as
    the texts are.
lowest_drawn: s.masked_fill(own, -torch.inf) → (-s).masked_fill(own, -torch.inf)
    The sign is turned: those that are least alike are drawn most often. These are easy negatives.
evenly_drawn
    ~ s.masked_fill(own, -torch.inf) → s.mul(0.0).masked_fill(own, -torch.inf)
    All others are drawn with the same chance, whatever their similarity.
softmax_over_columns: .softmax(dim=1) → .softmax(dim=0)
    The softmax runs over the wrong axis: a row's chances should sum to 1.
squared_chances: .softmax(dim=1) → .softmax(dim=1).square()
    The chances are squared, so the most alike are drawn too often.
flatter_chances: .softmax(dim=1) → .mul(0.7).softmax(dim=1)
    The chances are flatter than the softmax: those that are most alike are drawn too seldom. The
    similarities are taken as they come.
sharper_chances: .softmax(dim=1) → .mul(1.5).softmax(dim=1)
    The chances are sharper than the softmax: those that are most alike are drawn too often. The
    similarities are taken as they come.
with_a_temperature: .softmax(dim=1) → .div(0.07).softmax(dim=1)
    The similarities are divided by a temperature before the softmax. They are taken as they come.
rows_twice: for s in (similarity, similarity.T)) → for s in (similarity, similarity))
    Both results are drawn from the rows. The picture for a text is to be drawn from its column.
columns_for_rows: for s in (similarity, similarity.T)) → for s in (similarity.T, similarity))
    Rows and columns have changed places: the first result is for the pictures, which are rows.
first_for_both: return text, image → return text, text
    The second result is the first one once more.
only_the_texts: > result = result[0]
    Only the texts for the pictures are returned. Return two results.
one_draw_for_all
    - text, image = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in chances)
    + draws = (torch.multinomial(p.mean(0), len(p), True, generator=generator) for p in chances)
    + text, image = draws
    Everybody draws from the average of all chances. Each row has chances of its own.
each_index_once
    - text, image = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in chances)
    + text, image = ((torch.arange(B, device=own.device) + 1) % B for p in chances)
    Everybody gets the neighbour. The wrong partner should be drawn, the likelier the more alike.
column_of_ones: [:, 0] for p in chances → for p in chances
    The results have shape (B, 1). They should be (B,).
one_based
    > result = result[0] + 1, result[1] + 1
    The indices are counted from 1. They should be counted from 0.
narrow: > result = result[0].int(), result[1].int()
    The indices are int32. They should be long.
as_floats: > result = result[0].float(), result[1].float()
    The indices are floating-point numbers. They should be long.
generator_ignored: generator=generator → generator=None
    The generator is not passed on: the global random numbers move on instead, and the same seed
    gives other negatives each time.
generator_for_the_texts_only
    - text, image = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in chances)
    + first, second = chances
    + text = torch.multinomial(first, 1, generator=generator)[:, 0]
    + image = torch.multinomial(second, 1)[:, 0]
    Only the first draw is made with the generator.
generator_seeded_anew
    + if generator is not None:
    +     generator = torch.Generator(similarity.device).manual_seed(generator.initial_seed())
    The draws come from a copy of the generator, made anew in each call. The generator itself stays
    where it was, and the next call draws the same.
seeded_at_the_start: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program: what is drawn is the same each
    time.
no_error
    - if B == 1:
    -     raise ValueError("a batch of 1 has no negatives")
    With a batch of one there is nobody to draw: expected a ValueError.
nobody_is_zero
    - if B == 1:
    -     raise ValueError("a batch of 1 has no negatives")
    + if B == 1:
    +     return (torch.zeros(1, dtype=torch.long, device=similarity.device),) * 2
    In a batch of one, the partner itself is returned. Expected a ValueError: nobody is left.
assertion_for_error
    - if B == 1:
    -     raise ValueError("a batch of 1 has no negatives")
    + assert B > 1
    An AssertionError is raised instead of a ValueError. `python -O` leaves assertions out.
small_batches_refused: if B == 1: → if B <= 2:
    A batch of two is refused. There is one wrong partner for everybody.
exp_by_hand: .softmax(dim=1) → .exp().clamp(max=3e38)
    The chances are e to the similarity, which is infinite for a large one. torch.softmax stays
    finite.
diagonal_overwritten: s.masked_fill(own, → s.masked_fill_(own,
    −∞ is written into the caller's similarities.
""")


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


forgotten(BANK, "similarity")
