"""What float32 explains: numbers that are off by no more than it, and which aspect they cost.

A fault is charged where it can be judged apart: an answer that computes in float32 loses the
aspect of the dtypes alone, and one that is off by more loses what it would lose in any dtype.
"""

from collections.abc import Sequence
from dataclasses import replace

from autograder.student.engine.compare import NEARLY, of_float32
from autograder.student.engine.runs import Aspect, Finding, Trial

PRECISION = ("dtype", "digits")  # kinds of failure
_NUMBERS = ("value", "gradient", "digits")
_FLOAT32 = 1e-6  # relative to the largest number: 16 times what a number in float32 is off by
_TIMES = 8.0  # as far off as a right answer in float32, at most


def with_rounding(finding: Finding, trial: Trial) -> Finding:
    """The finding, which also says whether float32 explains what is wrong."""
    wanted, size = trial.expected, finding.relative
    if size is None or size > NEARLY or finding.kind not in _NUMBERS:
        return finding
    if size > _FLOAT32:
        off = wanted.rounding() if callable(wanted.rounding) else wanted.rounding
        if size > _TIMES * off:
            return finding
    given = trial.record.gradients
    pairs = [*zip(trial.record.values, wanted.values, strict=False)]
    pairs += [(given.get(name), slope) for name, slope in wanted.gradients.items()]
    return replace(finding, rounded=True, narrow=any(of_float32(*pair) for pair in pairs))


def charged_to_dtype(
    aspects: Sequence[Aspect], found: Sequence[Finding]
) -> tuple[list[Finding], set[int]]:
    """The findings, and which of them charge an answer with float32. Then nothing else does: what
    is off by no more than float32 explains passes."""
    naming = {
        i
        for i, (aspect, finding) in enumerate(zip(aspects, found, strict=True))
        if "dtype" in aspect.own
        and not finding.passed
        and (finding.kind in PRECISION or finding.rounded)
    }
    narrow = any(finding.narrow for finding in found)
    if not (narrow and naming and (found[0].passed or found[0].rounded)):
        return [*found], set()

    def charge(i: int, finding: Finding) -> Finding:
        if not finding.rounded:
            return finding
        digits = replace(finding, kind="digits", instructive=True)
        return digits if i in naming else Finding(True)

    return [charge(i, finding) for i, finding in enumerate(found)], naming
