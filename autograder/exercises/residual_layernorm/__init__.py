"""Chapter 6: layer normalisation and its backward pass, GELU, the feed-forward layer, the
residual connection, stochastic depth, and the feed-forward layer in chunks."""

from autograder.exercises.declaration import exercises
from autograder.exercises.residual_layernorm.chunked_feed_forward import CHUNKED_FEED_FORWARD
from autograder.exercises.residual_layernorm.drop_path import DROP_PATH
from autograder.exercises.residual_layernorm.feed_forward import FEED_FORWARD
from autograder.exercises.residual_layernorm.gelu import GELU
from autograder.exercises.residual_layernorm.layer_norm import LAYER_NORM
from autograder.exercises.residual_layernorm.layer_norm_backward import LAYER_NORM_BACKWARD
from autograder.exercises.residual_layernorm.residual import RESIDUAL

EXERCISES = exercises(
    LAYER_NORM, LAYER_NORM_BACKWARD, GELU, FEED_FORWARD, RESIDUAL, DROP_PATH, CHUNKED_FEED_FORWARD
)
