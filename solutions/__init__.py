"""Reference implementations, one module a chapter: NumPy and torch, nothing else."""
