"""Builds `msdump-native` against the installed PyTorch: `pip install --no-build-isolation ./native`."""

import glob
import os

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    import torch
    from torch.utils.cpp_extension import BuildExtension, CppExtension
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise SystemExit(
        "msdump-native: expected the PyTorch that it is for in this environment, got none. Install PyTorch first, and "
        "let the build see it: pip install --no-build-isolation ./native"
    ) from None

# The sources are C++17; which standard the headers of a PyTorch need, its own tools know.
FLAGS = [
    "-O3",
    "-DNDEBUG",  # as PyTorch is built: its headers have other members without
    "-ffp-contract=off",  # products are fused with sums only where it is written
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wno-psabi",
    "-Wno-unused-parameter",
    "-g0",
]
EXTRA = os.environ.get("MSDUMP_NATIVE_FLAGS", "").split()


class BuildPy(build_py):
    """Notes what it is built for, where it can be read before the compiled part is loaded."""

    def run(self):
        super().run()
        os.makedirs(self.build_lib, exist_ok=True)
        with open(os.path.join(self.build_lib, "_msdump_native_built.py"), "w", encoding="utf-8") as file:
            file.write(f"TORCH_VERSION = {str(torch.__version__)!r}\n")


setup(
    name="msdump-native",
    version="0.1.0",
    description="Sees the operators of eager PyTorch, and measures their tensors, in compiled code.",
    python_requires=">=3.10",
    install_requires=["numpy"],
    py_modules=["msdump_native", "_msdump_native_cuda"],
    ext_modules=[
        CppExtension(
            "_msdump_native",
            sorted(glob.glob("src/*.cpp")),
            depends=sorted(glob.glob("src/*.h")),
            extra_compile_args=FLAGS + EXTRA,
            extra_link_args=EXTRA,
            define_macros=[("MSDUMP_TORCH_VERSION", f'"{torch.__version__}"')],
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False), "build_py": BuildPy},
)
