"""Chapter 1: kernel regression in NumPy, and a module that learns its bandwidth."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "softmax",
    "gaussian_scores",
    "bug_in_softmax",
    "nadaraya_watson",
    "kernel_weights",
    "attention_pool",
    "leave_one_out_mse",
    "kernel_regression",
)
