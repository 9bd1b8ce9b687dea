# tries: calls itself by a name that cannot be read, to be helped by its own block
# by: not in the process
# layer: not in the process
# verdict: crash
# says: RecursionError


def masked_softmax(*arguments):
    return globals()["masked_softmax"](*arguments)
