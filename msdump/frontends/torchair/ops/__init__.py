"""torchair.ops: print a tensor in a compiled graph, and order operators of several streams.

They are operators of the graph, so that a function which calls them stays one graph. torch is imported when one of them
is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.errors import ConfigError, did_you_mean
from msdump.frontends.torchair.options import OptionTypeError

__all__ = ["npu_print", "record", "wait"]


def npu_print(*args: Any, summarize_size: int = 3, tensor_detail: bool = False) -> None:
    """Print the arguments with blanks between them, each time when the graph comes here.

    args            tensors and text, numbers, bools; one tensor at least
    summarize_size  elements from both ends of each axis that is longer than twice as many; -1: all elements
    tensor_detail   `tensor([0 1 2], shape=[3], dtype=torch.int64)` in place of `[0 1 2]`
    Edges:   prints at once, to standard output; also outside of a compiled function. In a training each line is printed
             once, in the forward graph. bfloat16 is shown as float32, a bool as 1 or 0.
    Raises:  ConfigError without a tensor, and for a `summarize_size` that is 0 or below -1; OptionTypeError for one
             that is no int.
    Source:  TorchAir, ops.npu_print.
    """
    import torch

    from msdump.frontends.torchair.ops import library

    if not isinstance(summarize_size, int):
        raise OptionTypeError(
            f"torchair.ops.npu_print: expected summarize_size to be an int, got {type(summarize_size).__name__}. "
            "Give a positive number, or -1 for all elements."
        )
    if summarize_size < -1 or summarize_size == 0:
        raise ConfigError(
            "torchair.ops.npu_print: expected summarize_size to be positive, or -1 for all elements, "
            f"got {summarize_size}."
        )
    tensors = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if not tensors:
        raise ConfigError("torchair.ops.npu_print: expected a tensor among the arguments, got none. print() does that.")
    placeholder = library.placeholder_for([arg for arg in args if isinstance(arg, str)])
    text = " ".join([placeholder if isinstance(arg, torch.Tensor) else f"{arg}" for arg in args])
    library.print_op(tensors, text, placeholder, summarize_size, tensor_detail)


def record() -> Any:
    """A mark behind the operators so far of this stream, for `wait`; an empty tensor.

    Edges:   operators run in the order of the function, so nothing has to be recorded while the graph runs.
    Source:  TorchAir, ops.record.
    """
    from msdump.frontends.torchair.ops import library

    return library.record_op()


def wait(tensors: Sequence[Any]) -> None:
    """What this stream does next comes after these tensors, and after these marks of `record`.

    Edges:   operators run in the order of the function anyway; the graph has a control edge that says so.
    Raises:  ConfigError without a tensor, or for anything else.
    Source:  TorchAir, ops.wait.
    """
    import torch

    from msdump.frontends.torchair.ops import library

    if not isinstance(tensors, list | tuple) or not tensors:
        raise ConfigError(f"torchair.ops.wait: expected a list of at least one tensor, got {tensors!r}.")
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise ConfigError(f"torchair.ops.wait: expected tensors, got {type(tensor).__name__}.")
    library.wait_op(list(tensors))


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f'torchair.ops: expected one of {__all__}, got "{name}". {did_you_mean(name, __all__)} '
        "Fused operators and tagged events are an NPU's."
    )
