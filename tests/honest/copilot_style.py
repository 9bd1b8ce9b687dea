# what: what an assistant writes: long docstrings, examples, checks of every argument, section comments
# answers: shift_right, label_smoothed_cross_entropy, beam_search
from __future__ import annotations

import math
from typing import Final, NamedTuple

import torch
import torch.nn as nn

_WU_OFFSET: Final[float] = 5.0
_WU_DIVISOR: Final[float] = 6.0


# ----------------------------------------------------------------------------
# 1. Shifting
# ----------------------------------------------------------------------------
# %%
def shift_right(target: torch.Tensor, bos_id: int) -> torch.Tensor:
    """
    Shifts the target sequence one position to the right and prepends the BOS token.

    Args:
        target (torch.Tensor): The target token ids of shape (batch_size, sequence_length).
        bos_id (int): The id of the beginning-of-sequence token.

    Returns:
        torch.Tensor: The shifted sequence, of the same shape as `target`.

    Raises:
        TypeError: If `target` is not a tensor.

    Example:
        >>> shift_right(torch.tensor([[1, 2, 3]]), 0)
        tensor([[0, 1, 2]])
    """
    if not isinstance(target, torch.Tensor):
        raise TypeError(f"Expected `target` to be a torch.Tensor, got {type(target).__name__}.")

    # Create a tensor of the same shape, filled with the BOS token
    shifted = torch.full_like(target, bos_id)

    # Copy everything except for the last token, shifted by one
    shifted[..., 1:] = target[..., :-1].clone()

    return shifted


# %%
def label_smoothed_cross_entropy(
    logits: torch.Tensor,
    target: torch.Tensor,
    smoothing: float = 0.1,
    pad_id: int = 0,
) -> torch.Tensor:
    """Computes the label-smoothed cross-entropy loss, ignoring padding tokens."""
    # Validate the inputs
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError("`smoothing` must be in [0, 1].")

    # Flatten
    vocab_size = logits.size(-1)
    flat_logits = logits.reshape(-1, vocab_size)
    flat_target = target.reshape(-1)

    # Select the non-padding positions
    non_pad = flat_target.ne(pad_id)
    if not non_pad.any():
        return flat_logits.sum() * 0.0

    # Compute the log probabilities
    log_probs = torch.log_softmax(flat_logits[non_pad], dim=-1)

    # Negative log-likelihood and smoothing term
    nll = -log_probs.gather(dim=-1, index=flat_target[non_pad].unsqueeze(-1)).squeeze(-1)
    smooth = -log_probs.sum(dim=-1) / vocab_size

    return ((1.0 - smoothing) * nll + smoothing * smooth).mean()


# %%
class Beam(NamedTuple):
    """A (partial) hypothesis."""

    ids: list[int]
    log_prob: float
    is_finished: bool

    def normalized(self, alpha: float) -> float:
        """Returns the length-normalized score (Wu et al., 2016)."""
        return self.log_prob / (((_WU_OFFSET + len(self.ids)) / _WU_DIVISOR) ** alpha)


@torch.no_grad()
def beam_search(
    model: nn.Module,
    source: torch.Tensor,
    bos_id: int,
    eos_id: int,
    max_len: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
) -> list[tuple[torch.Tensor, float]]:
    """Performs beam search decoding."""
    was_training = {name: m.training for name, m in model.named_modules()}
    model.eval()

    active: list[Beam] = [Beam([], 0.0, False)]
    completed: list[Beam] = []

    try:
        for _ in range(max_len):
            if len(active) == 0:
                break
            prefixes = torch.tensor([[bos_id] + b.ids for b in active], device=source.device)
            logits = model(source.expand(len(active), *source.shape[1:]), prefixes)[:, -1, :]
            log_probs = torch.log_softmax(logits, dim=-1)
            scores = log_probs + torch.tensor([b.log_prob for b in active]).unsqueeze(-1).to(
                log_probs
            )

            # Take the top-k of all (beam, token) combinations
            k = min(beam_size, scores.numel())
            top_scores, top_indices = torch.topk(scores.reshape(-1), k)
            candidates = []
            for score, index in zip(top_scores.tolist(), top_indices.tolist()):
                beam_index, token = divmod(index, scores.size(-1))
                candidates.append(Beam(active[beam_index].ids + [token], score, token == eos_id))

            completed.extend(c for c in candidates if c.is_finished)
            active = [c for c in candidates if not c.is_finished]
    finally:
        # Restore the original training modes
        for name, m in model.named_modules():
            m.training = was_training[name]

    # Sort by the normalized score (descending)
    everything = sorted(
        completed + active, key=lambda b: b.normalized(length_penalty), reverse=True
    )
    return [(torch.tensor(b.ids), b.normalized(length_penalty)) for b in everything[:beam_size]]
