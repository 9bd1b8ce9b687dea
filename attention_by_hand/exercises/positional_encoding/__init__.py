"""Chapter 5: whether attention knows about order, and four ways to tell it where a token is."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "permutation_gap",
    "sinusoidal_encoding",
    "positional_encoding",
    "shift_matrix",
    "relative_positions",
    "relative_position_scores",
    "rotary_embedding",
    "rotary_attention",
    "bug_in_distances",
)
