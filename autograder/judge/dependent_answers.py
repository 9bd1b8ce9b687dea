"""Answers that build on others: judged with blocks of the course in place of those that are wrong.

TRUST BOUNDARY. This is the trusted side: what students wrote is known here by the names in it.
"""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from itertools import takewhile

from autograder.judge.block_code import all_blocks
from autograder.notebook.names import Names
from autograder.student.course import exercises_of
from autograder.student.engine.runs import BLOCKS
from autograder.student.engine.verdict import CORRECT, MISSING, Verdict

Made = Callable[[str, Mapping[str, str]], Verdict]  # of an answer, with these blocks for others


def judge_with(
    built_on: Mapping[str, str], name: str, known: MutableMapping[str, Verdict], made: Made
) -> Verdict:
    """The verdict on an answer, with blocks in place of what is wrong of that it is `built_on`;
    and on it as it is, unless that gives full marks: the better counts.

    `known` are verdicts on others, to which are added those that are needed.
    """
    verdict = _helped(built_on, name, known, made)
    if verdict is not None and verdict.verdict in (CORRECT, MISSING):
        return verdict
    own = made(name, {})
    unknown = built_on.keys() - known.keys()
    if unknown and own.verdict not in (CORRECT, MISSING):
        known.update((other, made(other, {})) for other in unknown)
        verdict = _helped(built_on, name, known, made)
    return own if verdict is None or verdict.score <= own.score else verdict


def _helped(
    built_on: Mapping[str, str], name: str, known: Mapping[str, Verdict], made: Made
) -> Verdict | None:
    wrong = {n: b for n, b in built_on.items() if n in known and known[n].verdict != CORRECT}
    if not wrong:
        return None
    verdict, names = made(name, wrong), ", ".join(wrong)
    told = f"Judged with the course's own {names}, because yours is not right yet."
    return verdict if verdict.verdict == MISSING else replace(verdict, remark=told)


def _used_by(name: str, read: Sequence[Names]) -> set[str] | None:
    """The names that an answer uses, itself or through the cells that define what it uses; None
    for any name at all."""
    found, todo = {name}, list(read)
    while here := [names for names in todo if (names.defines | names.changes) & found]:
        todo = [names for names in todo if names not in here]
        if any(names.reaches for names in here):
            return None
        found |= {used for names in here for used in names.uses}
    return found - {name}


def stand_ins(slug: str, name: str, read: Sequence[Names]) -> dict[str, str]:
    """The course's blocks that may stand in for what an answer builds on.

    They are blocks of earlier exercises of the chapter: of all of them where it cannot be read what
    the answer calls, and of none that is itself built on this answer.
    """
    names = _used_by(name, read)
    earlier = takewhile(lambda other: other != name, (e.name for e in exercises_of(slug)))
    wanted = [other for other in earlier if names is None or other in names]
    return {
        other: f"{BLOCKS}:{other}"
        for other in wanted
        if other in all_blocks() and name not in (_used_by(other, read) or ())
    }
