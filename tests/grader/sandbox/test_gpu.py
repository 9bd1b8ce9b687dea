"""Where there is a CUDA device, the judge can use it; what is expected of it comes from the CPU."""

import _thread
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from autograder.judge import runner
from autograder.judge.judge_file import judge_file
from autograder.judge.reference import records
from autograder.sandbox.gpu import Gpu
from autograder.sandbox.host import Sandbox
from autograder.sandbox.limits import Limits
from autograder.student.course import chapters
from autograder.student.engine.observe import Observer, _hooks
from autograder.student.engine.runs import RaisedException, Record, call, tensor
from autograder.student.engine.simulated_device import ELSEWHERE
from tests.grader.student.test_simulated_device import ACCEPTED, NUMBERS, REFUSED

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.gpu
@pytest.mark.parametrize("slug", chapters())
def test_the_references_earn_full_marks_on_a_gpu(slug):
    result = judge_file(ROOT / "solutions" / f"{slug}.py", seed=b"a seed", device="cuda")
    assert result["device"] == "cuda"
    assert result["score"] == result["points"] > 0


def _by_the_trusted_side(answer, run, device="cpu"):
    return records(answer, [[run]], device)[0][0]


def test_what_is_expected_of_a_gpu_is_computed_on_the_cpu_in_float64():
    def thirds(x):
        return x / 3, x.dtype.itemsize, (x > 0)

    run = call(tensor([1.0, 2.0], "float32"))
    here, there = (_by_the_trusted_side(thirds, run, device) for device in ("cpu", "cuda"))
    assert [r.value[0].device for r in (here, there)] == ["cpu", "cuda"]
    assert there.value[0].dtype == "float32"
    assert there.value[1:] == (4, there.value[2])
    exact = np.array([1 / 3, 2 / 3])
    assert (there.value[0].data == exact.astype(np.float32)).all()


def test_a_number_that_depends_on_the_dtype_stays_that_of_float32():
    def least(x):
        return x * 0 + torch.finfo(x.dtype).min

    found = _by_the_trusted_side(least, call(tensor([1.0], "float32")), "cuda")
    assert found.value.data.tolist() == [np.finfo(np.float32).min]


def test_what_pretends_is_no_gpu():
    run = replace(call(tensor([1.0], "float32")), simulated=True)
    assert _by_the_trusted_side(torch.exp, run, "cuda").values == (ELSEWHERE,)


@pytest.mark.gpu
def test_the_sandbox_has_a_gpu_and_the_warm_process_no_context():
    with Sandbox(device="cuda") as own:
        (output,) = own.execute(
            "import torch\n"
            "print(torch.cuda.is_initialized(), torch.ones(2, device='cuda').sum().item())"
        )
    assert output["text"] == "False 2.0\n"


@pytest.mark.gpu
def test_an_answer_that_forgets_the_device_fails_on_a_gpu_and_on_what_pretends(tmp_path):
    """What the simulation says of a GPU is so."""
    answer = tmp_path / "answer.py"
    answer.write_text(
        "import torch\n"
        "def padding_mask(lengths, max_len=None):\n"
        "    n = int(lengths.max()) if max_len is None else max_len\n"
        "    if int(lengths.max()) > n:\n"
        "        raise ValueError(f'{int(lengths.max())} > {n}')\n"
        "    return (torch.arange(n) < lengths[:, None])[:, None, None]\n"
    )
    for device in ("cpu", "cuda"):
        (found,) = judge_file(answer, seed=b"a seed", device=device)["exercises"].values()
        failed = {aspect["title"] for aspect in found["aspects"] if not aspect["passed"]}
        assert "runs on the device of its inputs" in failed
        assert (device == "cuda") == ("a mask from lengths" in failed)


class _Fails:
    """A sandbox in which the run `at` loses the GPU, for good."""

    used, made = 0.0, 0

    def __init__(self, *options):
        type(self).made += 1

    def probe_all(self, name, runs, *_):
        at = runs.index(2) + 1 if 2 in runs else len(runs)
        lost = Record(
            (), RaisedException(("AcceleratorError", "RuntimeError"), "CUDA error: no", "", "call")
        )
        return [lost if run == 2 else Record((run,)) for run in runs[:at]]

    def close(self):
        pass


