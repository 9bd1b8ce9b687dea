"""Where answers are computed, as far as a sandbox has to know: on the CPU, or on a GPU.

Each device is a class, which `DEVICES` lists; nothing else of the sandbox asks which one it is.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from autograder.sandbox import gpu
from autograder.sandbox.bubblewrap import IsolationError, Mounts


class Device(Protocol):
    """What a sandbox needs for a device, and how many may use it."""

    @property
    def name(self) -> str:
        """As torch calls it."""

    @property
    def at_once(self) -> int | None:
        """How many submissions may use it at a time; None if as many as there are cores."""

    @property
    def can_be_lost(self) -> bool:
        """Whether a run can leave it unusable for the next one."""

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables that a sandbox has in addition."""

    @property
    def order(self) -> Mapping[str, list[str]] | None:
        """What the walls inside the sandbox need to know."""

    def mounts(self) -> Mounts:
        """What has to be visible inside in addition."""


class Cpu:
    """The processor, which every sandbox may use."""

    name, at_once, can_be_lost, order = "cpu", None, False, None
    environment: Mapping[str, str] = {}

    def mounts(self) -> Mounts:
        return ()


DEVICES: dict[str, Callable[[], Device]] = {"cpu": Cpu, "cuda": gpu.require}


def require(name: str) -> Device:
    """The device for a `--device`. Raises `IsolationError` if it cannot be used."""
    if name not in DEVICES:
        raise IsolationError(f"--device is one of {', '.join(DEVICES)}, not {name!r}")
    return DEVICES[name]()
