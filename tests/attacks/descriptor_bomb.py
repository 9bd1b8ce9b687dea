# tries: opens files without end
# by: limits (descriptors)
# layer: limits
# verdict: crash
# says: OSError


def softmax(scores, axis=-1):
    kept = []
    while True:
        kept.append(open("/dev/null"))
