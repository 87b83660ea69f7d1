"""What a module of the shim says when a script asks for a name that it does not have."""

from __future__ import annotations

import importlib
import opcode
import sys
from collections.abc import Callable, Sequence
from typing import Any

from msdump.errors import did_you_mean

ROOT = "msdump.frontends.mindspore"
_TOOLS = {"annotations", "explain_missing", "Any", "importlib"}
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def explain_missing(
    module_name: str, hints: dict[str, str] | None = None, lazy: Sequence[str] = ()
) -> Callable[[str], Any]:
    """A `__getattr__` for a module of the shim.

    hints   name -> sentence that says what to use instead
    lazy    submodules that are imported when they are asked for
    Raises: AttributeError that lists what is supported and names the nearest; for `from module import name`
            ImportError with the same text, because Python would replace the other by its own short one.
    """
    shown = "mindspore" + module_name.removeprefix(ROOT)

    def __getattr__(name: str) -> Any:
        if name in lazy:
            return importlib.import_module(f"{module_name}.{name}")
        namespace = vars(sys.modules[module_name])
        if name.startswith("__"):
            raise AttributeError(f"module '{shown}' has no attribute '{name}'")
        public = sorted({*_public_names(namespace), *lazy})
        hint = (hints or {}).get(name) or did_you_mean(name, public)
        message = f"module '{shown}' has no attribute '{name}' in msdump. {hint}".rstrip()
        message += f"\nSupported here: {', '.join(public)}."
        if _is_import_from(sys._getframe(1)):
            raise ImportError(message, name=shown)
        raise AttributeError(message, name=name, obj=sys.modules[module_name])

    return __getattr__


def _public_names(namespace: dict[str, Any]) -> list[str]:
    """What `__all__` says; without it, what was defined or imported there and is neither private nor a tool."""
    if "__all__" in namespace:
        return list(namespace["__all__"])
    return [name for name in namespace if not name.startswith("_") and name not in _TOOLS]


def _is_import_from(frame: Any) -> bool:
    return bool(frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM)
