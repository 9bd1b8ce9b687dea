"""A progress bar for cells that take minutes: live in a notebook, its last state on a page."""

import time
from html import escape


class Progress:
    """A bar of `total` steps, shown at once; `bar(done, note)` updates it.

    In a notebook it updates a single output, so that a page shows the last state; in a terminal, a
    single line.
    """

    def __init__(self, total: int, unit: str = "step"):
        self.total, self.unit = total, unit
        self.done, self.note, self.seconds = 0, "", 0.0
        self._start = time.perf_counter()
        self._handle = _in_notebook() and _display(self)

    def __call__(self, done: int, note: str = "") -> None:
        self.done, self.note = done, note
        self.seconds = time.perf_counter() - self._start
        if self._handle:
            self._handle.update(self)
        else:
            print(f"\r{self!r}", end="", flush=True)

    def __repr__(self) -> str:
        return f"{self.unit} {self.done} of {self.total}, {self.seconds:.0f} s  {self.note}"

    def _repr_html_(self) -> str:
        return (
            f'<p class="progress-bar"><progress max="{self.total}" value="{self.done}" '
            f'style="width:12rem;accent-color:#0072B2" aria-label="{escape(self.unit)}s">'
            f"</progress> {escape(repr(self))}</p>"
        )


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return getattr(get_ipython(), "kernel", None) is not None


def _display(bar: Progress):
    from IPython.display import display

    return display(bar, display_id=True)
