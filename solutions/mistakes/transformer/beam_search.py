"""Known answers to `beam_search`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right
from solutions.mistakes.transformer.greedy_decode import _evaluating, _start

BANK = Bank("beam_search", right, globals())

BANK.changes("""
parent_by_true_division
    - best // logits.shape[1],
    + torch.round(best / logits.shape[1]).long().clamp(max=len(ids) - 1),
    The beam that a continuation belongs to comes from a true division, rounded: tokens from the
    upper half of the vocabulary are appended to the next beam instead of theirs.
parent_forgotten
    ~ best // logits.shape[1], → torch.arange(len(best), device=best.device) % len(ids),
    The new tokens are appended to the beams in order, not to the beam that each continues: the
    texts are mixtures of several.
length_penalty_inverted: float(p) / → float(p) *
    log p is multiplied by the length penalty instead of divided by it: long texts are punished
    twice.
length_penalty_ignored: float(p) / ((4 + len(i)) / 6) ** length_penalty → float(p)
    The score is log p itself: every token makes a text worse, so short ones win.
mean_log_probability: ((4 + len(i)) / 6) → (len(i) - 1)
    log p is divided by length^α. The penalty is ((5 + length) / 6)^α, which is 1 for one token and
    grows more slowly.
penalty_without_brackets: ((4 + len(i)) / 6) → (5 + (len(i) - 1) / 6)
    The penalty is 5 + length/6, to the power of α: the brackets around 5 + length are missing.
length_without_eos: 4 + len(i) → 4 + len(i) - int(i[-1] == eos_id)
    eos is not counted in the length of a finished text.
length_with_bos: 4 + len(i) → 5 + len(i)
    bos is counted in the length, although it is not part of what was written.
beam_bos_kept: i[1:] → i
    The ids begin with bos, which is not part of what was written.
beam_eos_dropped
    > result = [(ids[:-1] if ids[-1] == eos_id else ids, score) for ids, score in result]
    eos is left out of the ids. It is part of what was written.
worst_first: pair[1], reverse=True → pair[1]
    The pairs are in ascending order: the worst of all comes first.
in_the_order_found: sorted(scored, key=lambda pair: pair[1], reverse=True) → scored
    The pairs are in the order in which they were finished. The best score should come first.
unfinished_dropped: - found += zip(ids, log_p, strict=True)
    Beams that are unfinished at max_len are discarded; they count as they are.
finished_dropped
    - found += zip(ids, log_p, strict=True)
    + found = [*zip(ids, log_p, strict=True)] or found[-1:]
    Beams that reach eos before the end are lost: only those still unfinished at max_len are
    returned.
beam_never_stops: token == eos_id → token < 0
    A beam that has its eos is continued like any other, up to max_len.
score_goes_on_behind_eos
    ~ done = token == eos_id → done = token < 0
    ~ len(ids) > 0: → not (ids == eos_id).any(dim=1).all():
    - found += zip(ids, log_p, strict=True)
    + ends = [[*i.tolist(), eos_id].index(eos_id) for i in ids]
    + found = [(i[: end + 1], p) for i, end, p in zip(ids, ends, log_p, strict=True)]
    A beam that has its eos is continued like any other. What comes after it is cut off in the end,
    but has a part in the score.
