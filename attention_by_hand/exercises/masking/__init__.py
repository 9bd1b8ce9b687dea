"""Chapter 4: masks, packing, attention that obeys a mask, and the key-value cache."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "padding_mask",
    "causal_mask",
    "pack",
    "masked_softmax",
    "bug_in_masking",
    "masked_attention",
    "influence",
    "attend_with_cache",
)
