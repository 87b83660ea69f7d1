"""Imported by every Python process that a script of `msdump run` starts; see `msdump.cli._startup`."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _inherit() -> None:
    root = os.path.dirname(os.path.dirname(os.path.dirname(_FOLDER)))
    try:
        import msdump  # noqa: F401
    except ImportError:
        sys.path.append(root)  # a clone that is not installed
    try:
        from msdump.cli._startup import inherit

        inherit()
    except ImportError:
        sys.path.remove(root)  # another Python, which msdump does not run on


def _run_hidden_one() -> None:
    """The `sitecustomize` of the user or the system, which this file hides."""
    others = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
    if "MSDUMP_INHERITED" in os.environ:
        _inherit()
    _run_hidden_one()
