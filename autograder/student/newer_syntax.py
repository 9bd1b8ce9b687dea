"""What a text has that an older Python does not understand.

TRUST BOUNDARY. This runs in the student's own process, for `check`.
"""

import ast
import io
import tokenize


def newer_line(text: str, version: tuple[int, int]) -> int | None:
    """The first line of a text that an older Python, of that version, does not understand."""
    try:
        ast.parse(text, feature_version=version)
    except SyntaxError as error:
        return error.lineno
    return _newer_f_string(text) if version < (3, 12) else None


def _newer_f_string(text: str) -> int | None:
    """The line of the first f-string with an expression that Python takes since 3.12 (PEP 701)."""
    quotes: list[str] = []  # of the f-strings around a token
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == "FSTRING_END":
            quotes.pop()
            continue
        deep = quotes[1:] if kind == "FSTRING_MIDDLE" else quotes
        ends = token.string in "\r\n" and any(len(quote) == 1 for quote in deep)
        found = [quote for quote in deep if quote in token.string]
        if deep and (found or ends or "\\" in token.string or kind == "COMMENT"):
            return token.start[0]
        if kind == "FSTRING_START":
            quotes.append(token.string.lstrip("fFrR"))
    return None
