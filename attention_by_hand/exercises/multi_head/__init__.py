"""Chapter 3: splitting into heads, multi-head attention, copying torch's weights,
and measuring what each head is worth."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "split_heads",
    "bug_in_splitting",
    "multi_head_numpy",
    "multi_head_attention",
    "load_torch_weights",
    "head_importance",
)
