"""Known answers to `load_gpt2`: mistakes, then right answers."""

import re

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from solutions import language_model as right
from solutions.language_model import GPT, DecoderBlock

BANK = Bank("load_gpt2", right, globals())


def _fill(module, pattern, number):
    """Fill the parameters whose names match with a number."""
    for name, p in module.named_parameters():
        if re.search(pattern, name):
            p.data.fill_(number)


def _renumbered(state_dict):
    """Layers numbered as they turn up."""
    seen = [*dict.fromkeys(re.findall(r"\bh\.(\d+)\.", " ".join(state_dict)))]
    new = lambda found: f"h.{seen.index(found[1])}."  # noqa: E731
    return {re.sub(r"\bh\.(\d+)\.", new, name): p for name, p in state_dict.items()}


def _below_ten(state_dict):
    return {name: p for name, p in state_dict.items() if not re.search(r"\bh\.\d\d", name)}


def _completed(state_dict):
    """With zeros for what is missing."""
    given = {name.removeprefix("transformer."): p for name, p in state_dict.items()}
    d = len(given["ln_f.weight"])
    sizes = {"wte.weight": (5, d), "wpe.weight": (4, d)}
    if "h.0.ln_1.weight" in given:
        sizes |= {"h.0.mlp.c_fc.bias": (4 * d,), "h.0.ln_2.weight": (d,)}
    return {name: given["ln_f.weight"].new_zeros(size) for name, size in sizes.items()} | given


