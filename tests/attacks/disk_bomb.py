# tries: fills /tmp by large files, by many files, and by one file with holes
# by: limits (file size), namespaces (a /tmp of limited size)
# layer: namespaces
# verdict: crash
# says: files: True, bytes: True


import os

written = files = 0
for number in range(100):
    try:
        with open(f"/tmp/{number}", "wb") as stream:
            for _ in range(64):
                written += stream.write(bytes(1 << 20))
    except OSError:
        pass
for number in range(100_000):
    try:
        os.close(os.open(f"/tmp/empty{number}", os.O_CREAT | os.O_WRONLY))
        files += 1
    except OSError:
        break
size = sum(os.stat(f"/tmp/{n}").st_blocks * 512 for n in range(100) if os.path.exists(f"/tmp/{n}"))


def softmax(scores, axis=-1):
    raise RuntimeError(f"files: {files < 30_000}, bytes: {size <= 33 << 20}, all in bounds")
