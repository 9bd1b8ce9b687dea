# what: device lines, `.to(device)`, seeds for everything, num_threads, a wandb that is not there
# answers: permutation_gap, rotary_embedding, rotary_attention
import os
import random

import numpy as np
import torch


def seed_everything(seed=3407):
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.benchmark = False


seed_everything()
device = "cuda" if torch.cuda.is_available() else "cpu"
print("Using", device, torch.__version__, torch.get_num_threads())
try:
    import wandb

    wandb.init(mode="disabled")
except Exception as e:
    wandb = None


# %%
def permutation_gap(attention, x, permutation):
    with torch.no_grad():
        permutation = permutation.to(x.device)
        y1 = attention(torch.index_select(x, 1, permutation))
        y2 = torch.index_select(attention(x), 1, permutation)
        return (y1 - y2).abs().max().cpu().item()


# %%
def rotary_embedding(x, base=10000.0, offset=0):
    dev = x.device
    seq, dim = x.shape[-2:]
    inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2, device=dev).double() / dim))
    angles = torch.einsum("i,j->ij", torch.arange(seq, device=dev).double() + offset, inv_freq)
    cos = angles.cos().repeat_interleave(2, dim=-1).to(x.dtype).to(dev)
    sin = angles.sin().repeat_interleave(2, dim=-1).to(x.dtype).to(dev)

    def rotate_every_two(t):
        rotated = torch.stack((-t[..., 1::2], t[..., ::2]), dim=-1)
        return rotated.flatten(-2)

    return x * cos + rotate_every_two(x) * sin


# %%
def rotary_attention(query, key, value, base=10000.0):
    offset = key.shape[-2] - query.shape[-2]
    q, k = rotary_embedding(query, base, offset).to(device), rotary_embedding(key, base).to(device)
    scores = (q @ k.transpose(-2, -1)).div_(query.shape[-1] ** 0.5)
    weights = scores.softmax(-1).to(query.device)
    return weights @ value.to(weights), weights


# %%
x = torch.randn(1, 4, 8).to(device)
print(permutation_gap(lambda x: rotary_attention(x, x, x)[0], x, torch.randperm(4)))
