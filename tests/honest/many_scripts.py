# what: comments, docstrings and names in many languages and scripts, some from right to left
# answers: padding_mask, causal_mask, pack
import torch

# 中文注释：先导入 torch，再写三个函数。
# 日本語：マスクは True が「見てよい」。
# עברית: זו הערה מימין לשמאל (mask, ולא masque)
# العربية: هذا تعليق من اليمين إلى اليسار ‏(True = مسموح)‏
# हिन्दी: यह एक टिप्पणी है।  ไทย: ความคิดเห็น  한국어: 주석  Ελληνικά: σχόλιο


# %%
def padding_mask(lengths, max_len=None):
    """Маска заполнения: True там, где есть токен (длина ≤ max_len)."""
    длина = max_len if max_len is not None else int(lengths.max())
    наибольшая = lengths.max().item()
    if наибольшая > длина:
        raise ValueError(f"слишком длинно: {наибольшая} > {длина}")
    номера = torch.arange(длина, device=lengths.device).view(1, 1, 1, -1)
    return номера.lt(lengths.view(-1, 1, 1, 1))


# %%
def causal_mask(n_q, n_k=None, device=None):
    """因果掩码：第 i 个查询只能看到不晚于自己的键。"""
    键数 = n_q if n_k is None else n_k
    δ = 键数 - n_q
    מיקום = torch.arange(n_q, device=device)[:, None] + δ
    مفتاح = torch.arange(键数, device=device)
    return مفتاح <= מיקום


# %%
def pack(sequences, length, causal=False):
    """Faixas: où l’interdit vaut False; straße, ﬁn, Ω, ħ, naïve, ”quotes“"""
    größe, места = [], []
    for ακολουθία in sequences:
        if len(ακολουθία) > length:
            raise ValueError(f"não cabe: {len(ακολουθία)} > {length} 😕")
        行 = 0
        while 行 < len(größe) and größe[行] + len(ακολουθία) > length:
            行 += 1
        if 行 == len(größe):
            größe.append(0)
        места.append([行, größe[行]])
        größe[行] += len(ακολουθία)
    εδώ = sequences[0].device
    tokens = sequences[0].new_zeros((len(größe), length))
    θέση = torch.zeros((len(größe), length), dtype=torch.int64, device=εδώ)
    mask = torch.zeros((len(größe), 1, length, length), dtype=torch.bool, device=εδώ)
    for (行, שם), ακολουθία in zip(места, sequences):
        n = len(ακολουθία)
        tokens[行, שם : שם + n] = ακολουθία
        θέση[行, שם : שם + n] = torch.arange(n, device=εδώ)
        δικό = causal_mask(n, device=εδώ) if causal else True
        mask[行, 0, שם : שם + n, שם : שם + n] = δικό
    return tokens, θέση, mask, torch.tensor(места, device=εδώ)
