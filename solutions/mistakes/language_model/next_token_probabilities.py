"""Known answers to `next_token_probabilities`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right

BANK = Bank("next_token_probabilities", right, globals())

BANK.changes("""
temperature_multiplied: ranked / temperature → ranked * temperature
    The logits are multiplied by the temperature: a high one sharpens. It should be the other way
    round.
temperature_ignored: ranked / temperature → ranked
    The temperature is not used, except where it is 0.
temperature_of_the_probabilities
    ~ (ranked / temperature).softmax(dim=-1) → ranked.softmax(dim=-1) / temperature
    The probabilities are divided by the temperature instead of the logits: renormalised, they are
    what they were, and without that they do not sum to 1.
temperature_squared: ranked / temperature → ranked / temperature**2
    The logits are divided by the square of the temperature.
top_k_after_top_p
    - if top_k is not None:
    -     p[..., top_k:] = 0.0
    -     p = p / p.sum(dim=-1, keepdim=True)
    - if top_p is not None and top_p < 1:
    -     before = p.cumsum(dim=-1) - p
    -     p = p.masked_fill(before >= top_p, 0.0)
    -     p = p / p.sum(dim=-1, keepdim=True)
    + if top_p is not None and top_p < 1:
    +     before = p.cumsum(dim=-1) - p
    +     p = p.masked_fill(before >= top_p, 0.0)
    +     p = p / p.sum(dim=-1, keepdim=True)
    + if top_k is not None:
    +     p = p.clone()
    +     p[..., top_k:] = 0.0
    +     p = p / p.sum(dim=-1, keepdim=True)
    Top-p comes before top-k. It should look at what top-k has left, and at its shares of that.
crossing_token_dropped
    - before = p.cumsum(dim=-1) - p
    - p = p.masked_fill(before >= top_p, 0.0)
    + after = p.cumsum(dim=-1)
    + after[..., 0] = 0.0
    + p = p.masked_fill(after > top_p, 0.0)
    The token that crosses top_p is dropped: what stays has less than top_p. The fewest tokens that
    reach it are to stay, the one that crosses the line included.
nothing_may_stay
    - before = p.cumsum(dim=-1) - p
    - p = p.masked_fill(before >= top_p, 0.0)
    + p = p.masked_fill(p.cumsum(dim=-1) > top_p, 0.0)
    The token that crosses top_p is dropped, even where it is the first one: then nothing is left,
    and 0/0 is not a number.
one_token_too_many: before >= top_p → before - p >= top_p
    One token stays that is not needed: those before it have reached top_p already.
goes_on_where_top_p_is_reached: before >= top_p → before > top_p
    Where the tokens so far have reached top_p exactly, one more stays. Of four equal tokens, two
    reach a half.
shares_above_top_p: before >= top_p → p < top_p
    A token stays where its own probability reaches top_p. It is the sum of the likeliest that
    should reach it.
unlikeliest_first
    - before = p.cumsum(dim=-1) - p
    + before = p.flip(-1).cumsum(dim=-1).flip(-1) - p
    Top-p adds up the probabilities from the least likely upwards, and keeps those.
top_p_in_the_order_of_the_ids
    - descending=True, stable=True)
    + descending=True, stable=True)
    + if top_p is not None:
    +     order = torch.arange(logits.shape[-1], device=logits.device).expand_as(logits)
    +     ranked = logits
    Top-p adds up the probabilities in the order of the ids. They are to be sorted first.
one_cut_for_all_rows: before >= top_p → before.flatten(0, -2).amax(0) >= top_p
    All rows of a batch are cut at the same place. Each row is a distribution of its own.
not_renormalised: p = p / p.sum(dim=-1, keepdim=True) → pass ×2
    What stays is not renormalised: the probabilities sum to less than 1.
not_renormalised_after_top_p
    - p = p.masked_fill(before >= top_p, 0.0)
    - p = p / p.sum(dim=-1, keepdim=True)
    + p = p.masked_fill(before >= top_p, 0.0)
    What top-p leaves is not renormalised: the probabilities sum to top_p or a little more.
renormalised_over_everything: p.sum(dim=-1, keepdim=True) → p.sum() ×2
    What stays is divided by the sum over all rows. Each row is to sum to 1.
