"""msdump shows every tensor that a model computes."""

from __future__ import annotations

from typing import Any

from msdump.aliases import FRONTENDS, install_aliases, install_own_names

__version__ = "0.1.0"

__all__ = ["__version__", "install_aliases"]

install_own_names()


def __getattr__(name: str) -> Any:
    if name in FRONTENDS:
        import importlib

        return importlib.import_module(f"msdump.{name}")
    if name == "analysis":
        import importlib

        return importlib.import_module("msdump.analysis")
    if name == "open":
        from msdump.formats.dump_dir import DumpDir

        return DumpDir.open
    raise AttributeError(f'module "msdump" has no attribute "{name}".')
