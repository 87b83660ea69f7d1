"""Builds `msdump-native` against the installed PyTorch: `pip install --no-build-isolation ./native`."""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
sys.path.insert(0, os.fspath(HERE))  # a build backend does not
import compiling  # noqa: E402

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise SystemExit(
        "msdump-native: expected the PyTorch that it is for in this environment, got none. Install PyTorch first, and "
        "let the build see it: pip install --no-build-isolation ./native"
    ) from None


class BuildPy(build_py):
    """Notes what it is built for, where it can be read before the compiled part is loaded."""

    def run(self):
        super().run()
        os.makedirs(self.build_lib, exist_ok=True)
        Path(self.build_lib, compiling.BUILT).write_text(compiling.built_text(), encoding="utf-8")


class BuildExt(build_ext):
    """As `msdump native` compiles it."""

    def build_extension(self, ext):
        if why := compiling.missing():
            raise SystemExit(f"msdump-native: {why}")
        try:
            compiling.compile_into(HERE / "src", Path(self.get_ext_fullpath(ext.name)), Path(self.build_temp))
        except compiling.CompileError as error:
            raise SystemExit(f"msdump-native: {error.first}\n{error.log}") from None


setup(
    name="msdump-native",
    version="0.1.0",
    description="Sees the operators of eager PyTorch, and measures their tensors, in compiled code.",
    python_requires=">=3.10",
    install_requires=["numpy"],
    py_modules=[name.removesuffix(".py") for name in compiling.MODULES],
    ext_modules=[Extension(compiling.EXTENSION, sorted(map(str, Path("src").glob("*.cpp"))))],
    cmdclass={"build_ext": BuildExt, "build_py": BuildPy},
)
