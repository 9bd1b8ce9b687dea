"""Known answers to `prune_heads`: mistakes, then right answers."""

import copy

import torch
from torch import nn

from autograder.bank import Bank
from solutions import bert as right

BANK = Bank("prune_heads", right, globals())
BANK.read()


@BANK.right
def by_masks(attention, heads):
    """A row of true and false for the features."""
    numbers = range(attention.num_heads)
    for head in heads:
        if head not in numbers:
            raise ValueError(f"no head {head} among {attention.num_heads}")
    stay = torch.tensor([head not in heads for head in numbers], device=attention.W_q.weight.device)
    if not stay.any():
        raise ValueError("no head would be left")
    rows = stay.repeat_interleave(len(attention.W_q.weight) // attention.num_heads)
    pruned = {}
    with torch.no_grad():
        for name in ("W_q", "W_k", "W_v", "W_o"):
            old = getattr(attention, name)
            inside, out = name == "W_o", name != "W_o"
            new = nn.Linear(
                int(rows.sum()) if inside else old.in_features,
                int(rows.sum()) if out else old.out_features,
                bias=old.bias is not None,
            ).to(old.weight)
            new.weight.copy_(old.weight[:, rows] if inside else old.weight[rows])
            if old.bias is not None:
                new.bias.copy_(old.bias if inside else old.bias[rows])
            pruned[name] = new
    return pruned


@BANK.right
def by_deep_copies(attention, heads):
    """Whole copies, cut afterwards."""
    H = attention.num_heads
    bad = [h for h in heads if h < 0 or h >= H]
    left = sorted(set(range(H)).difference(heads))
    if bad or not left:
        raise ValueError(f"cannot cut {list(heads)} of {H} heads")
    d_k = attention.W_q.weight.shape[0] // H
    made = {name: copy.deepcopy(getattr(attention, name)) for name in ("W_q", "W_k", "W_v", "W_o")}
    for name, layer in made.items():
        axis = int(name == "W_o")
        parts = layer.weight.data.split(d_k, axis)
        layer.weight = nn.Parameter(torch.cat([parts[h] for h in left], axis))
        if axis:
            layer.in_features = len(left) * d_k
        else:
            layer.out_features = len(left) * d_k
            if layer.bias is not None:
                biases = layer.bias.data.split(d_k)
                layer.bias = nn.Parameter(torch.cat([biases[h] for h in left]))
    return made


@BANK.right
def with_skipped_initialisation(attention, heads):
    """Without drawing numbers that are overwritten at once."""
    gone = set(heads)
    if min(gone, default=0) < 0 or max(gone, default=0) >= attention.num_heads:
        raise ValueError(f"{sorted(gone)}")
    stay = [h for h in range(attention.num_heads) if h not in gone]
    if len(stay) == 0:
        raise ValueError("all heads are named")

    def cut(layer, axis):
        wide = layer.weight.detach().unflatten(axis, (attention.num_heads, -1))
        index = torch.tensor(stay, device=wide.device)
        weight = wide.index_select(axis, index).flatten(axis, axis + 1)
        new = nn.utils.skip_init(
            nn.Linear,
            weight.shape[1],
            weight.shape[0],
            bias=layer.bias is not None,
            dtype=weight.dtype,
            device=weight.device,
        )
        new.weight.data.copy_(weight)
        if new.bias is not None:
            bias = layer.bias.detach()
            if axis == 0:
                bias = bias.view(attention.num_heads, -1)[stay].reshape(-1)
            new.bias.data.copy_(bias)
        return new

    return {
        "W_q": cut(attention.W_q, 0),
        "W_k": cut(attention.W_k, 0),
        "W_v": cut(attention.W_v, 0),
        "W_o": cut(attention.W_o, 1),
    }


@BANK.right
def feature_by_feature(attention, heads):
    gone = {int(h) for h in heads}
    if any(h not in range(attention.num_heads) for h in gone):
        raise ValueError(f"heads {gone} of {attention.num_heads}")
    if len(gone) == attention.num_heads:
        raise ValueError(f"nothing left of {attention.num_heads}")
    d_k = attention.W_q.out_features // attention.num_heads
    kept = [i for i in range(attention.W_q.out_features) if i // d_k not in gone]
    found = {}
    for name in ("W_o", "W_v", "W_k", "W_q"):
        state = {k: v.detach().clone() for k, v in getattr(attention, name).state_dict().items()}
        if name == "W_o":
            state["weight"] = state["weight"][:, kept].contiguous()
        else:
            state = {k: v[kept] for k, v in state.items()}
        n_out, n_in = state["weight"].shape
        found[name] = nn.Linear(n_in, n_out, "bias" in state, dtype=state["weight"].dtype)
        found[name].to(state["weight"].device)
        found[name].load_state_dict(state)
    return found
