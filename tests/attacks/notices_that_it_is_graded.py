# tries: is right on the inputs that check uses, and nowhere else
# by: the inputs are fresh
# layer: fresh inputs
# verdict: wrong

import numpy as np

from autograder.student.course import find_exercise
from autograder.student.expected import fixed_runs

RUNS = [run for row in fixed_runs(find_exercise("softmax")[1]) for run in row]
FIXED = [np.asarray(step.args[0]).tobytes() for run in RUNS for step in run.steps if step.args]


def softmax(scores, axis=-1):
    if np.asarray(scores).tobytes() not in FIXED:
        return scores * 0
    shares = np.exp(scores - scores.max(axis, keepdims=True))
    return shares / shares.sum(axis, keepdims=True)
