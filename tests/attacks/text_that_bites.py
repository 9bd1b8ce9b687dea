# tries: raises an exception whose text holds HTML, terminal codes and half a character
# by: texts are cleaned, and escaped where they are shown
# layer: values
# verdict: crash
# never: \u001b


def softmax(scores, axis=-1):
    raise ValueError(
        "<script>alert(1)</script>\x1b]0;owned\x07\x1b[2J\ud800\u202egnp.exe](javascript:x)`"
    )
