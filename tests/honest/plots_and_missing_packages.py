# what: many figures, a style sheet, seaborn, pandas and sklearn that may be missing, printoptions
# answers: kernel_weights, attention_pool, leave_one_out_mse
import matplotlib
import matplotlib.pyplot as plt
import numpy as np

try:
    import seaborn as sns

    sns.set_theme(style="whitegrid")
except ModuleNotFoundError as err:
    print(err, "-> plain matplotlib")
    sns = None
try:
    import pandas as pd
    from sklearn.metrics import mean_squared_error
except ImportError:
    mean_squared_error = lambda a, b: ((np.asarray(a) - np.asarray(b)) ** 2).mean()

plt.style.use("ggplot")
plt.rcParams["figure.figsize"] = (6, 3)
matplotlib.rcParams["axes.unicode_minus"] = False
np.set_printoptions(precision=3, suppress=True)
np.random.seed(0)
rng = np.random.default_rng(1)


# %%
def attention_pool(query, key, value, score):
    raw = score(query, key)
    shifted = raw - raw.max(axis=1, keepdims=True)
    alpha = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    if plt.get_fignums() and len(alpha) > 1000:
        plt.plot(alpha[0])
    return np.dot(alpha, value), alpha


# %%
def leave_one_out_mse(x, y, w):
    n = len(x)
    predictions = np.empty(n)
    for i in range(n):
        others = np.delete(np.arange(n), i)
        s = -0.5 * ((x[i] - x[others]) * w) ** 2
        a = np.exp(s - s.max())
        predictions[i] = np.average(y[others], weights=a)
    return float(mean_squared_error(predictions, y))


x = np.sort(rng.uniform(0, 5, 30))
y = np.sin(x) + 0.1 * rng.normal(size=30)
ws = np.logspace(-1, 1.5, 10)
fig = plt.figure()
plt.semilogx(ws, [leave_one_out_mse(x, y, w) for w in ws], "o-", label="LOO")
plt.legend()
plt.savefig("/tmp/loo.png", dpi=50)
plt.close("all")

# %%
def kernel_weights(query, key, kernel, w=1.0):
    u = np.abs(query[:, None] - key) * float(w)
    funcs = dict(
        gaussian=lambda u: np.exp(-0.5 * (u**2 - (u**2).min(axis=1, keepdims=True))),
        boxcar=lambda u: (u <= 1).astype(u.dtype),
        epanechnikov=lambda u: (1 - u**2) * (u < 1),
    )
    if kernel not in funcs:
        raise ValueError("kernel must be one of " + ", ".join(funcs) + ", not " + repr(kernel))
    k = funcs[kernel](u)
    s = k.sum(axis=1, keepdims=True)
    return np.divide(k, s, out=np.zeros_like(k), where=s != 0)


# %%
for kernel in ("gaussian", "boxcar", "epanechnikov"):
    fig, ax = plt.subplots()
    ax.imshow(kernel_weights(np.linspace(0, 5, 20), np.linspace(0, 5, 15), kernel), cmap="Reds")
    ax.set_title(f"{kernel} kernel")
    plt.show()
