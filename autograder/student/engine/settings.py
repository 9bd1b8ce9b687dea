"""What a notebook sets globally, and a call must not depend on: for a while as in a new process.

TRUST BOUNDARY. This runs in the same process as the answer, like `probe`. Its readers and writers
are taken before an answer runs. An answer that disturbs them only harms itself: what it changes is
told by `state`, which reads by its own means.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from autograder.student.engine.state import torch_if_imported

_ERRORS: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
_DEPTH = 1000  # Python's own recursion limit
_PRODUCTS = ("matmul", "conv", "rnn")  # what a processor may compute in fewer bits


class _Setting(NamedTuple):
    """A global setting: how it is read and written, and its value in a fresh process."""

    read: Callable[[], object]
    write: Callable[..., None]
    fresh: object


def _set_precision(core: ModuleType, precision: tuple[str, ...]) -> None:
    """Set the precisions of products on a GPU, and cuDNN's older flag, which has to agree."""
    core._set_cudnn_allow_tf32(precision[1:] == ("tf32", "tf32"))
    for how, bits in zip(_PRODUCTS, precision, strict=True):
        core._set_fp32_precision_setter("cuda", how, bits)


_OF_TORCH: list[_Setting] = []


def _settings(torch: ModuleType) -> list[_Setting]:
    """torch's, taken once. Each writer takes what the reader gives."""
    if not _OF_TORCH:
        core = torch._C
        deterministic = core._set_deterministic_algorithms
        _OF_TORCH.extend(
            [
                _Setting(torch.get_default_dtype, torch.set_default_dtype, torch.float32),
                _Setting(core.is_grad_enabled, core._set_grad_enabled, True),
                _Setting(
                    lambda: (
                        core._get_deterministic_algorithms(),
                        core._get_deterministic_algorithms_warn_only(),
                    ),
                    lambda how: deterministic(how[0], warn_only=how[1]),
                    (False, False),
                ),
                _Setting(
                    lambda: (core.is_anomaly_enabled(), core.is_anomaly_check_nan_enabled()),
                    lambda how: core.set_anomaly_enabled(*how),
                    (False, True),
                ),
                _Setting(
                    lambda: core.is_autocast_enabled("cpu"),
                    lambda on: core.set_autocast_enabled("cpu", on),
                    False,
                ),
                *(
                    _Setting(
                        partial(core._get_fp32_precision_getter, "mkldnn", what),
                        partial(core._set_fp32_precision_setter, "mkldnn", what),
                        "ieee",
                    )
                    for what in _PRODUCTS
                ),
                _Setting(
                    lambda: tuple(
                        core._get_fp32_precision_getter("cuda", how) for how in _PRODUCTS
                    ),
                    partial(_set_precision, core),
                    ("ieee",) * len(_PRODUCTS),  # though torch itself allows TF32 in convolutions
                ),
                _Setting(lambda: sys.float_info.min / 2 == 0, torch.set_flush_denormal, False),
                _Setting(
                    lambda: torch._GLOBAL_DEVICE_CONTEXT.__dict__.get("device_context"),
                    lambda context: torch.set_default_device(context and context.device),
                    None,
                ),
            ]
        )
    return _OF_TORCH


@contextmanager
def as_fresh() -> Iterator[None]:
    """Set what could make a right answer fail as in a fresh process, without TF32; then restore it.

    What is harmless stays: numbers that NumPy ignores, warnings that are hidden, threads, printing.
    """
    torch, depth = torch_if_imported(), sys.getrecursionlimit()
    loud = {kind: _ERRORS[kind] for kind, how in np.geterr().items() if how in ("raise", "call")}
    with ExitStack() as stack:
        stack.enter_context(np.errstate(**loud))
        if any(action == "error" for action, *_ in warnings.filters):
            stack.enter_context(warnings.catch_warnings())
            tables: ModuleType = warnings  # whose type hides that its filters are a list
            tables.filters[:] = [each for each in warnings.filters if each[0] != "error"]
            tables._filters_mutated()
        if depth < _DEPTH:
            stack.callback(sys.setrecursionlimit, depth)
            sys.setrecursionlimit(_DEPTH)
        if torch is not None:
            if torch.is_inference_mode_enabled():
                stack.enter_context(torch.inference_mode(False))
            own = [setting.read() for setting in _settings(torch)]
            stack.callback(_write_back, own)
            for setting, value in zip(_OF_TORCH, own, strict=True):
                if value != setting.fresh:
                    setting.write(setting.fresh)
        yield


def _write_back(values: Sequence[object]) -> None:
    for setting, value in zip(_OF_TORCH, values, strict=True):
        if setting.read() != value:
            setting.write(value)
