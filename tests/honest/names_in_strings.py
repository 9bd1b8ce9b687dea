# what: activations by name through getattr, eval of an own expression, locals(), vars(), dir(), globals()
# answers: FeedForward, Residual, chunked_feed_forward
import torch
import torch.nn as nn
import torch.nn.functional as F

ACT2FN = {name: getattr(F, name) for name in ("relu", "gelu", "silu", "leaky_relu")}
ACT2FN["swish"] = eval("lambda x: x * torch.sigmoid(x)")


def get_activation(act):
    if callable(act):
        return act
    if act in ACT2FN:
        return ACT2FN[act]
    return getattr(torch, act)


# %%
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0, activation=torch.relu):
        super().__init__()
        sizes = [d_model, d_ff, d_model]
        for i, (a, b) in enumerate(zip(sizes, sizes[1:]), start=1):
            setattr(self, f"linear{i}", nn.Linear(a, b))
        self.activation = get_activation(activation)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        linear1, linear2 = (getattr(self, f"linear{i}") for i in (1, 2))
        return linear2(self.dropout(self.activation(linear1(x))))


for name in ACT2FN:
    assert FeedForward(4, 8, activation=name)(torch.randn(2, 4)).shape == (2, 4)
print([n for n in dir(FeedForward) if n.startswith("linear")], "softmax" in globals())


# %%
class Residual(nn.Module):
    def __init__(self, sublayer, d_model, dropout=0.0, norm_first=False):
        super().__init__()
        params = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self.sublayer = params.pop("sublayer")
        for name, value in params.items():
            if name not in ("d_model", "dropout"):
                setattr(self, name, value)
        self.norm = getattr(nn, "LayerNorm")(d_model)
        self.dropout = nn.Dropout(dropout)
        print(sorted(set(vars(self)) - set(vars(nn.Module()))))

    def forward(self, x, *args, **kwargs):
        F_x = lambda h: self.dropout(self.sublayer(h, *args, **kwargs))
        return x + F_x(self.norm(x)) if self.norm_first else self.norm(x + F_x(x))


# %%
def chunked_feed_forward(feed_forward, x, chunk_size):
    exec("pieces = None")
    n = x.shape[1]
    pieces = [x] if chunk_size == 0 else x.tensor_split([*range(chunk_size, n, chunk_size)], dim=1)
    return (
        torch.concat([feed_forward(p) for p in pieces], dim=1)
        if len(pieces) > 1
        else feed_forward(pieces[0])
    )
