#!/usr/bin/env python3
"""Registers, spills and sizes of the CUDA kernels, from a build log.

Configure with -DROPEWALK_CUDA_REPORT=ON, which makes nvcc's assembler describe each kernel, and
give the log to this tool:

    cmake --build build --target ropewalk_cuda | tee cuda.log
    tools/cuda_report.py cuda.log --library build/src/rotate/cuda/libropewalk_cuda.a

Exit status 1 where a kernel spills registers to memory or needs more than the budget.
"""

import argparse
import collections
import re
import subprocess
import sys

ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(sm_\w+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")

Kernel = collections.namedtuple("Kernel", "name architecture registers spilled")


def kernels_in(lines):
    """Every kernel that the log describes."""
    name = architecture = None
    spilled = 0
    for line in lines:
        if found := ENTRY.search(line):
            name, architecture = found.groups()
            spilled = 0
        elif found := SPILLS.search(line):
            spilled = max(spilled, int(found[2]), int(found[3]))
        elif (found := REGISTERS.search(line)) and name:
            yield Kernel(name, architecture, int(found[1]), spilled)
            name = None


def fatbin_bytes(library):
    """Bytes of device code in an object file, library or program."""
    text = subprocess.run(
        ["size", "-A", library], capture_output=True, text=True, check=True
    ).stdout
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith(".nv_fatbin"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", help="build log")
    parser.add_argument("--library", help="report the size of its device code")
    parser.add_argument("--budget", type=int, default=128, help="registers a kernel may use")
    arguments = parser.parse_args()
    with open(arguments.log, encoding="utf-8", errors="replace") as log:
        kernels = list(kernels_in(log))
    if not kernels:
        sys.exit(
            f"{arguments.log}: describes no kernel; was it built with ROPEWALK_CUDA_REPORT=ON?"
        )
    failed = False
    print(f"{'architecture':<14}{'kernels':>8}{'registers: median':>20}{'most':>6}{'spilling':>10}")
    for architecture in sorted(
        {k.architecture for k in kernels}, key=lambda a: int(re.sub(r"\D", "", a))
    ):
        own = sorted(k.registers for k in kernels if k.architecture == architecture)
        spilling = [k for k in kernels if k.architecture == architecture and k.spilled]
        print(
            f"{architecture:<14}{len(own):>8}{own[len(own) // 2]:>20}{own[-1]:>6}{len(spilling):>10}"
        )
        for kernel in spilling:
            print(f"  spills {kernel.spilled} bytes: {kernel.name}")
        failed |= bool(spilling) or own[-1] > arguments.budget
    if arguments.library:
        print(f"device code: {fatbin_bytes(arguments.library) / 1e6:.2f} MB in {arguments.library}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
