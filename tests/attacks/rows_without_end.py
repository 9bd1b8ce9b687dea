# tries: answers with arrays without elements and with 10¹² rows, lists of lists, huge integers
# by: values: sizes and depth are checked
# layer: values
# verdict: wrong

import numpy as np

NESTED = []
for _ in range(10_000):
    NESTED = [NESTED]
KINDS = [np.empty((10**12, 0)), NESTED, 10**100_000, [0] * 10**6, {"a": {"b": NESTED}}]


def softmax(scores, axis=-1):
    return KINDS[scores.size % len(KINDS)]
