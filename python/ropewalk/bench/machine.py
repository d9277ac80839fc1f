"""What a number was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import torch


def cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def cpu_cache_bytes() -> int:
    """The largest cache that the system describes; 32 MiB where it describes none."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KMG")) * factor)
    return max(sizes) or 32 << 20


def cache_bytes(device: torch.device) -> int:
    """Bytes of the cache in front of the memory of a device."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).L2_cache_size
    return cpu_cache_bytes()


def _ask_nvidia_smi(device: torch.device) -> dict[str, object]:
    fields = ("driver_version", "clocks.sm", "clocks.mem", "clocks.max.mem", "power.limit",
              "temperature.gpu")  # fmt: skip
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits",
               f"--id={device.index or 0}"]  # fmt: skip
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return {}
    values = (value.strip() for value in answer.stdout.split(","))
    names = ("driver", "sm_clock_mhz", "memory_clock_mhz", "memory_clock_max_mhz", "power_limit_w",
             "temperature_c")  # fmt: skip
    return dict(zip(names, values, strict=False))


def peak_bytes_per_second(device: torch.device) -> float | None:
    """Of the memory of a GPU, from its clock and bus width; None where PyTorch does not tell."""
    if device.type != "cuda":
        return None
    properties = torch.cuda.get_device_properties(device)
    clock_khz = getattr(properties, "memory_clock_rate", 0)
    width_bits = getattr(properties, "memory_bus_width", 0)
    return 2.0 * clock_khz * 1e3 * width_bits / 8 or None


def facts(device: torch.device) -> dict[str, object]:
    import ropewalk

    found: dict[str, object] = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "device": device.type,
        "cpu": cpu_name(),
        "processors": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "ropewalk": ropewalk.__version__,
        "cache_bytes": cache_bytes(device),
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        found |= {
            "gpu": properties.name,
            "compute_capability": f"{properties.major}.{properties.minor}",
            "multiprocessors": properties.multi_processor_count,
            "memory_bytes": properties.total_memory,
            "peak_bytes_per_second": peak_bytes_per_second(device),
            "cuda": torch.version.cuda,
        } | _ask_nvidia_smi(device)
    return found
