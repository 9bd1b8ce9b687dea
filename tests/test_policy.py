"""The policy: it finds a forbidden name however it is written, and never in a right answer."""

import ast
import inspect
import json
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from autograder.exercises import chapters, exercises_of, find_exercise
from autograder.policy import TANGLED, UNREAD, Code
from solutions.mistakes import banks

ROOT = Path(__file__).resolve().parents[1]
NAMED = ("torch.*fused", "autograder.blocks.f")


def read(*cells: str) -> Code:
    code = Code()
    for cell in cells:
        code.add(ast.parse(cell), cell)
    return code


def shortcuts(*cells: str) -> list[tuple[str, int, int]]:
    return [(u.name, u.cell, u.line) for u in read(*cells).shortcuts("f", NAMED)]


FUSED = "torch.nn.fused"
USES = {
    "by its module": "import torch.nn as F\n\ndef f(q):\n    return F.fused(q, q, q)",
    "by its whole name": "import torch\n\n\ndef f(q): return torch.nn.fused(q, q, q)",
    "renamed": "from torch.nn import fused as s\n\n\ndef f(q): return s(q, q, q)",
    "with all the rest": "from torch.nn import *\n\n\ndef f(q): return fused(q, q, q)",
    "imported inside": "def f(q):\n    import torch as t\n    return (\n        t.nn.fused(q))",
    "by getattr": "import torch\ng = torch.nn\ndef f(q):\n  return getattr(g, 'fused')(q)",
    "by a sum": "import torch.nn as n\n\ndef f(q):\n return getattr(n, 'fu' + 'sed')",
    "by vars": "import torch.nn as n\n\n\ndef f(q): return vars(n)['fused'](q)",
    "by __dict__": "import torch.nn as n\n\n\ndef f(q): return n.__dict__['fused'](q)",
    "by sys.modules": "import sys\n\n\ndef f(q): return sys.modules['torch.nn'].fused(q)",
    "by importlib": (
        "from importlib import import_module as i\n\n\n"
        "def f(q): return i('torch.nn').fused(q)"
    ),
    "in a string": "import torch\n\n\ndef f(q): return eval('torch.nn.fused(q, q, q)')",
    "as a default": "import torch\n\n\ndef f(q, g=torch.nn.fused): return g(q)",
    "as an attribute": "import torch\nclass H: pass\n\nH.g = torch.nn.fused\ndef f(q): H.g(q)",
    "in a table": "import torch\n\n\nT = {'a': torch.nn.fused}\ndef f(q): T['a'](q)",
    "two at once": "import torch\n\n\na, b = 1, torch.nn.fused\ndef f(q): b(q)",
    "by assignment": "import torch\n\n\nf = torch.nn.fused",
    "in a lambda": "import torch\n\n\nf = lambda q: torch.nn.fused(q, q, q)",
    "in a method": "import torch\nclass f:\n  def forward(self, q):\n    torch.nn.fused(q)",
    "in a base": "import torch\nclass g:\n  def h(self):\n    torch.nn.fused(self)\nclass f(g): 1",
    "in a decorator": "import torch\n\n\n@torch.nn.fused\ndef f(q): pass",
    "through helpers": (
        "import torch\ndef a(q):\n\n    return torch.nn.fused(q)\n"
        "def b(q): return a(q)\ndef f(q): return b(q)"
    ),
    "in a branch": "import torch\nif 1:\n  def f(q):\n    return torch.nn.fused(q)",
    "wrapped": "import torch\ndef f(q):\n\n    return torch.nn.fused(q)\nf = print(f)",
    "by globals": "import torch\n\n\nglobals()['f'] = torch.nn.fused",
    "by globals, after a stub": (
        "import torch\ndef f(q):\n    return q\nglobals()['f'] = torch.nn.fused"
    ),
    "by a module's names": (
        "import sys, torch\n\n\nsys.modules['__main__'].__dict__['f'] = torch.nn.fused"
    ),
    "by setattr": "import sys, torch\n\n\nsetattr(sys.modules['m'], 'f', torch.nn.fused)",
    "by update": "import torch\n\n\nglobals().update(f=torch.nn.fused)",
    "by update with a table": "import torch\n\n\nglobals().update({'f': torch.nn.fused})",
    "by setitem": "import torch\n\n\nglobals().__setitem__('f', torch.nn.fused)",
    "by the walrus": "import torch\n\n\nprint(g := torch.nn.fused)\ndef f(q): return g(q)",
}  # fmt: skip


