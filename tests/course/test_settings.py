"""What a notebook sets globally costs nothing: not a point, in `check` or when it is graded.

Each setting is tried on all references, by the way that `check` takes, in a process of its own.
"""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.judge.verdicts import Cell, judge_cells
from autograder.student.check import verdict_on
from autograder.student.course import find_exercise
from autograder.student.engine import settings
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import call
from autograder.student.engine.settings import as_fresh
from solutions.multi_head import MultiHeadAttention
from solutions.vision_transformer import PatchEmbedding

SETTINGS = {
    "float64": "torch.set_default_dtype(torch.float64)",
    "a tensor type": "torch.set_default_tensor_type(torch.DoubleTensor)",
    "a device": "torch.set_default_device('cpu')",
    "a device, entered": "torch.device('cpu').__enter__()",
    "no gradients": "torch.set_grad_enabled(False)",
    "inference": "torch.inference_mode().__enter__()",
    "one thread": "torch.set_num_threads(1); torch.set_num_interop_threads(1)",
    "deterministic": "torch.use_deterministic_algorithms(True)",
    "deterministic or else": "torch.set_deterministic_debug_mode('error')",
    "anomalies": "torch.autograd.set_detect_anomaly(True)",
    "medium precision": "torch.set_float32_matmul_precision('medium')",
    "bfloat16 in products": "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
    "bfloat16 in products, everywhere": "torch.backends.fp32_precision = 'bf16'",
    "no denormal numbers": "torch.set_flush_denormal(True)",
    "mixed precision": "torch.autocast('cpu').__enter__()",
    "mixed precision, switched on": "torch.set_autocast_enabled('cpu', True)",
    "torch's printing": "torch.set_printoptions(precision=2, sci_mode=False)",
    "every warning of torch's": "torch.set_warn_always(True)",
    "hooks of every module": (
        "from torch.nn.modules import module\n"
        "module.register_module_forward_hook(lambda m, i, o: None)\n"
        "module.register_module_full_backward_hook(lambda m, i, o: None)"
    ),
    "tensors swapped": "torch.__future__.set_swap_module_params_on_conversion(True)",
    "tensors overwritten": "torch.__future__.set_overwrite_module_params_on_conversion(True)",
    "seeds": "torch.manual_seed(0); random.seed(0); np.random.seed(0)",
    "NumPy's errors": "np.seterr(all='raise')",
    "NumPy's errors, called": "np.seterrcall(lambda *a: 1 / 0); np.seterr(all='call')",
    "NumPy's printing": "np.set_printoptions(precision=2, suppress=True, legacy='1.13')",
    "warnings are errors": "warnings.simplefilter('error')",
    "some warnings are errors": "warnings.filterwarnings('error', category=RuntimeWarning)",
    "every warning": "warnings.simplefilter('always')",
    "little recursion": "sys.setrecursionlimit(150)",
    "much recursion": "sys.setrecursionlimit(10**6)",
    "no collector": "gc.disable()",
    "three decimals": "decimal.getcontext().prec = 3",
    "another locale": "locale.setlocale(locale.LC_ALL, 'C')",
    "short integers": "sys.set_int_max_str_digits(640)",
    "faults": "faulthandler.enable()",
    "matplotlib's": "import matplotlib; matplotlib.rcParams['axes.grid'] = True",
    "the environment": "os.environ['CUDA_VISIBLE_DEVICES'] = ''; os.chdir('/tmp')",
    "logging": "logging.captureWarnings(True); logging.basicConfig(level=logging.DEBUG)",
}
HEAD = (
    "import decimal, faulthandler, gc, locale, logging, os, random, sys, warnings\n"
    "import numpy as np\nimport torch\n"
)
ON_ALL = """
import json
from importlib import import_module
from autograder.student.check import verdict_on
from autograder.student.course import chapters, exercises_of
exercises = [(slug, each.name) for slug in chapters() for each in exercises_of(slug)]
answers = [(name, getattr(import_module("solutions." + slug), name)) for slug, name in exercises]
for line in sys.stdin:
    setting, first, step = json.loads(line)
    if not os.fork():
        exec(setting)
        for name, answer in answers[first::step]:
            verdict = verdict_on(answer, name)
            if verdict.verdict != "correct":
                print(name, verdict.score, [a.title for a in verdict.aspects if not a.passed])
        print("done", flush=True)
        os._exit(0)
    print("ended", os.wait()[1], flush=True)
"""
SAMPLE = 24  # one of so many references, for each setting others; all of them at night


