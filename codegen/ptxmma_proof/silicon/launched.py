"""Launches each module of a folder in a process of its own, with a time limit, and tells how it ended; it needs a driver and nothing else.

``python launched.py FOLDER`` prints a line for each file: ``right``, ``wrong``, ``hangs``, or the error of the driver.  A kernel, named
``kernel``, takes two addresses: it writes 1 to the first if all is well; at the second are 128 times the number 1.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

_SECONDS = 10
_SANITIZER_SECONDS = 30
_TOOLS = ("memcheck", "racecheck", "synccheck")


class DriverError(Exception):
    """An error of the driver."""


def _call(driver: ctypes.CDLL, name: str, *arguments: object) -> None:
    code = getattr(driver, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(code, ctypes.byref(text))
        raise DriverError(f"{name}: {(text.value or b'').decode()}")


def launch(file: Path) -> str:
    """Launch the kernel of a module once, in 2 blocks: "right" or "wrong".

    Raises:
        DriverError: the driver reports an error.
    """
    text = file.read_text(encoding="utf-8")
    threads = int(re.findall(r"\.reqntid (\d+)", text)[0])
    driver = ctypes.CDLL("libcuda.so.1")
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    device, memory, numbers = ctypes.c_int(), ctypes.c_uint64(), (ctypes.c_uint32 * 256)()
    _call(driver, "cuInit", 0)
    _call(driver, "cuDeviceGet", ctypes.byref(device), 0)
    _call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    _call(driver, "cuCtxSetCurrent", context)
    _call(driver, "cuMemAlloc_v2", ctypes.byref(memory), 1024)
    numbers[128:] = [1] * 128
    _call(driver, "cuMemcpyHtoD_v2", memory, numbers, 1024)
    _call(driver, "cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text.encode()))
    _call(driver, "cuModuleGetFunction", ctypes.byref(kernel), module, b"kernel")
    source = ctypes.c_uint64(memory.value + 512)
    parameters = (ctypes.c_void_p * 2)(ctypes.addressof(memory), ctypes.addressof(source))
    _call(driver, "cuLaunchKernel", kernel, 2, 1, 1, threads, 1, 1, 0, None, parameters, None)
    _call(driver, "cuCtxSynchronize")
    _call(driver, "cuMemcpyDtoH_v2", numbers, memory, 4)
    return "right" if numbers[0] == 1 else "wrong"


def _ended(command: list[str], seconds: int) -> str:
    """The last line that a command prints; "hangs" if it takes longer than some time."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    return (done.stdout.strip().splitlines() or [f"ends with {done.returncode}"])[-1]


def main() -> None:
    """Launch one module, or tell of each module of a folder how it ended, with the sanitizer's tools where these exist."""
    target = Path(sys.argv[1])
    if target.is_file():
        try:
            print(launch(target))
        except DriverError as error:
            print(error)
        return
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    for file in sorted(target.glob("*.ptx")):
        command = [sys.executable, __file__, str(file)]
        line = f"{file.name:<45}{_ended(command, _SECONDS)}"
        for tool in _TOOLS if sanitizer and ".wrong." in file.name else ():
            line += f" | {tool}: {_ended([sanitizer or '', '--tool', tool, *command], _SANITIZER_SECONDS)}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
