"""What chapter 4 asks: masks, a softmax and an attention that obey them, and the cache."""

from autograder.exercises.masking.additive_mask import ADDITIVE_MASK
from autograder.exercises.masking.attend_with_cache import (
    ATTEND_WITH_CACHE,
    in_training,  # noqa: F401 (recipes)
)
from autograder.exercises.masking.causal_mask import CAUSAL_MASK
from autograder.exercises.masking.masked_attention import MASKED_ATTENTION
from autograder.exercises.masking.masked_softmax import MASKED_SOFTMAX
from autograder.exercises.masking.padding_mask import PADDING_MASK
from autograder.exercises.masking.shared import __getattr__  # noqa: F401 (recipes)

EXERCISES = (
    PADDING_MASK,
    CAUSAL_MASK,
    MASKED_SOFTMAX,
    ADDITIVE_MASK,
    MASKED_ATTENTION,
    ATTEND_WITH_CACHE,
)
