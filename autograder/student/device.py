"""The device that a notebook runs on."""

import os
from functools import cache
from textwrap import shorten
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # torch is imported only when needed
    import torch

from autograder.student import course

VARIABLE = course.variable("DEVICE")


def device() -> "torch.device":
    """The device to compute on: CUDA if available, otherwise the CPU.

    The environment variable (`VARIABLE`) overrides this choice. Raises `RuntimeError` if
    torch does not know the device it names.
    """
    import torch

    wanted = os.environ.get(VARIABLE)
    return torch.device(wanted or ("cuda" if torch.cuda.is_available() else "cpu"))


def device_to_check_on() -> str:
    """The same device, for `check`; "cpu" without torch, which a course may do without.

    Raises `RuntimeError`, which says what to do, if torch cannot compute there.
    """
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        return "cpu"
    try:
        name = str(device())
        _try(name)
    except Exception as error:  # RuntimeError, AssertionError, NotImplementedError, TypeError …
        first = str(error).partition(". ")[0].rstrip(".")
        reason = shorten(first, 100, placeholder=" …") or type(error).__name__
        wanted = os.environ.get(VARIABLE) or "cuda"
        raise RuntimeError(
            f"the device {wanted!r} is not available here for `check`, which computes in float64 "
            f"({reason}). To use the CPU, set {VARIABLE}=cpu; in a notebook, `%env {VARIABLE}=cpu` "
            "does it."
        ) from None
    return name


@cache  # of what has worked: an exception is not kept
def _try(name: str) -> None:
    import torch

    ones = torch.ones(2, 2, dtype=torch.float64, device=name)
    if (ones @ ones).sum().item() != 8:
        raise RuntimeError("its results are wrong")
