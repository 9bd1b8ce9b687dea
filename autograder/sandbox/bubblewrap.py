"""What bubblewrap lets a sandbox see: the options for its namespaces, mounts and environment.

TRUST BOUNDARY. Trusted code of the judging process. It decides what exists inside: the system's
libraries, the interpreter, its packages and the student's side of `autograder`, all read-only, and
a /tmp. What is not mounted here cannot be read, even if everything else fails.
"""

import importlib.util
import os
import shutil
import sys
import sysconfig
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from autograder.sandbox import seccomp, walls, warm, watch, worker
from autograder.sandbox.student_package import parts_in_a_sandbox
from autograder.student import course

COURSE = "/course"  # where the student's side is mounted
ENVIRONMENT = {
    "HOME": "/tmp", "USER": "student", "LOGNAME": "student", "LANG": "C.UTF-8", "TZ": "UTC",
    "PATH": "/usr/bin:/bin", "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "PIP_NO_INDEX": "1",  # it ends at once, where it would look for a network
    "IPYTHONDIR": "/tmp/.ipython", course.variable("DEVICE"): "cpu",
}  # fmt: skip


class IsolationError(RuntimeError):
    """Student code cannot be isolated on this machine. The message says what to do."""


def bwrap() -> str:
    """The path of bubblewrap. Raises `IsolationError` if it is missing."""
    found = shutil.which("bwrap")
    if found is None:
        raise IsolationError(
            "bubblewrap is missing: sudo apt-get install bubblewrap "
            "(or, for files that you trust, --isolation none)"
        )
    return found


# The warm process is root of bubblewrap's user namespace, so that it can make namespaces for its
# children; it needs the second capability to map a user in them, and the third to see how much of a
# child's memory is shared with others. A child has none of these.
NAMESPACES = (
    "--unshare-user", "--unshare-all", "--uid", "0", "--gid", "0", "--hostname", "sandbox",
    "--new-session", "--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETFCAP",
    "--cap-add", "CAP_SYS_PTRACE",
    "--clearenv", "--chdir", "/tmp",
)  # fmt: skip


Mounts = tuple[tuple[str, str, str], ...]


@cache
def mounts(more: Mounts = ()) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """bubblewrap's options for what is visible inside, and the paths that are readable there.

    `more` is mounted as well: how, what, and where.
    """
    options = ["--proc", "/proc", "--dev", "/dev"]
    options += [part for mount in more if mount[2].startswith("/dev/") for part in mount]
    options += ["--remount-ro", "/dev"]
    options += ["--size", str(16 << 20), "--tmpfs", "/tmp"]  # first: the rest may lie in /tmp
    readable: list[str] = [COURSE]

    def show(path: str | Path, at: str | None = None) -> None:
        at = at or str(path)
        options.extend(["--ro-bind", str(path), at])
        readable.append(at)

    show("/usr")
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"):
        if os.path.islink(name):
            options += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            show(name)
    for name in ("/etc/ld.so.cache", "/etc/fonts", "/etc/alternatives", "/etc/localtime"):
        if os.path.exists(name):
            show(name)
    for prefix in dict.fromkeys(_prefixes()):
        if prefix.is_relative_to("/usr"):
            continue
        for name in ("bin", "lib", "lib64", "pyvenv.cfg"):  # nothing else that lies there
            if (prefix / name).exists():
                show(prefix / name)
    for site in map(Path, sys.path):
        shown = any(site.is_relative_to(path) for path in readable)
        if site.name in ("site-packages", "dist-packages") and site.is_dir() and not shown:
            show(site)
    for folder in _hidden():
        if any(folder.is_relative_to(path) for path in readable):
            options += ["--size", "4096", "--tmpfs", str(folder), "--remount-ro", str(folder)]
    for name, path in parts_in_a_sandbox().items():
        show(path, f"{COURSE}/{name}")
        cached = Path(importlib.util.cache_from_source(path)) if path.suffix == ".py" else None
        if cached and cached.exists():
            show(cached, f"{COURSE}/{Path(name).parent}/__pycache__/{cached.name}")
    for module in (warm, watch, walls, worker, seccomp):
        show(str(module.__file__), f"{COURSE}/{module.__name__.rpartition('.')[2]}.py")
    for how, what, place in more:
        if not place.startswith("/dev/"):
            options += [how, what, place]
            readable.append(place)
    for path in _font_lists():
        options += ["--ro-bind", str(path), f"/tmp/.cache/matplotlib/{path.name}"]
    options += ["--remount-ro", "/"]
    return tuple(options), tuple(readable)


def _prefixes() -> list[Path]:
    """Where the interpreter and its environment live, under every name that they have."""
    prefixes = [Path(sys.base_prefix), Path(sys.prefix), Path(sys.base_exec_prefix)]
    executable = Path(sys.executable)
    prefixes.append(executable.resolve().parent.parent)
    return [p for prefix in prefixes for p in (prefix, prefix.resolve())]


def _hidden() -> list[Path]:
    """Folders of this project that would be visible if they were installed as packages."""
    masked = ("autograder", "solutions", course.package())
    sites = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    sites |= {path for path in sys.path if path}
    folders = {Path(site).resolve() / name for site in sites for name in masked}
    for name in masked:
        spec = PathFinder.find_spec(name)
        folders |= {
            Path(path).resolve() for path in (spec and spec.submodule_search_locations) or ()
        }
    return sorted(folder for folder in folders if folder.is_dir())


def _font_lists() -> list[Path]:
    """matplotlib's list of the fonts here: without it, each submission would search for them."""
    cache_folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return sorted(Path(cache_folder, "matplotlib").glob("fontlist-*.json"))


def why_not_up(words: str, otherwise: str) -> str:
    """Why no sandbox could be made, from what bubblewrap wrote to standard error, if anything."""
    last = words.strip().splitlines()[-1].strip() if words.strip() else otherwise
    if not any(word in last for word in ("namespace", "uid map", "Operation not permitted")):
        return f"the sandbox did not start: {last}"
    return (
        f"bubblewrap cannot make a sandbox here ({last}). User namespaces must be allowed: "
        "sudo sysctl -w kernel.unprivileged_userns_clone=1 "
        "kernel.apparmor_restrict_unprivileged_userns=0"
    )
