# what: golf: every answer a lambda, walrus inside, helpers as defaults
# answers: softmax, gaussian_scores, nadaraya_watson, leave_one_out_mse
import numpy as np

# %%
softmax = lambda scores, axis=-1: (
    (
        e := np.exp(
            (s := scores * np.ones((), scores.dtype if scores.dtype.kind == "f" else float))
            - np.nan_to_num(s.max(axis, keepdims=True), neginf=0)
        )
    )
    / ((t := e.sum(axis, keepdims=True)) + (t == 0))
)
# %%
gaussian_scores = lambda query, key, w=1.0: -(((query[:, None] - key) * w) ** 2) / 2
# %%
nadaraya_watson = lambda query, key, value, w=1.0: (
    (a := softmax(gaussian_scores(query, key, w))) @ value,
    a,
)
# %%
leave_one_out_mse = lambda x, y, w, inf=float("inf"): float(
    ((softmax(np.where(np.eye(len(x)) > 0, -inf, gaussian_scores(x, x, w))) @ y - y) ** 2).mean()
)
