"""What chapters train and measure, kept so that nobody need wait for it.

`benchmarks/checkpoints.py` makes the files, by running the chapters' own cells.
"""

import json
import lzma
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from attention_by_hand.models.safetensors import packed, unpacked

TWO_BYTES = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lp": 1}]  # how wide each number is
MEASUREMENTS = Path(__file__).with_name("checkpoints.measurements.json")
Curves = dict[str, list[float]]  # such as the loss after each step


def file_of(name: str) -> Path:
    """Where a model's parameters are kept, in half precision, with its curves."""
    return Path(__file__).with_name(f"checkpoints.{name}.bin")


def load_or_train(
    name: str, model: nn.Module, train: Callable[[nn.Module], Curves], again: bool = False
) -> tuple[Curves, float]:
    """How a training went, and its seconds of computing; it leaves its parameters in `model`.

    They come from the course's file or, with `again`, from `train`, which changes the model and
    returns curves. Raises `RuntimeError` where the file's parameters do not fit the model.
    """
    if again:
        began = time.process_time()
        curves = train(model)
        seconds, where = time.process_time() - began, "trained here"
    else:
        state, notes = unpacked(lzma.decompress(file_of(name).read_bytes()))
        model.load_state_dict(state)
        curves, seconds = json.loads(notes["curves"]), float(notes["seconds"])
        where = "trained beforehand"
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    print(f"{where}: {seconds:.0f} s, one core")
    return curves, seconds


def save(name: str, model: nn.Module, curves: Curves, seconds: float) -> None:
    """Write what `load_or_train` reads; curves keep four decimals."""
    short = {key: [round(number, 4) for number in curve] for key, curve in curves.items()}
    file = packed(model.state_dict(), seconds=f"{seconds:.0f}", curves=json.dumps(short))
    file_of(name).write_bytes(lzma.compress(file, filters=TWO_BYTES))


def load_or_measure(name: str, measure: Callable[[], Any], again: bool = False) -> Any:
    """What `measure` returns: numbers and texts, in lists and dictionaries.

    It comes from the course's file, with six decimals, or, with `again`, from `measure`. Raises
    `KeyError` for a name that the file does not have.
    """
    if again:
        began = time.process_time()
        found = measure()
        seconds, where = time.process_time() - began, "measured here"
    else:
        kept = json.loads(MEASUREMENTS.read_text(encoding="utf-8"))[name]
        found, seconds, where = kept["found"], kept["seconds"], "measured beforehand"
    print(f"{where}: {seconds:.0f} s, one core")
    return found


def save_measurement(name: str, found: object, seconds: float) -> None:
    """Write what `load_or_measure` reads."""
    kept = json.loads(MEASUREMENTS.read_text(encoding="utf-8")) if MEASUREMENTS.exists() else {}
    short = json.loads(json.dumps(found), parse_float=lambda number: round(float(number), 6))
    kept[name] = {"seconds": round(seconds), "found": short}
    lines = (f"{json.dumps(key)}: {json.dumps(kept[key])}" for key in sorted(kept))
    MEASUREMENTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
