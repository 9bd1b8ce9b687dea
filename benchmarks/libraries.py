"""Which keys does True allow, and what does a query get that may see nothing? Libraries answer.

Run: python -m benchmarks.libraries, where torch, Keras and Hugging Face Transformers are installed.
Chapter 4 puts the same two questions to torch; its table of Keras and BERT is from here.
"""

import math
import os
from collections.abc import Callable
from importlib.metadata import version

import torch
from torch import Tensor

ONE, TWO = torch.zeros(1, 1, 1), torch.tensor([[[1.0], [2.0]]])  # a query; values of equal keys


def ask(attend: Callable[[Tensor], Tensor]) -> tuple[str, str]:
    """The polarity of `attend(mask) → output`, and its output if all is hidden."""
    first = attend(torch.tensor([[True, False]])).item()
    polarity = {1.0: "may attend", 2.0: "is hidden"}[first]
    nothing = attend(torch.tensor([[first != 1.0] * 2])).item()
    known = {0.0: "0", 1.5: "the average of all"}
    return polarity, "NaN" if math.isnan(nothing) else known[nothing]


def of_keras(**how) -> Callable[[Tensor], Tensor]:
    """Keras's layer, all of its weights 1."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    from keras.layers import MultiHeadAttention

    layer = MultiHeadAttention(1, 1, use_bias=False, kernel_initializer="ones")

    def attend(mask: Tensor) -> Tensor:
        answer = layer(ONE, TWO, attention_mask=mask[None], **how)
        return (answer[0] if how else answer).detach()

    return attend


def of_bert(kernel: str) -> Callable[[Tensor], Tensor]:
    """BERT's attention; hooks put our queries, keys and values in the place of its own."""
    from transformers import BertConfig, BertModel

    sizes = ("hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers")
    config = BertConfig(**dict.fromkeys(sizes, 1), attn_implementation=kernel)
    bert, outputs = BertModel(config).eval(), []
    part = bert.encoder.layer[0].attention.self
    for layer, made in ((part.query, 0 * TWO), (part.key, 0 * TWO), (part.value, TWO)):
        layer.register_forward_hook(lambda *_, made=made: made)
    part.register_forward_hook(lambda layer, inputs, output: outputs.append(output[0][0, 0]))

    def attend(mask: Tensor) -> Tensor:
        bert(torch.zeros(1, 2, dtype=torch.long), attention_mask=mask.long())
        return outputs[-1].detach()

    return attend


ASKED = {
    "Keras MultiHeadAttention": ("keras", of_keras),
    "the same, with its weights": ("keras", lambda: of_keras(return_attention_scores=True)),
    "Hugging Face BERT, eager": ("transformers", lambda: of_bert("eager")),
    "Hugging Face BERT, SDPA": ("transformers", lambda: of_bert("sdpa")),
}

if __name__ == "__main__":
    print(f"torch {version('torch')}\n{'':32}{'True':14}nothing to see")
    for name, (package, made) in ASKED.items():
        polarity, nothing = ask(made())
        print(f"{name:32}{polarity:14}{nothing:20}({package} {version(package)})")
