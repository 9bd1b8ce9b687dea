"""Chapter 1: averages of neighbours."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "moving_average",
)
