"""Settings of parallel training, under the names that training cells of scripts import."""

from __future__ import annotations

from msdump.mindspore.communication import get_group_size
from msdump.mindspore.parallel_context import get_auto_parallel_context


def _get_parallel_mode() -> str:
    return str(get_auto_parallel_context("parallel_mode"))


def _get_gradients_mean() -> bool:
    """Are gradients of several processes averaged, or only added up?"""
    return bool(get_auto_parallel_context("gradients_mean"))


def _get_device_num() -> int:
    """Processes of the job, unless the script says another number."""
    number = int(get_auto_parallel_context("device_num"))
    return number if number > 1 else get_group_size()
