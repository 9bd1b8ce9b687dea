"""A sandbox that starts while the last submission's is ended and its results are written.

TRUST BOUNDARY. A spare one is like any other, and has run nothing when it is taken.
"""

import time
from contextlib import suppress
from dataclasses import dataclass

from autograder.sandbox.host import Sandbox
from autograder.sandbox.limits import Limits

_FRESH = 30.0  # seconds for which it may wait: its deadline allows for twice that
Options = tuple[str, Limits, str]  # isolation, limits and device


@dataclass
class Spare:
    """The spare sandbox of a process that judges many submissions, once it is `kept`."""

    kept: bool = False
    _ready: tuple[Options, Sandbox, float] | None = None

    def take(self, options: Options) -> Sandbox:
        """The spare sandbox, if it fits, or a new one."""
        ready, self._ready = self._ready, None
        if ready is not None:
            made_with, sandbox, since = ready
            if made_with == options and time.monotonic() - since < _FRESH:
                return sandbox
            sandbox.close()
        return Sandbox(*options)

    def prepare(self, options: Options) -> None:
        """Start one, if it is kept. On a GPU it would hold memory that another needs."""
        if self.kept and self._ready is None and options[2] == "cpu":
            with suppress(Exception):  # whoever needs one is told why there is none
                self._ready = options, Sandbox(*options), time.monotonic()


SPARE = Spare()
