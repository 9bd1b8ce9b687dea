# tries: returns a tensor subclass that answers every torch function as it likes
# by: values: only the plain tensor travels
# layer: values
# verdict: wrong

import torch


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.equal, torch.allclose):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})

    def __eq__(self, other):
        return torch.ones(self.shape, dtype=torch.bool)


def causal_mask(n_q, n_k=None, device=None):
    return torch.zeros(n_q, n_k or n_q, dtype=torch.bool).as_subclass(Liar)
