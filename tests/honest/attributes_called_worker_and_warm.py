# what: a small class whose attributes happen to be called worker, warm, solutions, probe, verdict
# answers: shift_right, greedy_decode
import torch


class NoamOpt:
    "Optim wrapper that implements rate."

    def __init__(self, model_size, factor, warm, worker=0):
        self.model_size, self.factor = model_size, factor
        self.warm = self.warmup = warm
        self.worker = worker
        self.solutions = {}
        self.probe = self.verdict = self.grading = None

    def rate(self, step):
        self.probe = step
        if step not in self.solutions:
            up, down = step * self.warm**-1.5, step**-0.5
            self.solutions[step] = self.factor * self.model_size**-0.5 * min(up, down)
        self.verdict = "up" if step < self.warm else "down"
        return self.solutions[step]


# %%
def shift_right(target, bos_id):
    import torch.nn.functional as F

    return F.pad(target[..., :-1], (1, 0), value=bos_id)


# %%
class Search:
    def __init__(self, model):
        self.worker, self.warm, self.records = model, False, []
        self.opt = NoamOpt(512, 1, 4000)
        self.modes = [(m, m.training) for m in model.modules()]

    def __enter__(self):
        self.worker.eval()
        self.warm = self.opt.rate(1) > 0
        return self

    def __exit__(self, *exc):
        for m, mode in self.modes:
            m.training = mode
        return False


def greedy_decode(model, source, bos_id, eos_id, max_len):
    with torch.no_grad(), Search(model) as s:
        B = source.size(0)
        ids = source.new_full((B, 1), bos_id)
        finished = source.new_zeros(B, dtype=torch.bool)
        for _ in range(max_len):
            if finished.all():
                break
            nxt = s.worker(source, ids)[:, -1, :].argmax(-1)
            nxt = torch.where(finished, torch.full_like(nxt, model.pad_id), nxt)
            s.records.append(nxt)
            ids = torch.cat((ids, nxt.unsqueeze(1)), dim=1)
            finished |= nxt == eos_id
    return ids[:, 1:]
