"""Operators of eager PyTorch as its own callbacks see them, and statistics of their tensors, in compiled code.

import msdump_native

if not msdump_native.check():
    observer = msdump_native.Observer()
    observer.enable()
    ...  # forward
    forward = observer.take()
    ...  # backward
    backward = observer.take()
    observer.disable()
"""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any, TypedDict

import numpy as np
import torch

TORCH_VERSION: str  # which it was built for
INTERFACE: int  # counts up when msdump gives the observer other arguments than before
INSTRUCTIONS: str  # "avx512", "avx2" or "plain": what the statistics are compiled for on this processor
REASONS: list[str]  # why tensors are skipped, by the number in `reason`

def check() -> str:
    """Why it cannot be used, or "". The first call runs three operators; later ones cost nothing.

    Every other name of this module raises ImportError where it was built for another PyTorch or does not load.
    """

def measure(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Statistics of one tensor: an array of one record, as `measurements` of `Batch`.

    Shapes:  any, with any strides; nothing is copied as a whole.
    Edges:   one of codes (quantized) counts as the numbers that they mean.
    Dtypes:  float64, float32, float16, bfloat16, int8, int16, int32, int64, uint8, bool; on a CUDA device as well
             float8_e4m3fn, float8_e5m2, float8_e8m0fnu, uint16 and uint32.
    Raises:  TypeError for what is no tensor; ValueError for one that is no plain tensor of these dtypes, or on a
             device that `use_cuda` was not called for.
    """

def use_cuda(index: int) -> str:
    """Measure tensors on a CUDA device from now on.   Returns: why it cannot, or "".

    The first call compiles the kernels for that kind of device, and measures a tensor.
    """

class Numbers:
    """Statistics by place. Those of an iteration grow while it runs; an empty one is for tests."""

    def __len__(self) -> int: ...
    def since(self, first: int, last: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Copies of `measurements` from a place to before another one, and bools: which of them are integers."""
    def add(self, numbers: np.ndarray[Any, Any], are_integers: np.ndarray[Any, Any]) -> None:
        """Raises: ValueError for two arrays of other lengths."""
    def put(self, place: int, record: np.ndarray[Any, Any], is_integer: bool) -> None:
        """In the place of what is there, as of a tensor that compiled code does not measure."""

class Frames:
    """What stands in rows beside time stamps and numbers: heads, tails, and the place in `Numbers` of each tensor.

    Raises:  ValueError for lists of other lengths, TypeError for what is no text.
    """

    def __init__(self, heads: list[str], tails: list[str], places: list[int]) -> None: ...
    def lines(self, numbers: Numbers, first_stamp: int, attributes: Sequence[str], end: str) -> str:
        """Lines of one text each: head, time stamp, tail, numbers with commas between, and the end.

        first_stamp  of the first line; each has one more than the one before
        attributes   of `msdump.statistics.stats.Statistics`; max, min, avg and l2norm as `%g` prints them, `null` for
                     the first three where no value is finite, the others as `%d`
        Raises:      ValueError for places and attributes that are none.
        """

class Key:
    """What was seen from one `take` or `drop` to the next. Equal ones give the same names, edges and rows.

    Addresses are no part of it, but for those of parameters that have a number. Sequence numbers count from the first
    of the iteration.
    """

    def __eq__(self, other: object) -> bool: ...
    def changed(self, other: Key) -> list[int]:
        """Operators whose floats are others than those of an equal key."""

class Observer:
    """Sees operators of the thread that enables it, and of threads that autograd runs parts of it in.

    It is told what a TorchDispatchMode is told: operators that are not made of others, when they are not run by another
    one. An operator is recorded when it ends. One that raises is recorded without results. Operators of higher order
    are Python's and are not seen.

    measures      whether statistics are wanted; otherwise tensors are told apart and nothing more
    stops         codes of Python's at which the frames that tell call sites apart end; the frame itself is left out
    passed_files  files whose frames are passed over
    own_folders   where code is that is no script's: without any of a script among the frames that tell call sites
                  apart, the first one outside tells them apart as well, since its line is shown; () for none
    max_frames    frames that a call site has at most
    """

    def __init__(
        self,
        *,
        measures: bool = True,
        stops: tuple[CodeType, ...] = (),
        passed_files: Sequence[str] = (),
        own_folders: Sequence[str] = (),
        max_frames: int = 16,
    ) -> None: ...
    @property
    def is_enabled(self) -> bool:
        """False as well when it has failed, which `Batch` tells of, and in a child process after a fork."""
    def enable(self) -> None:
        """Raises: RuntimeError where another observer is on in this process. Idempotent."""
    def disable(self) -> None:
        """Then operators cost what they cost without it, in the thread that enabled it. Idempotent."""
    def begin_iteration(self) -> None:
        """Number tensors and count writes anew. Until then, storages are held weakly, so that none gets the address of
        another; each takes some 100 bytes. `take` before: what was not taken is lost, but for the operators."""
    def set_handler(self, handler: Callable[[str, bool], bool] | None) -> None:
        """Call it before an operator that runs in another state than the last one: with its name, and whether autograd
        runs it. The other half of the state is whether autograd records. It returns whether operators are to be
        recorded, until the state is another. What it raises disables the observer, and is the batch's `failure`.
        """
    asks: bool  # whether the handler is called before each operator
    scope: int  # what records have as `scope` from now on
    def expect(self, keys: np.ndarray[Any, Any], are_measured: np.ndarray[Any, Any]) -> None:
        """What is to run until the next `take`, and which of it is to be measured.

        keys          `key` of the operators, in the order in which they begin
        are_measured  of each, 0 or 1. From the first operator on that is another one than expected all are measured
        Raises:       ValueError for two arrays of other lengths.
        """

    def keep(self, keeps: bool) -> None:
        """Copy tensors on the CPU, of all dtypes, in the place of measuring them; between two iterations."""

    def take(self) -> Batch:
        """What was seen since the last call."""
    def key(self, state: str) -> Key:
        """Of what would be taken; `state`: what else it depends on."""
    def drop(self) -> None:
        """Forget the operators that would be taken. Their tensors are taken the next time."""
    def name_parameters(self, numbers: dict[int, int]) -> None:
        """Parameters by `tensor._cdata`: keys tell them apart by their numbers."""
    def lie_at(self, tensors: list[torch.Tensor], places: list[int]) -> bool:
        """Whether each tensor lies in the storage in which the tensor of the iteration at its place lay."""
    count: int  # of operators that would be taken
    has_kept: bool  # whether there are tensors among them that were copied
    failure: str  # as of `Batch`
    first_sequence: int  # number of autograd with which the iteration began
    numbers: Numbers  # of the iteration

class Arguments:
    """Arguments of the operators of a batch that are no tensors; objects are made when they are asked for."""

    def of(self, index: int) -> dict[str, object]:
        """Of an operator, by name, as a TorchDispatchMode is given them: defaults at the end of those by position, and
        those of keywords, are left out.   Raises: IndexError.
        """

class Batch(TypedDict):
    """Arrays of records. Numbers of tensors, measurements and dimensions count from the beginning of the iteration:
    the arrays here begin with those of the numbers `first_*`. 4294967295 is none.

    operators: in the order in which a TorchDispatchMode sees them
        name             place in `names`
        first_operand, operand_count   in `operands`
        first_number, number_count     in `numbers`: floats among its arguments, alone, in lists, and as tensors of 0
                                       dimensions that stand for a number of Python's
        node_name        of the node of autograd that runs it, in `node_names`; none outside of a backward pass
        node             tells nodes of one backward pass apart; 0
        node_sequence    its sequence number, -1; the node was made by the operator whose numbers hold it:
        first_sequence, last_sequence  from the first to before the last; a thread counts for itself
        site             64-bit hash of files, first lines of functions and instructions of the frames of Python's;
                         0 where there are none, or where the thread runs without the GIL, as autograd does
        thread           as `threading.get_ident`
        start_ns, duration_ns   by a clock of its own; without what is measured
        key              64-bit hash of what is known of it before its operands: name, site, scope, node_name, has_grad,
                         and node_sequence from the first of the iteration
        first_argument   for `arguments`
        scope            what Python had set
        has_grad         whether autograd records
        has_raised
        is_from_autograd  run by the kernel of autograd of another operator, as copies for the gradient are
    operands: of an operator those that it is given, then its results
        implementation   address of the tensor's own object, `tensor._cdata`
        tensor           place in `tensors`; none where it was skipped
        element          place in a list; -1
        argument         place of the argument, or of the result, in the schema
        role             0 input, 1 memory for a result (`out=`), 2 result, 3 argument that was written, of an operator
                         that returns nothing
        is_written       the operator may write it
        reason           why it was skipped, or has no statistics though they were wanted; 0
    tensors: one for each part of memory, in one state
        storage          address: `tensor.untyped_storage()._cdata`
        version          writes to this storage in this iteration
        offset           in elements
        first_dimension, dimension_count   in `dimensions`: so many sizes, and behind them as many strides
        dtype            c10::ScalarType: 0 uint8, 1 int8, 2 int16, 3 int32, 4 int64, 5 float16, 6 float32, 7 float64,
                         11 bool, 15 bfloat16
        memory           the storage, numbered by first use in the iteration
        is_conjugate, is_negative   whether its values are those of what lies in memory
        measurement      place in `measurements`; none. Transposed views share one
    measurements: float64 and int64, as `msdump.statistics.stats.Statistics`
        maximum, minimum of floats, NaN where none is finite; integer_maximum, integer_minimum of the others
        sum, squares, average, norm, count, negative, positive, zero, nan, negative_inf, positive_inf, size_bytes
    kept: of tensors that compiled code does not measure: place in `measurements`, where only the count is known; a copy
        of their elements; whether the values are the negatives of these. The copy has one axis, in the order of
        memory; after `keep`, that of a tensor that does not show all of a piece of memory has its shape
    sites: of hashes met for the first time, (hash, frames that tell it apart, frames): each frame is file, function,
        first line of the function, line and instruction, innermost first, up to the outermost or 256
    names, node_names: all that were met so far
    skipped: how often since the observer was made, by reason: tensors without a record or without statistics
    measure_ns: time that statistics took since the observer was made
    failure: why it has disabled itself, or ""
    """

    operators: np.ndarray[Any, Any]
    operands: np.ndarray[Any, Any]
    numbers: np.ndarray[Any, Any]
    arguments: Arguments
    tensors: np.ndarray[Any, Any]
    measurements: np.ndarray[Any, Any]
    dimensions: np.ndarray[Any, Any]
    kept: list[tuple[int, torch.Tensor, bool]]
    first_tensor: int
    first_measurement: int
    first_dimension: int
    sites: list[tuple[int, int, tuple[tuple[str, str, int, int, int], ...]]]
    names: list[str]
    node_names: list[str]
    skipped: dict[str, int]
    measure_ns: int
    failure: str
