"""Averages of neighbours, to see a trend behind noise."""

import numpy as np


def moving_average(values: np.ndarray, width: int) -> np.ndarray:
    """Average every `width` neighbouring values.

    Shapes: values `(n,)` → `(n − width + 1,)`; entry i is the mean of the values i … i + width − 1.
    float32 stays float32, integers give float64. Raises `ValueError`, which names the width, unless
    1 ≤ width ≤ n.
    """
    ### BEGIN SOLUTION
    if not 1 <= width <= len(values):
        raise ValueError(f"width must be from 1 to {len(values)}, got {width}")
    windows = np.lib.stride_tricks.sliding_window_view(values, width)
    return windows.mean(axis=-1)
    ### END SOLUTION
