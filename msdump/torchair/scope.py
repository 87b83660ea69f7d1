"""torchair.scope: settings for a part of the operators of a compiled function.

`data_dump` chooses operators to dump. The others mean something to an NPU alone: they are recorded, and change nothing.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from msdump.errors import ConfigError
from msdump.torchair import ops
from msdump.torchair.options import OptionTypeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from torch import Tensor, fx

DUMP_MARK = "torchair_enable_data_dump"
STREAM = "_user_stream_label"
NEVER_TIMEOUT = "_op_exec_never_timeout"
_ATTRIBUTES = (
    DUMP_MARK,
    STREAM,
    "_user_stream_priority",
    "_super_kernel_scope",
    "_super_kernel_options",
    "_op_aicore_num",
    "_op_vectorcore_num",
    NEVER_TIMEOUT,
)


def data_dump() -> AbstractContextManager[object]:
    """Context manager: operators that are called inside are dumped, and those of their backward.

    Beside them those that `dump_config.dump_layer` names; `dump_config.enable_dump` must be on. Outside of a compiled
    function it does nothing. It does not break the graph.
    Raises:  ConfigError on a PyTorch that cannot mark what is traced.
    Source:  TorchAir, scope.data_dump; there the mark chooses every operator of the same types.
    """
    from torch.fx import traceback

    if not hasattr(traceback, "annotate"):
        import torch

        raise ConfigError(
            f"torchair.scope.data_dump: expected torch 2.9 or newer, got {torch.__version__}. Name the operators in "
            "config.dump_config.dump_layer instead."
        )
    return traceback.annotate({DUMP_MARK: True})


def npu_stream_switch(stream_tag: str, stream_priority: int = 0) -> AbstractContextManager[object]:
    """Context manager: operators that are called inside run on a stream of that name on an NPU; here it is recorded.

    The nodes of the graph say it in `meta["custom"]`, where PyTorch can mark what is traced (2.9 and newer), and the
    operators of a GE graph in their attributes.
    Source:  TorchAir, scope.npu_stream_switch, and the names of its attributes; so are the others below.
    """
    return _recorded(**{STREAM: stream_tag}, _user_stream_priority=str(stream_priority))


def super_kernel(scope: str | None, options: str = "") -> AbstractContextManager[object]:
    """Context manager: operators that are called inside become one kernel on an NPU; here it is recorded."""
    return _recorded(_super_kernel_scope=scope or "", _super_kernel_options=options)


def limit_core_num(op_aicore_num: int, op_vectorcore_num: int) -> AbstractContextManager[object]:
    """Context manager: operators that are called inside take so many cores of an NPU; here it is recorded."""
    return _recorded(_op_aicore_num=str(op_aicore_num), _op_vectorcore_num=str(op_vectorcore_num))


def op_never_timeout(enable: bool = True) -> AbstractContextManager[object]:
    """Context manager: operators that are called inside are not ended by an NPU's time limit; here it is recorded.

    Raises:  OptionTypeError for what is no bool.
    """
    if not isinstance(enable, bool):
        raise OptionTypeError(
            f"torchair.scope.op_never_timeout: expected enable to be a bool, got {type(enable).__name__}. "
            "Give True or False."
        )
    return _recorded(**{NEVER_TIMEOUT: str(enable)})


def npu_wait_tensor(self: Tensor, dependency: Tensor) -> Tensor:
    """The first tensor; what this stream does next comes after the second one, see `ops.wait`.

    Source: TorchAir, scope.npu_wait_tensor.
    """
    ops.wait([dependency])
    return self


def _recorded(**attributes: str) -> AbstractContextManager[object]:
    from torch.fx import traceback

    return traceback.annotate(attributes) if hasattr(traceback, "annotate") else contextlib.nullcontext()


def is_marked(node: fx.Node) -> bool:
    """True for a node that was called inside of `data_dump`."""
    return bool((node.meta.get("custom") or {}).get(DUMP_MARK))


def attributes_of(node: fx.Node) -> dict[str, str]:
    """What the scopes say of a node that it was called in: names and values of TorchAir's attributes."""
    custom = node.meta.get("custom") or {}
    return {name: str(custom[name]) for name in _ATTRIBUTES if name in custom}


def stream_of(node: fx.Node) -> str | None:
    """Label of the `npu_stream_switch` that a node was called in; None: the default stream."""
    label = (node.meta.get("custom") or {}).get(STREAM)
    return None if label is None else str(label)
