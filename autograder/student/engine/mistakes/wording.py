"""What an answer looks like, in words: what is wrong besides a known mistake; guesses as guesses.

TRUST BOUNDARY. The words are made from matches, whose deviations may hold what a student's process
has made up: only names that are known here are repeated.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from autograder.student.engine.mistakes.match import MistakeMatch
from autograder.student.engine.state import STATE

_WORDS = {
    "dtype": "the result is {}",
    "dtypes": "the result is {} in other calls as well",
    "changed": "the call changes {} in place",
    "effect": "the call changes {}",
    "gradient": "no gradient reaches {}",
    "raises": "another error is raised than expected, {}",
}


_SOME = "an argument"


def describe_other_problems(like: MistakeMatch, arguments: Sequence[str]) -> str | None:
    """What is wrong with an answer besides its mistake, as a sentence or two; None if nothing."""
    told = [f"Besides: {other.cause}" for other in like.mistakes[1:]]
    by_kind: dict[str, list[str]] = {}
    for kind, what in sorted(like.other_problems):
        name = _name(kind, what, arguments)
        if name not in by_kind.setdefault(kind, []):
            by_kind[kind].append(name)
    if len(by_kind.get("changed", ())) > 1:  # autograd refuses whatever has changed, unnamed
        by_kind["changed"] = [name for name in by_kind["changed"] if name != _SOME]
    lines = [_WORDS[kind].format(", ".join(names[:4])) for kind, names in by_kind.items()]
    return " ".join([*told, f"Besides, {'; '.join(lines)}."] if lines else told) or None


def _name(kind: str, what: str, arguments: Sequence[str]) -> str:
    """What a deviation is about; nothing that an answer may have made up."""
    if kind in ("changed", "gradient"):
        name = what.rpartition(".")[2] if not what.startswith("parameter ") else what
        known = {str(i): argument for i, argument in enumerate(arguments)}
        known |= {argument: argument for argument in arguments}
        return name if kind == "gradient" and name not in known else known.get(name, _SOME)
    if kind == "effect":
        return what if what in STATE else "global state"
    return what if re.fullmatch(r"\w{1,40}", what) else "another"


def describe_guess(like: MistakeMatch, arguments: Sequence[str]) -> str:
    """What an answer looks like, as a paragraph that says that it is a guess."""
    first, *rest = (mistake.cause for mistake in like.mistakes)
    if rest:
        told = (
            f"This looks like two known mistakes at once. The first: {first} The second: {rest[0]}"
        )
    else:
        told = f"This looks like a known mistake, though not everything fits: {first}"
    other_problems = describe_other_problems(replace(like, mistakes=like.mistakes[:1]), arguments)
    return f"{told} {other_problems}" if other_problems else told
