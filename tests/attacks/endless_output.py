# tries: prints without end when it is called
# by: limits (output)
# layer: limits
# verdict: crash timeout
# seconds: 3


def softmax(scores, axis=-1):
    while True:
        print("y" * 1_000_000)
