"""Chapter 4: masks, a softmax and an attention that obey them, and the key-value cache."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "padding_mask",
    "causal_mask",
    "masked_softmax",
    "bug_in_masking",
    "additive_mask",
    "masked_attention",
    "influence",
    "attend_with_cache",
)
