# tries: prints 100 MB, shows 100 MB and raises 100 MB
# by: limits (output), texts are cut
# layer: limits
# verdict: crash
# says: yyy

import sys

print("y" * 100_000_000)
sys.stderr.write("y" * 10_000_000)


def softmax(scores, axis=-1):
    print("y" * 10_000_000)
    raise RuntimeError("y" * 100_000_000)
