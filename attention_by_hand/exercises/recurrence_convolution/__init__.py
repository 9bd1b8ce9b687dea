"""Chapter 8: recurrence and its gates, attention on top of them, convolution, linear attention."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "gru_cell",
    "attention_decoder",
    "convolution_by_heads",
    "bug_in_convolution",
    "layers_to_see_all",
    "linear_attention",
    "linear_attention_step",
    "chunked_linear_attention",
)
