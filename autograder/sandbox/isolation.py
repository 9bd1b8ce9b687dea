"""How sandboxes are kept apart from the machine: by bubblewrap or, for files that one trusts, not.

Each way is a class, which `ISOLATIONS` lists; nothing else asks which one it is.

TRUST BOUNDARY. Trusted code of the judging process: it says with which program, what environment
and what visible files the process is started that forks all sandboxes.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from autograder.sandbox import warm
from autograder.sandbox.bubblewrap import COURSE, ENVIRONMENT, NAMESPACES, bwrap, mounts
from autograder.sandbox.device import Device
from autograder.student import course


class Isolation(Protocol):
    """A way to start the warm process, and what that means for the sandboxes it forks."""

    @property
    def encloses(self) -> bool:
        """Whether a sandbox has namespaces, walls and limits of its own."""

    def program(self) -> str | None:
        """The program that does it, if one is needed. Raises `IsolationError` if it is missing."""

    def environment(self, device: Device) -> dict[str, str]:
        """All environment variables of the warm process, and so of its children."""

    def command(self, config: Mapping[str, int], device: Device) -> list[str]:
        """The command line of the warm process, given its ends of the pipes."""


class Bubblewrap:
    """Namespaces made by bubblewrap; inside, each child puts up the other walls."""

    encloses = True

    def program(self) -> str:
        return bwrap()

    def environment(self, device: Device) -> dict[str, str]:
        return {**ENVIRONMENT, **device.environment}

    def command(self, config: Mapping[str, int], device: Device) -> list[str]:
        mounted, readable = mounts(device.mounts())
        options = [*NAMESPACES, *mounted]
        for name, value in self.environment(device).items():
            options += ["--setenv", name, value]
        inside = {**config, "course": COURSE, "readable": readable, "isolated": True}
        program = [sys.executable, "-I", "-B", f"{COURSE}/warm.py", json.dumps(inside)]
        return [self.program(), *options, "--", *program]


class NoIsolation:
    """A process like any other of this user: only its limits hold."""

    encloses = False

    def program(self) -> None:
        return None

    def environment(self, device: Device) -> dict[str, str]:
        return {**ENVIRONMENT, **device.environment, course.VARIABLE: str(course.root())}

    def command(self, config: Mapping[str, int], device: Device) -> list[str]:
        root = Path(warm.__file__).resolve().parents[2]
        beside = {**config, "course": str(root), "readable": [], "isolated": False}
        return [sys.executable, "-I", "-B", warm.__file__, json.dumps(beside)]


ISOLATIONS: dict[str, Isolation] = {"bwrap": Bubblewrap(), "none": NoIsolation()}


def isolation_called(name: str) -> Isolation:
    """The one for an `--isolation`. Raises `ValueError` if there is none of that name."""
    if name not in ISOLATIONS:
        raise ValueError(f"isolation is one of {', '.join(ISOLATIONS)}, not {name!r}")
    return ISOLATIONS[name]
