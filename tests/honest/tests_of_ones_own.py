# what: tests of one's own: asserts, test_ functions, a doctest, np.testing, an `if __name__`
# answers: shift_right, label_smoothed_cross_entropy
import doctest

import numpy as np
import torch
import torch.nn.functional as F


# %%
def shift_right(target, bos_id):
    """Shift.

    >>> shift_right(torch.tensor([[5, 6, 7]]), 1).tolist()
    [[1, 5, 6]]
    >>> shift_right(torch.tensor([5]), 1).tolist()
    [1]
    """
    out = torch.roll(target, shifts=1, dims=-1)
    out[..., 0] = bos_id
    return out


def test_shift_right():
    t = torch.randint(3, 9, (4, 6))
    before = t.clone()
    got = shift_right(t, 2)
    assert got.shape == t.shape and (got[:, 0] == 2).all()
    assert torch.equal(got[:, 1:], t[:, :-1])
    assert torch.equal(t, before), "must not change the input"


test_shift_right()


# %%
def label_smoothed_cross_entropy(logits, target, smoothing=0.1, pad_id=0):
    V = logits.shape[-1]
    log_p = F.log_softmax(logits.reshape(-1, V), dim=-1)
    t = target.reshape(-1)
    keep = (t != pad_id).to(log_p.dtype)
    if keep.sum() == 0:
        return (log_p * 0).sum()
    safe = torch.where(t != pad_id, t, torch.zeros_like(t))
    q = torch.full_like(log_p, smoothing / V)
    q = q + (1 - smoothing) * F.one_hot(safe, V).to(log_p.dtype)
    per_token = -(q * log_p).sum(-1)
    loss = (per_token * keep).sum() / keep.sum()
    assert loss.ndim == 0, loss.shape
    return loss


# %%
lg, tg = torch.randn(3, 5, 11), torch.randint(1, 11, (3, 5))
mine = label_smoothed_cross_entropy(lg, tg)
ready = F.cross_entropy(lg.flatten(0, 1), tg.flatten(), label_smoothing=0.1, ignore_index=0)
torch.testing.assert_close(mine, ready)
np.testing.assert_allclose(
    mine.item(),
    nn.CrossEntropyLoss(label_smoothing=0.1)(lg.flatten(0, 1), tg.flatten()).item(),
    rtol=1e-5,
) if "nn" in globals() else None

if __name__ == "__main__":
    print(doctest.testmod())
    print("all tests passed ✓")
