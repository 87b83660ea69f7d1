"""What GE has no attribute for and torch needs to lay a tensor out: hints to kernels, see GeOp."""

from __future__ import annotations

from typing import Any

import torch


def hints(memory_format: Any = None, device: Any = None) -> dict[str, Any]:
    """Hints of a converter: nothing for the CPU and for the layout that an operator chooses itself."""
    found: dict[str, Any] = {}
    if memory_format is not None and memory_format is not torch.preserve_format:
        found["memory_format"] = str(memory_format).removeprefix("torch.")
    if device is not None and torch.device(device).type != "cpu":
        found["device"] = str(device)
    return found


def memory_format(name: str) -> torch.memory_format:
    """The other way round; "" is as the input lies."""
    found: torch.memory_format = getattr(torch, name or "preserve_format")
    return found
