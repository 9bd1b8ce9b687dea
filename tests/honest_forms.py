"""What notebooks of odd forms are made with: right answers, the register of forms, helpers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Notebook = dict[str, Any]

PIXEL = (  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
RIGHT = {
    "softmax": """
def softmax(scores, axis=-1):
    scores = scores + np.zeros((), np.result_type(scores, np.float16))
    top = np.nan_to_num(scores.max(axis=axis, keepdims=True), neginf=0.0)
    weights = np.exp(scores - top, dtype=scores.dtype if scores.itemsize > 2 else float)
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.maximum(total, np.finfo(total.dtype).tiny)
""",
    "gaussian_scores": """
def gaussian_scores(query, key, w=1.0):
    u = w * np.subtract.outer(query, key)
    return -(u * u) / 2
""",
    "simple_attention": """
def simple_attention(query, key, value):
    scores = query @ key.swapaxes(-1, -2)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    weights = e / e.sum(-1, keepdims=True)
    return weights @ value, weights
""",
    "split_heads": """
def split_heads(x, num_heads):
    B, n, d_model = x.shape
    if d_model % num_heads:
        raise ValueError(f"d_model {d_model} and {num_heads} heads do not fit")
    return x.reshape(B, n, num_heads, d_model // num_heads).permute(0, 2, 1, 3)
""",
    "multi_head_numpy": """
def multi_head_numpy(query, key, value, num_heads):
    out = np.zeros(query.shape, np.result_type(query.dtype, np.float32))
    for own in np.split(np.arange(query.shape[1]), num_heads):
        scores = query[:, own] @ key[:, own].T / len(own) ** 0.5
        e = np.exp(scores - scores.max(1, keepdims=True))
        out[:, own] = e / e.sum(1, keepdims=True) @ value[:, own]
    return out
""",
    "padding_mask": """
def padding_mask(lengths, max_len=None):
    n = int(lengths.max()) if max_len is None else max_len
    if lengths.max() > n:
        raise ValueError(f"length {int(lengths.max())} > max_len {n}")
    place = torch.arange(n, device=lengths.device)
    return place[None, None, None, :] < lengths[:, None, None, None]
""",
    "causal_mask": """
def causal_mask(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    i = torch.arange(n_q, device=device)[:, None] + (n_k - n_q)
    return torch.arange(n_k, device=device) <= i
""",
    "relative_positions": """
def relative_positions(n_q, n_k, max_distance):
    distance = torch.arange(n_k - n_q, n_k)[:, None] - torch.arange(n_k)
    return torch.clip(distance, -max_distance, max_distance) + max_distance
""",
    "gelu": """
def gelu(x):
    return x / 2 * (1 + torch.erf(x / math.sqrt(2)))
""",
    "shift_right": """
def shift_right(target, bos_id):
    first = torch.full_like(target[..., :1], bos_id)
    return torch.cat((first, target[..., :-1]), dim=-1)
""",
}


@dataclass(frozen=True)
class Form:
    """A notebook in the making: the exercises it answers, words that each of `grade`'s notes on it
    must contain, and words that must reach the person who marks it.
    """

    make: Callable[[Notebook], Notebook | bytes]
    answers: tuple[str, ...]
    notes: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


FORMS: dict[str, Form] = {}
Change = Callable[[Notebook], bytes | None]


def form(*answers: str, notes: tuple[str, ...] = (), kept: tuple[str, ...] = ()) -> Callable:
    """Register what is done to a notebook with these answers in it."""

    def register(change: Change) -> Change:
        def make(notebook: Notebook) -> Notebook | bytes:
            for name in answers:
                cell(notebook, name)["source"] = RIGHT[name].strip("\n")
            made = change(notebook)
            return notebook if made is None else made

        FORMS[change.__name__] = Form(make, answers, notes, kept)
        return change

    return register


def mark(cell: dict[str, Any]) -> str | None:
    return cell["metadata"].get("nbgrader", {}).get("grade_id")


def at(notebook: Notebook, grade_id: str) -> int:
    """Where the cell of a grade id stands."""
    return [mark(cell) for cell in notebook["cells"]].index(grade_id)


def cell(notebook: Notebook, grade_id: str) -> dict[str, Any]:
    return notebook["cells"][at(notebook, grade_id)]


def code(source: str, outputs: list[dict] | None = None, **more: Any) -> dict[str, Any]:
    made = {"cell_type": "code", "execution_count": None, "metadata": {}, "source": source}
    return made | {"outputs": outputs or []} | more


def text(source: str, kind: str = "markdown", **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": source} | more


def of_code(notebook: Notebook) -> Iterator[dict[str, Any]]:
    return (cell for cell in notebook["cells"] if cell["cell_type"] == "code")


def without_ids(notebook: Notebook, minor: int) -> None:
    notebook["nbformat_minor"] = minor
    for each in notebook["cells"]:
        each.pop("id", None)
