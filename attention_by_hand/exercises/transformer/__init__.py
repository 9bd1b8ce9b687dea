"""Chapter 7: the layers, the embedding and the whole Transformer, its loss, and two ways to
decode."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "encoder_layer",
    "decoder_layer",
    "token_embedding",
    "transformer",
    "shift_right",
    "label_smoothed_cross_entropy",
    "bug_in_loss",
    "greedy_decode",
    "beam_search",
)
