"""Chapter 3: splitting and merging heads, multi-head attention, copying torch's weights,
and measuring what each head is worth."""

from autograder.exercises.declaration import exercises
from autograder.exercises.multi_head.head_importance import HEAD_IMPORTANCE
from autograder.exercises.multi_head.load_torch_weights import LOAD_TORCH_WEIGHTS
from autograder.exercises.multi_head.merge_heads import MERGE_HEADS
from autograder.exercises.multi_head.multi_head_attention import MULTI_HEAD_ATTENTION
from autograder.exercises.multi_head.multi_head_numpy import MULTI_HEAD_NUMPY
from autograder.exercises.multi_head.split_heads import SPLIT_HEADS

EXERCISES = exercises(
    SPLIT_HEADS,
    MERGE_HEADS,
    MULTI_HEAD_NUMPY,
    MULTI_HEAD_ATTENTION,
    LOAD_TORCH_WEIGHTS,
    HEAD_IMPORTANCE,
)
