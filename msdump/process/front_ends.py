"""The one list of front ends: packages that stand in for those of other people, each of which may be left out.

Whatever is not a front end itself reaches them through this list, by name and on first use, so that it works where one
of them is not installed.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType

from msdump.errors import ConfigError

FRONTENDS = {
    "acl": "msdump.frontends.acl",
    "mindspore": "msdump.mindspore",
    "msprobe": "msdump.frontends.msprobe",
    "torch_npu": "msdump.frontends.torch_npu",
    "torchair": "msdump.torchair",
}
# Behind another one, and under no name of its own that a script imports.
_INNER = {"onnx": "msdump.frontends.onnx"}
_PACKAGES = {**FRONTENDS, **_INNER}


def is_installed(name: str) -> bool:
    """Whether the front end of this name is part of this installation."""
    return find_spec(_PACKAGES[name]) is not None


def absence(name: str) -> str:
    """What to say of a front end that is not installed."""
    folder = _PACKAGES[name].replace(".", "/")
    return (
        f"This installation of msdump has no front end for {name} ({folder} is missing). "
        "Install all of msdump: pip install --force-reinstall msdump"
    )


def front_end(name: str, module: str = "") -> ModuleType:
    """The front end of this name, or the module below it.   Raises: ConfigError where it is not installed."""
    if not is_installed(name):
        raise ConfigError(absence(name))
    return importlib.import_module(f"{_PACKAGES[name]}.{module}".rstrip("."))
