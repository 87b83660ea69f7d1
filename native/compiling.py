"""Compiles `_msdump_native` against the installed PyTorch, for `pip install ./native` and for `msdump native`.

It needs PyTorch, a C++ compiler and the headers of Python; neither setuptools nor ninja. Sources are compiled side by
side: as many as MAX_JOBS says, or as there are cores.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# All that belongs into the folder of an installed package beside the compiled code.
MODULES = ("msdump_native.py", "_msdump_native_cuda.py")
BUILT = "_msdump_native_built.py"
EXTENSION = "_msdump_native"
COMPILERS = ("c++", "g++", "clang++")

# The sources are C++17; which standard the headers of a PyTorch need, that PyTorch says itself.
_STANDARD = re.compile(r"C\+\+ Version: (\d+)")
_FLAGS = (
    "-DNDEBUG",  # as PyTorch is built: its headers have other members without
    "-ffp-contract=off",  # products are fused with sums only where it is written
    "-fvisibility=hidden",
    "-fwrapv",
    "-fPIC",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
    "-Wno-unused-parameter",
    "-g0",
)
# Loops over elements; and what Python calls: pybind11's templates compile a fifth faster so, and wait for Python.
_LEVELS = {"kernels.cpp": "-O3", "statistics.cpp": "-O3", "module.cpp": "-O1"}
# They read the same headers of PyTorch, which take most of the time of each: they are compiled as one.
_TOGETHER = ("observer.cpp", "tensors.cpp", "operators.cpp", "device_statistics.cpp", "elements.cpp")
# These come first: what is compiled last should not take long.
_LONGEST = ("together.cpp", "module.cpp", "kernels.cpp")
_MOST_JOBS = 8  # a compiler takes up to 1 GB of memory
_ERROR = re.compile(r"^.*\b(?:fatal )?error: .*$|^.*undefined reference.*$|^.*No space left on device.*$", re.MULTILINE)


class CompileError(Exception):
    """The compiler or the linker has failed.   first: its first error, in a line; log: all that it said"""

    def __init__(self, command: Sequence[str], log: str) -> None:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        match = _ERROR.search(log)
        self.first = match[0].strip() if match else lines[-1] if lines else f"{command[0]} has failed without a word"
        self.log = f"{shlex.join(command)}\n{log}"
        super().__init__(self.first)


def compiler() -> list[str]:
    """The command of the C++ compiler: CXX, or the first of COMPILERS; [] where there is none."""
    named = shlex.split(os.environ.get("CXX", ""))
    candidates = [named] if named else [[name] for name in COMPILERS]
    return next((each for each in candidates if shutil.which(each[0])), [])


def missing() -> str:
    """What is not there that compiling needs besides PyTorch, and how to get it; "" where all is there."""
    if not compiler():
        named = os.environ.get("CXX", "")
        got = f"no program {named}, which CXX names" if named else "none of " + ", ".join(COMPILERS)
        return f"expected a C++ compiler, got {got}. Install one: on Debian and Ubuntu, apt install g++"
    include = sysconfig.get_path("include")
    if not os.path.isfile(os.path.join(include, "Python.h")):
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"
        return (
            f"expected the headers of Python in {include}, got no Python.h. Install them: on Debian and Ubuntu, "
            f"apt install {package}"
        )
    import torch

    headers = Path(torch.__file__).parent / "include"
    if not (headers / "ATen" / "core" / "Tensor.h").is_file():
        return (
            f"expected the headers of PyTorch in {headers}, got none. Install PyTorch by pip, or its package of "
            "headers: on Debian and Ubuntu, apt install libtorch-dev"
        )
    return ""


def library() -> str:
    """The file name of the compiled code: that of this Python and platform."""
    return EXTENSION + str(sysconfig.get_config_var("EXT_SUFFIX"))


def built_text() -> str:
    """The text of BUILT: what the code is built for, where it can be read before it is loaded."""
    import torch

    return f"TORCH_VERSION = {str(torch.__version__)!r}\n"


def compile_into(sources: Path, output: Path, scratch: Path) -> None:
    """Compile all sources of a folder, and link them into a file.   scratch: a folder for what lies between

    Raises: CompileError; OSError.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    files = _units(sources, scratch)
    command, flags, extra = compiler(), _flags(), _extra()
    objects = [scratch / f"{file.stem}.o" for file in files]
    with ThreadPoolExecutor(_jobs()) as pool:
        runs = _Runs(scratch)
        for future in [
            pool.submit(
                runs.run,
                [*command, *flags, _LEVELS.get(file.name, "-O2"), *extra, "-c", str(file), "-o", str(target)],
            )
            for file, target in zip(files, objects, strict=True)
        ]:
            future.result()
    runs.run([*command, "-shared", "-pthread", *map(str, objects), *_libraries(), *extra, "-o", str(output)])


def _units(sources: Path, scratch: Path) -> list[Path]:
    """What is compiled at a time, longest first."""
    together = scratch / _LONGEST[0]
    together.write_text("".join(f'#include "{(sources / name).resolve()}"\n' for name in _TOGETHER), encoding="utf-8")
    files = [together, *(file for file in sources.glob("*.cpp") if file.name not in _TOGETHER)]
    order = {name: number for number, name in enumerate(_LONGEST)}
    return sorted(files, key=lambda file: (order.get(file.name, len(order)), file.name))


class _Runs:
    """Commands, in several threads; where one fails, the others are ended and no more begin."""

    def __init__(self, scratch: Path) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._has_failed = False
        # Messages that can be searched, and no more files in the folder for temporary ones.
        self._environment = {**os.environ, "LC_ALL": "C", "TMPDIR": os.fspath(scratch)}

    def run(self, command: Sequence[str]) -> None:
        with self._lock:
            if self._has_failed:
                return
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace", env=self._environment,
            )  # fmt: skip
            self._running.add(process)
        said = process.communicate()[0]
        with self._lock:
            self._running.discard(process)
            if process.returncode == 0 or self._has_failed:
                return
            self._has_failed = True
            for other in self._running:
                other.terminate()
        raise CompileError(command, said)


def _jobs() -> int:
    told = os.environ.get("MAX_JOBS", "")
    if told.isascii() and told.isdigit() and int(told) > 0:
        return int(told)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST_JOBS)


def _extra() -> list[str]:
    """More flags for the compiler and the linker, such as those of sanitizers."""
    return os.environ.get("MSDUMP_NATIVE_FLAGS", "").split()


def _flags() -> list[str]:
    import torch

    match = _STANDARD.search(torch.__config__.show())
    standard = "c++20" if match is not None and int(match[1]) >= 202002 else "c++17"
    headers = Path(torch.__file__).parent / "include"
    folders = [headers, headers / "torch" / "csrc" / "api" / "include", Path(sysconfig.get_path("include"))]
    # pybind11 shares its types with modules that name the same compiler; PyTorch's later ones have no such names.
    shared = ("COMPILER_TYPE", "STDLIB", "BUILD_ABI")
    names = [(name, getattr(torch._C, f"_PYBIND11_{name}", None)) for name in shared]
    return [
        f"-std={standard}",
        *_FLAGS,
        *(part for folder in folders for part in ("-isystem", str(folder))),
        *(f'-DPYBIND11_{name}="{value}"' for name, value in names if value is not None),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        f'-DMSDUMP_TORCH_VERSION="{torch.__version__}"',
    ]


def _libraries() -> list[str]:
    import torch

    folder = Path(torch.__file__).parent / "lib"
    return [f"-L{folder}", "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
