"""What judging a submission may cost outside the sandbox: time and memory of this process.

TRUST BOUNDARY. Trusted code of the judging process. What is read and compared there has been
bounded before (`reading`, `gate`); this holds if some of it costs more than anybody thought of. The
limits are those of the current use, so that what a process did before does not count. A process
that cannot even be interrupted is killed by SIGXCPU: see `judging_process`.
"""

import resource
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from autograder.sandbox.walls import mapped_bytes
from autograder.student.engine.verdict import MEMORY, TIMEOUT

SECONDS = 120.0  # of computing time; the dearest honest verdict takes a tenth
TOTAL = 600.0  # for all verdicts on a submission
MEGABYTES = 2048
_GRACE = 30  # seconds until a process that was told to stop, and did not, is killed
_AGAIN = 1.0  # it is told so each second: what is interrupted may swallow it


class LimitExceeded(BaseException):
    """Judging took too much; no `except Exception` catches this. `reason` is timeout or memory."""

    def __init__(self, reason: str, limit: str):
        super().__init__(f"took more than {limit} outside the sandbox")
        self.reason = reason


@contextmanager
def limit_computing(seconds: float = SECONDS, megabytes: int = MEGABYTES) -> Iterator[None]:
    """Limit what is done inside. Raises `LimitExceeded`.

    Start no process inside, which would inherit the limits. Only the main thread can be
    interrupted: in others there is no limit, so a submission is judged in a main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise LimitExceeded(TIMEOUT, f"{seconds:.3g} s of computing time")

    handler = signal.signal(signal.SIGPROF, stop)
    cpu, data = (resource.getrlimit(kind) for kind in (resource.RLIMIT_CPU, resource.RLIMIT_DATA))
    end = int(time.process_time() + seconds + _GRACE)
    try:
        _lower(resource.RLIMIT_CPU, end, cpu)
        _lower(resource.RLIMIT_DATA, mapped_bytes()[1] + (megabytes << 20), data)
        signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
        yield
    except MemoryError:
        raise LimitExceeded(MEMORY, f"{megabytes} MB of memory") from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_CPU, cpu)
        resource.setrlimit(resource.RLIMIT_DATA, data)
        signal.signal(signal.SIGPROF, handler)


def _lower(kind: int, wanted: int, now: tuple[int, int]) -> None:
    """Set a limit that can be lifted again; a lower one stays."""
    bounds = [wanted, *(limit for limit in now if limit != resource.RLIM_INFINITY)]
    resource.setrlimit(kind, (min(bounds), now[1]))
