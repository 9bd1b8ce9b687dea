"""What a student imports: `check`, `check_pencil`, the `device` to run on, `plots` to draw."""

from autograder.check import check
from autograder.device import device
from autograder.pencil import check_pencil, show_pencil

__all__ = ["check", "check_pencil", "device", "show_pencil"]
