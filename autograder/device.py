"""The device that a notebook runs on."""

import os


def device() -> "torch.device":  # noqa: F821  (torch is imported only when someone asks)
    """The device to compute on: CUDA where there is one, else the CPU.

    The environment variable `ATTENTION_DEVICE` overrides the choice. Raises `RuntimeError` where
    torch does not know the device that the variable names.
    """
    import torch

    wanted = os.environ.get("ATTENTION_DEVICE")
    return torch.device(wanted or ("cuda" if torch.cuda.is_available() else "cpu"))