renormalised_by_a_softmax
    - p = p.masked_fill(before >= top_p, 0.0)
    - p = p / p.sum(dim=-1, keepdim=True)
    + p = p.masked_fill(before >= top_p, -torch.inf).softmax(dim=-1)
    The probabilities that are left go through a softmax again, which makes them nearly equal.
    Divide them by their sum.
sorted_order_returned: torch.zeros_like(p).scatter(-1, order, p) → p
    The probabilities come back in the order of their size. Token i's probability belongs at place
    i.
put_back_the_wrong_way: torch.zeros_like(p).scatter(-1, order, p) → p.gather(-1, order)
    The probabilities are put back by gather with the order of the sorting. That is the way there:
    the way back is scatter, or gather with the inverse order.
ties_all_stay
    - p[..., top_k:] = 0.0
    + p = p.masked_fill(p < p[..., min(top_k, p.shape[-1]) - 1, None], 0.0)
    Everything as likely as the k-th token stays, so there may be more than k. Of equals, those with
    the lower ids stay.
ties_to_the_higher_ids
    - ranked, order = logits.sort(dim=-1, descending=True, stable=True)
    + ranked, order = logits.flip(-1).sort(dim=-1, descending=True, stable=True)
    + order = logits.shape[-1] - 1 - order
    - temperature, top_k = 1.0, 1
    + return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    Of equally likely tokens those with the higher ids stay. It should be those with the lower ids.
top_k_one_too_many: p[..., top_k:] → p[..., top_k + (temperature > 0 and top_k > 1) :]
    k + 1 tokens stay.
top_k_one_too_few: p[..., top_k:] → p[..., max(top_k - 1, 1) :]
    k − 1 tokens stay.
top_k_by_id: p[..., top_k:] = 0.0 → p = p.masked_fill(order >= top_k, 0.0)
    The first k tokens of the vocabulary stay. It should be the k likeliest.
top_k_lowest: p[..., top_k:] = 0.0 → p[..., : max(p.shape[-1] - top_k, 0)] = 0.0
    The k least likely tokens stay. It should be the k likeliest.
topk_too_large: + if top_k is not None: logits.topk(top_k)
    A top_k beyond the vocabulary is an error of torch.topk. It should keep everything.
zero_temperature_divides: temperature, top_k = 1.0, 1 → pass
    With temperature 0 the logits are divided by 0. All should go to the likeliest token.
zero_temperature_shares_ties
    - temperature, top_k = 1.0, 1
    + best = (logits == logits.amax(dim=-1, keepdim=True)).to(logits.dtype)
    + return best / best.sum(dim=-1, keepdim=True)
    With temperature 0, equally likely tokens share. All should go to the first of them.
zero_temperature_takes_the_last
    - temperature, top_k = 1.0, 1
    + last = logits.shape[-1] - 1 - logits.flip(-1).argmax(dim=-1)
    + return F.one_hot(last, logits.shape[-1]).to(logits.dtype)
    With temperature 0, all goes to the last of equally likely tokens. It should be the first.
zero_temperature_is_nearly_zero: temperature, top_k = 1.0, 1 → temperature = 1e-3
    With temperature 0 a small number is taken instead. Equally likely tokens then share; all should
    go to the first of them.
negative_temperature_allowed: temperature < 0 → False
    A negative temperature is not refused: it turns the distribution round.
top_k_of_zero_allowed: top_k < 1 → False
    A top_k below 1 is not refused.
top_p_above_one_allowed: 0 < top_p <= 1 → 0 < top_p
    A top_p above 1 is not refused.
top_p_of_zero_allowed: 0 < top_p <= 1 → 0 <= top_p <= 1
    A top_p of 0 is not refused.
error_without_the_number: but this one is {temperature}" → so this is no temperature"
    The error for a negative temperature does not say the number.
zero_temperature_before_the_checks
    + if temperature == 0:
    +     return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    With temperature 0, senseless values of top_k and top_p are not refused.
overflows
    - p = (ranked / temperature).softmax(dim=-1)
    + p = (ranked / temperature).exp()
    + p = p / p.sum(dim=-1, keepdim=True)
    The exponential is taken without subtracting the largest logit: large ones overflow.
logits_returned: > result = result.log()
    The result holds logarithms. It should hold probabilities.
rounded_to_single: > result = result.float()
    The result is float32 whatever the logits are.
logits_divided_in_place
    + given, logits = logits, logits.clone()
    > given /= max(temperature, 1e-3) * 2
    The caller's logits are divided by the temperature: `logits /= temperature` writes into them.
