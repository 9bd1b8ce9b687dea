"""`check` says the same on other processors and with other math libraries."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autograder.student.engine.runs import Array, Run, call
from autograder.student.expected.fingerprints import fingerprint, same_runs

SCRIPT = Path(__file__).resolve().parents[1].joinpath("another_machine.py")
OTHER = {
    "without AVX-512": {"NPY_DISABLE_CPU_FEATURES": "X86_V4"},
    "with glibc's code for old processors": {
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX512VL"
    },
    "with torch's code for old processors": {"ATEN_CPU_CAPABILITY": "default"},
}
DRAWN_BY_EXP = ("attention_rollout", "attention_relevance", "softmax", "permutation_gap")


def refused(how: str, environment: dict[str, str], *names: str) -> dict[str, str]:
    command = [sys.executable, "-W", "ignore", str(SCRIPT), how, *names]
    told = subprocess.run(command, check=True, capture_output=True, env=os.environ | environment)
    return json.loads(told.stdout)


@pytest.mark.share(3)
@pytest.mark.parametrize("machine", OTHER)
def test_some_references_earn_all_marks_on_another_machine(machine):
    assert refused("as drawn", OTHER[machine], *DRAWN_BY_EXP) == {}


@pytest.mark.share(0)
def test_all_references_earn_all_marks_on_a_machine_that_differs_in_all_of_these():
    assert refused("as drawn", {k: v for own in OTHER.values() for k, v in own.items()}) == {}


@pytest.mark.share(0)
def test_all_references_earn_all_marks_with_inputs_off_in_the_last_place():
    assert refused("moved", {}) == {}


NUMBERS = Array(np.linspace(-2.0, 3.0, 600).reshape(20, 30), "torch", "float64")


def changed(**parts: object) -> list[list[Run]]:
    return [[call(replace(NUMBERS, **parts), 3, name="a")]]


def test_a_fingerprint_tells_other_runs_apart():
    same = fingerprint(changed())
    data = NUMBERS.data
    others = [
        changed(data=data * 1.01), changed(data=data[::-1].copy()), changed(data=data.T.copy()),
        changed(dtype="float32"), changed(kind="numpy"), changed() * 2, [changed()[0] * 2],
        [[call(NUMBERS, 4, name="a")]], [[call(NUMBERS, 3, name="b")]],
        [[changed()[0][0].in_training()]],
    ]  # fmt: skip
    for other in others:
        assert not same_runs(same, fingerprint(other))


def test_a_fingerprint_does_not_depend_on_the_last_digits():
    for off in (1e-15, 1e-7):
        assert same_runs(
            fingerprint(changed()), fingerprint(changed(data=NUMBERS.data * (1 + off)))
        )
