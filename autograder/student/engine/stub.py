"""Tells an answer that is still a stub by its bytecode, without calling it.

TRUST BOUNDARY. This reads an answer's code, which may be anything; it runs none of it.
"""

import dis
from collections.abc import Mapping
from types import FunctionType
from typing import Any

_LEAVES = ("JUMP", "RETURN", "YIELD", "SEND", "FOR_")  # in the names of what may end it otherwise


def is_unwritten(answer: object, record: Mapping[str, Any]) -> bool:
    """Whether a call of a stub has come to its `NotImplementedError`, as this record's tree says.

    All other calls need not be made: none ends otherwise than by an exception.
    """
    raised: Any = record.get("raised")
    return bool(raised) and raised[0][0] == "NotImplementedError" and is_stub(answer)


def is_stub(answer: object) -> bool:
    """Whether each call can only end by an exception, the last being a `NotImplementedError`.

    Of a class, the call that builds an object.
    """
    if isinstance(answer, type):
        own = vars(answer)
        return type(answer) is type and "__new__" not in own and is_stub(own.get("__init__"))
    code = answer.__code__ if type(answer) is FunctionType else None
    if code is None or code.co_exceptiontable or "NotImplementedError" not in code.co_names:
        return False
    names = [operation.opname for operation in dis.get_instructions(code)]
    return names[-1] == "RAISE_VARARGS" and not any(
        part in name for name in names for part in _LEAVES
    )
