"""What a submission may use."""

from dataclasses import dataclass

from autograder.student.engine.runs import SECONDS


@dataclass(frozen=True)
class Limits:
    """What a submission may use. `*_seconds` are its own time (see `clock`), which is that of an
    idle machine, except `start_seconds` (see `start_up`) and `cpu_seconds` (CPU time).

    `cell_seconds` is per cell, `probe_seconds` for all calls of an exercise, `total_seconds` per
    submission, `cpu_seconds` per process; `output_bytes` per cell; `restarts` is how often a
    process may die.
    """

    memory_mb: int = 4096
    cell_seconds: float = 60.0
    probe_seconds: float = SECONDS
    total_seconds: float = 900.0
    start_seconds: float = 60.0
    cpu_seconds: int = 600
    processes: int = 64
    file_mb: int = 64
    tmp_mb: int = 256
    output_bytes: int = 4 << 20
    restarts: int = 12
