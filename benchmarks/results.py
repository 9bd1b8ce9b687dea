"""What a benchmark stores: its runs, and by which script, when and with what they were made."""

import datetime
import json
import os
import platform
from pathlib import Path
from typing import Any

import torch


def made_by(script: str, **more: Any) -> dict[str, Any]:
    """Where results come from: the script with its arguments, the day and the machine."""
    return {
        "script": script,
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, CPU, one thread a model",
        "python": platform.python_version(),
        "torch": torch.__version__,
        **more,
    }


def runs_in(path: Path) -> Any:
    """The runs that a file holds; none where there is no such file."""
    return json.loads(path.read_text(encoding="utf-8"))["runs"] if path.exists() else []


def store(path: Path, made: dict[str, Any], runs: Any, **more: Any) -> None:
    """Write results as JSON, with a line for each run."""
    write(path, made=made, **more, runs=runs)


def write(path: Path, **parts: Any) -> None:
    """Write the parts as JSON, with a line for each entry of a part."""
    text = ",\n".join(f"{_json(name)}: {_in_lines(part)}" for name, part in parts.items())
    path.write_text("{" + text + "}\n", encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _in_lines(part: Any) -> str:
    if isinstance(part, dict):
        return "{\n" + ",\n".join(f"{_json(key)}: {_json(part[key])}" for key in part) + "}"
    if isinstance(part, list):
        return "[\n" + ",\n".join(map(_json, part)) + "]"
    return _json(part)
