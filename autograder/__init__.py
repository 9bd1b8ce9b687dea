"""What a student imports: `check` an answer, find the `device` to run on, draw with `plots`."""

from autograder.check import check
from autograder.device import device

__all__ = ["check", "device"]