@pytest.mark.parametrize("source", USES.values(), ids=USES.keys())
def test_a_forbidden_name_is_found_however_it_is_written(source):
    assert (FUSED, 0, 4) in shortcuts(source)


def test_a_helper_in_another_cell_is_found_with_its_place():
    cells = (
        "import torch.nn as F",
        "\ndef g(q):\n    return F.fused(q)",
        "def f(q): g(q)",
    )
    assert shortcuts(*cells) == [(FUSED, 1, 3)]


BLOCKS = {
    "imported": "from autograder.blocks import f",
    "a subclass": "from autograder import blocks\nclass f(blocks.f): pass",
    "a subclass of another name": "from autograder.blocks import f as base\nclass f(base): pass",
    "a subclass of the same name, from a star": "from autograder.blocks import *\nclass f(f): pass",
    "held": "import autograder.blocks as b\nclass f:\n    def __init__(self): self.inner = b.f()",
}


@pytest.mark.parametrize("source", BLOCKS.values(), ids=BLOCKS.keys())
def test_the_courses_own_block_is_no_answer(source):
    assert {name for name, *_ in shortcuts(source)} == {"autograder.blocks.f"}


HIDDEN = {
    "in a string": "exec('def f(q): return q')",
    "by a name that is put together": "globals()[chr(102)] = len",
    "nowhere": "def g(q): return q",
}


@pytest.mark.parametrize("source", HIDDEN.values(), ids=HIDDEN.keys())
def test_an_answer_that_is_defined_where_nobody_reads_is_for_a_person_to_see(source):
    assert [name for name, *_ in shortcuts(source)] == [UNREAD]


FREE = {
    "a table of one's own": "import torch.nn as F\nT = {}\nT['f'] = F.fused\ndef f(q): return q",
    "set for something else": "import torch.nn as F\nT = {}\nT.update(g=F.fused)\ndef f(q): q",
    "in another function": "import torch.nn as F\ndef g(q): return F.fused(q)\ndef f(q): q",
    "in a test": "import torch.nn as F\ndef f(q): q\nassert f(1) == F.fused(1)",
    "replaced later": "import torch.nn as F\nf = F.fused\ndef f(q): return q",
    "an argument": "import torch.nn as F\ndef f(F): return F.fused(F)",
    "an annotation": "import torch.nn as F\ndef f(q: F.fused): return q",
    "in words": "def f(q):\n    'as torch.nn.fused'  # torch.nn.fused\n    return q",
    "one's own": "def fused(q): return q\ndef f(q): return fused(q)",
    "an attribute": "def f(q): return q.fused",
}


@pytest.mark.parametrize("source", FREE.values(), ids=FREE.keys())
def test_a_name_that_the_answer_does_not_use_is_not_found(source):
    assert shortcuts(source) == []


TAMPERING = {
    "autograder.probe": "import autograder.probe as p",
    "autograder.values": "from autograder import values",
    "autograder.records.record_tree": "import autograder\nautograder.records.record_tree = None",
    "autograder.verdict": "__import__('autograder.verdict')",
    "autograder.exercises.masking": "import autograder.exercises.masking",
    "sys._getframe": "import sys\ndef f(): sys._getframe(1)",
    "gc.get_objects": "from gc import get_objects as g\ng()",
    "ctypes": "import ctypes",
    "f_back": "try: 1 / 0\nexcept Exception as e: e.__traceback__.tb_frame.f_back",
    "__globals__": "from autograder import check\ncheck.__globals__",
}


