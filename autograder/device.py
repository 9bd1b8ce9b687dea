"""The device that a notebook runs on."""

import os


def device() -> "torch.device":  # noqa: F821  (torch is imported only when needed)
    """The device to compute on: CUDA if available, otherwise the CPU.

    The environment variable `ATTENTION_DEVICE` overrides this choice. Raises `RuntimeError` if
    torch does not know the device it names.
    """
    import torch

    wanted = os.environ.get("ATTENTION_DEVICE")
    return torch.device(wanted or ("cuda" if torch.cuda.is_available() else "cpu"))
