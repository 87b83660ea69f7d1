"""Run scripts of this folder in one process, each under a dump: `python -m tests.scripts.run_all OUT NAME...`.

OUT/{name}/ is the dump of a script, OUT/{name}.json what it left: its losses, and what the dump reports.
"""

from __future__ import annotations

import json
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

import msdump
from msdump.process import sessions

HERE = Path(__file__).parent


def configuration(folder: Path) -> dict[str, Any]:
    """Everything of the first and third step, with statistics."""
    return {
        "common_dump_settings": {
            "op_debug_mode": 0,
            "dump_mode": 0,
            "path": str(folder),
            "net_name": "Net",
            "iteration": "0|2",
            "saved_data": "full",
            "input_output": 0,
            "kernels": [],
            "support_device": [0],
        },
        "e2e_dump_settings": {"enable": True, "trans_flag": True},
    }


def run(name: str, folder: Path) -> dict[str, Any]:
    """What one script left."""
    import mindspore as ms

    mode = ms.get_context("mode")
    try:
        with msdump.dump(configuration(folder)):
            left = runpy.run_path(str(HERE / f"{name}.py"))
    except Exception:  # noqa: BLE001  (whatever a script raises is what its test shows)
        return {"error": traceback.format_exc()}
    finally:
        ms.set_context(mode=mode)
    return {"losses": left.get("losses", []), "written": sessions.reports()[-1].tensors_written}


def main() -> int:
    """Run those that are named."""
    out, *names = sys.argv[1:]
    msdump.install_aliases()
    for name in names:
        result = run(name, Path(out).resolve() / name)
        (Path(out) / f"{name}.json").write_text(json.dumps(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
