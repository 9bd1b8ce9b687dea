"""The policy: code that reaches into the grader is found, and honest code not taken for it."""

import ast
import json
import sys
from pathlib import Path

import pytest

from autograder.notebook.names import parse
from autograder.student.engine.policy import Code

ROOT = Path(__file__).resolve().parents[3]


def read(*cells: str) -> Code:
    code = Code()
    for cell in cells:
        code.add(ast.parse(cell))
    return code


ENGINE = "autograder.student.engine"
TAMPERING = {
    "autograder.student.engine.probe": "import autograder.student.engine.probe as p",
    "autograder.student.engine.values": "from autograder.student.engine import values",
    "autograder.student.engine.records": f"import autograder\n{ENGINE}.records.record_tree = None",
    "autograder.student.engine.verdict": "__import__('autograder.student.engine.verdict')",
    "attention_by_hand.exercises.masking": "import attention_by_hand.exercises.masking",
    "autograder.student.engine.observe": "__import__('autograder.student.engine.observe')",
    "autograder.student.engine.state": f"import sys\nsys.modules['{ENGINE}.state'].look = None",
    "object.__subclasses__": "object.__subclasses__()",
    "torch._C._pop_torch_function_stack": "import torch as t\nt._C._pop_torch_function_stack()",
    "f_locals": "import sys\ndef f(): return getattr(sys._getframe(1), 'f_locals')",
    "torch.library.get_kernel": "from torch.library import get_kernel as k\nk('aten::gelu', 'CPU')",
    "redispatch": "import torch\ntorch.ops.aten.gelu.default.redispatch(None)",
    "gc.get_objects": "from gc import get_objects as g\ng()",
    "ctypes": "import ctypes",
    "threading._start_new_thread": "from threading import _start_new_thread as s\ns(int, ())",
    "torch.utils._mode_utils.no_dispatch": "from torch.utils._mode_utils import no_dispatch",
    "f_globals": "try: 1 / 0\nexcept Exception as e: e.__traceback__.tb_frame.f_globals",
    "__globals__": "from autograder import check\ncheck.__globals__",
}


@pytest.mark.parametrize(("name", "source"), TAMPERING.items(), ids=TAMPERING.keys())
def test_reaching_into_the_grader_is_found(name, source):
    assert name in [use.name for use in read(source).tampering]


@pytest.mark.parametrize(
    "listed",
    [
        "[c for c in object.__subclasses__() if c.__module__ != __name__]",
        "[c for c in object.__subclasses__() if 'probe' in c.__module__]",
        "[c for c in object.__subclasses__() if kept.append(c) or c.__module__ == __name__]",
        "[c for c in object.__subclasses__() if issubclass(c, Exception)]",
        "[c for c in object.__subclasses__() if b.__module__ == __name__]",
        "{c.__name__: c for c in object.__subclasses__()}",
    ],
)
def test_all_classes_are_the_graders_too_unless_only_ones_own_are_kept(listed):
    names = [use.name for use in read(f"class K: pass\n{listed}").tampering]
    assert names == ["object.__subclasses__"]


@pytest.mark.parametrize(
    "source",
    [
        "worker = object()\nworker.x", "solutions = []\nsolutions.append(1)",
        "class A: pass\na = A()\na.worker = a.warm = a.solutions = a.ctypes = 1",
        "import numpy as np\nprint(hex(np.zeros(3).ctypes.data))",
        "import sys\nprint(sys._getframe().f_code.co_name)",
        "import inspect\nprint(inspect.stack()[1].function)",
        "class Base: pass\nclass B(Base): pass\nprint(Base.__subclasses__())",
        "class K: pass\nx = [c for c in object.__subclasses__() if c.__module__ == __name__]",
        "class K: pass\nx = {c.__name__: c for c in object.__subclasses__() if issubclass(c, K)}",
        "class K: pass\nx = [c for c in object.__subclasses__() if issubclass(c, K)]",
        "def parts(object): return [parts(c) for c in object.__subclasses__()]",
        "import gc\ngc.collect()",
        "import sys\nsys.path", "from autograder import check\ncheck(len)",
        "from attention_by_hand import plots", "import inspect\ninspect.getsource(len)",
        "from attention_by_hand.blocks import Transformer",
    ],
)  # fmt: skip
def test_what_an_honest_notebook_does_is_no_tampering(source):
    assert read(source).tampering == []


LONG = {
    "one name for every step": lambda n: "import torch\n" + "x = x.permute(1, 0)\n" * n,
    "two ways each": lambda n: "import sys\n" + "x, y = (x.a if x else sys.b), y.c\n" * n,
    "a long chain": lambda n: "import sys\nx = sys" + ".a" * (n // 20),
    "many meanings": lambda n: "".join(f"import m{i} as x\ny = x\n" for i in range(n)),
    "many stars": lambda n: "".join(f"from m{i} import *\nx\n" for i in range(n)),
    "found everywhere": lambda n: "import ctypes\n" + "ctypes.a.f_back\n" * n,
}


@pytest.mark.share(0)
@pytest.mark.parametrize("source", LONG.values(), ids=LONG.keys())
def test_twice_the_code_takes_twice_the_work(source):
    """Counted in calls, which are the same on every machine."""
    assert _calls(source(2000)) < 2.2 * _calls(source(1000))


def _calls(source: str) -> int:
    tree, count = ast.parse(source), 0

    def tick(*_: object) -> None:
        nonlocal count
        count += 1

    code = Code()
    sys.setprofile(tick)
    try:
        code.add(tree)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("path", sorted(ROOT.glob("notebooks/*/*.ipynb")), ids=lambda p: p.stem)
def test_no_released_notebook_tampers(path):
    code = Code()
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            code.add(parse("".join(cell["source"])))
    assert code.tampering == []
