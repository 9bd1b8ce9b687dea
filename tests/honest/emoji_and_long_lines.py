# what: emoji in strings, art of characters, very long lines, semicolons, a data URL left in a string
# answers: masked_softmax, masked_attention
import torch
from torch import nn
import torch.nn.functional as F

print("🚀🚀🚀 let's gooo 👩🏽‍💻 \N{PILE OF POO} 🏳️‍🌈 𝔸𝕥𝕥𝕖𝕟𝕥𝕚𝕠𝕟 ＡＬＬ　ＹＯＵ　ＮＥＥＤ")
print(
    "=" * 120
    + "> "
    + "-" * 40
    + " this line is really very long because I never press Enter when I type, and my editor wraps it for me anyway so why should I ...................................................................................................................................................................................................."
)
PIC = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
EYES = {True: "👀", False: "🙈"}


# ░░░░░▄▄▄▄▀▀▀▀▀▀▀▀▄▄▄▄▄▄░░░░░░░░
# ░░░░░█░░░░▒▒▒▒▒▒▒▒▒▒▒▒░░▀▀▄░░░░
# %%
def masked_softmax(scores, mask=None):
    ok = torch.isfinite(scores) if mask is None else torch.isfinite(scores) & mask
    z = torch.where(ok, scores, torch.full_like(scores, torch.finfo(scores.dtype).min))
    e = torch.where(
        ok, (z - z.detach().max(dim=-1, keepdim=True).values).exp(), torch.zeros_like(z)
    )
    s = e.sum(dim=-1, keepdim=True)
    return e / torch.where(s > 0, s, torch.ones_like(s))


# %%
def masked_attention(query, key, value, mask=None):
    if mask is not None:
        print(" ".join(EYES[bool(m)] for m in mask.flatten()[:9]), "…")
    w = masked_softmax(query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5, mask)
    return w @ value, w
