"""Reads what pages and benchmarks define, and runs some of it, to compare it with references."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.publishing.chapter_runs import CELL

ROOT = Path(__file__).resolve().parents[1]


def definitions(name: str) -> dict[str, ast.stmt]:
    """The functions and classes of a page's cells or of a benchmark."""
    if name.endswith(".py"):
        codes = [(ROOT / "benchmarks" / name).read_text(encoding="utf-8")]
    else:
        codes = CELL.findall((ROOT / "book" / f"{name}.md").read_text(encoding="utf-8"))
    nodes = [node for code in codes for node in ast.parse(code).body]
    return {n.name: n for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def of_page(name: str, *wanted: str, **scope) -> dict:
    """Some of what a page's cells define, among what is given and what they import."""
    scope |= {"np": np, "torch": torch, "F": F, "nn": nn, "math": math}
    found = definitions(name)
    for each in wanted:
        exec(compile(ast.Module([found[each]], []), name, "exec"), scope)
    return scope


BATCH = pytest.mark.parametrize("batch", [1, 3])


def near(found, wanted, within=1e-5) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), atol=within)
