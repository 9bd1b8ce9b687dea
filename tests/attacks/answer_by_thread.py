# tries: returns an array that a thread goes on changing, and patches while the probe runs
# by: a snapshot is taken; the judge compares outside
# layer: judged outside
# verdict: wrong

import threading

import numpy as np

GIVEN = []


def busy():
    while True:
        for array in GIVEN:
            array[...] = 1 / array.shape[-1]


threading.Thread(target=busy, daemon=True).start()


def softmax(scores, axis=-1):
    made = np.zeros(scores.shape)
    GIVEN[:] = [made]
    return made
