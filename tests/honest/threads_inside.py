# what: the answer works in threads: a ThreadPoolExecutor, threading.Thread and a Queue
# answers: simple_attention, cosine_scores
import queue
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

lock = threading.Lock()
done = 0


# %%
def simple_attention(query, key, value):
    global done
    scores = np.matmul(query, np.swapaxes(key, -1, -2))
    flat = scores.reshape(-1, scores.shape[-1])

    def row(r):
        e = np.exp(r - r.max())
        return e / e.sum()

    with ThreadPoolExecutor(max_workers=2) as pool:
        futures = {pool.submit(row, r): i for i, r in enumerate(flat)}
        rows = [None] * len(flat)
        for f in as_completed(futures):
            rows[futures[f]] = f.result()
            with lock:
                done += 1
    weights = np.stack(rows).reshape(scores.shape)
    return weights @ value, weights


# %%
def cosine_scores(query, key, eps=1e-8):
    q = queue.Queue()

    def directions(x):
        q.put(x / x.norm(dim=-1, keepdim=True).clamp_min(eps))

    for x in (query, key):
        t = threading.Thread(target=directions, args=(x,), daemon=True)
        t.start()
        t.join()
    one, other = q.get(), q.get()
    return (one @ other.transpose(-2, -1)).clamp(-1.0, 1.0)
