"""Known answers to `fill_gaps`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import bert as right

BANK = Bank("fill_gaps", right, globals())

BANK.changes("""
tokens_of_the_first_round: + steps = 1
    The tokens written are those that the model finds likeliest before anything is filled in, as
    with steps = 1: no answer knows the others. Each round should write its share, and the next one
    read it.
order_of_the_first_round
    - for rounds in range(steps, 0, -1):
    + first = model(ids).index_fill(-1, torch.tensor(mask_id, device=ids.device), -torch.inf)
    + first = first.softmax(dim=-1).amax(dim=-1)
    + for rounds in range(steps, 0, -1):
    ~ sure.masked_fill → first.masked_fill
    The tokens are chosen anew in each round, but the order in which gaps are filled is that of the
    first. What has been written changes how sure the model is, too.
least_sure_first: descending=True → descending=False ; ~gaps, -1.0 → ~gaps, 2.0
    The gaps that the model is least sure of are filled first. They should wait until there is more
    to read.
left_to_right: sure.masked_fill(~gaps, -1.0) → (-gaps.cumsum(dim=-1)).where(gaps, -999)
    The gaps are filled from left to right, as a decoder would. The order should be that of
    the highest probabilities.
largest_logit_is_surest: logits.softmax(dim=-1).max → logits.max ; ~gaps, -1.0 → ~gaps, -torch.inf
    How sure the model is, is read off the logits. These may all be larger in one place than in
    another, and only the softmax makes them comparable.
least_entropy_is_surest
    - rank = sure.masked_fill
    + spread = torch.special.entr(logits.softmax(dim=-1)).sum(dim=-1)
    + rank = (-spread).masked_fill
    ~ ~gaps, -1.0 → ~gaps, -1e9
    The order is that of the entropy of the whole distribution. It should be that of the highest
    probability.
widest_margin_is_surest
    - rank = sure.masked_fill
    + two = logits.softmax(dim=-1).topk(min(2, logits.shape[-1]), dim=-1).values
    + rank = (two[..., 0] - two[..., -1]).masked_fill
    The order is that of the gap between the two highest probabilities. It should be that of the
    highest alone.
places_that_are_written_count: sure.masked_fill(~gaps, -1.0) → sure
    Places where a token stands already are ranked with the gaps, so a round fills fewer than its
    share, and in the end gaps are left.
divided_by_all_rounds: rounds - 1) // rounds → steps - 1) // steps
    In each round, the gaps left are divided by the number of all rounds. They should be divided by
    that of the rounds left: so gaps are left in the end.
given_tokens_replaced
    ~ gaps & (rank < share), → (rank < share) | ~gaps,
    The likeliest token is written where there was no gap, too. What stands there should stay.
answers_written_anew
    - for rounds in range(steps, 0, -1):
    + blank = ids == mask_id
    + for rounds in range(steps, 0, -1):
    ~ gaps & (rank < share), → blank & (~gaps | (rank < share)),
    What was written in an earlier round is written anew in each. It should stay as it is.
answers_become_gaps_again
    - for rounds in range(steps, 0, -1):
    + blank, total = ids == mask_id, (ids == mask_id).sum(dim=-1, keepdim=True)
    + for rounds in range(steps, 0, -1):
    - rank = sure.masked_fill(~gaps, -1.0).argsort(dim=-1, descending=True).argsort(dim=-1)
    + rank = sure.masked_fill(~blank, -1.0).argsort(dim=-1, descending=True).argsort(dim=-1)
    - share = (gaps.sum(dim=-1, keepdim=True) + rounds - 1) // rounds
    + share = total - total * (rounds - 1) // steps
    - ids = torch.where(gaps & (rank < share), token, ids)
    + ids = torch.where(blank, torch.where(rank < share, token, mask_id), ids)
    Each round writes all gaps anew and makes gaps of the least sure answers, as in the paper. Here,
    what is written stays, and only gaps that are left are ranked.
order_for_rank: descending=True).argsort(dim=-1) → descending=True)
    argsort says which place comes first, which second and so on; compared with the share place by
    place, it should say of each place how many come before it.
