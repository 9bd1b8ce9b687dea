"""What chapter 1 asks: kernel regression in NumPy, and a module that learns its bandwidth."""

from autograder.exercises.kernel_regression.attention_pool import (  # noqa: F401 (recipes)
    ATTENTION_POOL,
    dot_product,
    huge_scores,
    mixed_lengths,
    signed_distance,
)
from autograder.exercises.kernel_regression.gaussian_scores import GAUSSIAN_SCORES
from autograder.exercises.kernel_regression.kernel_regression import KERNEL_REGRESSION
from autograder.exercises.kernel_regression.kernel_weights import KERNEL_WEIGHTS
from autograder.exercises.kernel_regression.leave_one_out_mse import LEAVE_ONE_OUT
from autograder.exercises.kernel_regression.nadaraya_watson import NADARAYA_WATSON
from autograder.exercises.kernel_regression.softmax import SOFTMAX

EXERCISES = (
    SOFTMAX,
    GAUSSIAN_SCORES,
    NADARAYA_WATSON,
    KERNEL_WEIGHTS,
    ATTENTION_POOL,
    LEAVE_ONE_OUT,
    KERNEL_REGRESSION,
)
