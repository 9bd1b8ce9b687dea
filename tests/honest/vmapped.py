# what: torch.vmap and functools.partial instead of broadcasting
# answers: rotary_embedding, rotary_attention
from functools import partial, reduce
from operator import itemgetter

import torch
from torch import vmap


# %%
def rotate_one(vec, angle):
    a, b = vec[0::2], vec[1::2]
    c, s = torch.cos(angle).to(vec.dtype), torch.sin(angle).to(vec.dtype)
    return torch.stack((a * c - b * s, a * s + b * c), dim=1).reshape(-1)


def rotary_embedding(x, base=10000.0, offset=0):
    n, d = x.shape[-2], x.shape[-1]
    inv = torch.tensor([base ** (-i / d) for i in range(0, d, 2)], dtype=torch.float64)
    angles = (torch.arange(offset, offset + n)[:, None] * inv).to(x.device)
    per_position = vmap(rotate_one)
    flat = x.reshape(-1, n, d)
    out = vmap(partial(lambda t, angles: per_position(t, angles), angles=angles))(flat)
    return out.reshape(x.shape)


# %%
def rotary_attention(query, key, value, base=10000.0):
    steps = [
        lambda s: dict(s, q=rotary_embedding(s["q"], base, s["k"].shape[-2] - s["q"].shape[-2])),
        lambda s: dict(s, k=rotary_embedding(s["k"], base)),
        lambda s: dict(s, w=(s["q"] @ s["k"].mT * s["q"].shape[-1] ** -0.5)),
        lambda s: dict(s, w=torch.exp(s["w"] - torch.logsumexp(s["w"], -1, keepdim=True))),
        lambda s: dict(s, out=torch.einsum("...qk,...kd->...qd", s["w"], s["v"])),
    ]
    return itemgetter("out", "w")(
        reduce(lambda s, f: f(s), steps, {"q": query, "k": key, "v": value})
    )