softmax_over_places: softmax(dim=-1) → softmax(dim=1)
    The softmax runs over the places. Each place has a distribution of its own, over the tokens.
rounded_down: (gaps.sum(dim=-1, keepdim=True) + rounds - 1) // → gaps.sum(dim=-1, keepdim=True) //
    The share of a round is rounded down, so the larger shares come last. Round up.
share_of_all_gaps_rounded_up
    - for rounds in range(steps, 0, -1):
    + fixed = ((ids == mask_id).sum(dim=-1, keepdim=True) + steps - 1) // steps
    + for rounds in range(steps, 0, -1):
    ~ rank < share → rank < fixed
    Each round has the share of the first, rounded up, so the later ones find too few gaps left: 5
    gaps in 4 rounds are filled as 2, 2, 1, 0. Divide what is left by the rounds that are left.
share_of_all_gaps_rounded_down
    - for rounds in range(steps, 0, -1):
    + fixed = (ids == mask_id).sum(dim=-1, keepdim=True) // steps
    + for rounds in range(steps, 0, -1):
    ~ rank < share → rank < (share if rounds == 1 else fixed)
    Each round has the same share, rounded down, and the last one fills all that is left: 5 gaps in
    3 rounds are filled as 1, 1, 3. Divide what is left by the rounds that are left, and round up.
remainder_lost
    - for rounds in range(steps, 0, -1):
    + fixed = (ids == mask_id).sum(dim=-1, keepdim=True) // steps
    + for rounds in range(steps, 0, -1):
    ~ rank < share → rank < fixed
    Each round has the same share, rounded down, and what remains is never filled.
one_in_each_round: (rank < share) → (rank < 1)
    Each round fills one gap of a row, so gaps are left if there are more of them than rounds.
one_until_none_is_left
    - for rounds in range(steps, 0, -1):
    + for rounds in range(ids.shape[1] if steps > 1 else 1, 0, -1):
    ~ (rank < share) → (rank < (1 if steps > 1 else share))
    Each round fills one gap of a row, until none is left, whatever steps is.
last_round_missing: range(steps, 0, -1) → range(steps, 1, -1)
    There is one round too few, and gaps are left.
share_of_the_batch
    ~ gaps.sum(dim=-1, keepdim=True) → gaps.sum()
    ~ rank = → sure = sure.masked_fill(~gaps, -1.0); rank =
    - sure.masked_fill(~gaps, -1.0).argsort(dim=-1, descending=True).argsort(dim=-1)
    + sure.flatten().argsort(descending=True).argsort().view_as(ids)
    The gaps of all rows are counted and ranked together. Each row is a text of its own, with a
    share of its own.
share_of_the_fullest_row: gaps.sum(dim=-1, keepdim=True) → gaps.sum(dim=-1, keepdim=True).amax()
    The share is that of the row with the most gaps, for all rows. Count each row's gaps.
share_of_the_first_row: gaps.sum(dim=-1, keepdim=True) → gaps[:1].sum(dim=-1, keepdim=True)
    The share is that of the first row, for all rows. Count each row's gaps.
stops_where_a_row_is_full
    - logits = model(ids).clone()
    + if not gaps.any(dim=-1).all():
    +     break
    + logits = model(ids).clone()
    The rounds end as soon as one row has no gaps, though others still have some.
mask_id_written: - logits[..., mask_id] = -torch.inf
    mask_id is written where the model finds it likeliest, and the gap is a gap still.
mask_id_takes_its_share
    - logits[..., mask_id] = -torch.inf
    - sure, token = logits.softmax(dim=-1).max(dim=-1)
    + chances = logits.softmax(dim=-1)
    + chances[..., mask_id] = 0.0
    + sure, token = chances.max(dim=-1)
    mask_id is never written, but has a share of the softmax, so places seem less sure than they
    are. Set its logit to −∞ before the softmax.
mask_id_is_a_zero_logit: -torch.inf → 0.0
    The logit of mask_id is set to 0, which is a logit like any other. Set it to −∞.
