"""make.py PYTHON [NAME...]: makes the goldens anew, with a Python that has mindstudio-probe 26.2 and PyTorch 2.13."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def summary(dump: Path) -> dict[str, Any]:
    """What a tree holds, without what depends on the machine and the process: by step."""
    steps = {}
    for folder in sorted(dump.glob("step*/*")):
        content: dict[str, Any] = {"folder": folder.name.rstrip("0123456789")}
        for path in sorted(folder.glob("*.json")):
            content[path.name] = json.loads(path.read_text())
        for name in ("dump.json", "debug.json"):
            if name in content:
                content[name]["dump_data_dir"] = content[name]["dump_data_dir"] is not None
        if "stack.json" in content:
            # Names that were called from the same place, and the functions of the script there.
            content["stack.json"] = [
                [names, [_function(line) for line in stack if "script.py, line" in line]]
                for names, stack in content["stack.json"].values()
            ]
        tensors = folder / "dump_tensor_data"
        content["tensors"] = sorted(path.name for path in tensors.iterdir()) if tensors.is_dir() else None
        steps[folder.parent.name] = content
    return steps


def _function(line: str) -> str:
    return line.rpartition(", in ")[2].partition(",")[0]


def config_file(folder: Path, config: dict[str, Any]) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**config, "dump_path": str(folder / "dump")}))
    return path


def main() -> None:
    from cases import CASES

    for name, (way, config) in CASES.items():
        if name not in (sys.argv[2:] or CASES):
            continue
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            command = [sys.argv[1], str(HERE / "script.py"), str(config_file(folder, config)), way]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "STORE": str(folder / "store")}
            subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            golden = json.dumps(summary(folder / "dump"), separators=(",", ":"))
        (HERE / f"{name}.json").write_text(golden + "\n")
        print(name, len(golden))


if __name__ == "__main__":
    main()
