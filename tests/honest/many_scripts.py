# what: comments, docstrings and names in many languages and scripts, some from right to left
# answers: padding_mask, causal_mask, additive_mask
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
def additive_mask(mask, dtype=torch.float32):
    """Máscara aditiva, où l’interdit vaut −∞ (ou presque) ; straße, ﬁn, Ω, ħ, naïve, ”quotes“"""
    größte_verbotene_zahl = {torch.float16: -65504.0}
    if not dtype.is_floating_point:
        raise TypeError(f"só tipos de ponto flutuante, não {dtype} 😕")
    ε = größte_verbotene_zahl.get(dtype, torch.finfo(dtype).min)
    αποτέλεσμα = torch.full(mask.shape, ε, dtype=dtype, device=mask.device)
    αποτέλεσμα[mask] = 0
    return αποτέλεσμα
