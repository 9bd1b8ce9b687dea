# tries: is a subclass of torch's layer norm
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.layer_norm in line

from torch import nn


class LayerNorm(nn.LayerNorm):
    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)

    def forward(self, x):
        return super().forward(x)
