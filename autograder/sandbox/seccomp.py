"""The system calls that a student's process may not make: a seccomp filter, assembled here.

TRUST BOUNDARY. Installed by trusted code before any student's code runs, and permanent: the process
and all that it starts keep it. What is refused is a way out of the other walls (new namespaces,
mounts, other processes' memory, the kernel's rarely used parts), or a way around the memory limit
(memory that no process is charged for), or uses up what all programs of the grader's user share. A
call newer than this table fails like one that the kernel does not have.
"""

import ctypes
import errno
import os
import platform
import struct

# Numbers on x86-64 and on aarch64 (-1: no such call there), from the kernel's headers.
REFUSED = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # memory that no process is charged for
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "semget": (64, 190),
    "mq_open": (240, 180), "remap_file_pages": (216, 234), "io_setup": (206, 0),
    "vmsplice": (278, 75), "sendmsg": (46, 211), "sendmmsg": (307, 269),  # descriptors in flight
    # resources limited per user
    "inotify_init": (253, -1), "inotify_init1": (294, 26),
    # doors to large or rarely used parts of the kernel
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "fanotify_init": (300, 262),
    "personality": (135, 92), "modify_ldt": (154, -1), "cachestat": (451, 451),
    "lookup_dcookie": (212, 18), "uselib": (134, -1), "ustat": (136, -1), "sysfs": (139, -1),
    # the machine as a whole
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "acct": (163, 89), "syslog": (103, 116), "iopl": (172, -1),
    "ioperm": (173, -1), "vhangup": (153, 58), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip
# Reported as done, but not done; programs work without them. Larger socket buffers would be charged
# to no process, and the kernel may give each session its own share of the processors.
PRETENDED = {"setsockopt": (54, 208), "setsid": (112, 157)}
_SOCKET, _SOCKETPAIR, _FCNTL = (41, 198), (53, 199), (72, 25)
_CLONE, _CLONE3, _MMAP, _IOCTL = (56, 220), (435, 435), (9, 222), (16, 29)
_PRLIMIT = (302, 261)
_LAST = 466  # the newest call in the headers that this table was made from (Linux 6.13)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32 = 0x40000000  # x86-64's second set of numbers
_NAMESPACES = 0x7E020000  # CLONE_NEW*
_THREAD, _SAME_FILES = 0x10000, 0x400  # CLONE_THREAD, CLONE_FILES
_SHARED_ANONYMOUS, _HUGE = 0x21, 0x40000
_LOCKS = (6, 7, 37, 38)  # F_SETLK and so on: unlimited locks, charged to no process
_LEASE, _NOTIFY, _PIPE_SIZE = 1024, 1026, 1031  # F_SETLEASE: even on read-only files
_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: typing on another's terminal

# The requests to devices (ioctl) that a process with a GPU may make, from the headers of the kernel
# and of NVIDIA's open kernel modules. Left out are those for other programs' memory, tools,
# displays, and memory shared with other devices.
PLAIN_REQUESTS = {
    "TCGETS": 0x5401, "TIOCGWINSZ": 0x5413, "FIONREAD": 0x541B, "FIONBIO": 0x5421,
    "FIONCLEX": 0x5450, "FIOCLEX": 0x5451,
}  # fmt: skip
GPU_REQUESTS = {
    "CARD_INFO": 200, "REGISTER_FD": 201, "ALLOC_OS_EVENT": 206, "FREE_OS_EVENT": 207,
    "CHECK_VERSION_STR": 210, "ATTACH_GPUS_TO_FD": 212, "SYS_PARAMS": 214, "NUMA_INFO": 215,
    "WAIT_OPEN_COMPLETE": 218, "RM_ALLOC_MEMORY": 0x27, "RM_FREE": 0x29, "RM_CONTROL": 0x2A,
    "RM_ALLOC": 0x2B, "RM_DUP_OBJECT": 0x34, "RM_SHARE": 0x35, "RM_IDLE_CHANNELS": 0x41,
    "RM_VID_HEAP_CONTROL": 0x4A, "RM_MAP_MEMORY": 0x4E, "RM_UNMAP_MEMORY": 0x4F,
    "RM_ALLOC_CONTEXT_DMA2": 0x54, "RM_MAP_MEMORY_DMA": 0x57, "RM_UNMAP_MEMORY_DMA": 0x58,
    "RM_UPDATE_DEVICE_MAPPING_INFO": 0x5E,
}  # fmt: skip
UVM_REQUESTS = {
    "INITIALIZE": 0x30000001, "DEINITIALIZE": 0x30000002, "CREATE_RANGE_GROUP": 23,
    "DESTROY_RANGE_GROUP": 24, "REGISTER_GPU_VASPACE": 25, "UNREGISTER_GPU_VASPACE": 26,
    "REGISTER_CHANNEL": 27, "UNREGISTER_CHANNEL": 28, "SET_RANGE_GROUP": 31,
    "MAP_EXTERNAL_ALLOCATION": 33, "FREE": 34, "REGISTER_GPU": 37, "UNREGISTER_GPU": 38,
    "PAGEABLE_MEM_ACCESS": 39, "SET_PREFERRED_LOCATION": 42, "UNSET_PREFERRED_LOCATION": 43,
    "DISABLE_READ_DUPLICATION": 45, "UNSET_ACCESSED_BY": 47, "MIGRATE": 51,
    "MIGRATE_RANGE_GROUP": 53, "MAP_DYNAMIC_PARALLELISM_REGION": 65, "UNMAP_EXTERNAL": 66,
    "ALLOC_SEMAPHORE_POOL": 68, "VALIDATE_VA_RANGE": 72, "CREATE_EXTERNAL_RANGE": 73,
    "MM_INITIALIZE": 75,
}  # fmt: skip

