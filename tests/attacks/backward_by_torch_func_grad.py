# tries: has torch.func differentiate a sum
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.autograd.grad in line

import torch


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * weight + bias


def layer_norm_backward(grad_output, x, weight, eps=1e-5):
    with torch.inference_mode(False), torch.enable_grad():
        given = [t.clone() for t in (x, weight, torch.zeros_like(weight))]
        slope = grad_output.clone()
        return torch.func.grad(lambda t: (layer_norm(*t, eps) * slope).sum())(tuple(given))