logits_read_in_order: + logits = logits.as_strided((logits.numel(),), (1,)).reshape(logits.shape)
    The logits are read in the order in which they lie in memory. For a tensor that is not
    contiguous, that is not its own order.
seeded_at_the_start: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


def _checked(temperature, top_k, top_p):
    if temperature < 0:
        raise ValueError(f"temperature {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p {top_p}")


@BANK.right
def by_ranks(logits, temperature=1.0, top_k=None, top_p=None):
    """Every token's rank, and the sum of the tokens that rank before it."""
    _checked(temperature, top_k, top_p)
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    V = logits.shape[-1]
    place = torch.arange(V, device=logits.device)
    a, b = logits[..., :, None], logits[..., None, :]
    before = (b > a) | ((b == a) & (place < place[:, None]))  # (..., V, V): b comes before a
    k = V if top_k is None else top_k
    p = (logits / temperature).masked_fill(before.sum(-1) >= k, -torch.inf).softmax(-1)
    if top_p is not None:
        reached = (before * p[..., None, :]).sum(-1)
        p = torch.where((reached < top_p) | (top_p == 1), p, 0)
    return p / p.sum(-1, keepdim=True)


@BANK.right
def row_by_row(logits, temperature=1.0, top_k=None, top_p=None):
    _checked(temperature, top_k, top_p)
    V = logits.shape[-1]
    rows = []
    for row in logits.reshape(-1, V):
        numbers = row.tolist()
        ranked = sorted(range(V), key=lambda i, numbers=numbers: (-numbers[i], i))
        kept = ranked[: 1 if temperature == 0 else top_k]
        p = torch.zeros_like(row)
        p[kept] = (row[kept] / (temperature or 1.0)).softmax(-1)
        if top_p is not None and temperature > 0 and top_p < 1:
            total, few = 0.0, []
            for i in kept:
                if total >= top_p:
                    break
                few.append(i)
                total += p[i].item()
            q = torch.zeros_like(p)
            q[few] = p[few] / p[few].sum()
            p = q
        rows.append(p)
    return torch.stack(rows).reshape(logits.shape)


@BANK.right
def with_scores_of_minus_infinity(logits, temperature=1.0, top_k=None, top_p=None):
    """What may not come gets the logit −∞, and the softmax renormalises."""
    _checked(temperature, top_k, top_p)
    if temperature == 0:
        p = torch.zeros_like(logits)
        return p.scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    scores = logits / temperature
    if top_k is not None:
        order = scores.argsort(dim=-1, descending=True, stable=True)
        scores = scores.scatter(-1, order[..., top_k:], -torch.inf)
    if top_p is not None and top_p < 1:
        ranked, order = scores.sort(dim=-1, descending=True, stable=True)
        reached = F.pad(ranked.softmax(-1).cumsum(-1)[..., :-1], (1, 0))
        scores = scores.scatter(-1, order, ranked.masked_fill(reached >= top_p, -torch.inf))
    return scores.softmax(-1)


@BANK.right
def put_back_by_the_inverse_order(logits, temperature=1.0, top_k=None, top_p=None):
    _checked(temperature, top_k, top_p)
    if temperature == 0:
        best = logits.max(-1, keepdim=True).values == logits
        return (best & (best.cumsum(-1) == 1)).to(logits.dtype)
    order = torch.argsort(-logits, dim=-1, stable=True)
    p = torch.softmax(logits.gather(-1, order) / temperature, -1)
    place = torch.arange(p.shape[-1], device=p.device)
    if top_k is not None:
        p = F.normalize(p * (place < top_k), p=1.0, dim=-1)
    if top_p is not None:
        stays = 1 + (p.cumsum(-1)[..., :-1] < top_p).sum(-1, keepdim=True)
        p = F.normalize(p * (place < stays), p=1.0, dim=-1)
    return p.gather(-1, order.argsort(-1))


@BANK.right
def probabilities_of_the_blocks(logits, temperature=1.0, top_k=None, top_p=None):
    return blocks.next_token_probabilities(logits, temperature, top_k, top_p)


@BANK.right
def wide_inside(logits, temperature=1.0, top_k=None, top_p=None):
    p = with_scores_of_minus_infinity(logits.double(), temperature, top_k, top_p)
    return p.to(logits.dtype)


forgotten(BANK, "logits", result=True)