_LOAD, _AND = 0x20, 0x54
_IF_EQUAL, _IF_ABOVE, _IF_ANY, _RETURN = 0x15, 0x25, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in the kernel's seccomp_data
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2


class Unsupported(OSError):
    """There is no filter for this kind of machine, or the kernel accepts none."""


def program(machine: str, gpu: bool = False) -> list[tuple[int, int, int, int]]:
    """The filter's instructions: code, steps to skip if true, if false, operand.

    With a `gpu`, the only requests to devices that are let through are those named above. Its
    libraries make a local socket when they start, and share memory with the driver, which the
    watch and the control group then limit.
    """
    if machine not in _ARCHITECTURES:
        raise Unsupported(errno.ENOSYS, f"no seccomp filter for {machine}: x86-64 and aarch64 only")
    column, architecture = _ARCHITECTURES[machine]

    def refuse(number: int) -> tuple[int, int, int, int]:
        return (_RETURN, 0, 0, _ERROR | number)

    def argument(index: int) -> tuple[int, int, int, int]:
        return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)  # its lower half

    def when(call: tuple[int, int], *steps: tuple[int, int, int, int]) -> list:
        reload = (_LOAD, 0, 0, _NUMBER)
        return [(_IF_EQUAL, 0, len(steps) + 1, call[column]), *steps, reload]

    made = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_IF_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_IF_ABOVE, 0, 1, _X32 - 1),
        (_RETURN, 0, 0, _KILL),
        (_IF_ABOVE, 0, 1, _LAST),
        refuse(errno.ENOSYS),
    ]
    for numbers in REFUSED.values():
        if numbers[column] >= 0:
            made += [(_IF_EQUAL, 0, 1, numbers[column]), refuse(errno.EPERM)]
    made += [(_IF_EQUAL, 0, 1, _CLONE3[column]), refuse(errno.ENOSYS)]  # programs then call clone
    if not gpu:
        made += [(_IF_EQUAL, 0, 1, _SOCKET[column]), refuse(errno.EAFNOSUPPORT)]
    for sockets in (_SOCKETPAIR, *[_SOCKET] * gpu):  # AF_UNIX: event loops, a GPU's libraries
        made += when(sockets, argument(0), (_IF_EQUAL, 1, 0, 1), refuse(errno.EAFNOSUPPORT))
    for numbers in PRETENDED.values():
        made += [(_IF_EQUAL, 0, 1, numbers[column]), refuse(0)]
    made += when(_CLONE, argument(0), (_IF_ANY, 0, 1, _NAMESPACES), refuse(errno.EPERM))
    made += when(  # a thread with its own open files, which would go unseen
        _CLONE,
        argument(0),
        (_AND, 0, 0, _THREAD | _SAME_FILES),
        (_IF_EQUAL, 0, 1, _THREAD),
        refuse(errno.EPERM),
    )
    for command in _LOCKS:
        made += when(_FCNTL, argument(1), (_IF_EQUAL, 0, 1, command), refuse(0))
    for command in (_LEASE, _NOTIFY, _PIPE_SIZE):
        made += when(_FCNTL, argument(1), (_IF_EQUAL, 0, 1, command), refuse(errno.EPERM))
    made += when(_MMAP, argument(3), (_IF_ANY, 0, 1, _HUGE), refuse(errno.ENOMEM))
    if not gpu:
        made += when(
            _MMAP,
            argument(3),
            (_AND, 0, 0, _SHARED_ANONYMOUS),
            (_IF_EQUAL, 0, 1, _SHARED_ANONYMOUS),
            refuse(errno.ENOMEM),
        )
    made += when(  # other processes' limits, such as the first one's; 0 means one's own
        _PRLIMIT, argument(0), (_IF_EQUAL, 1, 0, 0), refuse(errno.EPERM)
    )
    if gpu:
        made += when(_IOCTL, argument(1), *_requests(), refuse(errno.EPERM))
    for request in _TERMINAL:
        made += when(_IOCTL, argument(1), (_IF_EQUAL, 0, 1, request), refuse(errno.EPERM))
    return [*made, (_RETURN, 0, 0, _ALLOW)]


def _requests() -> list[tuple[int, int, int, int]]:
    """Let the named requests through; the number of the one being made is loaded already."""
    allow = (_RETURN, 0, 0, _ALLOW)
    steps = []
    for number in (*PLAIN_REQUESTS.values(), *UVM_REQUESTS.values()):
        steps += [(_IF_EQUAL, 0, 1, number), allow]
    steps.append((_AND, 0, 0, 0xFFFF))  # without size and direction of what is passed
    for number in GPU_REQUESTS.values():
        steps += [(_IF_EQUAL, 0, 1, ord("F") << 8 | number), allow]
    return steps


def install(gpu: bool = False) -> None:
    """Install the filter for good. Raises `OSError`, of which `Unsupported` is a subclass."""
    code = b"".join(struct.pack("=HBBI", *step) for step in program(platform.machine(), gpu))
    room = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    libc = ctypes.CDLL(None, use_errno=True)
    whole = Program(len(code) // 8, ctypes.addressof(room))
    nothing = ctypes.c_ulong(0)
    for what, value, more in (
        (_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), nothing),
        (_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(whole)),
    ):
        if libc.prctl(what, value, more, nothing, nothing):
            error = ctypes.get_errno()
            raise Unsupported(error, f"the kernel accepts no seccomp filter: {os.strerror(error)}")
