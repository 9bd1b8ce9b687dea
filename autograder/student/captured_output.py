"""What an answer prints, and the warnings that its lines cause, while it is checked.

TRUST BOUNDARY. This runs in the student's own process. The text is the student's: `as_html` escapes
it.
"""

import io
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from html import escape
from textwrap import shorten

from autograder.student.engine.code_origin import Owner, line_in_answer, origin_of

_LINES, _WIDTH, _WARNINGS = 10, 100, 3  # that are shown
STYLE = "margin:.2em 0;line-height:1.3;overflow-x:auto;background:none;border:0;padding:0"


class CapturedOutput(io.TextIOBase):
    """Takes what is printed, of which it keeps the beginning; a stream in place of the usual ones.

    While it is not `listening`, nothing is kept: what runs then is a copy of the answer, or ours.
    """

    encoding = "utf-8"

    def __init__(self) -> None:
        self._listens = False
        self._kept, self._cut = "", 0  # the beginning, and the line ends behind it
        self._warned: dict[str, None] = {}

    def write(self, text: str) -> int:
        if self._listens:
            room = 2 * _LINES * _WIDTH - len(self._kept)
            self._kept += text[:room]
            self._cut += text[room:].count("\n")
        return len(text)

    def writable(self) -> bool:
        return True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """The answer itself runs inside."""
        self._listens = True
        try:
            yield
        finally:
            self._listens = False

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Nothing is printed, and no warning shown, except in a debugger."""
        streams, hook = (sys.stdout, sys.stderr), sys.breakpointhook

        def debug(*args: object, **kwargs: object) -> object:
            sys.stdout, sys.stderr = streams
            return hook(*args, **kwargs)

        with redirect_stdout(self), redirect_stderr(self), warnings.catch_warnings():
            warnings.showwarning = self._warn
            sys.breakpointhook = debug
            try:
                yield
            finally:
                sys.breakpointhook = hook

    def _warn(self, message: object, category: type[Warning], *_: object, **__: object) -> None:
        """Keep a warning if a line of the answer led to it."""
        frame = sys._getframe(1) if self._listens and len(self._warned) < 99 else None
        while frame is not None and (known := origin_of(frame).owner) is not Owner.PROBE:
            if known is Owner.ANSWER:
                told = shorten(str(message), 2 * _WIDTH, placeholder=" …")
                self._warned[f"{category.__name__} in {line_in_answer(frame)}: {told}"] = None
                return
            frame = frame.f_back

    def lines(self, room: int = _WARNINGS) -> list[str]:
        """What there is to show, shortened; empty if the answer said nothing. For its warnings
        there are `room` lines, and one in any case."""
        kept = self._kept.encode(errors="backslashreplace").decode()
        printed = [line.rstrip() for line in kept.splitlines()]
        shown = [line if len(line) <= _WIDTH else line[:_WIDTH] + " …" for line in printed[:_LINES]]
        shown = [f"    {line}" for line in shown]
        if more := len(printed) - len(shown) + self._cut:
            shown.append(f"    … and {more} more line{'s' * (more > 1)}")
        told = ["Your code prints:", *shown] if shown else []
        return told + self._warnings(room)

    def _warnings(self, room: int) -> list[str]:
        warned, some = [*self._warned], max(1, min(room, _WARNINGS))
        if more := len(warned[some:]):
            warned[some - 1 :] = [f"{warned[some - 1]} (and {more} more)"]
        return warned

    @property
    def has_warning(self) -> bool:
        """Whether there is a warning to show."""
        return bool(self._warned)

    def as_text(self, room: int = _WARNINGS) -> str:
        return "".join(f"\n  {line}" for line in self.lines(room))

    def as_html(self) -> str:
        lines = escape("\n".join(self.lines()))
        classes = "abh-said tex2jax_ignore mathjax_ignore"
        return f'<pre class="{classes}" style="{STYLE}">{lines}</pre>' if lines else ""
