"""Chapter 6: layer normalisation, RMSNorm and their backward passes, GELU, the feed-forward layer,
the residual connection, stochastic depth, and the feed-forward layer in chunks."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "layer_norm",
    "bug_in_layer_norm",
    "layer_norm_backward",
    "rms_norm_backward",
    "gelu",
    "feed_forward",
    "residual",
    "drop_path",
    "chunked_feed_forward",
)
