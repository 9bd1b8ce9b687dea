"""What a GPU needs inside the sandbox, found on this machine by name, and nothing else.

TRUST BOUNDARY. Trusted code of the judging process. It decides what of the driver exists inside:
one GPU's device file and the two that every use of it needs, the driver's libraries unless the
sandbox shows them anyway, and some entries of /proc and /sys that the libraries read. The driver
behind the device files is a large piece of kernel code, which hostile code can then reach;
`seccomp` lets through only the requests that computing needs. SECURITY.md says what risk remains.

Written from the driver's and torch's documentation, and tried on one GPU: see SECURITY.md.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from autograder.sandbox.bubblewrap import IsolationError, Mounts
from autograder.student import course

SHARED_DEVICES = ("nvidiactl", "nvidia-uvm")  # beside nvidia0, nvidia1, …
LIBRARIES = (
    "libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so", "libnvidia-nvvm.so",
    "libnvidia-gpucomp.so",
)  # fmt: skip
FOLDERS = ("run/opengl-driver/lib", "opt/nvidia/lib64")  # and those of LD_LIBRARY_PATH
SHOWN = ("usr", "lib", "lib32", "lib64")  # what every sandbox sees of the system
PROC = ("driver/nvidia", "devices")
SYS = ("devices/system/node/online", "devices/system/cpu/online")
SYS_OF_A_GPU = ("class", "device", "vendor", "numa_node", "local_cpulist")
ENVIRONMENT = {
    course.variable("DEVICE"): "cuda",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # then looking for a GPU creates no context
    "CUDA_CACHE_DISABLE": "1",
}


@dataclass(frozen=True)
class Gpu:
    """The files of one GPU and its driver: paths on this machine, keyed by path in the sandbox.

    Its memory is not divided, so one submission uses it at a time.
    """

    name: ClassVar = "cuda"
    at_once: ClassVar = 1
    can_be_lost: ClassVar = True

    devices: Mapping[str, Path]
    libraries: Mapping[str, Path]
    sys: Mapping[str, Path]

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that a sandbox with this GPU has in addition."""
        folders = dict.fromkeys(os.path.dirname(place) for place in self.libraries)
        path = {"LD_LIBRARY_PATH": ":".join(folders)} if folders else {}
        return ENVIRONMENT | path

    @property
    def order(self) -> Mapping[str, list[str]]:
        """What the walls inside the sandbox need to know."""
        return {"devices": list(self.devices), "proc": list(PROC)}

    def mounts(self) -> Mounts:
        """What bubblewrap has to mount for it, as (how, what, where)."""
        read = {**self.libraries, **self.sys}
        return (
            *(("--dev-bind", str(path), place) for place, path in self.devices.items()),
            *(("--ro-bind", str(path), place) for place, path in read.items()),
        )


def found(root: Path = Path("/"), folders: Iterable[str] | None = None) -> Gpu:
    """The first GPU of this machine. Raises `IsolationError` if none can be used.

    `folders` are searched for the driver's libraries (default: those of LD_LIBRARY_PATH).
    """
    numbered = [path for path in (root / "dev").glob("nvidia*") if path.name[6:].isdigit()]
    if not numbered:
        raise IsolationError("there is no CUDA device here (no /dev/nvidia0): use --device cpu")
    first = min(numbered, key=lambda path: int(path.name[6:]))
    devices = [first, *(root / "dev" / name for name in SHARED_DEVICES)]
    missing = [f"/dev/{path.name}" for path in devices if not path.exists()]
    if missing:
        raise IsolationError(
            f"the GPU cannot be used: {missing[0]} is missing (sudo nvidia-modprobe -u creates it)"
        )
    return Gpu(
        {f"/dev/{path.name}": path for path in devices},
        _libraries(root, folders),
        _of_sys(root, int(first.name[6:])),
    )


def _libraries(root: Path, folders: Iterable[str] | None) -> dict[str, Path]:
    """The driver's libraries outside the folders that every sandbox sees."""
    if folders is None:
        folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    places = dict.fromkeys(name.strip("/") for name in (*FOLDERS, *folders) if name.strip("/"))
    wanted = tuple(f"{name}{end}" for name in LIBRARIES for end in ("", ".*"))
    return {
        f"/{place}/{path.name}": path.resolve()
        for place in places
        if place.split("/")[0] not in SHOWN
        for pattern in wanted
        for path in sorted((root / place).glob(pattern))
    }


def _of_sys(root: Path, minor: int) -> dict[str, Path]:
    """What the libraries read in /sys about the machine and the GPU with this number."""
    shown = [f"sys/{name}" for name in SYS]
    for told in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        lines = told.read_text(encoding="utf-8", errors="replace").splitlines()
        if f"DeviceMinor:{minor}" in ("".join(line.split()) for line in lines):
            shown += [f"sys/bus/pci/devices/{told.parent.name}/{name}" for name in SYS_OF_A_GPU]
    return {f"/{name}": root / name for name in shown if (root / name).exists()}


def require() -> Gpu:
    """This machine's GPU, if torch can use it. Raises `IsolationError` if not."""
    gpu = found()
    import torch

    if torch.version.cuda is None:  # asks nothing of the driver
        raise IsolationError(
            f"torch {torch.__version__} is built for the CPU only: install its CUDA build, "
            "or use --device cpu"
        )
    return gpu
