"""What chapter 7 asks: the layers, the embedding and the whole Transformer, its loss and schedule,
and two ways to decode."""

from autograder.exercises.transformer.beam_search import BEAM_SEARCH
from autograder.exercises.transformer.decoder_layer import DECODER_LAYER
from autograder.exercises.transformer.decoding import in_training, itself, lookup  # noqa: F401 (recipes)
from autograder.exercises.transformer.encoder_layer import ENCODER_LAYER
from autograder.exercises.transformer.greedy_decode import GREEDY_DECODE
from autograder.exercises.transformer.label_smoothed_cross_entropy import (
    LABEL_SMOOTHED_CROSS_ENTROPY,
)
from autograder.exercises.transformer.noam_rate import NOAM_RATE
from autograder.exercises.transformer.shift_right import SHIFT_RIGHT
from autograder.exercises.transformer.token_embedding import TOKEN_EMBEDDING
from autograder.exercises.transformer.transformer import TRANSFORMER

EXERCISES = (
    ENCODER_LAYER,
    DECODER_LAYER,
    TOKEN_EMBEDDING,
    TRANSFORMER,
    SHIFT_RIGHT,
    LABEL_SMOOTHED_CROSS_ENTROPY,
    NOAM_RATE,
    GREEDY_DECODE,
    BEAM_SEARCH,
)
