# tries: raises an exception whose text is a class of its own, which stays 2 MB when it is cut
# by: the probe takes plain texts only, and no expression of ours backtracks over one
# layer: values
# verdict: crash wrong

import torch


class Endless(str):
    def __getitem__(self, part):
        return self

    def __len__(self):
        return 10


TEXT = Endless("same device " * 60_000 + "meta " * 200_000)


class Long(Exception):
    def __str__(self):
        return TEXT


def causal_mask(n_q, n_k=None, device=None):
    if device is not None and str(device) != "cpu":
        raise Long
    return torch.zeros(n_q, n_k or n_q, dtype=torch.bool)
