# tries: the same as a class, which returns whatever has its name
# by: not in the process
# layer: not in the process
# verdict: crash
# says: RecursionError


class GPT:
    def __new__(cls, *arguments, **named):
        return globals()["GPT"](*arguments, **named)
