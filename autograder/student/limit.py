"""Ends an answer that does not end, on every system and in every thread.

TRUST BOUNDARY. This runs in the student's own process, for `check`. The grader has limits of its
own, outside the sandbox.
"""

import _thread
import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import CodeType

from autograder.student import course
from autograder.student.engine.runs import SECONDS

VARIABLE = course.variable("SECONDS")
ALLOWED = 3 * SECONDS
WAITING = 5  # the clock's limit, as a multiple: a busy machine makes an answer wait, too
_LOOK = 0.05  # seconds between two looks, at least
_AGAIN = 1.0  # an answer may swallow the interrupt: it gets one each second
_DEBUGGERS = ("bdb.py", "pdb.py", "pydevd.py")


def seconds_allowed() -> float:
    """How long `check` lets an answer compute: three times the grader's limit, or what is set.

    Raises `ValueError` if `VARIABLE` is no number of seconds in the environment. 0 means no limit.
    """
    told = os.environ.get(VARIABLE, "").strip()
    try:
        seconds = float(told or ALLOWED)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ValueError(f"{VARIABLE}: expected a number of seconds, got {told!r}")
    return seconds or float("inf")


class Limit:
    """Raises `KeyboardInterrupt` in a call, somewhere inside a `with` block, that does not end.

    The limit is of seconds in which the process computes, or of `WAITING` times as many by the
    clock. `code` is that of the function that makes the call: outside it, nothing is interrupted.
    `reached` tells which limit it was, and is empty for an interrupt of the student's. Code in C
    that lets no other thread run, such as `list(itertools.count())`, cannot be ended so, and where
    there are no threads, as in a browser, there is no limit.
    """

    def __init__(self, seconds: float, code: CodeType):
        self.reached = ""
        self._seconds, self._code = min(seconds, threading.TIMEOUT_MAX), code
        self._thread = threading.get_ident()
        self._over, self._lock = threading.Event(), threading.Lock()

    def __enter__(self) -> "Limit":
        with suppress(RuntimeError):
            threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, kind: type | None, error: object, traceback: object) -> None:
        self.stop()
        if self.reached and kind is None:
            time.sleep(_AGAIN)  # in which the interrupt arrives

    def stop(self) -> None:
        """Interrupt nothing more. One may arrive in here: whoever catches it stops again."""
        with self._lock:
            self._over.set()

    def _watch(self) -> None:
        began, computed, wait = time.monotonic(), time.process_time(), self._seconds
        while not self._over.wait(wait):
            left = self._seconds - (time.process_time() - computed)
            waiting = began + WAITING * self._seconds - time.monotonic()
            if left > 0 and waiting > 0:
                wait = min(max(left, _LOOK), waiting)
                continue
            wait = _AGAIN
            with self._lock:
                if not self._over.is_set() and self._is_in_the_call():
                    self.reached = f"{self._seconds:g} s of computing"
                    if left > 0:
                        self.reached = f"{WAITING * self._seconds:g} s"
                    _interrupt(self._thread)

    def _is_in_the_call(self) -> bool:
        """Whether the call runs, and does not wait in a debugger."""
        frame, found = sys._current_frames().get(self._thread), False
        while frame is not None:
            if frame.f_code.co_filename.endswith(_DEBUGGERS):
                return False
            found = found or frame.f_code is self._code
            frame = frame.f_back
        return found


def _interrupt(thread: int) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if thread != threading.main_thread().ident or handler is not signal.default_int_handler:
        error = ctypes.py_object(KeyboardInterrupt)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error)
    elif hasattr(signal, "pthread_kill"):  # this ends a call that sleeps or waits, too
        signal.pthread_kill(thread, signal.SIGINT)
    else:
        _thread.interrupt_main()
