"""TorchAir's Python interface on stock PyTorch, as far as its dumps and its debug save need it.

CompilerConfig   the switches
get_npu_backend  a backend for torch.compile: the eager data dump, GE graphs and their dumps, captured graphs
ops              npu_print(), record() and wait(): operators of the graph that print and order
scope            data_dump(): operators to dump, chosen in the model
ge               what converters of a script build operators with: custom_op(), Const(), Cast(), Tensor, ...
register_fx_node_ge_converter   a converter of a script
dynamo_export    a model as a file of GE operators
inference        cache_compile() and readable_cache()
logger           what the debug save says, at level DEBUG when TORCH_COMPILE_DEBUG is "1" at the import
"""

from __future__ import annotations

from typing import Any

from msdump.errors import did_you_mean
from msdump.torchair import ge, inference, ops, scope
from msdump.torchair.backend import get_npu_backend, require_torch, warn_of_untested_torch
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.debug_log import setup_logger

__all__ = [
    "CompilerConfig",
    "dynamo_export",
    "ge",
    "get_npu_backend",
    "inference",
    "logger",
    "ops",
    "register_fx_node_ge_converter",
    "scope",
]

logger = setup_logger()
warn_of_untested_torch()


def dynamo_export(
    *args: object,
    model: object,
    export_path: str = "export_file",
    export_name: str = "export",
    dynamic: bool = False,
    config: CompilerConfig | None = None,
    **kwargs: object,
) -> None:
    """Write the model's GE graph as an .air file, which ATC compiles, and as text.

    args, kwargs  what the model is called with; their sizes are those of the exported model
    export_path   folder, made when it is missing
    export_name   of the .air file
    dynamic       sizes of the inputs stay open
    config        None: the defaults; `export.experimental` has two options
    Edges:        the model is compiled as one graph, and does not run.
    Raises:       ConfigError for a model, mode or option that cannot be exported; NoConverterError for an operator
                  without a GE form; WriteError.
    Source:       TorchAir, dynamo_export.
    """
    require_torch()
    from msdump.torchair.export.dynamo_export import dynamo_export as export

    export(args, kwargs, model, export_path, export_name, dynamic, CompilerConfig() if config is None else config)


def register_fx_node_ge_converter(aten_op: object) -> Any:
    """Decorator: the function converts calls of this operator; see `ge.custom`."""
    from msdump.torchair.ge import custom

    return custom.register_fx_node_ge_converter(aten_op)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f'torchair: expected one of {__all__}, got "{name}". {did_you_mean(name, __all__)} '
        "msdump brings the dumps and the debug save; the compiler of an NPU is not part of it."
    )
