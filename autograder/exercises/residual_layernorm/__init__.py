"""What chapter 6 asks: layer normalisation and its backward pass, GELU, the feed-forward layer, the
residual connection, stochastic depth, and the feed-forward layer in chunks."""

from autograder.exercises.residual_layernorm.chunked_feed_forward import (  # noqa: F401 (recipes)
    CHUNKED_FEED_FORWARD,
    all_seeing,
    wide_and_back,
)
from autograder.exercises.residual_layernorm.drop_path import DROP_PATH
from autograder.exercises.residual_layernorm.dropout import summed_up  # noqa: F401 (recipes)
from autograder.exercises.residual_layernorm.feed_forward import (  # noqa: F401 (recipes)
    FEED_FORWARD,
    activation_module,
    sine,
    square,
)
from autograder.exercises.residual_layernorm.gelu import GELU
from autograder.exercises.residual_layernorm.layer_norm import LAYER_NORM
from autograder.exercises.residual_layernorm.layer_norm_backward import (
    LAYER_NORM_BACKWARD,
    inference_tensor,  # noqa: F401 (recipes)
)
from autograder.exercises.residual_layernorm.residual import (  # noqa: F401 (recipes)
    RESIDUAL,
    attention,
    counting,
    linear,
    staircase,
)
from autograder.exercises.residual_layernorm.shared import wave  # noqa: F401 (recipes)

EXERCISES = (
    LAYER_NORM,
    LAYER_NORM_BACKWARD,
    GELU,
    FEED_FORWARD,
    RESIDUAL,
    DROP_PATH,
    CHUNKED_FEED_FORWARD,
)