@pytest.mark.parametrize(("name", "source"), TAMPERING.items(), ids=TAMPERING.keys())
def test_reaching_into_the_grader_is_found(name, source):
    assert name in [use.name for use in read(source).tampering]


@pytest.mark.parametrize(
    "source",
    [
        "worker = object()\nworker.x", "solutions = []\nsolutions.append(1)",
        "import gc\ngc.collect()",
        "import sys\nsys.path", "from autograder import check, plots\ncheck(len)",
        "from autograder.blocks import Transformer", "import inspect\ninspect.getsource(len)",
    ],
)  # fmt: skip
def test_what_an_honest_notebook_does_is_no_tampering(source):
    assert read(source).tampering == []


TANGLES = {
    "a name for itself": "x = 0\n" + "x = x.a\n" * 2000 + "def f(): return x.b",
    "two ways each": "\n".join(f"x{i} = x{i - 1}.a if x else x{i - 1}.b" for i in range(1, 500))
    + "\ndef f(): return x499.b",
    "branches": "if x: pass\n" + "elif x: pass\n" * 500,
    "loops": "x = y\ny = x\nf = x",
    "many ways": "".join(f"x = x.a{i} if x.b else x[x.c]\n" * 20 for i in range(50))
    + "def f(): return "
    + ".".join(["x"] * 200),
}


@pytest.mark.parametrize("source", TANGLES.values(), ids=TANGLES.keys())
def test_a_tangle_comes_to_an_end(source):
    code = read(source)
    assert {u.name for u in code.shortcuts("f", NAMED)} <= {TANGLED, UNREAD}
    assert {u.name for u in code.tampering} <= {TANGLED}


def test_what_is_too_much_to_read_is_told():
    ways = "\n".join(f"x{i} = (x{i - 1} if a else y{i - 1}).a\ny{i} = x{i}" for i in range(1, 3000))
    code = read(ways + "\ndef f(): return x2999.b + __x")
    found = [*code.tampering, *code.shortcuts("f", NAMED)]
    assert {use.name for use in found} == {TANGLED}


# --- the course is free of it -------------------------------------------------------------------

EXERCISES = [(slug, exercise.name) for slug in chapters() for exercise in exercises_of(slug)]


@cache
def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))


def used_by(module: ModuleType, definition: ast.stmt, name: str) -> list[str]:
    """The shortcuts to an exercise that an answer of ours takes."""
    code = Code()
    code.add(tree_of(module), "")
    code.add(ast.Module([definition], []), "")
    forbidden = find_exercise(name)[1].shortcuts
    return [use.name for use in code.shortcuts(definition.name, forbidden)]


def right_answers(slug: str, name: str) -> Iterator[tuple[ModuleType, ast.stmt]]:
    """The definitions of the reference and of the bank's right answers."""
    references = import_module(f"solutions.{slug}")
    known = import_module(f"solutions.mistakes.{slug}")
    (bank,) = (n for n, b in vars(known).items() if b is banks(slug)[name])
    for module in (references, known):
        for node in tree_of(module).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                marks = {ast.unparse(decorator) for decorator in node.decorator_list}
                if f"{bank}.right" in marks or (module is references and node.name == name):
                    yield module, node


# These are nothing but a block: they test that the blocks do what the references do.
THE_BLOCKS = {"encoder_of_the_blocks", "decoder_of_the_blocks", "embedding_of_the_blocks"}


@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_a_right_answer_takes_no_shortcut_unless_it_is_the_block(slug, name):
    rights = [*right_answers(slug, name)]
    assert len(rights) >= 4
    taking = {node.name for module, node in rights if used_by(module, node, name)}
    assert taking == THE_BLOCKS & {node.name for _, node in rights}


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*/*.ipynb")), ids=lambda p: p.stem)
def test_no_released_notebook_tampers(path):
    from autograder.grading.judge import parse

    code = Code()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            code.add(parse(source), source)
    assert code.tampering == []
