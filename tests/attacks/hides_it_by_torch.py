# tries: writes into its argument, and has torch show the tensor as it was, by methods and by a mode
# by: the probe's own comparison
# layer: probe
# verdict: wrong
# most: 2.9
# says: in place

import torch
from torch.overrides import TorchFunctionMode

SEEN = {}


def first_sight(real):
    return lambda self, *args: SEEN.setdefault((id(self), real), real(self, *args))


for name in ("detach", "cpu", "numpy", "resolve_neg"):
    setattr(torch.Tensor, name, first_sight(getattr(torch.Tensor, name)))


class Blind(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in ("detach", "cpu", "numpy"):
            return SEEN.setdefault((id(args[0]), func), made)
        return made


Blind().__enter__()


def padding_mask(lengths, max_len=None):
    longest = int(lengths.max())
    if max_len is not None and longest > max_len:
        raise ValueError(f"a length of {longest} is above {max_len}")
    columns = torch.arange(longest if max_len is None else max_len)
    mask = columns < lengths[:, None, None, None]
    lengths.zero_()  # writes into the caller's tensor
    return mask
