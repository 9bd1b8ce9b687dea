# tries: looks for the gradebook, the secret and other submissions, everywhere
# by: namespaces (what is not mounted)
# layer: bubblewrap
# verdict: crash
# says: found: nothing

import os

FOUND = []
for folder, folders, files in os.walk("/"):
    folders[:] = [n for n in folders if n not in ("proc", "sys", "site-packages", "usr")]
    FOUND += [f for f in files if f in ("gradebook.db", ".autograder-secret", "pyproject.toml")]
    FOUND += [
        f for f in (*folders, *files) if f.endswith(".ipynb") or f in ("submitted", "autograded")
    ]
    FOUND += ["the corpus"] if "reads_the_gradebook.py" in files else []


def softmax(scores, axis=-1):
    raise RuntimeError(f"found: {FOUND or 'nothing'}")
