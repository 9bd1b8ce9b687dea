# what: multiprocessing tried in a cell of its own, files written and read, pickles of one's own data
# answers: simple_attention, cosine_scores
import json
import multiprocessing as mp
import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import torch


# %%
def square(x):
    return x * x


print(mp.cpu_count(), "cores")
try:
    with mp.get_context("fork").Pool(2) as pool:
        print(pool.map(square, range(5)))
except Exception as e:
    print("no pool here:", type(e).__name__)

# %%
folder = Path(tempfile.gettempdir()) / "my_results"
folder.mkdir(exist_ok=True)
np.save(folder / "query.npy", np.eye(3))
torch.save({"w": torch.ones(2)}, folder / "weights.pt")
(folder / "config.json").write_text(json.dumps({"d_k": 4, "note": "µ"}))
with open(folder / "log.pkl", "wb") as f:
    pickle.dump({"loss": [1.0, 0.5]}, f)
print(
    sorted(os.listdir(folder)),
    pickle.loads((folder / "log.pkl").read_bytes()),
    torch.load(folder / "weights.pt"),
)


# %%
def simple_attention(query, key, value):
    scores = np.einsum("...qd,...kd->...qk", query, key)
    with open(folder / "log.txt", "a") as log:
        print("scores", scores.shape, scores.max(), file=log)
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = weights / np.sum(weights, axis=-1, keepdims=True)
    return np.matmul(weights, value), weights


# %%
def cosine_scores(query, key, eps=1e-8):
    lengths = (query.pow(2).sum(-1).sqrt(), key.pow(2).sum(-1).sqrt())
    lengths = [length.clamp_min(eps) for length in lengths]
    dots = torch.einsum(
        "...qd,...kd->...qk", query / lengths[0][..., None], key / lengths[1][..., None]
    )
    return dots.clamp(-1.0, 1.0)
