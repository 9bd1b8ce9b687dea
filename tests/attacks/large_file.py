# tries: writes one file larger than any answer needs
# by: limits (file size)
# layer: limits
# verdict: crash
# says: written: no more

WRITTEN = 0
try:
    with open("/tmp/large", "wb") as stream:
        while WRITTEN < 20:
            stream.write(bytes(1 << 20))
            stream.flush()
            WRITTEN += 1
except OSError:
    pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"written: {'more' if WRITTEN > 10 else 'no more'}")
