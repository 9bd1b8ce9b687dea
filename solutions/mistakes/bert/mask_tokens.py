"""Known answers to `mask_tokens`: mistakes, then right answers."""

import random

import numpy as np
import torch

from autograder.bank import Bank
from autograder.bank.devices import LEFT_ON_THE_CPU, MADE_ON_THE_CPU, THROUGH_NUMPY
from solutions import bert as right

BANK = Bank("mask_tokens", right, globals())

BANK.changes("""
every_chosen_token_masked
    - masked, replaced = draws[1] < 0.8, draws[1] >= 0.9
    + masked, replaced = draws[1] >= 0, draws[1] < 0
    Every chosen token becomes mask_id. A tenth should become a random id, and another tenth stay,
    since there are no masks in the texts that the model is for.
none_stays: draws[1] >= 0.9 → draws[1] >= 0.8
    80 % become mask_id and 20 % a random id. A tenth should stay as it is.
none_replaced: draws[1] >= 0.9 → draws[1] < 0
    80 % become mask_id and 20 % stay. A tenth should become a random id.
nine_in_ten_masked: draws[1] < 0.8, draws[1] >= 0.9 → draws[1] < 0.9, draws[1] >= 0.95
    90 % become mask_id. It should be 80 %.
shares_nearly_right: draws[1] < 0.8, draws[1] >= 0.9 → draws[1] < 0.81, draws[1] >= 0.91
    The shares of the three fates are off by a hundredth or so. They are 80 %, 10 % and 10 %.
two_tenths_two_tenths: draws[1] < 0.8 → draws[1] < 0.1
    ~ draws[1] >= 0.9 → draws[1] >= 0.2
    10 % become mask_id and 80 % a random id. It should be the other way round.
all_fates_swapped
    - draws[1] < 0.8, draws[1] >= 0.9
    + draws[1] >= 0.9, (draws[1] >= 0.8) & (draws[1] < 0.9)
    10 % become mask_id, 10 % a random id, and 80 % stay. It should be 80 % that become mask_id.
tenth_of_a_tenth
    - masked, replaced = draws[1] < 0.8, draws[1] >= 0.9
    + masked = draws[1] < 0.8
    + replaced = torch.rand(ids.shape, generator=generator, device=ids.device) < 0.1
    + replaced = replaced & ~masked
    The random ids get a tenth of the two tenths that are not masked, 2 % of the chosen tokens. It
    should be half of these.
random_over_masked
    - masked, replaced = draws[1] < 0.8, draws[1] >= 0.9
    + masked = draws[1] < 0.8
    + replaced = torch.rand(ids.shape, generator=generator, device=ids.device) < 0.1
    Masked tokens may become random ids afterwards: 72 % are left. The three fates exclude each
    other.
one_draw_for_both
    ~ draws[1] < 0.8, draws[1] >= 0.9 → draws[0] < 0.8 * probability, draws[0] >= 0.95 * probability
    The same random number says whether a token is chosen and what becomes of it, and the shares are
    not those wanted: 5 % become random ids.
fate_of_the_choice: draws[1] < 0.8, draws[1] >= 0.9 → draws[0] < 0.8, draws[0] >= 0.9
    The random number that chose a token says what becomes of it, too: of tokens chosen below 0.15,
    all are below 0.8, and masked. Draw once more.
one_fate_for_all: draws[1] < 0.8, draws[1] >= 0.9 → draws[1, :1, :1] < 0.8, draws[1, :1, :1] >= 0.9
    One draw says what becomes of all chosen tokens. There should be one for each.
one_fate_for_a_sequence
    - draws[1] < 0.8, draws[1] >= 0.9
    + draws[1, :, :1] < 0.8, draws[1, :, :1] >= 0.9
    One draw says what becomes of all chosen tokens of a sequence. There should be one for each.
one_fate_for_a_position: draws[1] < 0.8, draws[1] >= 0.9 → draws[1, :1] < 0.8, draws[1, :1] >= 0.9
    All sequences share the draws that say what becomes of a position. There should be one for each
    token.
chosen_by_sequence: (draws[0] < probability) → (draws[0, :, :1] < probability)
    Whole sequences are chosen. Each token should be drawn on its own.
chosen_by_position: (draws[0] < probability) → (draws[0, :1] < probability)
    The same positions are chosen in every sequence. Each token should be drawn on its own.
a_fixed_number
    ~ (draws[0] < probability) → (draws[0].argsort(-1).argsort(-1) < probability * ids.shape[1])
    The same number of tokens is chosen in every sequence. Each token should be chosen on its own,
    so that the number varies.
a_fixed_number_of_the_batch
    - (draws[0] < probability)
    + (draws[0].flatten().argsort().argsort().view_as(ids) < probability * ids.numel())
    The same number of tokens is chosen in every batch. Each token should be chosen on its own, so
    that the number varies.
a_fixed_number_masked
    - masked, replaced = draws[1] < 0.8, draws[1] >= 0.9
    + ranks = draws[1].masked_fill(~chosen, 2.0).flatten().argsort().argsort().view_as(ids)
    + masked, replaced = ranks < 0.8 * chosen.sum(), ranks >= 0.9 * chosen.sum()
    Of the chosen tokens of a batch, always the same number becomes mask_id. Draw for each what
    becomes of it, so that the number varies.
every_seventh
    - (draws[0] < probability)
    + (torch.arange(ids.numel(), device=ids.device).view_as(ids) * probability % 1 < probability)
    The tokens are chosen at regular distances. They should be chosen at random.
the_rest_chosen: draws[0] < probability → draws[0] >= probability
    The probability is that of being left alone: 85 % of the tokens are chosen.
probability_fixed: draws[0] < probability → draws[0] < 0.15
    15 % are chosen whatever the probability is.
tenth_by_default: probability=0.15 → probability=0.1
    A tenth is chosen if nothing else is said. It should be 15 %.
share_of_the_masked: draws[0] < probability → draws[0] < probability / 0.8
    The probability is taken for that of becoming mask_id, so more tokens are chosen. It is that of
    being chosen.
specials_masked: & ~special → & (special | ~special)
    Special tokens are chosen like all others.
only_specials: & ~special → & special
    Only special tokens are chosen. They are the ones to leave out.
specials_with_labels: ids.masked_fill(~chosen, -100) → ids.masked_fill(~(chosen | special), -100)
    Special tokens stay as they are, but have labels, so the model is trained to repeat them.
mask_id_alone_is_special: & ~special → & (ids != mask_id)
    Only mask_id counts as special. The special ids are those in special_ids.
first_special_only: torch.tensor([*special_ids], → torch.tensor([*special_ids][:1],
    Only the first of special_ids is special.
specials_by_range
    - special = torch.isin(ids, torch.tensor([*special_ids], dtype=ids.dtype, device=ids.device))
    + special = ids < len(special_ids)
    The ids below the number of special ones are taken for special. They may be any.
empty_specials_fail: torch.tensor([*special_ids], → torch.tensor([*special_ids, special_ids[0]],
    Without special ids, the function fails.
masked_wherever: chosen & masked, mask_id → masked, mask_id
    80 % of all tokens become mask_id, chosen or not.
replaced_wherever: chosen & replaced, → replaced & ~(chosen & masked),
    A tenth of all tokens become a random id, chosen or not.
labels_of_masked_ones_only
    - ids.masked_fill(~chosen, -100)
    + ids.masked_fill(~(chosen & masked), -100)
    Only tokens that became mask_id have a label. All chosen ones should, also those that stay.
labels_of_changed_ones_only: ids.masked_fill(~chosen, -100) → ids.masked_fill(inputs == ids, -100)
    Only tokens that have changed have a label. All chosen ones should, also those that stay: the
    model cannot know which these are.
labels_everywhere: ids.masked_fill(~chosen, -100) → ids.clone()
    Every token has a label. It should be −100 where nothing was chosen.
labels_of_the_inputs: ids.masked_fill(~chosen, -100) → inputs.masked_fill(~chosen, -100)
    The labels are taken from the masked inputs. They should be the true ids.
labels_inverted: ids.masked_fill(~chosen, -100) → ids.masked_fill(chosen, -100)
    The labels stand where nothing was chosen, and −100 where a token was.
minus_one_for_no_label: ids.masked_fill(~chosen, -100) → ids.masked_fill(~chosen, -1)
    What has no label is −1. It should be −100, which cross_entropy ignores.
zero_for_no_label: ids.masked_fill(~chosen, -100) → ids.masked_fill(~chosen, 0)
    What has no label is 0, which is a token. It should be −100.
random_ids_from_one
    - any_id = torch.randint(vocab_size, ids.shape, generator=generator, device=ids.device)
    + any_id = torch.randint(
    +     min(1, vocab_size - 1), vocab_size, ids.shape, generator=generator, device=ids.device
    + )
    The random ids begin at 1. All ids from 0 on may be drawn.
last_id_never_drawn: torch.randint(vocab_size, → torch.randint(max(vocab_size - 1, 1),
    The last id is never drawn: torch.randint leaves out its upper end by itself.
one_id_too_many: torch.randint(vocab_size, → torch.randint(vocab_size + (vocab_size > 1),
    vocab_size itself may be drawn, and there is no such id.
never_mask_ids_own
    - any_id.to(ids.dtype), inputs)
    + any_id.where(any_id != mask_id, (any_id + 1) % vocab_size), inputs)
    A random id is never mask_id. It is drawn from all ids, that one included.
never_the_true_id
    - any_id.to(ids.dtype), inputs)
    + any_id.where(any_id != ids, (any_id + 1) % vocab_size), inputs)
    A random id is never the true one. It is drawn from all ids, that one included.
never_a_special_id
    - any_id.to(ids.dtype), inputs)
    + any_id.where(~torch.isin(any_id, any_id.new_tensor([*special_ids])), mask_id), inputs)
    A random id that is special becomes mask_id. Random ids are drawn from all ids.
another_tokens_id
    - any_id.to(ids.dtype), inputs)
    + ids.flatten()[any_id.flatten().argsort()].view_as(ids), inputs)
    The random ids are those of other tokens of the batch, so frequent ones come more often. All ids
    should be drawn alike.
one_random_id_for_all: any_id.to(ids.dtype), inputs) → any_id[:1, :1], inputs)
    One random id is drawn for the whole batch. There should be one for each token.
one_random_id_for_a_sequence: any_id.to(ids.dtype), inputs) → any_id[:, :1], inputs)
    One random id is drawn for each sequence. There should be one for each token.
labels_first
    - return inputs, ids.masked_fill(~chosen, -100)
    + return ids.masked_fill(~chosen, -100), inputs
    The labels come first. The pair is (inputs, labels).
inputs_alone: return inputs, ids.masked_fill(~chosen, -100) → return inputs
    Only the inputs are returned. The pair is (inputs, labels).
inputs_unchanged: return inputs, → return ids.clone(),
    The inputs are the ids as they were: there is nothing to fill in.
generator_ignored: generator=generator → generator=None ×2
    The generator is not passed on: the global random numbers move on instead, and the same seed
    gives other blanks each time.
generator_for_the_choice_only
    - torch.randint(vocab_size, ids.shape, generator=generator,
    + torch.randint(vocab_size, ids.shape,
    One of the draws is made without the generator, from the global random numbers.
generator_seeded_anew
    + if generator is not None:
    +     generator = torch.Generator(ids.device).manual_seed(generator.initial_seed())
    The draws come from a copy of the generator, made anew in each call: the next call draws the
    same.
seeded_at_the_start: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program: without a generator, the blanks are
    the same each time.
through_numpys_numbers
    - draws[0] < probability
    + torch.from_numpy(np.random.rand(*ids.shape)).to(ids.device) < probability
    The tokens are chosen by NumPy's random numbers, which no generator of torch controls.
ids_overwritten
    - inputs = ids.masked_fill(chosen
    + truth = ids.clone(); inputs = ids.masked_fill_(chosen
    ~ inputs, ids.masked_fill(~chosen, -100) → inputs, truth.masked_fill(~chosen, -100)
    The caller's ids are masked as well: the text itself is lost.
ids_are_narrow: > result = result[0].int(), result[1].int()
    The results are int32. Token ids are long.
labels_as_floats: > result = result[0], result[1].float()
    The labels are floating-point numbers. They should be long, as ids are.
switches_gradients_off: + torch.set_grad_enabled(False)
    Gradients are switched off, and stay off for the whole program.
""")

