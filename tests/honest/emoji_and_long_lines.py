# what: emoji in strings, art of characters, very long lines, semicolons, a data URL left in a string
# answers: masked_softmax, additive_mask
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
def additive_mask(mask, dtype=torch.float32):
    if dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        raise TypeError("🛑 " + str(dtype))
    print(" ".join(EYES[bool(m)] for m in mask.flatten()[:9]), "…")
    return torch.where(
        mask, torch.zeros((), dtype=dtype), torch.full((), torch.finfo(dtype).min, dtype=dtype)
    )
