"""The process that forks those that judge or make pages: it imports once what they need.

TRUST BOUNDARY. It runs only our own code, and so do the processes that it forks.
"""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext

IMPORTED = ["autograder.gradebook.imported_once"]


def get_ready() -> ForkServerContext:
    """Start the process, if it is not running yet; return the context in which it forks.

    Call this before long imports, so that the two run in parallel.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with _deaf():
        forkserver.ensure_running()
    return context


@contextmanager
def without_collecting() -> Iterator[None]:
    """For long imports: nothing is garbage that they make, now or later.

    To look for some takes a quarter of their time, and at the end of the process as much again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C: their parent handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
