"""What this machine offers: devices, their names and architectures."""

import platform
from pathlib import Path

import torch

from kernelforge_engine.exchanges import DeviceStatus
from kernelforge_engine.pool.orders import Probed


def device_name(device: torch.device) -> str:
    """The name of a device as its maker gives it."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else cpu_name()


def cpu_name() -> str:
    """The processor's model name, or its architecture where Linux does not say."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.machine()


def cuda_arch(device: int = 0) -> str:
    """The architecture of a CUDA device, as sm_90."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def _cuda() -> str:
    return f"CUDA {torch.version.cuda}" if torch.version.cuda else "the CPU only"


def probe() -> Probed:
    """Every device a kernel can be written for."""
    cpu = DeviceStatus(
        backend="cpu",
        name=cpu_name(),
        usable=True,
        detail=f"{torch.get_num_threads()} threads",
    )
    archs = {"cpu": "native"}
    if torch.cuda.is_available():
        archs["cuda"] = cuda_arch()
        gpu = DeviceStatus(
            backend="cuda",
            name=device_name(torch.device("cuda", 0)),
            usable=True,
            detail=f"{archs['cuda']}, CUDA {torch.version.cuda}",
        )
    else:
        built = f"torch {torch.__version__} is built for {_cuda()}"
        gpu = DeviceStatus(
            backend="cuda", name="none", usable=False, detail=f"no usable device; {built}"
        )
    return Probed(torch_version=str(torch.__version__), devices=(cpu, gpu), archs=archs)
