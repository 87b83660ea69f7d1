"""Names that scripts import: what a module of the shim offers, what it answers for other names, and module paths
that only show the names of other modules."""

from __future__ import annotations

import importlib
import opcode
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any

from msdump.mindspore.located import located, located_class
from msdump.mindspore.other_paths import NOT_HERE, OTHER_PATHS, SHOWN, left_out
from msdump.mindspore.reference import advice

ROOT = "msdump.mindspore"
_IMPORT_FROM, _STORE_NAME, _EXTENDED_ARG = (
    opcode.opmap[each] for each in ("IMPORT_FROM", "STORE_NAME", "EXTENDED_ARG")
)
_TOOLS = (__name__, "__future__", "abc", "collections.abc", "msdump.errors", "typing")
_SHORT_LIST = 30  # names that an error message lists
_PARENTS = {path.rpartition(".")[0] for path in OTHER_PATHS}


def publish(module_name: str, *also: str, tells_line: bool = True) -> None:
    """Give a module an `__all__` of the public functions, classes and objects that it defines itself, and of `also`.

    tells_line   errors of its functions and classes name the line of the script; False where the words are MindSpore's
    Raises: ImportError where the module defines public names after the call, which nothing would show.
    """
    own = [
        name
        for name, value in vars(sys.modules[module_name]).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module_name
    ]
    if tells_line:
        _guard(vars(sys.modules[module_name]), own)
    _set_all(module_name, own, also)


def _guard(namespace: dict[str, Any], names: Sequence[str]) -> None:
    """Let errors of functions and classes name the line of the script; those of cells and operators do when called."""
    for name in names:
        value = namespace[name]
        if isinstance(value, FunctionType):
            namespace[name] = located(name)(value)
        elif isinstance(value, type) and not (hasattr(value, "construct") or hasattr(value, "compute")):
            located_class(value)


def publish_all(module_name: str, *also: str) -> None:
    """Give a module that collects names of others an `__all__` of what it imports and defines, and of `also`.

    Edges:  modules count only when `also` names them; these may be modules of `OTHER_PATHS`.
    Raises: ImportError as `publish`.
    """
    names = [
        name
        for name, value in vars(sys.modules[module_name]).items()
        if not (name.startswith("_") or isinstance(value, ModuleType) or _is_tool(value))
    ]
    _set_all(module_name, names, also)


def _set_all(module_name: str, names: Sequence[str], also: Sequence[str]) -> None:
    if later := _later_names(sys._getframe(2)):
        raise ImportError(
            f"{module_name}: expected no public name after the call that makes __all__, got {', '.join(later)}. "
            "Move the call to the end of the module."
        )
    namespace = vars(sys.modules[module_name])
    namespace["__all__"] = sorted({*names, *also})
    if module_name.removeprefix(f"{ROOT}.") in _PARENTS:
        # A plain module whose parts scripts import as modules.
        namespace.setdefault("__path__", [])
    for name in names:
        path, value = f"{module_name}.{name}", namespace[name]
        if path.removeprefix(f"{ROOT}.") in OTHER_PATHS:
            # An import of the path puts its module in the place of a function of that name: let it happen now.
            importlib.import_module(path)
            namespace[name] = value


def _later_names(module: Any) -> list[str]:
    """Public names that a module binds after the statement that runs in its frame."""
    names, code, high = [], module.f_code, 0
    rest = code.co_code[module.f_lasti :]
    for operation, low in zip(rest[::2], rest[1::2], strict=True):
        name = high | low
        high = name << 8 if operation == _EXTENDED_ARG else 0
        if operation == _STORE_NAME and not code.co_names[name].startswith("_"):
            names.append(code.co_names[name])
    return names


def _is_tool(value: Any) -> bool:
    """Does a module use it rather than offer it?"""
    return value is Any or getattr(value, "__module__", "") in _TOOLS


def explain_missing(
    module_name: str, hints: dict[str, str] | None = None, lazy: Sequence[str] = ()
) -> Callable[[str], Any]:
    """A `__getattr__` for a module of the shim.

    hints   name -> sentence that says what to use instead
    lazy    submodules that are imported at their first use
    Raises: AttributeError that names the nearest, where MindSpore has it, and what is supported; for
            `from module import name` ImportError with the same text, because Python would replace the other by its
            own short one.
    """
    shown = "mindspore" + module_name.removeprefix(ROOT)

    def __getattr__(name: str) -> Any:
        path = f"{module_name}.{name}"
        if name in lazy or path.removeprefix(f"{ROOT}.") in OTHER_PATHS:
            return importlib.import_module(path)
        source = SHOWN.get(module_name.removeprefix(f"{ROOT}."), {}).get(name)
        if source is not None:
            return getattr(importlib.import_module(f"{ROOT}.{source}".rstrip(".")), name)
        namespace = vars(sys.modules[module_name])
        if name.startswith("__"):
            raise AttributeError(f"module '{shown}' has no attribute '{name}'")
        public = sorted({*_public_names(namespace), *lazy})
        missing = NOT_HERE.get(path.removeprefix(f"{ROOT}.")) or left_out(module_name.removeprefix(ROOT), name)
        hint = missing or (hints or {}).get(name, "")
        message = f"module '{shown}' has no attribute '{name}' in msdump. {advice(shown, name, public, hint)}"
        if 0 < len(public) <= _SHORT_LIST:
            message += f"\nSupported here: {', '.join(public)}."
        elif public:
            message += f"\nSupported here: {len(public)} names; dir({shown}) has them."
        if _is_import_from(sys._getframe(1)):
            raise ImportError(message, name=shown)
        raise AttributeError(message, name=name, obj=sys.modules[module_name])

    return __getattr__


def _public_names(namespace: dict[str, Any]) -> list[str]:
    """`__all__`; without it, public names of the module that are not tools."""
    if "__all__" in namespace:
        return list(namespace["__all__"])
    return [name for name, value in namespace.items() if not name.startswith("_") and not _is_tool(value)]


def _is_import_from(frame: Any) -> bool:
    return bool(frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM)


class _OtherPaths(MetaPathFinder, Loader):
    """Makes the modules of `OTHER_PATHS` when they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises: ModuleNotFoundError for a module of MindSpore that is not here, with what to use instead."""
        if not fullname.startswith(f"{ROOT}."):
            return None
        name = fullname.removeprefix(f"{ROOT}.")
        if name in NOT_HERE:
            raise ModuleNotFoundError(f"mindspore.{name}: not in msdump. {NOT_HERE[name]}", name=f"mindspore.{name}")
        return ModuleSpec(fullname, self) if name in OTHER_PATHS else None

    def create_module(self, spec: ModuleSpec) -> None:
        """An ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        sources = OTHER_PATHS[module.__name__.removeprefix(f"{ROOT}.")]
        module.__doc__ = f"The names of {' and '.join(f'`mindspore.{source}`' for source in sources)}."
        names: dict[str, Any] = {}
        for source in sources:
            origin = importlib.import_module(f"{ROOT}.{source}")
            names.update((name, getattr(origin, name)) for name in _public_names(vars(origin)))
        vars(module).update(names, __all__=sorted(names), __getattr__=explain_missing(module.__name__))


sys.meta_path.append(_OtherPaths())
