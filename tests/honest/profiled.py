# what: profilers, gc, tracemalloc, FlopCounterMode, torch.utils.benchmark, torch.device as a context
# answers: scaled_dot_product_attention, AdditiveAttention
import cProfile
import gc
import io
import pstats
import sys
import time
import tracemalloc

import torch
from torch import nn
from torch.utils import benchmark
from torch.utils.flop_counter import FlopCounterMode

gc.collect()
torch.cuda.empty_cache()
torch.set_printoptions(precision=3, sci_mode=False)
torch.backends.cudnn.deterministic = True
torch.manual_seed(0)
DEVICE = torch.device(
    "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
)


# %%
def scaled_dot_product_attention(query, key, value):
    start = time.perf_counter()
    with torch.device(query.device):
        scale = torch.tensor(query.shape[-1], dtype=query.dtype).rsqrt()
    scores = torch.matmul(query * scale, key.transpose(-1, -2))
    weights = nn.functional.softmax(scores, dim=-1)
    out = torch.matmul(weights, value)
    elapsed = time.perf_counter() - start
    if elapsed > 60:
        print("slow!", elapsed)
    return out, weights


# %%
q, k, v = (torch.randn(2, 4, 8).to(DEVICE) for _ in range(3))
with FlopCounterMode(display=False) as counter:
    scaled_dot_product_attention(q, k, v)
print(counter.get_total_flops(), sys.getsizeof(q), sys.getrefcount(q))
with torch.autograd.profiler.profile() as prof:
    scaled_dot_product_attention(q, k, v)
print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=3))
print(
    benchmark.Timer(
        "f(q, k, v)", globals={"f": scaled_dot_product_attention, "q": q, "k": k, "v": v}
    ).timeit(3)
)
tracemalloc.start()
profile = cProfile.Profile()
profile.runcall(scaled_dot_product_attention, q, k, v)
pstats.Stats(profile, stream=io.StringIO()).sort_stats("cumtime").print_stats(3)
print(tracemalloc.get_traced_memory()[1] > 0)
tracemalloc.stop()


# %%
class AdditiveAttention(nn.Module):
    def __init__(self, query_size, key_size, hidden_size, dropout=0.0):
        super().__init__()
        self.W_q = nn.Linear(query_size, hidden_size, bias=False)
        self.W_k = nn.Linear(key_size, hidden_size, bias=False)
        self.w_v = nn.Linear(hidden_size, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value):
        with torch.autograd.profiler.record_function("additive"):
            queries, keys = self.W_q(query), self.W_k(key)
            features = torch.tanh(queries.unsqueeze(2) + keys.unsqueeze(1))
            scores = self.w_v(features).squeeze(-1)
            weights = nn.functional.softmax(scores, dim=-1)
            return torch.bmm(self.dropout(weights), value), weights


with torch.autograd.set_detect_anomaly(True), torch.autocast("cpu", enabled=False):
    AdditiveAttention(8, 8, 5)(q.cpu(), k.cpu(), v.cpu())[0].sum().backward()