BANK.changes(f"""
made_on_the_cpu: generator=generator, device=ids.device → generator=generator ×2
    {MADE_ON_THE_CPU}
left_on_the_cpu: > result = tuple(x.cpu() for x in result)
    {LEFT_ON_THE_CPU}
through_numpy: + ids = torch.from_numpy(ids.numpy())
    {THROUGH_NUMPY}
""")


@BANK.right
def by_bernoulli(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """As Hugging Face's collator does it: a half of what is not masked becomes random."""

    def happens(p):
        return torch.bernoulli(torch.full(ids.shape, p, device=ids.device), generator=generator)

    inputs, labels = ids.clone(), ids.clone()
    chosen = happens(probability).bool()
    for token in special_ids:
        chosen &= ids != token
    labels[~chosen] = -100
    masked = happens(0.8).bool() & chosen
    inputs[masked] = mask_id
    replaced = happens(0.5).bool() & chosen & ~masked
    words = torch.randint(
        0, vocab_size, labels.shape, dtype=torch.long, device=ids.device, generator=generator
    )
    inputs[replaced] = words[replaced]
    return inputs, labels


@BANK.right
def only_where_needed(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """Fates and random ids for the chosen tokens alone."""
    special = torch.zeros_like(ids, dtype=torch.bool)
    for token in set(special_ids):
        special |= ids == token
    draw = torch.rand(ids.shape, device=ids.device, generator=generator)
    chosen = torch.nonzero((draw < probability) & ~special, as_tuple=True)
    truth = ids[chosen]
    kind = torch.randint(10, truth.shape, device=ids.device, generator=generator)
    words = torch.randint(vocab_size, truth.shape, device=ids.device, generator=generator)
    new = torch.where(kind < 8, torch.full_like(truth, mask_id), truth)
    new = torch.where(kind == 8, words, new)
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    inputs[chosen], labels[chosen] = new, truth
    return inputs, labels


@BANK.right
def token_by_token(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """Lists of Python, with all chances from one tensor."""
    chances = torch.rand(*ids.shape, 3, generator=generator, device=ids.device).tolist()
    inputs, labels = [], []
    for row, draws in zip(ids.tolist(), chances, strict=True):
        inputs.append([])
        labels.append([])
        for token, (first, second, third) in zip(row, draws, strict=True):
            chosen = first < probability and token not in special_ids
            labels[-1].append(token if chosen else -100)
            fate = int(second * 10) if chosen else 9
            inputs[-1].append(
                mask_id if fate < 8 else int(third * vocab_size) if fate < 9 else token
            )
    made = (torch.tensor(x, dtype=torch.long, device=ids.device) for x in (inputs, labels))
    return tuple(made)


@BANK.right
def by_multinomial(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    """One draw of five fates, and one of the ids."""
    shares = torch.tensor([0.8, 0.1, 0.1, 0.0], dtype=torch.double) * probability
    shares[3] = 1 - probability
    shares = shares.to(ids.device)
    fate = torch.multinomial(shares, ids.numel(), replacement=True, generator=generator)
    fate = fate.view(ids.shape)
    allowed = torch.ones_like(ids, dtype=torch.bool)
    for token in special_ids:
        allowed = allowed & ids.ne(token)
    fate = fate.where(allowed, 3)
    words = torch.rand(ids.shape, generator=generator, device=ids.device) * vocab_size
    inputs = torch.where(fate == 0, mask_id, ids)
    inputs = torch.where(fate == 1, words.long(), inputs)
    return inputs, torch.where(fate < 3, ids, -100)


@BANK.right
def a_seed_for_everything(
    ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None
):
    """One number from torch seeds a generator of Python's own."""
    seed = int(torch.randint(2**62, (1,), generator=generator, device=ids.device))
    draw = random.Random(seed)
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    for i, row in enumerate(ids.tolist()):
        for j, token in enumerate(row):
            if token in special_ids or draw.random() >= probability:
                continue
            labels[i, j] = token
            fate = draw.random()
            if fate < 0.8:
                inputs[i, j] = mask_id
            elif fate < 0.9:
                inputs[i, j] = draw.randrange(vocab_size)
    return inputs, labels


_OWN = torch.Generator().manual_seed(0)


@BANK.mistake
def generator_of_its_own(
    ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None
):
    """Without a generator, all is drawn from one that lies beside the function, so that torch's
    seed changes nothing. Draw from torch's own: pass on generator, which may be None."""
    given = ids, mask_id, vocab_size, special_ids, probability
    return right.mask_tokens(*given, generator=generator or _OWN)
