"""What chapter 5 asks: does attention know order, and four ways to tell it where a token stands."""

from autograder.exercises.positional_encoding.permutation_gap import (  # noqa: F401 (recipes)
    PERMUTATION_GAP,
    attends,
    attention_in_training,
    climbing,
    in_heads,
    numbered,
    running_mean,
    token_by_token,
)
from autograder.exercises.positional_encoding.positional_encoding import (
    POSITIONAL_ENCODING,
    fill,  # noqa: F401 (recipes)
)
from autograder.exercises.positional_encoding.relative_position_scores import (
    RELATIVE_POSITION_SCORES,
)
from autograder.exercises.positional_encoding.relative_positions import RELATIVE_POSITIONS
from autograder.exercises.positional_encoding.rotary_attention import ROTARY_ATTENTION
from autograder.exercises.positional_encoding.rotary_embedding import ROTARY_EMBEDDING
from autograder.exercises.positional_encoding.shift_matrix import SHIFT_MATRIX
from autograder.exercises.positional_encoding.sinusoidal_encoding import SINUSOIDAL_ENCODING

EXERCISES = (
    PERMUTATION_GAP,
    SINUSOIDAL_ENCODING,
    POSITIONAL_ENCODING,
    SHIFT_MATRIX,
    RELATIVE_POSITIONS,
    RELATIVE_POSITION_SCORES,
    ROTARY_EMBEDDING,
    ROTARY_ATTENTION,
)
