"""How `check` and `check_pencil` show what they tell: in a notebook, or in any console."""

import sys
from collections.abc import Callable
from typing import Any

# What a console that cannot show a character gets instead.
_PLAIN = {
    "✓": "+",
    "✗": "X",
    "≈": "~",
    "–": "-",
    "−": "-",
    "…": "...",
    "“": '"',
    "”": '"',
    "’": "'",
    "·": "*",
    "×": "x",
    "√": "sqrt ",
    "∞": "inf",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "½": "1/2",
    "¼": "1/4",
    "ᵀ": "^T",
    "²": "^2",
    "³": "^3",
    "±": "+-",
    "→": "->",
    "α": "alpha",
    "ε": "eps",
    "σ": "sigma",
    "μ": "mu",
    "θ": "theta",
    "Φ": "Phi",
    "ℓ": "l",
}


def say(text: str) -> None:
    """Print a text, even where the console has no UTF-8."""
    print(_fitting(text))


def _fitting(text: str) -> str:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return _PLAIN.get(text, "?") if len(text) == 1 else "".join(map(_fitting, text))
    return text


def notebook() -> Any:
    """IPython's shell where there is a front end that shows HTML; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return None if type(shell).__name__ == "TerminalInteractiveShell" else shell


def show(text: str, html: Callable[[], str]) -> None:
    """Show a text, or in a notebook HTML in its place."""
    if notebook() is None:
        say(text)
        return
    from IPython.display import display

    display({"text/html": html(), "text/plain": text}, raw=True)


def on_one_line(error: BaseException) -> BaseException:
    """The error, which IPython shows on one line, without the frames of the code that raised it."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    vars(error)["_render_traceback_"] = lambda: [text]  # IPython looks for this name
    return error
