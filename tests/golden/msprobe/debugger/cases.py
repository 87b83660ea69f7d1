"""Configurations that the goldens were made with: name -> (way of script.py, configuration)."""

from __future__ import annotations

from typing import Any


def _statistics(level: str, way: str = "plain", common: Any = None, **section: Any) -> tuple[str, dict[str, Any]]:
    return way, {"task": "statistics", "level": level, "step": [1], **(common or {}), "statistics": section}


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "L0": _statistics("L0", summary_mode="statistics"),
    "L1": _statistics("L1", common={"risk_level": "ALL"}),
    "mix": _statistics("mix", common={"risk_level": "ALL"}),
    "mix-focus": _statistics("mix"),
    "mix-core": _statistics("mix", common={"risk_level": "CORE"}),
    "odd": _statistics("L1", "odd", common={"risk_level": "ALL"}),
    "precise": _statistics("L1", common={"precision": "high"}),
    # Only numbers that every processor computes to the same bits: exact ones, before the first update.
    "xor": _statistics("L0", "late", common={"step": [0]}, summary_mode="xor", list=["block"]),
    "forward-input": _statistics("mix", data_mode=["forward", "input"]),
    "backward": _statistics("mix", data_mode=["backward"]),
    "list": _statistics("L1", list=["relu", "Tensor.reshape"]),
    "list-L0": _statistics("L0", list=["head"]),
    "list-mix": _statistics("mix", list=["Module.block.Block.forward", "head"]),
    "scope-L1": _statistics("L1", scope=["Functional.linear.0.forward", "Functional.layer_norm.0.forward"]),
    "scope-L0": _statistics("L0", scope=["Module.block.Block.forward.0", "Module.head.Linear.backward.0"]),
    "scope-mix": _statistics(
        "mix", scope=["Module.block.fc.Linear.forward.0", "Functional.layer_norm.0.forward"], list=["Functional"]
    ),
    "slice": _statistics("L0", slice=[{"dim": 0, "size": 2, "begin": 1, "end": 2}]),
    "late": _statistics("mix", "late"),
    "pause": _statistics("L1", "pause"),
    "tokens": _statistics("mix", "tokens"),
    "no-extra": _statistics("mix", common={"extra_info": False}),
    "structure": ("plain", {"task": "structure", "level": "mix", "step": [1], "structure": {}}),
    "tensor": ("plain", {"task": "tensor", "level": "mix", "step": ["0-1"], "tensor": {"list": ["head", "relu"]}}),
    "relu": ("plain", {"task": "statistics", "level": "L1", "statistics": {"list": ["relu"]}}),
    "tensor-list": _statistics("L1", tensor_list=["mse_loss"]),
    "save": ("save", {"task": "tensor", "level": "debug", "tensor": {}}),
    "collectives": ("collectives", {"task": "statistics", "level": "L1", "statistics": {}}),
}
