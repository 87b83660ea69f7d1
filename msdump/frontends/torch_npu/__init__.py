"""Stand-in for torch_npu where the real one is not installed: device "npu" is the CPU, or CUDA where there is one.

`msdump run` installs it so that a script written for an NPU gets past its imports and its `.npu()` calls. Operators and
tools of an NPU are not part of it.
"""

from __future__ import annotations

from typing import Any

from msdump.frontends.torch_npu import npu
from msdump.frontends.torch_npu.device_names import install

__all__ = ["npu"]

install()


def __getattr__(name: str) -> Any:
    # The import system and inspect look these names up; they are not in the script.
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f'torch_npu: expected "npu", got "{name}". This is a stand-in; functions of an NPU need the real torch_npu.'
    )
