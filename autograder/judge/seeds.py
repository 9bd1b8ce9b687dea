"""The secret of a course, and the seeds derived from it, which make a student's inputs fresh.

TRUST BOUNDARY. The secret stays with the grader, in a file that its owner alone can read. A judging
process gets seeds, each for one exercise of one submission; the sandbox gets neither.
"""

import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

SECRET = ".autograder-secret"


def secret_of(root: Path) -> bytes:
    """The course's secret, made on first use and readable by its owner alone."""
    path = root / SECRET
    if not path.exists():
        new = root / f"{SECRET}.{os.getpid()}.{secrets.token_hex(4)}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="ascii") as stream:
            stream.write(secrets.token_hex(32) + "\n")
        with suppress(FileExistsError):  # another process was first
            os.link(new, path)
        new.unlink()
    text = path.read_text(encoding="ascii").strip()
    if len(text) < 32:
        raise ValueError(f"{path} does not hold a secret; remove it to have a new one made")
    return text.encode("ascii")


def seed_for(secret: bytes, student: str, assignment: str, exercise: str) -> bytes:
    """The seed of a student's inputs: HMAC-SHA256, the same at every regrade, and unguessable."""
    message = json.dumps([student, assignment, exercise]).encode()
    return hmac.digest(secret, message, hashlib.sha256)
