"""torchair.ops: print a tensor in a compiled graph, and order operators of several streams, by marks or by events.

They are operators of the graph, so that a function which calls them stays one graph. torch is imported when one of them
is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msdump.errors import ConfigError, did_you_mean
from msdump.torchair.options import OptionTypeError

__all__ = [
    "npu_create_tagged_event",
    "npu_print",
    "npu_record_tagged_stream",
    "npu_tagged_event_record",
    "npu_tagged_event_wait",
    "record",
    "wait",
]


def npu_print(*args: object, summarize_size: int = 3, tensor_detail: bool = False) -> None:
    """Print the arguments with blanks between them, each time when the graph comes here.

    args            tensors and text, numbers, bools; one tensor at least
    summarize_size  elements from both ends of each axis that is longer than twice as many; -1: all elements
    tensor_detail   `tensor([0 1 2], shape=[3], dtype=torch.int64)` in place of `[0 1 2]`
    Edges:   prints at once, to standard output; also outside of a compiled function. In a training each line is printed
             once, in the forward graph. bfloat16 is shown as float32, a bool as 1 or 0.
    Raises:  ConfigError without a tensor, and for a `summarize_size` that is 0 or below -1; OptionTypeError for one
             that is no int, and for a `tensor_detail` that is no bool.
    Source:  TorchAir, ops.npu_print.
    """
    import torch

    from msdump.torchair.ops import library

    if not isinstance(tensor_detail, bool):
        raise OptionTypeError(
            f"torchair.ops.npu_print: expected tensor_detail to be a bool, got {type(tensor_detail).__name__}. "
            "Give True or False."
        )
    if not isinstance(summarize_size, int) or isinstance(summarize_size, bool):
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
    from msdump.torchair.ops import library

    return library.record_op()


def wait(tensors: Sequence[object]) -> None:
    """What this stream does next comes after these tensors, and after these marks of `record`.

    Edges:   operators run in the order of the function anyway; the graph has a control edge that says so.
    Raises:  ConfigError without a tensor, or for anything else.
    Source:  TorchAir, ops.wait.
    """
    import torch

    from msdump.torchair.ops import library

    # Two classes apart: this is compiled, and PyTorch 2.5 does not know a union of them.
    if not (isinstance(tensors, list) or isinstance(tensors, tuple)) or not tensors:  # noqa: SIM101
        raise ConfigError(f"torchair.ops.wait: expected a list of at least one tensor, got {tensors!r}.")
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise ConfigError(f"torchair.ops.wait: expected tensors, got {type(tensor).__name__}.")
    library.wait_op(list(tensors))


class TaggedEvent:
    """An event of `npu_create_tagged_event`: a mark in a stream, as `torch.npu.Event` is one.

    Operators run in the order of the program here, so that whatever it waits for is over already.
    """

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def record(self, stream: object = None) -> None: ...

    def wait(self, stream: object = None) -> None: ...

    def synchronize(self) -> None: ...

    def query(self) -> bool:
        return True


_tags: set[str] = set()


def npu_create_tagged_event(tag: str) -> TaggedEvent:
    """An event of that name, for `npu_tagged_event_record` and `npu_tagged_event_wait` in a compiled function.

    Raises:  OptionTypeError for what is no text; ConfigError for a name that this process has used already.
    Source:  TorchAir, ops.npu_create_tagged_event.
    """
    if not isinstance(tag, str):
        raise OptionTypeError(
            f"torchair.ops.npu_create_tagged_event: expected tag to be a str, got {type(tag).__name__}. Give a name."
        )
    if tag in _tags:
        raise ConfigError(
            f"torchair.ops.npu_create_tagged_event: expected a tag that is free, got {tag!r}, which is in use. "
            "Create each event once, outside of the compiled function."
        )
    _tags.add(tag)
    return TaggedEvent(tag)


def npu_tagged_event_record(event: TaggedEvent) -> None:
    """A mark behind the operators so far of this stream.   Raises: ConfigError for what is no such event."""
    from msdump.torchair.ops import library

    library.tagged_record_op(_tag_of(event, "npu_tagged_event_record"))


def npu_tagged_event_wait(event: TaggedEvent) -> None:
    """What this stream does next comes after the mark.   Raises: ConfigError for what is no such event."""
    from msdump.torchair.ops import library

    library.tagged_wait_op(_tag_of(event, "npu_tagged_event_wait"))


def npu_record_tagged_stream(input: object, tagged_stream: str) -> None:
    """The memory of a tensor is in use by the stream of that label, too; here it is freed with the tensor alone.

    Raises:  OptionTypeError for what is no tensor, or no text.
    Source:  TorchAir, ops.npu_record_tagged_stream.
    """
    import torch

    from msdump.torchair.ops import library

    if not isinstance(input, torch.Tensor) or not isinstance(tagged_stream, str):
        raise OptionTypeError(
            "torchair.ops.npu_record_tagged_stream: expected a tensor and the label of a stream, got "
            f"{type(input).__name__} and {type(tagged_stream).__name__}."
        )
    library.tagged_stream_op(input, tagged_stream)


def _tag_of(event: object, function: str) -> str:
    if not isinstance(event, TaggedEvent):
        raise ConfigError(
            f"torchair.ops.{function}: expected an event of torchair.ops.npu_create_tagged_event, "
            f"got {type(event).__name__}."
        )
    return event.tag


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f'torchair.ops: expected one of {__all__}, got "{name}". {did_you_mean(name, __all__)} '
        "Fused operators are an NPU's."
    )
