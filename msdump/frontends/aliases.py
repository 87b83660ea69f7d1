"""Makes `import mindspore`, `import msdump.mindspore` and the frontend's own path give the same module objects."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

from msdump.errors import ConfigError, did_you_mean
from msdump.process.front_ends import FRONTENDS, absence, is_installed

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder
else:
    # That module imports half of the standard library on some versions of Python, and the classes are not needed.
    Loader = MetaPathFinder = object


class AliasFinder(MetaPathFinder):
    """Answers for `alias` and everything below it with the module of the same place below `target`.

    It must come first on `sys.meta_path`: the ordinary finder would load files below an aliased package once more.
    """

    def __init__(self, alias: str, target: str, prefer_real: bool = False) -> None:
        self.alias = alias
        self.target = target
        self.prefer_real = prefer_real

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Spec that hands out the target module; None for names outside the alias or without a target.

        Raises: ModuleNotFoundError for the latter where the target says why, as `ABSENT`.
        """
        if fullname == self.alias:
            if self.prefer_real and self._has_real(path):
                return None
        elif fullname.startswith(self.target + "."):
            self._refuse_missing(fullname, path)
            return None
        elif not fullname.startswith(self.alias + ".") or not self._is_in_use():
            return None
        real = self.target + fullname[len(self.alias) :]
        name = self.alias.rpartition(".")[2]
        if fullname == self.alias and name in FRONTENDS and not is_installed(name):
            raise ModuleNotFoundError(absence(name), name=fullname)
        # The parent must be there first: find_spec of a child of something that is no package raises.
        parent = importlib.import_module(real.rpartition(".")[0])
        if not hasattr(parent, "__path__") or importlib.util.find_spec(real) is None:
            self._refuse(fullname)
            return None
        return ModuleSpec(fullname, _AliasLoader(real), is_package=True)

    def _refuse_missing(self, fullname: str, path: Sequence[str] | None) -> None:
        """Refuse `from alias import NAME` of a name that is neither defined nor a module: Python asks for a module of
        that name below the target then, and drops an error that has this name.
        """
        if self._is_in_use() and PathFinder.find_spec(fullname, path) is None:
            self._refuse(self.alias + fullname[len(self.target) :])

    def _refuse(self, name: str) -> None:
        """Raises: ModuleNotFoundError where the target says why names are missing, as `ABSENT`."""
        absent = getattr(sys.modules.get(self.target), "ABSENT", None)
        if absent is not None:
            raise ModuleNotFoundError(absent.format(name=name), name=name)

    def _has_real(self, path: Sequence[str] | None) -> bool:
        others = [finder for finder in sys.meta_path if not isinstance(finder, AliasFinder)]
        return any(finder.find_spec(self.alias, path) is not None for finder in others)

    def _is_in_use(self) -> bool:
        """Is the module of that name the target? A real package of that name keeps its own submodules."""
        return sys.modules.get(self.alias) is not None and sys.modules[self.alias] is sys.modules.get(self.target)


class _AliasLoader(Loader):
    def __init__(self, real: str) -> None:
        self._real = real
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._real)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just overwritten the spec of a module that was imported long ago.
        module.__spec__ = self._spec


def install_aliases(names: Iterable[str] = ("mindspore",), prefer_real: bool = True) -> None:
    """Let `import NAME` find msdump's frontend of that name.

    names        top-level packages, such as "mindspore", "torchair", "acl" or "msprobe"
    prefer_real  whether an installed package of that name wins

    Edges:   with `prefer_real` an installed package of that name wins; without it msdump's wins, also when called
             again; a module of that name that is already imported stays as it is.
    Raises:  ConfigError for a name without a frontend.
    """
    for name in names:
        if name not in FRONTENDS:
            raise ConfigError(
                f'install_aliases: expected names of {sorted(FRONTENDS)}, got "{name}". '
                f"{did_you_mean(name, FRONTENDS)}".rstrip()
            )
        known = [finder for finder in sys.meta_path if isinstance(finder, AliasFinder) and finder.alias == name]
        for finder in known:
            sys.meta_path.remove(finder)
        sys.meta_path.insert(0, AliasFinder(name, FRONTENDS[name], prefer_real))


def drop_aliases() -> None:
    """Undo every `install_aliases`; modules that are imported already stay."""
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not isinstance(finder, AliasFinder) or finder.alias not in FRONTENDS
    ]


def install_own_names() -> None:
    """Let `import msdump.NAME` find the frontends. Called once, by `import msdump`."""
    for name, target in FRONTENDS.items():
        if target == f"msdump.{name}":
            continue  # it lies there
        sys.meta_path.insert(0, AliasFinder(f"msdump.{name}", target))
