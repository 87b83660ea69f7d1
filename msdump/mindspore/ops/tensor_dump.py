"""Operators that write a tensor, or a gradient, to an npy file of the script's choice: `{name}_{dtype}_{id}.npy`.

Source: MindSpore 2.7.0: names, modes, numbers and steps as it writes them in PyNative mode; in a graph, which it runs
on an Ascend alone, as its documentation has them.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence

from msdump.errors import WriteError
from msdump.graph.graph import Node
from msdump.graph.primitive import Attrs, PrimitiveDef
from msdump.graph.types import TensorType
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.communication import get_rank
from msdump.mindspore.dispatch import execute
from msdump.mindspore.names import publish
from msdump.mindspore.ops.gradient_hooks import InsertGradientOf
from msdump.mindspore.ops.primitive import Primitive
from msdump.mindspore.program.autodiff import GradBuilder, Grads
from msdump.mindspore.tracer import current_tracer
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array

_SUFFIX = ".npy"
# A file of this name is none: it ends a step.
_NEXT_STEP = "<tensordump-update-step>"
_MODE = 0o400
_MODES = ("out", "in")


class _Files:
    """What has been written in this process. Any thread may call it.

    steps   those that write files, all when it is empty
    """

    def __init__(self) -> None:
        self.steps: frozenset[int] = frozenset()
        self._lock = threading.Lock()
        self._ids = itertools.count()
        # Graphs and PyNative code count their own steps.
        self._step = {True: 0, False: 0}

    def path(self, file: str, dtype: str, mode: str = "", is_graph: bool = False) -> str:
        """Path of the next file, whose folder is made; "" where none is written.

        file   `{step}` and `{rank}` in it become `step0`, `rank0` and so on
        """
        from msdump.formats.folders import make_dirs

        with self._lock:
            if file == _NEXT_STEP:
                self._step[is_graph] += 1
                return ""
            step = self._step[is_graph]
            if self.steps and step not in self.steps:
                return ""
            number = next(self._ids)
        name = file.removesuffix(_SUFFIX).replace("{step}", f"step{step}").replace("{rank}", f"rank{get_rank()}")
        parts = [name, *([mode] if mode else []), dtype, str(number)]
        path = os.path.abspath("_".join(parts) + _SUFFIX)
        make_dirs(os.path.dirname(path))
        return path


dumped_files = _Files()


def _infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
    return (TensorType("int32", (1,)),)


def _write(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
    from msdump.formats.atomic import write_file
    from msdump.formats.npy import npy_array, numpy_chunks

    out[0][...] = 0
    (array,) = inputs
    dtype = dtypes.dtype_from_numpy(array.dtype).name
    try:
        path = dumped_files.path(attrs["file"], dtype, attrs["shown_mode"], attrs["is_graph"])
        if path:
            write_file(path, numpy_chunks(npy_array(array, dtype)), _MODE, replace=True)
    except WriteError as error:
        # It is the script that writes, as with numpy.save.
        raise OSError(str(error)) from error


def _no_gradient(builder: GradBuilder, node: Node, outer: Grads) -> Grads:
    return [None]


_DEFINITION = PrimitiveDef(
    "TensorDump", has_side_effect=True, infer=_infer, bprop=_no_gradient, kernels={"numpy": _write}
)


class TensorDump(Primitive):
    """Write the input to `{file}_{dtype}_{id}.npy`; the result is None. No gradient flows through it.

    input_output   "out" or "in"; nothing is cut here, so both write the same tensor
    Edges:   bfloat16 is written as float32. `id` counts the files of the process.
    Raises:  TypeError, ValueError for wrong arguments; OSError when the file cannot be written.
    """

    def __init__(self, input_output: str = "out") -> None:
        if input_output not in _MODES:
            raise ValueError(f"The 'input_output' argument should be one of {list(_MODES)}, but got: {input_output}")
        super().__init__(input_output=input_output)

    def compute(self, file: str, input_x: Tensor) -> None:
        """Write now, or at each run of the graph."""
        if not isinstance(file, str):
            raise TypeError(f"{self.name}: expected 'file' to be a str, got {type(file).__name__}.")
        if not file:
            raise ValueError(f"{self.name}: expected 'file' to be the path of a file, got an empty text.")
        if not isinstance(input_x, Tensor):
            raise TypeError(f"{self.name}: expected 'input_x' to be a Tensor, got {type(input_x).__name__}.")
        tracer = current_tracer()
        is_graph = tracer is not None and (not tracer.is_recording or tracer.stands_for_graph)
        mode = self.attrs["input_output"]
        # Source: MindSpore in PyNative mode leaves the mode out of the name.
        shown = mode if is_graph and mode == "in" else ""
        attrs = {**self.attrs, "file": file, "shown_mode": shown, "is_graph": is_graph}
        execute(self.name, [input_x], attrs, _DEFINITION)


class DumpGradient(Primitive):
    """The input `x`; its gradient is written to `{path}_{dtype}_{id}.npy`."""

    def compute(self, path: str, x: Tensor, input_output: str) -> Tensor:
        """`x`; `input_output` is taken, the name of the file does not tell it."""
        write = TensorDump()
        return InsertGradientOf(lambda gradient: write(path, gradient))(x)


def tensordump(file_name: str, tensor: Tensor, mode: str = "out") -> None:
    """`TensorDump(mode)` of a tensor.   Raises: TypeError, ValueError for wrong arguments."""
    for name, value, kind in (("file_name", file_name, str), ("tensor", tensor, Tensor), ("mode", mode, str)):
        if not isinstance(value, kind):
            raise TypeError(f"tensordump: expected '{name}' to be a {kind.__name__}, got {type(value).__name__}.")
    if mode not in _MODES:
        raise ValueError(f"tensordump: expected 'mode' to be one of {list(_MODES)}, got {mode!r}.")
    TensorDump(mode)(file_name, tensor)


publish(__name__)
