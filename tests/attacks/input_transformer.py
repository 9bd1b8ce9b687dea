# tries: rewrites the source of later cells by IPython's input transformers
# by: the judge compares outside
# layer: judged outside
# verdict: wrong missing


def rewrite(lines):
    return ["3.0\n"]


if "get_ipython" in globals():
    shell = get_ipython()  # noqa: F821
    shell.input_transformers_post.append(rewrite)
    shell.input_transformers_cleanup.append(rewrite)


def softmax(scores, axis=-1):
    return scores * 0
