"""A GPU in the sandbox, as far as it can be told without one: what is found, let in, and refused.

The files of a GPU stand in a folder; inside the sandbox, they are where a GPU's would be.
"""

import errno
import json
import resource
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from autograder.cli import main
from autograder.sandbox import device, gpu, groups, seccomp, walls
from autograder.sandbox.bubblewrap import ENVIRONMENT, IsolationError, mounts
from autograder.sandbox.host import Sandbox
from autograder.sandbox.launcher import close_warm_processes
from autograder.sandbox.limits import Limits
from autograder.sandbox.process_end import ProcessDied

DEVICES = ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
BUS = "0000:81:00.0"


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder like the root of a machine with two GPUs."""
    files = [*(f"dev/{name}" for name in DEVICES), "usr/lib/libcuda.so.1"]
    files += [f"run/opengl-driver/lib/{name}" for name in ("libcuda.so.1", "libGL.so.1")]
    files += [f"sys/bus/pci/devices/{BUS}/{name}" for name in ("vendor", "class", "config")]
    files += [f"proc/driver/nvidia/gpus/{BUS}/information", "sys/devices/system/cpu/online"]
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    told = tmp_path / f"proc/driver/nvidia/gpus/{BUS}/information"
    told.write_text("Model: \t\t Some GPU\nBus Location: \t 0000:81:00.0\nDevice Minor: \t 0\n")
    return tmp_path


def test_the_first_gpu_is_found_by_name_and_nothing_else(machine):
    found = gpu.found(machine, folders=[])
    assert [*found.devices] == ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]
    assert [*found.libraries] == ["/run/opengl-driver/lib/libcuda.so.1"]
    of_the_gpu = [f"/sys/bus/pci/devices/{BUS}/{name}" for name in ("class", "vendor")]
    assert [*found.sys] == ["/sys/devices/system/cpu/online", *of_the_gpu]


def test_libraries_that_every_sandbox_sees_are_not_shown_twice(machine):
    own = machine / "opt/driver"
    own.mkdir(parents=True)
    (own / "libcuda.so.1").touch()
    found = gpu.found(machine, folders=["/usr/lib", "/opt/driver", ""])
    assert [*found.libraries] == ["/run/opengl-driver/lib/libcuda.so.1", "/opt/driver/libcuda.so.1"]
    assert found.environment["LD_LIBRARY_PATH"] == "/run/opengl-driver/lib:/opt/driver"


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        (["nvidia0", "nvidia1"], "no CUDA device here"),
        (["nvidia-uvm"], "/dev/nvidia-uvm is missing"),
    ],
)
def test_what_is_missing_is_told(machine, gone, told):
    for name in gone:
        (machine / "dev" / name).unlink()
    with pytest.raises(IsolationError, match=told):
        gpu.found(machine)


def test_bubblewrap_shows_the_devices_before_it_closes_dev(machine):
    found = gpu.found(machine, folders=[])
    options, readable = mounts(found.mounts())
    closed = next(i for i, pair in enumerate(zip(options, options[1:], strict=False)) if pair == ("--remount-ro", "/dev"))  # fmt: skip # noqa: E501
    devices = [options[i : i + 3] for i, option in enumerate(options) if option == "--dev-bind"]
    assert devices == [("--dev-bind", str(machine / place[1:]), place) for place in found.devices]
    assert max(i for i, option in enumerate(options) if option == "--dev-bind") < closed
    library = "/run/opengl-driver/lib/libcuda.so.1"
    at = options.index(library)
    assert options[at - 2 : at] == ("--ro-bind", str(machine / library[1:]))
    assert library in readable
    plain, _ = mounts()
    assert "--dev-bind" not in plain


def test_the_environment_makes_no_context_before_the_fork():
    assert gpu.ENVIRONMENT["PYTORCH_NVML_BASED_CUDA_CHECK"] == "1"
    assert gpu.ENVIRONMENT["ATTENTION_DEVICE"] == "cuda"
    assert ENVIRONMENT["ATTENTION_DEVICE"] == "cpu"


# --- the filter -----------------------------------------------------------------------------------


def verdict(program: list[tuple[int, int, int, int]], number: int, argument: int) -> int:
    """What a filter returns for a call with this second argument, step by step."""
    known = {0: number, 4: 0xC000003E, 24: argument}
    loaded, at = 0, 0
    while True:
        code, yes, no, operand = program[at]
        at += 1
        if code == 0x06:
            return operand
        if code == 0x20:
            loaded = known.get(operand, 0)
        elif code == 0x54:
            loaded &= operand
        else:
            holds = {0x15: loaded == operand, 0x25: loaded > operand, 0x45: bool(loaded & operand)}
            at += yes if holds[code] else no


IOCTL, ALLOWED, REFUSED = 16, 0x7FFF0000, 0x00050000 | errno.EPERM
RM_CONTROL = 0xC0000000 | 32 << 16 | ord("F") << 8 | 0x2A  # reads and writes 32 bytes
LET_THROUGH = {
    "RM_CONTROL": RM_CONTROL,
    "UVM_FREE": 34,
    "UVM_INITIALIZE": 0x30000001,
    "TCGETS": 0x5401,
}
NOT_LET_THROUGH = {
    "another type": 0xC0000000 | 32 << 16 | ord("m") << 8 | 0x2A,
    "to export memory to other devices": 0xC0000000 | 32 << 16 | ord("F") << 8 | 217,
    "to read another program's memory": 62,
    "to type on a terminal": 0x5412,
    "of a file system": 0x40086602,
}  # fmt: skip


@pytest.mark.parametrize("what", LET_THROUGH)
def test_what_computing_needs_is_let_through(what):
    program = seccomp.program("x86_64", gpu=True)
    assert verdict(program, IOCTL, LET_THROUGH[what]) == ALLOWED


@pytest.mark.parametrize("what", NOT_LET_THROUGH)
def test_every_other_request_is_refused(what):
    program = seccomp.program("x86_64", gpu=True)
    assert verdict(program, IOCTL, NOT_LET_THROUGH[what]) == REFUSED


def test_other_calls_are_judged_as_without_a_gpu():
    with_gpu, without = (seccomp.program("x86_64", gpu=gpu) for gpu in (True, False))
    for number in (*range(IOCTL), *range(IOCTL + 1, 470)):
        for argument in (0, 1, 5, 7, 0x10000, 0x7E020000, 0x40000):
            assert verdict(with_gpu, number, argument) == verdict(without, number, argument)


def test_the_filter_with_a_gpu_is_well_formed():
    for kind in ("x86_64", "aarch64"):
        made = seccomp.program(kind, gpu=True)
        assert all(0 <= skip < len(made) - n for n, step in enumerate(made) for skip in step[1:3])
        assert all(skip < 256 for step in made for skip in step[1:3])
        assert len(made) < 4096


# --- the limits, and what is seen inside ----------------------------------------------------------


def test_memory_is_limited_where_addresses_cannot_be(monkeypatch):
    limited = {}
    monkeypatch.setattr(
        walls,
        "resource",
        SimpleNamespace(
            **{name: value for name, value in vars(resource).items() if name.startswith("RLIM")},
            getrlimit=lambda what: (resource.RLIM_INFINITY, resource.RLIM_INFINITY),
            setrlimit=lambda what, values: limited.update({what: values[0]}),
        ),
    )
    monkeypatch.setattr(walls, "mapped_bytes", lambda: (30 << 20, 7 << 20))
    limits = {"memory_mb": 100, "file_mb": 1, "processes": 4, "cpu_seconds": 9}
    walls.limit_resources(limits)
    assert limited.pop(resource.RLIMIT_AS) == (130 << 20) + (8 << 30)
    everything_else = dict(limited)
    limited.clear()
    walls.limit_resources(limits, addresses=False)
    assert limited == everything_else
    assert limited[resource.RLIMIT_DATA] == 107 << 20


LOOK = """
import json, mmap, os, socket, threading
def entries(folder):
    return sorted(name for name in os.listdir(folder) if not name.isdigit())