@pytest.mark.parametrize(("device", "processes"), [("cuda", 2), ("cpu", 1)])
def test_after_a_run_that_loses_the_gpu_the_rest_is_made_in_another_process(
    monkeypatch, device, processes
):
    monkeypatch.setattr(runner, "Sandbox", type("Fails", (_Fails,), {"made": 0}))
    runs = [1, 2, 3, 4] if device == "cuda" else [1, 3, 4]
    with runner.Runner("none", Limits(), device, "__main__", []) as one:
        records = one.probe("padding_mask", runs, None, (), frozenset())
    assert [record.raised is None for record in records] == [run != 2 for run in runs]
    assert runner.Sandbox.made == processes


@pytest.mark.parametrize("simulated", [True, False])
def test_only_what_is_judged_on_devices_is_run_on_one(monkeypatch, simulated):
    asked = {}
    own = object.__new__(Sandbox)
    own.device, own.limits = Gpu({}, {}, {}), Limits()
    monkeypatch.setattr(own, "_ask", lambda request, seconds: iter(asked.update(request) or ()))
    run = call(tensor([1.0], "float32"))
    own.probe_all("softmax", [run, replace(run, simulated=simulated)])
    assert asked["device"] == ("cuda" if simulated else "cpu")


@pytest.mark.gpu
def test_an_index_after_which_a_process_cannot_use_the_gpu_costs_what_it_does_on_the_cpu(tmp_path):
    answer = tmp_path / "answer.py"
    answer.write_text(
        "import torch\n"
        "def padding_mask(lengths, max_len=None):\n"
        "    n = int(lengths.max()) if max_len is None else max_len\n"
        "    if int(lengths.max()) > n:\n"
        "        torch.zeros(1, device=lengths.device)[lengths + 9].cpu()\n"
        "    kept = torch.arange(n, device=lengths.device) < lengths[:, None]\n"
        "    return kept[:, None, None]\n"
        "def causal_mask(n_q, n_k=None, device=None):\n"
        "    n_k = n_q if n_k is None else n_k\n"
        "    return torch.ones(n_q, n_k, dtype=torch.bool, device=device).tril(n_k - n_q)\n"
    )
    here, there = (
        judge_file(answer, seed=b"a seed", device=device)["exercises"] for device in ("cpu", "cuda")
    )
    assert [e["score"] for e in here.values()] == [e["score"] for e in there.values()]
    assert there["causal_mask"]["score"] == there["causal_mask"]["points"]
    assert 0 < there["padding_mask"]["score"] < there["padding_mask"]["points"]


@pytest.mark.gpu
@pytest.mark.parametrize("what", REFUSED)
def test_a_gpu_refuses_what_the_simulation_refuses(what):
    with pytest.raises((RuntimeError, TypeError)):
        REFUSED[what][1](NUMBERS.cuda())


@pytest.mark.gpu
@pytest.mark.parametrize("what", ACCEPTED)
def test_a_gpu_accepts_what_the_simulation_accepts(what):
    ACCEPTED[what](NUMBERS.cuda())


def test_what_has_no_caller_in_python_is_noted():
    """As where autograd computes for a GPU, in a thread of its own."""
    observer, done = Observer(("torch.nn.*",)), threading.Event()

    def hook():
        observer.saw("torch.nn.functional.softmax")
        done.set()

    _thread.start_new_thread(hook, ())
    assert done.wait(10)
    assert observer.seen == {"torch.nn.functional.softmax": ""}


def test_an_operation_without_a_caller_in_python_runs_unhindered():
    """As those of a backward pass on a GPU do."""
    observer, numbers = Observer(("gelu",)), torch.ones(2)
    with observer.watching():
        (*_, kernels) = _hooks(below=True)
        zero = torch.ops.aten.zero_.default
        _thread.start_new_thread(kernels.mode.__torch_dispatch__, (zero, (), (numbers,)))
        for _ in range(1000):
            if not numbers.any():
                break
            time.sleep(0.01)
    assert not numbers.any()
