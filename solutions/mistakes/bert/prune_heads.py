"""Known answers to `prune_heads`: mistakes, then right answers."""

import copy

import torch
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import LEFT_ON_THE_CPU, THROUGH_NUMPY
from solutions import bert as right

BANK = Bank("prune_heads", right, globals())

BANK.changes("""
rows_of_the_output: attention.W_o.weight[:, kept] → attention.W_o.weight[kept]
    The rows of W_o are cut. Heads are its columns: they are what W_o reads.
rows_of_the_output_turned: attention.W_o.weight[:, kept] → attention.W_o.weight[kept].T
    The rows of W_o are cut, and then transposed, so that the shape fits. Heads are its columns:
    they are what W_o reads.
rows_of_the_output_and_its_bias
    - attention.W_o.weight[:, kept], attention.W_o.bias
    + attention.W_o.weight[kept], None if attention.W_o.bias is None else attention.W_o.bias[kept]
    The rows of W_o are cut, and its bias. Heads are its columns, what W_o reads; its bias belongs
    to no head.
output_bias_cut
    > if result["W_o"].bias is not None:
    >     cut = [i for i in range(len(attention.W_o.bias)) if i not in kept.tolist()]
    >     result["W_o"].bias.data[cut] = 0.0
    W_o's bias is 0 where the heads were that are cut. It belongs to no head, and stays whole.
output_bias_halved
    - attention.W_o.bias)
    + None if attention.W_o.bias is None else attention.W_o.bias * len(stay) / attention.num_heads)
    W_o's bias gets smaller with the number of heads. It is added once, however many heads there
    are.
output_bias_lost
    - attention.W_o.weight[:, kept], attention.W_o.bias
    + attention.W_o.weight[:, kept], None
    W_o has lost its bias.
input_biases_lost: None if old.bias is None else old.bias[kept] → None
    W_q, W_k and W_v have lost their biases.
columns_of_the_inputs: old.weight[kept] → old.weight[:, kept]
    The columns of W_q, W_k and W_v are cut. Heads are their rows: they are what these give.
first_heads_kept: for h in stay] → for h in range(len(stay))]
    The first heads are kept, as many as should be left, whichever are named.
last_heads_kept
    - for h in stay]
    + for h in range(attention.num_heads - len(stay), attention.num_heads)]
    The last heads are kept, as many as should be left, whichever are named.
named_heads_kept: if h not in gone] → if h in gone or not gone]
    The heads that are named are kept. They are the ones to cut.
heads_as_features
    - kept = torch.cat([torch.arange(h * d_k, (h + 1) * d_k) for h in stay])
    + places = torch.arange(attention.W_q.out_features)
    + kept = torch.cat([places[h :: attention.num_heads] for h in stay])
    Head h gets every num_heads-th feature. It has d_k features in a row, from h·d_k on.
one_feature_for_a_head
    - torch.arange(h * d_k, (h + 1) * d_k) for h in stay
    + torch.arange(h, h + 1) for h in stay
    One row is kept for each head. A head has d_k of them.
off_by_one_feature
    - torch.arange(h * d_k, (h + 1) * d_k)
    + torch.arange(h * d_k + 1, (h + 1) * d_k + 1) % attention.W_q.out_features
    The features of a head begin one too late. Head h has h·d_k … (h + 1)·d_k − 1.
order_reversed: if h not in gone] → if h not in gone][::-1]
    The heads that stay are in the opposite order.
only_one_cut: gone, d_k = {*heads}, → gone, d_k = {*[*heads][:1]},
    Only the first of the heads that are named is cut.
doubles_count_twice
    - stay = [h for h in range(attention.num_heads) if h not in gone]
    + stay = [h for h in range(attention.num_heads) if h not in gone]
    + stay = stay[: max(attention.num_heads - len(heads), 0)]
    A head that is named twice counts twice, and another one goes with it.
as_many_names_as_heads_refused: if not stay → if len(heads) >= attention.num_heads
    As many names as there are heads are refused, even if they name one head. What counts is that a
    head is left.
named_heads_kept_always: if h not in gone] → if h in gone]
    The heads that are named are kept, so with none named there is none. They are the ones to cut.
values_left_whole
    - for name, old in inputs.items()
    + for name, old in inputs.items() if name != "W_v"
    - return pruned | {"
    + return pruned | {"W_v": linear(attention.W_v.weight, attention.W_v.bias), "
    W_v is not cut.
keys_left_whole: for name, old in inputs.items() → for name, old in inputs.items() if name != "W_k"
    - return pruned | {"
    + return pruned | {"W_k": linear(attention.W_k.weight, attention.W_k.bias), "
    W_k is not cut.
values_and_keys_swapped
    > result["W_k"], result["W_v"] = result["W_v"], result["W_k"]
    The names of W_k and W_v are swapped.
zeroed_instead
    - kept = torch.cat([torch.arange(h * d_k, (h + 1) * d_k) for h in stay])
    + kept = torch.arange(attention.W_q.out_features)
    - linear(attention.W_o.weight[:, kept]
    + linear(attention.W_o.weight * torch.tensor([float(i // d_k in stay) for i in kept])
    The heads' columns of W_o are set to 0, and all matrices stay as large as they were. Pruned
    matrices are smaller.
scaled_up
    - linear(attention.W_o.weight[:, kept]
    + linear(attention.W_o.weight[:, kept] * attention.num_heads / len(stay)
    W_o is scaled up by the share of heads that is left, as dropout would do. Nothing is scaled.
output_transposed: attention.W_o.weight[:, kept] → attention.W_o.weight[:, kept].T
    W_o's weight is transposed. nn.Linear(n_in, n_out) has one of shape (n_out, n_in).
no_error_for_a_missing_head: not gone.issubset(range(attention.num_heads)) → False
    A head that does not exist is passed over. It should be a ValueError: the caller is mistaken.
negative_heads_from_the_end
    ~ gone, d_k = {*heads}, → gone, d_k = {h + attention.num_heads if h < 0 else h for h in heads},
    −1 is taken for the last head. No head has a negative number: it should be a ValueError.
negative_heads_ignored
    - not gone.issubset(range(attention.num_heads))
    + any(h >= attention.num_heads for h in gone)
    A negative head is passed over. It should be a ValueError, as for one that is too large.
nothing_left
    - if not stay:
    -     raise ValueError(f"of {attention.num_heads} heads, none is left")
    ~ torch.cat([torch.arange → torch.cat([torch.arange(0)] + [torch.arange
    Where all heads are named, layers without rows are returned. It should be a ValueError.
one_head_must_go
    + if not len(heads):
    +     raise ValueError("no head to cut")
    No heads to cut is refused. All four layers are then copies.
last_head_must_stay: if not stay → if len(stay) < 2
    An attention with one head left is refused. One is enough.
another_error: raise ValueError( → raise IndexError( ×2
    The errors are IndexErrors. They should be ValueErrors.
list_of_layers: > result = [*result.values()]
    A list is returned. It should be a dict with the names W_q, W_k, W_v and W_o.
without_the_output: > result.pop("W_o")
    There is no W_o in the dict.
other_names: > result = {name.lower(): layer for name, layer in result.items()}
    The names of the layers are other ones. They should be W_q, W_k, W_v and W_o.
tensors_only: > result = {name: layer.weight for name, layer in result.items()}
    The dict holds weights. It should hold nn.Linear, which have biases, too.
inner_sizes_not_set
    > for layer in result.values():
    >     layer.out_features = attention.W_q.out_features
    The weights are right, but nn.Linear's out_features is still the old size.
pruned_in_place: > [setattr(attention, name, layer) for name, layer in result.items()]
    The attention itself gets the new layers. It should stay as it is.
num_heads_changed: > attention.num_heads = len(stay)
    The attention's num_heads is changed. It should stay as it is.
cut_in_place
    > for name, old in inputs.items():
    >     old.weight.data = old.weight.data[kept]
    >     old.bias = None if old.bias is None else nn.Parameter(old.bias.data[kept])
    > attention.W_o.weight.data = attention.W_o.weight.data[:, kept]
    The attention's own matrices are cut. It should stay as it is.
bias_shared
    > result["W_o"].bias = attention.W_o.bias
    The new W_o has the old one's bias itself: training one of the two trains the other.
views_taken
    - return pruned | {"W_o": linear(attention.W_o.weight[:, kept], attention.W_o.bias)}
    + if not gone:
    +     return {name: getattr(attention, name) for name in ("W_q", "W_k", "W_v", "W_o")}
    + return pruned | {"W_o": linear(attention.W_o.weight[:, kept], attention.W_o.bias)}
    With no heads to cut, the old layers themselves are returned. They should be copies.
slices_of_the_old
    > for name, old in inputs.items():
    >     if stay == [*range(len(stay))]:
    >         result[name].weight.data = old.weight.data[: len(kept)]
    The first rows of the old matrices are taken as views: training the new layers changes the old
    ones.
in_a_graph
    > for name, old in inputs.items():
    >     del result[name].weight
    >     result[name].weight = old.weight[kept]
    The weights are slices that autograd has recorded, not parameters: an optimiser does not find
    them.
frozen: > [layer.requires_grad_(False) for layer in result.values()]
    The new layers no longer require a gradient: they cannot be trained any further.
in_single: > result = {name: layer.float() for name, layer in result.items()}
    The new layers are float32 whatever the attention is.
heads_emptied: + gone = [*heads]
    ~ gone, d_k = {*heads}, attention → gone, d_k = {*gone}, attention
    > heads.clear() if isinstance(heads, list) else None
    The caller's list of heads is emptied.
seeded_at_the_start: + torch.manual_seed(0)
    ~ gone, d_k → torch.set_grad_enabled(True); gone, d_k
    > torch.set_grad_enabled(False)
    Something global has changed: torch's random numbers are seeded, and gradients stay switched
    off.
left_in_eval_mode: > attention.train(not attention.training)
    The attention is in another mode than before.
""")

BANK.changes(f"""
left_on_the_cpu: > result = {{name: layer.cpu() for name, layer in result.items()}}
    {LEFT_ON_THE_CPU}
through_numpy: {{"weight": weight}} → {{"weight": torch.from_numpy(weight.detach().numpy())}}
    {THROUGH_NUMPY}
""")


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
