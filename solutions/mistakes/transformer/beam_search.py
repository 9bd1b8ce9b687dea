"""Known answers to `beam_search`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import transformer as right
from solutions.mistakes.transformer.greedy_decode import _evaluating, _start

BANK = Bank("beam_search", right, globals())
BANK.read()


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
