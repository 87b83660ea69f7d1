"""Plug-in of vLLM and SGLang, whose processes call it before they load a model: every operator of them is watched.

Source: vLLM, plugin system: functions of the entry points `vllm.general_plugins` take no argument, run in each process,
and may run several times in one. SGLang's `sglang.srt.plugins` name functions in the same way.
"""

from __future__ import annotations

import functools

from msdump.config.environment import is_serving_watched
from msdump.process.command import UNKNOWN, note


def register() -> None:
    """Do in this process what `msdump run --torch-eager` does, where MSDUMP_SERVING is 1; else nothing.

    Only operators of the thread that loads plug-ins are seen. Idempotent.
    Raises: ConfigError for a wrong configuration or a PyTorch that is too old.
    """
    if is_serving_watched():
        _watch()


@functools.cache
def _watch() -> None:
    from msdump.frontends.torch.redirect import redirect_torch

    # No command of msdump starts the processes of a server as they were started.
    note(UNKNOWN)
    redirect_torch(None, None, False, is_eager=True)
