"""Chapter 2: attention by dot products, in NumPy and in torch, and other scoring functions."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "simple_attention",
    "scaled_dot_product_attention",
    "bug_in_scaling",
    "self_attention",
    "additive_attention",
    "bilinear_attention",
    "cosine_scores",
)