last_id_is_the_mask: logits[..., mask_id] → logits[..., -1]
    The last token is never written, and mask_id may be. Which id is the mask, mask_id says.
ids_changed
    + given = ids
    > given.copy_(result)
    The caller's ids are filled in as well: where the gaps were is lost.
ids_are_narrow: > result = result.int()
    The result is int32. Token ids are long.
left_in_training_mode: + model.train()
    The model is put into training mode. Leave its modes as they are.
left_in_eval_mode: + model.eval()
    The model is put into eval mode and left there: whoever fills gaps between two epochs goes on
    training without dropout. Here the caller has set the mode.
gradients_left_off: + torch.set_grad_enabled(False)
    Gradients are switched off, and stay off for the whole program.
seeded_at_the_start: + torch.manual_seed(0)
    Nothing here is random, but the call seeds torch's random numbers for the whole program.
""")


@BANK.right
def row_after_row(model, ids, mask_id, steps):
    """Lists of Python, a row at a time."""
    rows = []
    with torch.no_grad():
        for row in ids.tolist():
            for rounds in range(steps, 0, -1):
                left = [i for i, token in enumerate(row) if token == mask_id]
                if not left:
                    break
                logits = model(torch.tensor([row], device=ids.device))[0]
                logits = logits.index_fill(1, torch.tensor(mask_id, device=ids.device), -torch.inf)
                chances = logits.softmax(1).tolist()
                left.sort(key=lambda i: -max(chances[i]))
                for i in left[: -(-len(left) // rounds)]:
                    row[i] = max(range(len(chances[i])), key=chances[i].__getitem__)
            rows.append(row)
    return torch.tensor(rows, device=ids.device)


@BANK.right
def shares_counted_first(model, ids, mask_id, steps):
    """The first gaps % steps rounds have one more; topk chooses, row by row."""
    ids = ids.clone()
    number = (ids == mask_id).sum(1).tolist()
    for r in range(steps):
        logits = model(ids).detach().clone()
        logits[:, :, mask_id] = float("-inf")
        sure, token = torch.softmax(logits, 2).max(2)
        sure = sure.where(ids == mask_id, -torch.ones_like(sure))
        for b, gaps in enumerate(number):
            chosen = sure[b].topk(gaps // steps + (r < gaps % steps)).indices
            ids[b, chosen] = token[b, chosen]
    return ids


@BANK.right
def by_the_pairs(model, ids, mask_id, steps):
    """A gap's rank is how many gaps are surer: a table of all pairs, and log-probabilities."""
    for left in reversed(range(1, steps + 1)):
        gap = ids.eq(mask_id)
        logits = model(ids)
        bar = torch.zeros_like(logits[0, 0])
        bar[mask_id] = -torch.inf
        sure = (logits + bar).log_softmax(-1).amax(-1)
        token = (logits + bar).argmax(-1)
        surer = (sure[:, None, :] > sure[:, :, None]) & gap[:, None, :]
        share = torch.ceil(gap.sum(1).double() / left)
        ids = ids.masked_fill(gap & (surer.sum(2) < share[:, None]), 0) + token * (
            gap & (surer.sum(2) < share[:, None])
        )
    return ids


@BANK.right
def without_the_mask(model, ids, mask_id, steps):
    """The column of mask_id is left out; the places chosen are scattered."""
    for left in range(steps, 0, -1):
        gap = ids == mask_id
        if not gap.any():
            break
        logits = model(ids)
        words = torch.arange(logits.shape[-1], device=ids.device)
        words = words[words != mask_id]
        chances = logits[..., words].softmax(-1)
        order = chances.amax(-1).masked_fill(~gap, 0.0).sort(dim=-1, descending=True).indices
        place = torch.arange(ids.shape[1], device=ids.device)
        first = place < gap.sum(-1, keepdim=True).div(left, rounding_mode="floor") + (
            gap.sum(-1, keepdim=True) % left > 0
        )
        chosen = torch.zeros_like(gap).scatter(1, order, first)
        ids = torch.where(chosen, words[chances.argmax(-1)], ids)
    return ids


forgotten(BANK, "ids", numpy=True, result=True)
