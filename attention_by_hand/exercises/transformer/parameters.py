"""Parameters for the chapter's modules."""

from attention_by_hand.exercises.parameters import layer_state, norm_state, prefixed
from attention_by_hand.exercises.shared import State
from autograder.student.authoring import Draw

ENCODER, DECODER = ("self_attn",), ("self_attn", "cross_attn")


def model_state(
    draw: Draw,
    source_vocab: int,
    target_vocab: int,
    d: int,
    num_layers: int,
    d_ff: int,
    norm_first: bool = False,
    dtype: str = "float32",
) -> State:
    state: State = {}
    for name, vocab in (("source", source_vocab), ("target", target_vocab)):
        state[f"{name}_embedding.weight"] = draw.tensor(vocab, d, scale=d**-0.5, dtype=dtype)
    for name, attentions in (("encoder", ENCODER), ("decoder", DECODER)):
        for i in range(num_layers):
            layer = layer_state(draw, d, d_ff, attentions, dtype)
            state |= prefixed(f"{name}_layers.{i}", layer)
        if norm_first:
            state |= norm_state(draw, f"{name}_norm", d, dtype)
    return state
