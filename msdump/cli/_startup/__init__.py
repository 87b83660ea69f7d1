"""Hands what `msdump run` gave a script on to the Python processes that the script starts, through the environment.

A child of `multiprocessing` (spawn, forkserver) or `subprocess` is a new Python: `import mindspore` must find msdump's
there too. PYTHONPATH names this folder, so that Python imports `sitecustomize` from it before anything else.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from msdump.frontends.aliases import drop_aliases, install_aliases
from msdump.process.command import UNKNOWN, Command, command_as_value, command_from_value, note

# JSON: the Python that it is for, aliases with `prefer_real`, options of torch, the command.
VARIABLE = "MSDUMP_INHERITED"
FOLDER = os.path.dirname(os.path.abspath(__file__))


# Values of --torch-backend, --torch-module, --torch-rnn and --torch-eager; None where one is not given.
TorchOptions = tuple[str | None, str | None, bool, bool]
_NO_TORCH: TorchOptions = (None, None, False, False)
_LONGEST = 16 << 10  # each letter may be six in JSON


def begin(
    prefer_real: Mapping[str, bool],
    torch_options: TorchOptions = _NO_TORCH,
    command: Command = UNKNOWN,
    is_found_out: bool = False,
) -> None:
    """Give this process and its Python children the aliases and the command; the children also the options of torch.

    prefer_real  name of a frontend -> whether an installed package of that name wins
    command      that was typed, for the metadata of dumps
    is_found_out the options were not typed: a PyTorch that is too old for them is left alone
    Edges:  children that ignore the environment (`python -I`, `-E`) or have no site (`-S`) get nothing, nor does
            another installation of Python.
    """
    _take_back()
    for name, is_real_first in prefer_real.items():
        install_aliases((name,), is_real_first)
    note(command)
    # Linux starts no process that has a longer text than 128 KiB in its environment.
    handed_on = UNKNOWN if sum(map(len, command.target)) > _LONGEST else command
    content = {
        "prefix": sys.prefix,
        "aliases": dict(prefer_real),
        "torch": list(torch_options),
        "found_out": is_found_out,
        "command": command_as_value(handed_on),
    }
    os.environ[VARIABLE] = json.dumps(content)
    paths = os.environ.get("PYTHONPATH", "")
    if FOLDER not in paths.split(os.pathsep):
        # An empty entry would be the current folder.
        os.environ["PYTHONPATH"] = FOLDER + os.pathsep + paths if paths else FOLDER


def inherit() -> None:
    """Take what a parent handed on; nothing without one, or when this Python is another one."""
    try:
        content = json.loads(os.environ.get(VARIABLE, ""))
        if content["prefix"] != sys.prefix:
            return
        for name, is_real_first in content["aliases"].items():
            install_aliases((name,), bool(is_real_first))
        backend, module, has_rnn, is_eager = content["torch"]
        is_found_out = bool(content["found_out"])
        note(command_from_value(content["command"]) or UNKNOWN)
    except (ValueError, KeyError, TypeError, AttributeError):
        return  # not written by `begin`
    options = backend, module, bool(has_rnn), bool(is_eager)
    if options != _NO_TORCH:
        redirect_when_imported(options, is_found_out)


def redirect_when_imported(options: TorchOptions, is_found_out: bool) -> None:
    """Do what the options of torch say as soon as something imports it: at once, where a `.pth` file, a `sitecustomize`
    or the program that started this run has done so already.
    """
    spec = getattr(sys.modules.get("torch"), "__spec__", None)
    if spec is not None:
        _redirect(options, is_found_out)
    else:
        sys.meta_path.insert(0, _TorchFinder(lambda: _redirect(options, is_found_out)))


def _redirect(options: TorchOptions, is_found_out: bool) -> None:
    from msdump.errors import ConfigError
    from msdump.frontends.torch.redirect import redirect_torch

    try:
        redirect_torch(*options)
    except ConfigError as error:
        if not is_found_out:
            raise
        logging.getLogger("msdump").warning("PyTorch is not dumped. %s", error)


def _take_back() -> None:
    """Undo `inherit`: what began later decides."""
    drop_aliases()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _TorchFinder)]


class _TorchFinder(MetaPathFinder):
    """Calls `action` once, when `torch` has been imported: processes that do not need PyTorch do not load it.

    Edges:  it stays until then. Libraries ask where the package lies without importing it, and an import may fail.
    """

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torch":
            return None
        others = (finder for finder in list(sys.meta_path) if finder is not self)
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _LoaderThenAction(spec.loader, self._act)
        return spec

    def _act(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._action()


class _LoaderThenAction(Loader):
    def __init__(self, loader: Loader, action: Callable[[], None]) -> None:
        self._loader = loader
        self._action = action

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)  # whatever else it can do, such as to give the source

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # While it runs, the package must look as if nothing stood between it and its loader.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._action()