BANK.changes("""
exact_gelu: , approximate="tanh") → )
    The blocks have the exact GELU. These parameters were trained with the tanh form, so the logits
    are slightly off, at every token.
gelu_by_sigmoid
    - F.gelu(self.linear1(self.norm2(x)), approximate="tanh"))
    + (lambda h: h * torch.sigmoid(1.702 * h))(self.linear1(self.norm2(x))))
    GELU is approximated by a sigmoid. These parameters were trained with the tanh form.
relu_for_gelu
    - F.gelu(self.linear1(self.norm2(x)), approximate="tanh")
    + F.relu(self.linear1(self.norm2(x)))
    The feed-forward layers have ReLU. GPT-2 has GELU, in its tanh form.
attention_output_not_transposed
    - state[f"{our}.{kind}"] = given[f"{theirs}.{kind}"].t()
    + p = given[f"{theirs}.{kind}"]
    + state[f"{our}.{kind}"] = p if our.endswith("W_o") else p.t()
    attn.c_proj.weight is square, so it fits without being transposed, and nothing complains. It is
    (inputs, outputs) like the other three.
square_ones_not_transposed
    - state[f"{our}.{kind}"] = given[f"{theirs}.{kind}"].t()
    + p = given[f"{theirs}.{kind}"]
    + state[f"{our}.{kind}"] = p if len(p) == p.numel() ** 0.5 else p.t()
    - for W, p in zip("qkv", given[f"{theirs}.{kind}"].t().chunk(3), strict=True):
    -     state[f"{our}.W_{W}.{kind}"] = p
    + for W, p in zip("qkv", given[f"{theirs}.{kind}"].chunk(3, dim=-1), strict=True):
    +     state[f"{our}.W_{W}.{kind}"] = p
    Only what does not fit otherwise is transposed: the square weights, of queries, keys, values and
    attn.c_proj, stay as they were. They are (inputs, outputs), too.
queries_keys_values_not_transposed
    - given[f"{theirs}.{kind}"].t().chunk(3)
    + given[f"{theirs}.{kind}"].chunk(3, dim=-1)
    c_attn is cut into three squares, which fit without being transposed. They are (inputs,
    outputs), and nn.Linear wants (outputs, inputs).
reshaped_for_transposed
    - state[f"{our}.{kind}"] = given[f"{theirs}.{kind}"].t()
    + p = given[f"{theirs}.{kind}"]
    + state[f"{our}.{kind}"] = p.reshape(p.shape[::-1])
    Weights are reshaped. That fits, but row and column of a number are not exchanged: transpose.
queries_and_keys_swapped: zip("qkv" → zip("kqv"
    The first third of c_attn is taken for the keys. Its columns are queries, keys, values.
keys_and_values_swapped: zip("qkv" → zip("qvk"
    The second third of c_attn is taken for the values. Its columns are queries, keys, values.
values_first: zip("qkv" → zip("vqk"
    The first third of c_attn is taken for the values. Its columns are queries, keys, values.
packed_by_head
    - given[f"{theirs}.{kind}"].t().chunk(3)
    + given[f"{theirs}.{kind}"].t().unflatten(0, (num_heads, 3, -1)).transpose(0, 1).flatten(1, 2)
    The columns of c_attn are read head by head, each with its queries, keys and values. All queries
    come first, then all keys, then all values.
every_third_column
    - given[f"{theirs}.{kind}"].t().chunk(3)
    + [given[f"{theirs}.{kind}"].t()[i::3] for i in range(3)]
    Queries, keys and values are taken from every third column of c_attn. They lie side by side, one
    third each.
biases_forgotten: > _fill(result, "bias$", 0.0)
    The biases are 0. The checkpoint has some, of the norms as well.
biases_of_c_attn_forgotten: > _fill(result, r"W_[qkv]\\.bias", 0.0)
    The biases of queries, keys and values are 0. What ends in .attn.bias is a mask, but c_attn.bias
    is none, although it ends in attn.bias as well.
norms_swapped: "ln_1": "norm1" → "ln_1": "norm2" ; "ln_2": "norm2" → "ln_2": "norm1"
    ln_1 belongs to the norm before the attention, ln_2 to that before the feed-forward layer.
last_norm_forgotten: > _fill(result.norm, "weight", 1.0); _fill(result.norm, "bias", 0.0)
    ln_f is not used: the last norm has weight 1 and bias 0.
norms_forgotten: > _fill(result, r"norm\\d?\\.weight", 1.0); _fill(result, r"norm\\d?\\.bias", 0.0)
    The norms have weight 1 and bias 0. The checkpoint has parameters for them, too.
positions_forgotten: > result.positions.weight.data.zero_()
    The positions are 0: wpe is not used.
layers_in_the_order_of_strings
    - for i in range(num_layers) for a, b in ours.items()}
    + for i, n in enumerate(sorted(map(str, range(num_layers)))) for a, b in ours.items()}
    ~ names = {f"h.{i}.{a}" → names = {f"h.{n}.{a}"
    ~ packed = {f"h.{i}.attn.c_attn" → packed = {f"h.{n}.attn.c_attn"
    - f"blocks.{i}.attn" for i in range(num_layers)}
    + f"blocks.{i}.attn" for i, n in enumerate(sorted(map(str, range(num_layers))))}
    The layers are sorted as strings, in which h.10 comes before h.2.
layers_in_the_order_of_the_entries: + state_dict = _renumbered(state_dict)
    The layers come in the order in which their first entries do. Their numbers tell the order.
layers_counted_by_one_digit: + state_dict = _below_ten(state_dict)
    Layers with a number of two digits are left out.
twelve_layers_always: num_layers = len( → num_layers = 12; len(
    The number of layers is that of the smallest GPT-2. A checkpoint may have any: count the names.
layers_reversed: > result.blocks = nn.ModuleList(reversed(result.blocks))
    The layers are in reverse.
one_layer_for_all: > result.blocks = nn.ModuleList([result.blocks[0]] * len(result.blocks))
    All blocks are the first one.
heads_of_64: d_model, num_heads, 4 * d_model → d_model, max(d_model // 64, 1), 4 * d_model
    The number of heads is d_model / 64, as in the published sizes. It is an argument.
longer_names_refused: name.removeprefix("transformer."): p for → name: p for
    Names that begin with transformer. are refused. They are the same parameters, as the library
    saves a model with its head.
head_refused: , "lm_head.weight") → )
    lm_head.weight is refused. It is the table of tokens once more.
masks_refused: (".attn.bias", ".attn.masked_bias", "lm_head.weight") → ("lm_head.weight",)
    The masks attn.bias and attn.masked_bias are refused. They are no parameters and can go.
only_one_mask_left_out: (".attn.bias", ".attn.masked_bias", → (".attn.bias",
    attn.masked_bias is refused. It is no parameter, and neither is attn.bias.
masks_told_by_their_axes
    - if not name.endswith(others)
    + if name != "lm_head.weight" and p.ndim in (1, 2)
    Whatever has other than one or two axes is left out as a mask, and with it an entry that has no
    place. The masks are known by their names.
not_checked
    - if misfits := given.keys() ^ {"wte.weight", "wpe.weight", *both}:
    -     raise ValueError(f"missing, or without a place: {', '.join(sorted(misfits))}")
    Names are not compared: a parameter that is missing raises the KeyError of a dict, and an entry
    that has no place is dropped without a word. Both should be a ValueError with the names.
missing_made_up: + state_dict = _completed(state_dict)
    A parameter that is missing in the checkpoint is left as a new model has it, without a word. It
    should be a ValueError that names it.
too_many_ignored
    - given.keys() ^ {"wte.weight", "wpe.weight", *both}
    + {"wte.weight", "wpe.weight", *both} - given.keys()
    An entry that has no place is dropped without a word. What it was meant for is missing in the
    model: raise a ValueError that names it.
misfits_not_named: ', '.join(sorted(misfits)) → min(misfits)
    The ValueError does not hold the names of all entries on which the checkpoint and the model
    differ.
misfits_raise_a_key_error: raise ValueError( → raise KeyError(
    The error is a KeyError. A checkpoint that does not fit is a ValueError.
shared_with_the_checkpoint: .load_state_dict(state) → .load_state_dict(state, assign=True)
    The model's parameters are the checkpoint's own tensors, so training the model changes the
    checkpoint.
table_shared_only
    > result.tokens.weight.data = given["wte.weight"]
    The table of tokens is the checkpoint's own tensor, so training the model changes it.
frozen: > result.requires_grad_(False)
    The parameters get no gradients, so the model cannot be trained on.
table_frozen: > result.tokens.weight.requires_grad_(False)
    The table of tokens gets no gradient.
with_dropout: d_model, num_heads, num_layers) → d_model, num_heads, num_layers, 0.1)
    The model has dropout, which shows as soon as it is trained on. It should have none.
left_in_training_mode: return model.eval() → return model
    The model is in training mode. Whoever loads it wants to use it.
context_of_1024: > result.context_size = 1024
    context_size is 1,024, whatever the checkpoint has. It is the number of rows of wpe.weight.
always_float32: model.to(given["wte.weight"]).load → model.load
    The model is float32, whatever the checkpoint is.
checkpoint_emptied: > state_dict.clear()
    The entries are taken out of the caller's state_dict.
names_shortened_in_place
    > for name in [*state_dict]:
    >     state_dict[name.removeprefix("transformer.")] = state_dict.pop(name)
    The caller's state_dict does not have the same names afterwards.
seeded: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


@BANK.mistake
def head_of_its_own(state_dict, num_heads):
    """The logits come from a copy of the table. They are right, but in training the copy and the
    table of tokens drift apart."""
    model = right.load_gpt2(state_dict, num_heads)
    model.looked_up = nn.Parameter(model.tokens.weight.detach().clone())
    model.tokens.forward = lambda ids: model.looked_up[ids]
    return model


_PARTS = {
    "ln_1": "norm1",
    "ln_2": "norm2",
    "attn.c_proj": "attn.W_o",
    "mlp.c_fc": "linear1",
    "mlp.c_proj": "linear2",
}
_MASK = re.compile(r"h\.\d+\.attn\.(masked_)?bias")


def _named(state_dict):
    """The parameters by their short names, checked."""
    short = {}
    for full, p in state_dict.items():
        name = full.removeprefix("transformer.")
        if name != "lm_head.weight" and not _MASK.fullmatch(name):
            short[name] = p
    layers = {int(m[1]) for m in map(re.compile(r"h\.(\d+)\.").match, short) if m}
    parts = ["ln_f", *(f"h.{i}.{part}" for i in layers for part in [*_PARTS, "attn.c_attn"])]
    wanted = {"wte.weight", "wpe.weight"} | {f"{p}.{k}" for p in parts for k in ("weight", "bias")}
    missing, unknown = wanted - set(short), set(short) - wanted
    if missing or unknown:
        raise ValueError(f"missing: {sorted(missing)}; unknown: {sorted(unknown)}")
    return short, len(layers)


class _Tanh(DecoderBlock):
    def forward(self, x, mask=None):
        h = self.norm1(x)
        x = x + self.attn(h, h, h, mask=mask, need_weights=False)[0]
        h = self.linear1(self.norm2(x))
        inner = (2 / torch.pi) ** 0.5 * (h + 0.044715 * h**3)
        return x + self.linear2(0.5 * h * (1 + inner.tanh()))


@BANK.right
def copied_one_by_one(state_dict, num_heads):
    """Each parameter is filled in its place."""
    given, num_layers = _named(state_dict)
    (vocab, d), context = given["wte.weight"].shape, len(given["wpe.weight"])
    model = GPT(vocab, context, d, num_heads, num_layers).to(given["wte.weight"])
    model.blocks = nn.ModuleList([_Tanh(d, num_heads, 4 * d) for _ in range(num_layers)])
    model.to(given["wte.weight"])
    with torch.no_grad():
        model.tokens.weight.copy_(given["wte.weight"])
        model.positions.weight.copy_(given["wpe.weight"])
        model.norm.weight.copy_(given["ln_f.weight"])
        model.norm.bias.copy_(given["ln_f.bias"])
        for i, block in enumerate(model.blocks):
            for theirs, ours in _PARTS.items():
                part = block.get_submodule(ours)
                part.weight.copy_(given[f"h.{i}.{theirs}.weight"].T)
                part.bias.copy_(given[f"h.{i}.{theirs}.bias"])
            linear = (block.attn.W_q, block.attn.W_k, block.attn.W_v)
            for j, part in enumerate(linear):
                part.weight.copy_(given[f"h.{i}.attn.c_attn.weight"][:, j * d : (j + 1) * d].T)
                part.bias.copy_(given[f"h.{i}.attn.c_attn.bias"][j * d : (j + 1) * d])
    return model.eval()


@BANK.right
def forward_replaced(state_dict, num_heads):
    """The blocks are those of the model, whose forward is another function; tensors are cloned and
    become parameters."""
    given, num_layers = _named(state_dict)
    vocab, d = given["wte.weight"].shape
    model = GPT(vocab, given["wpe.weight"].size(0), d, num_heads, num_layers)
    for block in model.blocks:
        block.forward = _Tanh.forward.__get__(block)
    queue = [
        (model.tokens, given["wte.weight"], None),
        (model.positions, given["wpe.weight"], None),
    ]
    queue += [(model.norm, given["ln_f.weight"], given["ln_f.bias"])]
    for i, block in enumerate(model.blocks):
        W, b = given[f"h.{i}.attn.c_attn.weight"], given[f"h.{i}.attn.c_attn.bias"]
        for name, w, c in zip("qkv", W.split(d, 1), b.split(d), strict=True):
            queue.append((getattr(block.attn, f"W_{name}"), w.mT, c))
        for theirs, ours in _PARTS.items():
            weight, bias = (given[f"h.{i}.{theirs}.{kind}"] for kind in ("weight", "bias"))
            weight = weight.mT if weight.dim() == 2 else weight
            queue.append((block.get_submodule(ours), weight, bias))
    for part, weight, bias in queue:
        part.weight = nn.Parameter(weight.detach().clone())
        if bias is not None:
            part.bias = nn.Parameter(bias.detach().clone())
    model.train(False)
    return model


class _Layer(nn.Module):
    """A layer that keeps queries, keys and values together, and weights as they are published."""

    def __init__(self, given, i, num_heads):
        super().__init__()
        self.num_heads = num_heads
        for name, p in given.items():
            if name.startswith(f"h.{i}."):
                own = nn.Parameter(p.detach().clone(memory_format=torch.contiguous_format))
                self.register_parameter(name.partition(f"h.{i}.")[2].replace(".", "_"), own)

    def through(self, x, name):
        return x @ getattr(self, f"{name}_weight") + getattr(self, f"{name}_bias")

    def normed(self, x, name):
        weight, bias = getattr(self, f"{name}_weight"), getattr(self, f"{name}_bias")
        return F.layer_norm(x, x.shape[-1:], weight, bias)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in self.through(self.normed(x, "ln_1"), "attn_c_attn").chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        heads = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        x = x + self.through(heads.transpose(1, 2).flatten(2), "attn_c_proj")
        h = F.gelu(self.through(self.normed(x, "ln_2"), "mlp_c_fc"), approximate="tanh")
        return x + self.through(h, "mlp_c_proj")


class _AsPublished(nn.Module):
    def __init__(self, given, num_layers, num_heads):
        super().__init__()
        self.context_size = len(given["wpe.weight"])
        self.wte = nn.Parameter(given["wte.weight"].detach().clone())
        self.wpe = nn.Parameter(given["wpe.weight"].detach().clone())
        self.norm = nn.LayerNorm(self.wte.shape[1]).to(self.wte)
        self.norm.load_state_dict({k: given[f"ln_f.{k}"] for k in ("weight", "bias")})
        self.layers = nn.Sequential(*(_Layer(given, i, num_heads) for i in range(num_layers)))

    def forward(self, ids):
        if ids.shape[1] > self.context_size:
            raise ValueError(f"{ids.shape[1]} > {self.context_size}")
        x = F.embedding(ids, self.wte) + self.wpe[: ids.shape[1]]
        return self.norm(self.layers(x)) @ self.wte.mT


@BANK.right
def a_model_of_its_own(state_dict, num_heads):
    """Nothing is renamed or cut: the model computes with the parameters as they are published."""
    given, num_layers = _named(state_dict)
    return _AsPublished(given, num_layers, num_heads).eval()


@BANK.right
def renamed_by_patterns(state_dict, num_heads):
    """Every name is rewritten, and strict loading finds what does not fit."""
    given, num_layers = _named(state_dict)
    d = given["wte.weight"].shape[1]
    rules = (
        (r"^wte", "tokens"), (r"^wpe", "positions"), (r"^ln_f", "norm"), (r"^h\.", "blocks."),
        (r"ln_(\d)", r"norm\1"), (r"attn\.c_proj", "attn.W_o"), (r"mlp\.c_fc", "linear1"),
        (r"mlp\.c_proj", "linear2"),
    )  # fmt: skip
    state = {}
    for published, p in given.items():
        name = published
        for old, new in rules:
            name = re.sub(old, new, name)
        own = p.transpose(0, 1) if ".c_" in published and p.ndim == 2 else p
        if "c_attn" in published:
            for letter, third in zip("qkv", own.tensor_split(3), strict=True):
                state[name.replace("c_attn", f"W_{letter}")] = third
        else:
            state[name] = own
    model = GPT(*given["wte.weight"].shape[:1], len(given["wpe.weight"]), d, num_heads, 0)
    for _ in range(num_layers):
        model.blocks.append(_Tanh(d, num_heads, 4 * d))
    model = model.to(device=given["wte.weight"].device, dtype=given["wte.weight"].dtype)
    model.load_state_dict(state, strict=True)
    model.eval()
    return model
