"""Servers that the tests start: a PostgreSQL, and Dask's scheduler and workers."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL server of its own, on a socket in a temporary folder; the URL of a database."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:  # `make test` installs it, so in CI this is a fault and no reason to skip
        told = "PostgreSQL is not installed: apt-get install postgresql, or run `make test`"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(told)
    bin, folder = programs[-1].parent, Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    user: list[str] = ["setpriv", "--pdeathsig=QUIT"]
    if os.getuid() == 0:  # as root, it refuses to run
        name = next(n for n in ("postgres", "nobody") if _exists(n))
        group = pwd.getpwnam(name).pw_gid
        user += [f"--reuid={name}", f"--regid={group}", "--clear-groups"]
        os.chown(folder, pwd.getpwnam(name).pw_uid, group)
    data, log = folder / "data", (folder / "log").open("wb")
    init = [bin / "initdb", "-D", data, "-U", "grader", "-A", "trust", "-E", "UTF8", "--no-sync"]
    process = None
    try:
        subprocess.run([*user, *init, "--locale=C.UTF-8"], check=True, stdout=log, cwd="/")
        serve = [bin / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses="]
        command = [*user, *serve, "-c", "fsync=off"]
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        _wait_for_postgres(folder, process)
        yield f"postgresql://grader@/postgres?host={folder}"
    finally:
        if process is not None:
            process.terminate()
            process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)


def _exists(user: str) -> bool:
    try:
        return bool(pwd.getpwnam(user))
    except KeyError:
        return False


def _wait_for_postgres(folder: Path, process: subprocess.Popen) -> None:
    for _ in range(600):
        try:
            psycopg.connect(f"host={folder} user=grader dbname=postgres").close()
            return
        except psycopg.OperationalError:
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
    raise TimeoutError((folder / "log").read_text())


class Cluster:
    """A Dask scheduler and its workers: processes of their own, over TCP on the loopback."""

    def __init__(self, folder: Path):
        self.folder, self.workers = folder, list[subprocess.Popen]()
        told = folder / "scheduler.json"
        self.scheduler = self._start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(told),
        )  # fmt: skip
        for _ in range(600):
            if told.exists() and told.read_text().endswith("}"):
                break
            assert self.scheduler.poll() is None
            time.sleep(0.1)
        self.address = json.loads(told.read_text())["address"]
        assert self.address.startswith("tcp://127.0.0.1:")

    def _start(self, program: str, *options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *options]
        with (self.folder / "dask.log").open("ab") as log:
            environment = os.environ | {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "300s"}
            return subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env=environment
            )

    def add_worker(self, threads: int = 1, nanny: bool = False) -> subprocess.Popen:
        worker = self._start(
            "dask_worker", self.address, "--nanny" if nanny else "--no-nanny",
            "--no-dashboard", "--nthreads", str(threads), "--host", "127.0.0.1",
            "--local-directory", str(self.folder),
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
