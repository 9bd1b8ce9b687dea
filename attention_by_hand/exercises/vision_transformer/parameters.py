"""Images, and parameters for ViT and its parts."""

from attention_by_hand.exercises.parameters import norm_state, prefixed
from attention_by_hand.exercises.shared import State, linear_state
from autograder.student.authoring import Array, Draw


def images(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, dtype=dtype)


def projection_state(
    draw: Draw, channels: int, patch: int, d: int, dtype: str = "float32"
) -> State:
    """Parameters of the convolution that reads patches."""
    numbers = channels * patch * patch
    return {
        "projection.weight": draw.tensor(
            d, channels, patch, patch, scale=numbers**-0.5, dtype=dtype
        ),
        "projection.bias": draw.tensor(d, scale=0.5, dtype=dtype),
    }


def packed_state(
    draw: Draw, d: int, dtype: str = "float32", *, bias: bool = True, scale: float = 1.4
) -> State:
    """Parameters of an attention with one projection."""
    state = linear_state(draw, "qkv", 3 * d, d, dtype, scale=scale)
    if not bias:
        del state["qkv.bias"]
    return state | linear_state(draw, "proj", d, d, dtype)


def block_state(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> State:
    """Parameters of a block."""
    return (
        norm_state(draw, "norm1", d, dtype)
        | prefixed("attn", packed_state(draw, d, dtype))
        | norm_state(draw, "norm2", d, dtype)
        | linear_state(draw, "linear1", d_ff, d, dtype, scale=1.2, bias=0.4)
        | linear_state(draw, "linear2", d, d_ff, dtype, scale=1.2, bias=0.4)
    )
