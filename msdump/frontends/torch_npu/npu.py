"""`torch.npu`: the device functions of training scripts. Missing ones come from torch.cuda, if there is a GPU."""

from __future__ import annotations

from typing import Any

import torch


def is_available() -> bool:
    """False: there is no NPU. A script that asks takes its other way; one that does not is served by the stand-in."""
    return False


def device_count() -> int:
    return torch.cuda.device_count() or 1


def current_device() -> int:
    return torch.cuda.current_device() if torch.cuda.is_available() else 0


def set_device(device: Any) -> None:
    if torch.cuda.is_available():
        torch.cuda.set_device(device if isinstance(device, int) else torch.device(device).index or 0)


def synchronize(device: Any = None) -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def empty_cache() -> None:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def manual_seed(seed: int) -> None:
    torch.cuda.manual_seed(seed)  # without a GPU it waits for one and does nothing


def manual_seed_all(seed: int) -> None:
    torch.cuda.manual_seed_all(seed)


def set_compile_mode(jit_compile: bool = False) -> None:
    """Takes the switch of the NPU's operator compiler; there is none here."""


def _is_in_bad_fork() -> bool:
    return False


def __getattr__(name: str) -> Any:
    if not name.startswith("__") and torch.cuda.is_available() and hasattr(torch.cuda, name):
        return getattr(torch.cuda, name)
    raise AttributeError(f'torch.npu: msdump\'s stand-in has no "{name}"; an NPU needs the real torch_npu.')
