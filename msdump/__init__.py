"""msdump shows every tensor that a model computes, in the files of the Ascend dump tools, on any machine.

Write a dump
    msdump run --config data_dump.json train.py             in a shell; the script stays as it is
    with msdump.dump("data_dump.json") as dump: ...         in Python, around MindSpore, PyTorch or ONNX code
    with msdump.watch(model, "data_dump.json"): ...         every operator of PyTorch as it runs, without torch.compile
    with msdump.recorder("kept"): ...                       the last steps, on the disk when something goes wrong

Read a dump, of any tool
    dump = msdump.open("dump")                              a folder of any level, or one file
    dump.sql("select op_type, max(l2norm) from tensors group by op_type")     the same as a table, with duckdb
    for tensor in dump.tensors(iteration=3, op_type="Add"):
        print(tensor.op_name, tensor.io, tensor.slot, tensor.dtype, tensor.shape, tensor.load().max())

Ask what was wrong
    print(msdump.find_nan("dump").first)                    the first operator that made a NaN or Inf
    print(msdump.compare("mine", "golden").first_wrong)     the first operator that differs
    for row in msdump.stat("dump").rows: ...                maximum, minimum, mean, norm of every tensor
    msdump.convert("dump", "converted")                     .npy, raw, torch or safetensors files

Everything that msdump raises on purpose is a class of `msdump.errors`. `msdump.analysis` holds the functions for one
operator (show, replay), `msdump.testing` hypothesis strategies; `msdump.mindspore`, `msdump.torchair`, `msdump.acl` and
`msdump.torch_npu` are the stand-ins for the packages of these names. Modules load on first use.
"""

from __future__ import annotations

import importlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msdump._version import __version__
from msdump.frontends.aliases import install_aliases, install_own_names
from msdump.process.front_ends import FRONTENDS

if TYPE_CHECKING:
    from msdump import errors
    from msdump.analysis import compare_dumps as compare
    from msdump.analysis import convert_dump as convert
    from msdump.analysis import find_non_finite as find_nan
    from msdump.analysis import tensor_statistics as stat
    from msdump.analysis.overview.dump import Dump
    from msdump.engine.opening import dump
    from msdump.engine.recorder import recorder
    from msdump.formats.dump_dir import DumpDir
    from msdump.formats.dump_tensor import DumpedTensor
    from msdump.frontends.torch import watch
    from msdump.viewing.notebook import view as view

    open = Dump.open

__all__ = [
    "DumpDir",
    "DumpedTensor",
    "__version__",
    "compare",
    "convert",
    "dump",
    "errors",
    "find_nan",
    "install_aliases",
    "open",
    "recorder",
    "stat",
    "view",
    "watch",
]

# Public name -> (module, name there).
_MODULE_BY_NAME = {
    "DumpDir": ("msdump.formats.dump_dir", "DumpDir"),
    "DumpedTensor": ("msdump.formats.dump_tensor", "DumpedTensor"),
    "compare": ("msdump.analysis", "compare_dumps"),
    "convert": ("msdump.analysis", "convert_dump"),
    "dump": ("msdump.engine.opening", "dump"),
    "find_nan": ("msdump.analysis", "find_non_finite"),
    "open": ("msdump.analysis.overview.dump", "Dump.open"),
    "recorder": ("msdump.engine.recorder", "recorder"),
    "stat": ("msdump.analysis", "tensor_statistics"),
    "view": ("msdump.viewing.notebook", "view"),
    "watch": ("msdump.frontends.torch", "watch"),
}
_PACKAGES = ("analysis", "errors", "testing", *FRONTENDS)

install_own_names()


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"msdump.{name}")
    if name not in _MODULE_BY_NAME:
        from msdump.errors import did_you_mean

        advice = did_you_mean(name, (*__all__, *_PACKAGES))
        raise AttributeError(f'module "msdump" has no attribute "{name}". {advice}'.rstrip())
    module, member = _MODULE_BY_NAME[name]
    value = attrgetter(member)(importlib.import_module(module))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The names that load without a framework: `help` and completion read the value of each."""
    return sorted(__all__)
