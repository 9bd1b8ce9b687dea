"""Notebooks of the last release import modules by the names that they had."""

import importlib
import sys

import pytest

from attention_by_hand.course import OLD_NAMES
from autograder.judge.block_code import blocks_before, names_by_module, pieces
from autograder.sandbox.host import Sandbox


@pytest.mark.parametrize("old", [*OLD_NAMES, "autograder.progress"])
def test_old_name_is_the_new_module_and_warns(old):
    sys.modules.pop(old, None)
    with pytest.warns(FutureWarning, match=f"{old} is now "):
        module = importlib.import_module(old)
    assert module is sys.modules[module.__name__] and module.__name__ != old
    assert module.__spec__.name == module.__name__


@pytest.mark.needs_torch
def test_old_names_work_in_the_sandbox():
    with Sandbox() as worker:
        worker.hand_out(pieces(blocks_before("masking")), names_by_module(), 20)
        for line in (
            "from autograder import check, dates, plots",
            "from autograder.progress import Progress",
            "from autograder.blocks import MultiHeadAttention",
        ):
            outputs = worker.execute(line)
            assert not [o for o in outputs if o.get("output_type") == "error"], line
