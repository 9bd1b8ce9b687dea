"""The secret of a course, and the seeds derived from it, which make a student's inputs fresh.

TRUST BOUNDARY. The secret stays with the grader, in a file that its owner alone can read. A judging
process gets seeds, each for one exercise and one group of students; the sandbox gets neither. Who
is in a group cannot be told without the secret.
"""

import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path

SECRET = ".autograder-secret"
GROUPS = 4  # of students with the same inputs; what the references give on them is computed once


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
    """The seed of a student's inputs: HMAC-SHA256, the same at every regrade, and unguessable.

    The secret deals the students into `GROUPS` groups, which get one seed each.
    """
    return _digest(secret, group_of(secret, student), assignment, exercise)


def group_of(secret: bytes, student: str) -> int:
    """The number of a student's group."""
    return _digest(secret, student)[0] % GROUPS


def _digest(secret: bytes, *message: object) -> bytes:
    return hmac.digest(secret, json.dumps(message).encode(), hashlib.sha256)
