"""The grader tested kind by kind: one wrong answer of each kind for every exercise, each judged.

Each is the reference, wrong under one condition: for a single key, say, or for float32 with one of
the kernels. One that keeps full marks shows inputs that are too uniform.

Run: python -m benchmarks.holes [--only EXERCISE …].
"""