only_the_last_step_counts: (log_p[:, None] → (0 * log_p[:, None]
    The log-probabilities of earlier steps are not added: a beam is only as good as its last token.
logits_added: logits.log_softmax(dim=-1) → logits
    Raw logits are added up. Only after log_softmax can those of two beams be compared.
probabilities_added: logits.log_softmax → logits.softmax
    Probabilities are added up instead of their logarithms: the longest text wins.
softmax_in_the_beam_twice: logits.log_softmax → logits.softmax(dim=-1).log_softmax
    log_softmax is taken of a softmax: all tokens turn out nearly alike.
every_beam_for_itself
    - ids = torch.cat([ids[parent]
    + if ids.shape[1] > 1:
    +     log_p, token = total.unflatten(0, (len(ids), -1)).max(-1)
    +     parent = torch.arange(len(ids), device=ids.device)
    + ids = torch.cat([ids[parent]
    Each beam is continued with its own best token; beams never compete. After the first step
    nothing is searched any more: this is greedy decoding from several first words.
greedy_in_disguise: min(beam_size, len(total)) → 1
    Only the best continuation is kept at each step, whatever beam_size says.
beams_start_alike: torch.full((1 → torch.full((beam_size ; torch.zeros(1 → torch.zeros(beam_size
    The search starts from beam_size copies of bos. They never diverge: each step finds the same
    best continuation beam_size times over, and the result is that of greedy decoding, repeated.
beam_too_wide: min(beam_size, len(total)) → beam_size
    topk should find beam_size continuations where there are fewer, and raises an error.
beam_reads_the_first_position: [:, -1] → [:, 0]
    The first position's logits are read at every step, but it is the last that predicts the next
    token.
beam_one_token_short: + max_len = max_len - 1
    bos is counted: one token too few is written.
beam_in_train_mode: - model.eval()
    The model decodes in whatever mode it is: in training mode, dropout blurs every step.
only_the_best: [:beam_size] → [:1]
    Only the best text comes back. The others are worth having, too: up to beam_size pairs.
beam_left_in_eval_mode: module.training = training → pass
    The model is left in eval mode: training goes on without dropout.
beam_leaves_parts_in_eval_mode: module.training = training → model.training = modes[model]
    Only the model's own mode is restored. model.eval() reaches all of its parts, and they are still
    in eval mode: their dropout is off from then on.
beam_recorded_for_gradients: with torch.no_grad(): → with torch.enable_grad():
    The steps are recorded for a backward pass that never comes, which costs memory at every one.
beam_turns_gradients_off: > torch.set_grad_enabled(False)
    Gradients are turned off and stay so: the next training step fails.
beam_writes_into_the_source: > source.add_(1)
    The caller's source is changed.
""")


@BANK.right
def beam_in_parts(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    ids, so_far, finished = _start(source, bos_id), torch.zeros(1, device=source.device), []
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            logits = model(source.expand(len(ids), -1), ids)[:, -1]
            total = so_far[:, None] + logits.log_softmax(-1)
            so_far, place = total.flatten().topk(min(beam_size, total.numel()))
            ids = torch.cat([ids[place // total.shape[1]], place[:, None] % total.shape[1]], 1)
            ended = ids[:, -1] == eos_id
            finished += zip(ids[ended], so_far[ended].tolist(), strict=True)
            ids, so_far = ids[~ended], so_far[~ended]
            if not len(ids):
                break
    found = [*finished, *zip(ids, so_far.tolist(), strict=True)]
    pairs = [(i[1:], _score(i[1:], p, length_penalty)) for i, p in found]
    return sorted(pairs, key=lambda pair: -pair[1])[:beam_size]


def _score(ids, log_p, length_penalty):
    return log_p / ((5 + len(ids)) / 6) ** length_penalty


def _continued(model, source, bos_id, texts):
    """Every text with every next token: (log p, ids)."""
    ids = torch.tensor([[bos_id, *text] for _, text in texts], device=source.device)
    log_p = model(source.repeat(len(ids), 1), ids)[:, -1].log_softmax(-1).tolist()
    for (so_far, text), row in zip(texts, log_p, strict=True):
        for token, p in enumerate(row):
            yield so_far + p, (*text, token)


@BANK.right
def beam_of_lists(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """Plain Python; a finished text keeps its place in the beam, leaving room for fewer others."""
    alive, done = [(0.0, ())], []
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            best = sorted(_continued(model, source, bos_id, alive), reverse=True)
            best = best[: beam_size - len(done)]
            done += [text for text in best if text[1][-1] == eos_id]
            alive = [text for text in best if text[1][-1] != eos_id]
            if not alive:
                break
    pairs = [([*ids], _score(ids, p, length_penalty)) for p, ids in done + alive]
    return sorted(pairs, key=lambda pair: pair[1], reverse=True)


@BANK.right
def beam_with_finished_competing(
    model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6
):
    """Finished texts stay among the beams and are compared with the others by their score."""
    beams = [(0.0, ())]
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            done = [text for text in beams if text[1][-1:] == (eos_id,)]
            alive = [text for text in beams if text[1][-1:] != (eos_id,)]
            if not alive:
                break
            pool = done + [*_continued(model, source, bos_id, alive)]
            pool.sort(key=lambda text: -_score(text[1], text[0], length_penalty))
            beams = pool[:beam_size]
    return [
        (torch.tensor(ids, device=source.device), _score(ids, p, length_penalty))
        for p, ids in beams
    ]


@BANK.right
def beam_refilled(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    """Places of finished texts are refilled at once; done when beam_size texts are finished."""
    alive, done = [(0.0, ())], []
    with _evaluating(model), torch.no_grad():
        for _ in range(max_len):
            best = sorted(_continued(model, source, bos_id, alive), reverse=True)
            done += [text for text in best[:beam_size] if text[1][-1] == eos_id]
            alive = [text for text in best if text[1][-1] != eos_id][:beam_size]
            if len(done) >= beam_size:
                break
    if len(done) < beam_size:
        done += alive
    pairs = [
        (torch.tensor(ids, device=source.device), torch.tensor(_score(ids, p, length_penalty)))
        for p, ids in done
    ]
    pairs.sort(key=lambda pair: pair[1], reverse=True)
    return pairs[:beam_size]


forgotten(BANK, "source", numpy=True)
