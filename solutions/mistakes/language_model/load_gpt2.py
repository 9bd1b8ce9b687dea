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


BANK.read()


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