def text(path):
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__
def write(path):
    try:
        return open(path, "w").write("name")
    except OSError as error:
        return type(error).__name__
def shared(size):
    try:
        return len(mmap.mmap(-1, size))
    except OSError as error:
        return type(error).__name__
print(json.dumps({
    "shared": shared(64 << 20),
    "named": write(f"/proc/self/task/{threading.get_native_id()}/comm"),
    "local": socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).fileno() > 2,
    "written": [write(f"/proc/{name}") for name in ("devices", "sys/kernel/pid_max")],
    "dev": [name for name in entries("/dev") if name.startswith("nvidia")],
    "nvidia0": text("/dev/nvidia0"), "uptime": text("/proc/uptime"),
    "kallsyms": text("/proc/kallsyms"), "net": os.listdir("/proc/sys"),
    "devices": "Character devices" in text("/proc/devices"),
    "status": "Seccomp" in text("/proc/self/status"),
    "vendor": text("/sys/bus/pci/devices/BUS/vendor"),
    "config": text("/sys/bus/pci/devices/BUS/config"), "device": os.environ["ATTENTION_DEVICE"],
}))
""".replace("BUS", BUS)  # fmt: skip


def test_the_sandbox_shows_what_is_let_in_and_nothing_else(monkeypatch, machine):
    found = gpu.found(machine, folders=[])
    monkeypatch.setitem(device.DEVICES, "cuda", lambda: found)
    try:
        with Sandbox(device="cuda") as own:
            (output,) = own.execute(LOOK)
        seen = json.loads(output["text"])
        with Sandbox() as plain:
            (output,) = plain.execute("import os; print(os.path.exists('/dev/nvidia0'))")
    finally:
        close_warm_processes()
    assert seen == {
        "shared": 64 << 20,
        "named": 4,
        "local": True,
        "written": ["OSError", "FileNotFoundError"],
        "dev": ["nvidia-uvm", "nvidia0", "nvidiactl"],
        "nvidia0": "dev/nvidia0",
        "uptime": "",
        "kallsyms": "",
        "net": [],
        "devices": True,
        "status": True,
        "vendor": f"sys/bus/pci/devices/{BUS}/vendor",
        "config": "FileNotFoundError",
        "device": "cuda",
    }
    assert output["text"] == "False\n"


def test_memory_shared_with_nobody_counts_like_any_other(monkeypatch, machine):
    """Without a control group, the watch alone sees it."""
    found = gpu.found(machine, folders=[])
    monkeypatch.setitem(device.DEVICES, "cuda", lambda: found)
    monkeypatch.setattr(groups, "places_here", dict)
    try:
        with (
            Sandbox(device="cuda", limits=Limits(memory_mb=200)) as own,
            pytest.raises(ProcessDied, match="200 MB of memory"),
        ):
            own.execute(
                "import mmap, time\n"
                "held = [mmap.mmap(-1, 8 << 20) for _ in range(50)]\n"
                "for one in held:\n"
                "    one.write(bytes(8 << 20))\n"
                "time.sleep(60)\n"
            )
    finally:
        close_warm_processes()


# --- without one ----------------------------------------------------------------------------------


def test_without_a_gpu_there_is_an_error_and_status_2(monkeypatch, capsys, tmp_path):
    def nothing(*_):
        return gpu_found(tmp_path)

    gpu_found = gpu.found
    monkeypatch.setattr(gpu, "found", nothing)
    answer = tmp_path / "answer.py"
    answer.write_text("def causal_mask(n_q, n_k=None, device=None):\n    pass\n")
    monkeypatch.setattr("sys.argv", ["autograder", "judge", str(answer), "--device", "cuda"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    told = capsys.readouterr().err
    assert told.strip().splitlines() == [told.strip()]
    assert "no CUDA device here" in told


def test_a_torch_for_the_cpu_alone_is_told(monkeypatch, machine):
    monkeypatch.setattr(gpu, "found", lambda: gpu.Gpu({}, {}, {}))
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(IsolationError, match="built for the CPU only"):
        gpu.require()


def test_there_are_two_kinds_of_device():
    assert device.require("cpu").name == "cpu"
    with pytest.raises(IsolationError, match="cpu, cuda, not 'tpu'"):
        device.require("tpu")