@pytest.fixture(scope="module")
def fresh() -> Iterator[subprocess.Popen]:
    """A process that has imported everything, and answers each setting in a fork of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", HEAD + ON_ALL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.getcwd(), "OMP_NUM_THREADS": "1"},
    ) as running:
        yield running
        running.stdin.close()


def lost(fresh: subprocess.Popen, setting: str, first: int, step: int) -> list[str]:
    """The references, some or all, that do not earn full marks under a setting."""
    fresh.stdin.write(json.dumps([SETTINGS[setting], first, step]) + "\n")
    fresh.stdin.flush()
    *told, done, ended = iter_until(fresh.stdout, "ended")
    assert (done, ended) == ("done", "ended 0"), told
    return told


def iter_until(lines: Iterable[str], last: str) -> Iterator[str]:
    for line in lines:
        yield line.rstrip("\n")
        if line.startswith(last):
            return


@pytest.mark.share(24)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_costs_no_reference_anything(setting, fresh):
    assert lost(fresh, setting, [*SETTINGS].index(setting) % SAMPLE, SAMPLE) == []


@pytest.mark.share(24)
@pytest.mark.nightly
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_costs_none_of_all_references_anything(setting, fresh):
    assert lost(fresh, setting, 0, 1) == []


GELU = """
def gelu(x):
    return x / 2 * (1 + torch.erf(x / 2**0.5))
"""


@pytest.mark.share(24)
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_costs_nothing_when_it_is_graded(setting):
    cells = [Cell(HEAD), Cell(SETTINGS[setting]), Cell(GELU)]
    found = judge_cells(cells, [find_exercise("gelu")], {"gelu": b"any"}).verdicts["gelu"]
    assert found.verdict == "correct", found


# --- what is set meanwhile, and what comes back


def as_it_is() -> tuple:
    return (
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_anomaly_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.backends.mkldnn.matmul.fp32_precision == "bf16",
        5e-324 * 1.0 > 0,
        np.geterr(),
        [each[0] for each in warnings.filters if each[0] == "error"],
        sys.getrecursionlimit() >= 1000,
    )


def set_by_a_student() -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.use_deterministic_algorithms(True)
    torch.autograd.set_detect_anomaly(True)
    torch.set_autocast_enabled("cpu", True)
    torch.set_float32_matmul_precision("medium")
    torch.set_grad_enabled(False)
    torch.set_flush_denormal(True)
    np.seterr(all="raise")
    warnings.simplefilter("error")


@pytest.mark.share(0)
def test_an_answer_runs_as_in_a_fresh_process_and_the_students_settings_come_back():
    fresh = as_it_is()
    told = (
        "import test_settings as t\nfresh = t.as_it_is()\nt.set_by_a_student()\n"
        "own = t.as_it_is()\nseen = []\n"
        "record = t.probe(lambda x: seen.append(t.as_it_is()), t.call(1.0))\n"
        "assert record.raised is None and record.side_effects == (), record\n"
        "assert sum(a != b for a, b in zip(own, fresh)) == 10, (own, fresh)\n"
        "print(seen == [fresh], t.as_it_is() == own)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", told],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((os.path.dirname(__file__), os.getcwd()))},
    )
    assert done.stdout == "True True\n", done.stderr[-2000:]
    assert as_it_is() == fresh


def test_what_an_answer_sets_is_told_and_put_back():
    def answer(x):
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)
        torch.use_deterministic_algorithms(True)
        return x

    before = as_it_is()
    record = probe(answer, call(1.0))
    assert {*record.side_effects} == {"torch's default dtype", "torch's grad mode"}
    assert as_it_is() == before


class TenBits(TorchDispatchMode):
    """A GPU that computes products in TF32 where torch's settings allow it: ten bits of each."""

    KINDS = {"convolution": "conv", "mm": "matmul", "bmm": "matmul", "addmm": "matmul"}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kind = self.KINDS.get(func.overloadpacket.__name__)
        if kind and torch._C._get_fp32_precision_getter("cuda", kind) == "tf32":
            args = [self.cut(a) if isinstance(a, torch.Tensor) else a for a in args]
        return func(*args, **kwargs or {})

    @staticmethod
    def cut(x):
        if x.dtype != torch.float32:
            return x
        return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("answer", [PatchEmbedding, MultiHeadAttention])
@pytest.mark.parametrize("off", [True, False])
def test_no_product_is_computed_in_tf32(answer, off, monkeypatch):
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"  # convolutions have it anyway
    try:
        if not off:
            others = [each for each in settings._settings(torch) if "tf32" not in str(each.read())]
            monkeypatch.setattr(settings, "_OF_TORCH", others)
        with TenBits():
            assert (verdict_on(answer, answer.__name__).verdict == "correct") == off
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
        assert torch.backends.cudnn.allow_tf32  # can be read: its two flags agree
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def test_what_is_hidden_stays_hidden():
    with warnings.catch_warnings(record=True) as shown, np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with as_fresh():
            assert np.isinf(np.float64(1) / np.float64(0))
            warnings.warn("by an answer", stacklevel=1)
    assert not shown


def test_a_warning_of_an_answer_is_no_exception_and_one_that_it_wants_is():
    def answer(x):
        warnings.warn("on its way", stacklevel=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                warnings.warn("to catch", stacklevel=1)
            except UserWarning:
                return "caught"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert probe(answer, call(1.0)).values == ("caught",)
        with pytest.raises(UserWarning):
            warnings.warn("afterwards", stacklevel=1)
