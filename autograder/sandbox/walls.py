"""The walls around a student's process, put up in the child that `warm` forks.

TRUST BOUNDARY. Trusted code that runs before any of the student's does, and in this order: close
what the child must not hold, enter its own namespaces, give up every capability, set the limits,
add Landlock and the seccomp filter. None of it can be undone from inside. If a wall cannot be put
up, that is an error, and no student's code runs; only Landlock may be missing, where the kernel
lacks it.
"""

import ctypes
import fcntl
import importlib
import mmap
import os
import re
import resource
import signal
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autograder.sandbox.launcher import Order

NAMESPACES, LANDLOCK, SECCOMP, LIMITS = "namespaces", "landlock", "seccomp", "limits"
LAYERS = (NAMESPACES, LANDLOCK, SECCOMP, LIMITS)

NEW_PROCESSES = 0x20000000
_NEW_MOUNTS, _NEW_CGROUPS, _NEW_HOST_NAME, _NEW_IPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_PROGRAMS = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE, _DETACH = 32, 4096, 16384, 1 << 18, 2
_PARENT_DEATH, _DUMPABLE, _DROP_BOUND, _AMBIENT, _CLEAR_ALL = 1, 4, 24, 47, 4
_NO_NEW_PRIVILEGES, _CAPABILITIES = 38, 0x20080522
_FEWEST_NUMBERS = 301  # RESERVED_PIDS + 1: no namespace can have fewer

_libc = ctypes.CDLL(None, use_errno=True)


def call(what: str, name: str, *arguments: object) -> None:
    """Call a function of the C library. Raises an `OSError` that says `what` went wrong."""
    if getattr(_libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def _prctl(option: int, value: int, more: int = 0) -> None:
    longs = (ctypes.c_ulong(value), ctypes.c_ulong(more), ctypes.c_ulong(0), ctypes.c_ulong(0))
    call(f"prctl {option}", "prctl", option, *longs)


def put_up(order: "Order", readable: list[str], isolated: bool) -> bool:
    """Put up the order's layers; return whether Landlock is one of them. Raises `OSError`."""
    layers, limits, landlock = order["layers"], order["limits"], False
    gpu = order.get("gpu")  # its devices, and the entries of /proc that its driver reads
    os.setsid()
    if NAMESPACES in layers:
        _leave(limits, gpu["proc"] if gpu else [])
    if isolated:
        _give_up_capabilities()
    _prctl(_PARENT_DEATH, signal.SIGKILL)  # last, because the steps above would unset it
    if LIMITS in layers:
        limit_resources(limits, addresses=gpu is None)
    if LANDLOCK in layers:
        landlock = confine(readable, [*gpu["devices"], "/proc"] if gpu else [])
    if SECCOMP in layers:
        importlib.import_module("seccomp").install(gpu=gpu is not None)
    return landlock


def hide_memory() -> None:
    """Make this process's memory unreadable to others, though other walls do so already."""
    _prctl(_DUMPABLE, 0)


def close_all_but(*keep: int) -> list[int]:
    """Close every descriptor except those to keep, which are renumbered from 3."""
    null = os.open(os.devnull, os.O_RDWR)
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in keep]
    for fd in (0, 1, 2):  # output from below Python is discarded
        os.dup2(null, fd)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in high:
            with suppress(OSError):  # the listing's own
                os.close(int(name))
    moved = [os.dup2(fd, 3 + number, inheritable=False) for number, fd in enumerate(high)]
    for fd in high:
        os.close(fd)
    return moved


