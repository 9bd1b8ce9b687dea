"""The process that forks those that judge: it imports once, for all of them, what they need.

TRUST BOUNDARY. It runs our own code alone, as those do that it forks.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext

IMPORTED = ["autograder.grader.classes.schedulers", "torch", "autograder.grader.reference"]


def get_ready() -> ForkServerContext:
    """Start the process, if it is not there yet; the context in which it forks.

    Who has long imports of its own to make calls this before them: both go on side by side.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with _deaf():
        forkserver.ensure_running()
    return context


@contextmanager
def _deaf() -> Iterator[None]:
    """What is started meanwhile does not hear Ctrl-C: whoever has started it decides."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
