# tries: allocates without end
# by: limits (memory)
# layer: limits
# verdict: memory


def softmax(scores, axis=-1):
    kept = []
    while True:
        kept.append(bytearray(1 << 28))
