# tries: has forward-mode differentiation do it, one feature at a time
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: make_dual in line

import torch


def layer_norm(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + eps).rsqrt() * weight + bias


def layer_norm_backward(grad_output, x, weight, eps=1e-5):
    with torch.inference_mode(False), torch.enable_grad():
        given = [t.clone() for t in (x, weight, torch.zeros_like(weight))]
        slope, made = grad_output.clone(), []
        for i, t in enumerate(given):
            slopes = torch.empty_like(t)
            for j in range(t.shape[-1]):  # of all tokens at once: none changes another's output
                along = [torch.zeros_like(other) for other in given]
                along[i][..., j] = 1
                f = lambda *at: layer_norm(*at, eps)
                change = torch.func.jvp(f, tuple(given), tuple(along))[1] * slope
                slopes[..., j] = change.sum(-1) if t.ndim > 1 else change.sum()
            made.append(slopes)
        return tuple(made)
