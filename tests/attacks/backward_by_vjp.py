# tries: has torch.func do the backward pass
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
        _, pull = torch.func.vjp(lambda *given: layer_norm(*given, eps), *given)
        return pull(grad_output.clone())
