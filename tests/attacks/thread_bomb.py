# tries: starts threads without end
# by: limits (processes)
# layer: limits
# verdict: crash timeout memory
# seconds: 3

import threading
import time


def softmax(scores, axis=-1):
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
