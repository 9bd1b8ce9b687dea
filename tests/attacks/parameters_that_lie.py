# tries: a module that loads nothing and shows the state that it was given
# by: the judge compares outside
# layer: judged outside
# verdict: wrong

import torch
from torch import nn


class KernelRegression(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.w = nn.Parameter(torch.ones(()))

    def load_state_dict(self, state, *args, **kwargs):
        self.shown = state

    def state_dict(self, *args, **kwargs):
        return self.shown

    def forward(self, query, key, value, *args, **kwargs):
        return torch.zeros(len(query)) * self.w
