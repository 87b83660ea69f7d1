"""Environments of the tools that rows are measured beside, each in a folder of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = {
    "mindspore": ["mindspore==2.7.0"],
    "msprobe": ["mindstudio-probe==26.2.0", "torch==2.13.0"],
    "polygraphy": ["polygraphy==0.53.6", "onnx", "onnxruntime"],
}
# The only Python that all have wheels for.
PYTHON = "python3.11"


def interpreters(folder: Path) -> dict[str, Path]:
    """Name of each peer that is installed in `folder` -> its interpreter."""
    found = {name: folder / name / "bin" / "python" for name in REQUIREMENTS}
    return {name: python for name, python in found.items() if (folder / name / ".complete").is_file()}


def install(folder: Path) -> dict[str, Path]:
    """Make what is missing; a peer that cannot be installed is reported and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    python = shutil.which(PYTHON) or sys.executable
    for name, packages in REQUIREMENTS.items():
        home = folder / name
        if (home / ".complete").is_file():
            continue
        print(f"peers: installing {' '.join(packages)}", file=sys.stderr, flush=True)
        try:
            subprocess.run([python, "-m", "venv", "--clear", str(home)], check=True)
            subprocess.run([str(home / "bin/python"), "-m", "pip", "install", "--quiet", *packages], check=True)
        except subprocess.CalledProcessError as error:
            print(f"peers: {name} cannot be installed: {error}", file=sys.stderr, flush=True)
            continue
        (home / ".complete").touch()
    return interpreters(folder)
