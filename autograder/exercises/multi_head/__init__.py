"""What chapter 3 asks: splitting and merging heads, multi-head attention, copying torch's weights,
and measuring what each head is worth."""

from autograder.exercises.multi_head.head_importance import (
    HEAD_IMPORTANCE,
    in_training,  # noqa: F401 (recipes)
)
from autograder.exercises.multi_head.load_torch_weights import (  # noqa: F401 (recipes)
    LOAD_TORCH_WEIGHTS,
    overwrite,
    projected,
    step_down,
    torch_attention,
)
from autograder.exercises.multi_head.merge_heads import MERGE_HEADS
from autograder.exercises.multi_head.multi_head_attention import MULTI_HEAD_ATTENTION
from autograder.exercises.multi_head.multi_head_numpy import MULTI_HEAD_NUMPY
from autograder.exercises.multi_head.shared import itself  # noqa: F401 (recipes)
from autograder.exercises.multi_head.split_heads import SPLIT_HEADS

EXERCISES = (
    SPLIT_HEADS,
    MERGE_HEADS,
    MULTI_HEAD_NUMPY,
    MULTI_HEAD_ATTENTION,
    LOAD_TORCH_WEIGHTS,
    HEAD_IMPORTANCE,
)
