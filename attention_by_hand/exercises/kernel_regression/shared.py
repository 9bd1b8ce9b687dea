"""Inputs that several exercises of the chapter share."""

import numpy as np

from autograder.student.authoring import Draw


def uneven_points(draw: Draw) -> np.ndarray:
    """Five points, each with one other point that is clearly the nearest."""
    return np.array([0.0, 1.0, 3.0, 6.0, 10.0]) + draw.uniform(-0.1, 0.1, 5)
