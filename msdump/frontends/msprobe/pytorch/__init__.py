"""`msprobe.pytorch`: PrecisionDebugger and seed_all. The other names that mindstudio-probe has here say why they do
nothing."""

from __future__ import annotations

from typing import NoReturn

from msdump.errors import ConfigError
from msdump.frontends.msprobe import refused
from msdump.frontends.msprobe.debugger import PrecisionDebugger, module_dump, module_dump_end
from msdump.frontends.msprobe.seeding import seed_all

__all__ = [
    "AclGraphDumper",
    "PrecisionDebugger",
    "TrainerMon",
    "acl_save",
    "module_dump",
    "module_dump_end",
    "random_save",
    "seed_all",
    "set_fx_dump_config",
    "set_ge_dump_config",
]

_NO_ACL_GRAPH = "there are no graphs of an NPU to dump; PrecisionDebugger dumps the same model without them"


def _refuse(name: str, reason: str) -> NoReturn:
    raise ConfigError(f"msprobe.pytorch.{name}: not supported by `msdump run --as msprobe`: {reason}.")


def random_save(output_path: str = "./output") -> NoReturn:
    """Raises: ConfigError."""
    _refuse("random_save", "it replaces the script's random functions")


def set_fx_dump_config(*_: object, **__: object) -> NoReturn:
    """Raises: ConfigError."""
    _refuse("set_fx_dump_config", "`import torchair` gives its dump in `msdump run SCRIPT`")


def set_ge_dump_config(*_: object, **__: object) -> NoReturn:
    """Raises: ConfigError."""
    _refuse("set_ge_dump_config", "`import torchair` gives its dump in `msdump run SCRIPT`")


def acl_save(*_: object, **__: object) -> NoReturn:
    """Raises: ConfigError."""
    _refuse("acl_save", _NO_ACL_GRAPH)


class AclGraphDumper:
    """Raises: ConfigError."""

    def __init__(self, *_: object, **__: object) -> None:
        _refuse("AclGraphDumper", _NO_ACL_GRAPH)


class TrainerMon:
    """Raises: ConfigError."""

    def __init__(self, *_: object, **__: object) -> None:
        _refuse("TrainerMon", "use `msdump.watch`, or the statistics of this dump")


def __getattr__(name: str) -> NoReturn:
    raise refused("msprobe.pytorch", name)
