# tries: answers with objects that run code when unpickled, copied, printed or measured
# by: values: no pickle, no object travels
# layer: values
# verdict: wrong crash

import os

import numpy as np


class Trap:
    def __reduce__(self):
        return os.system, ("touch /tmp/attack-canary",)

    __repr__ = __str__ = __len__ = __iter__ = lambda self: os._exit(0)
    __copy__ = __deepcopy__ = __getstate__ = lambda *args: os._exit(0)


KINDS = [
    Trap(), np.array([Trap()], dtype=object), [Trap()], np.array(["x"]), np.array([b"x"]),
    {1: Trap()}, np.zeros(2, [("a", "f8"), ("b", "O")]), np.zeros(3, complex),
    np.array(["2020-01-01"], "M8[D]"),
]  # fmt: skip


def softmax(scores, axis=-1):
    return KINDS[scores.size % len(KINDS)]