def _leave(limits: Mapping[str, float], shown_of_proc: list[str]) -> None:
    """Leave the warm process's namespaces for new ones."""
    proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY)  # a /proc that can be written to
    _write("self/oom_score_adj", "500", proc)  # a student's process is killed before the grader
    kinds = _NEW_MOUNTS | _NEW_IPC | _NEW_HOST_NAME | _NEW_NETWORK | _NEW_CGROUPS
    call("cannot make its own namespaces", "unshare", kinds)
    _mount(None, "/", None, _PRIVATE | _RECURSIVE)
    options = f"size={int(limits['tmp_mb']) << 20},nr_inodes=20000,mode=0755"
    shown = {place: os.open(place, os.O_PATH | os.O_CLOEXEC) for place in _mounted_below("/tmp")}
    _mount("tmpfs", "/tmp", "tmpfs", _NO_SUID | _NO_DEVICES, options)
    for place, fd in shown.items():  # the interpreter and its packages may lie there, read-only
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.makedirs(place, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.close(os.open(place, os.O_CREAT | os.O_CLOEXEC))
        _mount(f"/proc/self/fd/{fd}", place, None, _BIND | _RECURSIVE)
        os.close(fd)
    flags = _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_PROGRAMS
    _count_numbers()
    if shown_of_proc:
        _mount("proc", "/proc", "proc", flags & ~_READ_ONLY)  # where a driver names its threads
        hide_all_but(shown_of_proc)
        for place in filter(os.path.exists, (f"/proc/{name}" for name in shown_of_proc)):
            _mount(place, place, None, _BIND)
            _mount(None, place, None, _BIND | _REMOUNT | flags)
    else:
        try:
            _mount("proc", "/proc", "proc", flags, "subset=pid")
        except OSError:  # before Linux 5.8
            _mount("proc", "/proc", "proc", flags)
    _mount("/dev/null", "/dev/zero", None, _BIND)
    if os.path.isdir("/dev/shm"):  # where multiprocessing has its locks; of /tmp's size
        os.mkdir("/tmp/.shm", 0o700)
        _mount("/tmp/.shm", "/dev/shm", None, _BIND)
    if os.path.ismount("/dev/pts"):
        call("cannot hide the terminals", "umount2", b"/dev/pts", _DETACH)
    os.chdir("/tmp")
    call("cannot make its own user namespace", "unshare", _NEW_USERS)
    _write("self/setgroups", "deny", proc)
    _write("self/uid_map", "1000 0 1", proc)
    _write("self/gid_map", "1000 0 1", proc)
    os.close(proc)
    os.makedirs("/tmp/.ipython", exist_ok=True)


def hide_all_but(shown: list[str], folder: str = "/proc") -> None:
    """Cover what a folder of /proc holds, except processes and what is shown."""
    flags = _READ_ONLY | _NO_SUID | _NO_DEVICES | _NO_PROGRAMS
    for entry in sorted(os.listdir(folder)):
        place = f"{folder}/{entry}"
        inside = [name.partition("/")[2] for name in shown if name.startswith(f"{entry}/")]
        if entry.isdigit() or os.path.islink(place) or entry in shown:
            continue
        if inside:
            hide_all_but(inside, place)
        elif os.path.isdir(place):
            _mount("tmpfs", place, "tmpfs", flags, "size=4k,mode=0555")
        else:
            _mount("/dev/null", place, None, _BIND)


def _count_numbers() -> None:
    """Limit the namespace to the fewest process numbers that the kernel allows.

    Where the grader runs as root, the kernel does not enforce the limit on processes. Before Linux
    6.14, this setting is missing, too, and a fork bomb lasts until the watch sees it.
    """
    _mount("proc", "/proc", "proc", _NO_SUID | _NO_DEVICES | _NO_PROGRAMS)
    with suppress(OSError):
        fd = os.open("/proc/sys/kernel/pid_max", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, str(_FEWEST_NUMBERS).encode())
        finally:
            os.close(fd)
    call("cannot hide the kernel's settings", "umount2", b"/proc", _DETACH)


def _mounted_below(folder: str) -> list[str]:
    """The outermost mount points below a folder."""
    with open("/proc/self/mountinfo", "rb") as lines:
        escaped = [line.split(b" ")[4] for line in lines]
    octal = re.compile(rb"\\([0-7]{3})")  # how a space is escaped there
    places = [os.fsdecode(octal.sub(lambda m: bytes([int(m[1], 8)]), name)) for name in escaped]
    found: list[str] = []
    for place in places:
        if place.startswith(f"{folder}/") and not place.startswith(tuple(f"{p}/" for p in found)):
            found.append(place)
    return list(dict.fromkeys(found))


def _mount(source: str | None, place: str, kind: str | None, flags: int, options: str = "") -> None:
    texts = [text and text.encode() for text in (source, place, kind)]
    number = ctypes.c_ulong(flags)
    call(f"cannot mount on {place}", "mount", *texts, number, options.encode() or None)


def _write(path: str, text: str, folder: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _give_up_capabilities() -> None:
    """Give up every capability, and the ability to gain one by running a program."""
    _prctl(_NO_NEW_PRIVILEGES, 1)
    _prctl(_AMBIENT, _CLEAR_ALL)
    for number in range(64):
        if _libc.prctl(_DROP_BOUND, ctypes.c_ulong(number), *[ctypes.c_ulong(0)] * 3):
            break  # there are no more, or we lack the right to drop any
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)
    call("capset", "capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def limit_resources(limits: Mapping[str, float], addresses: bool = True) -> None:
    """Set what the kernel enforces on this process and all that it starts. Cannot be undone.

    What is mapped already, by torch above all, does not count: its builds differ in that by far.
    `addresses` is false where far more of them are reserved than any limit allows, as a GPU's
    driver does. Then RLIMIT_DATA, the control group and the watch alone limit memory.
    """
    memory, file = int(limits["memory_mb"]) << 20, int(limits["file_mb"]) << 20
    mapped, data = mapped_bytes()
    settings = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, data + memory),
        (resource.RLIMIT_FSIZE, file),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_SIGPENDING, 256),  # for all of the user's processes
    ]
    if addresses:  # libraries map far more than they use
        settings.append((resource.RLIMIT_AS, mapped + memory + (8 << 30)))
    release = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if release >= (5, 14):  # earlier kernels count all of the user's, not the sandbox's alone
        one_too_many = int(limits["processes"]) + 1  # which the watch then sees
        settings.append((resource.RLIMIT_NPROC, one_too_many))
    for what, value in settings:
        hard = resource.getrlimit(what)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (limit, limit))
    cpu = int(limits["cpu_seconds"])  # first a signal that names the cause, then the end
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))


def mapped_bytes() -> tuple[int, int]:
    """What this process has mapped, as RLIMIT_AS and RLIMIT_DATA count it."""
    with open("/proc/self/statm", "rb") as numbers:
        pages = numbers.read().split()
    return int(pages[0]) * mmap.PAGESIZE, int(pages[5]) * mmap.PAGESIZE


def confine(readable: list[str], gpu: Sequence[str] = ()) -> bool:
    """Add Landlock: the system can be read, /tmp and what a GPU needs written. Return whether the
    kernel has it."""
    try:
        import sandlock
    except ImportError:
        return False
    devices = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
    policy = sandlock.Sandbox(
        fs_readable=[path for path in [*readable, "/proc", "/dev"] if os.path.exists(path)],
        fs_writable=[path for path in ("/tmp", "/dev/shm", *devices, *gpu) if os.path.exists(path)],
    )
    try:
        sandlock.confine(policy)
    except sandlock.SandboxError:
        return False
    return True


def reap(child: int, tell: int) -> None:
    """In the namespace's first process: reap until `child` ends, report how, and exit.

    In the child: return.
    """
    if child == 0:
        return
    os.closerange(0, tell)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while True:
        pid, status = os.wait()
        if pid == child:
            os.write(tell, str(os.waitstatus_to_exitcode(status)).encode())
            os._exit(0)
