"""Chapter 1: averages of neighbours."""

from autograder.student.authoring.declaration import exercises

EXERCISES = exercises(
    __name__,
    "moving_average",
)
