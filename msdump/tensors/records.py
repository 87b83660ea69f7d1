"""The two values that carry everything: OpEvent, inside the process, and TensorRecord, on its way to or from disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from msdump.tensors.arrays import Array, filled_memory
from msdump.tensors.makers import maker

T = TypeVar("T")

INPUT, OUTPUT = "input", "output"
DEFAULT_FORMAT = "DefaultFormat"
TINY_BYTES = 16 << 10  # up to here a tensor takes Python's time, which threads cannot share but would fight for
MAX_NDIM = 64  # axes of an array that numpy, from 2.0 on, or torch can have
# Bits of the per-node mask that an observer returns from `on_graph`. KEEP: its operands are looked at when the
# iteration ends, so their memory is no other value's before; without it an executor that does not keep all memory may
# leave the arrays of its event out.
BEFORE, AFTER, KEEP = 1, 2, 4


class TensorKey(NamedTuple):
    """Which bytes a tensor holds, known without looking at them.

    Two uses with equal keys in one iteration of one graph hold the same bytes: `value_id` is the storage,
    `version` counts how often a mutating operator has written it before this use.
    """

    value_id: int
    version: int


# Key, shape, dtype, format.
Identity = tuple[TensorKey, tuple[int, ...], str, str]


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One tensor of one operator.

    data         array with the logical shape; C order; owned by the maker of the record and valid only while
                 the call that receives it runs, unless that call says otherwise
    op_name      full name with scope ("Default/conv1-Conv2d/Conv2D-op12"); parameters: the parameter's name
    format       tensor layout ("DefaultFormat", "NCHW", "NC1HWC0", ...); a device format is one that the tensor is
                 to be written in, `data` has the host's layout all the same
    timestamp_us microseconds since the epoch, strictly increasing within a process
    key          None when nothing is known about who else holds the same bytes
    sub_format   group count of FRACTAL_Z, 0 without groups
    is_repeat    True: an earlier record of the same iteration and graph had the same key, shape, dtype and format,
                 and `data` shows only the shape. Writers that say `writes_once` take such records.
    original     of an output: name and output of the operator that it is in the program as the user wrote it; None
                 where it is not known. Files of whole operators store it.
    is_constant  True: the tensor of this key keeps its values as long as its graph lives
    """

    op_type: str
    op_name: str
    task_id: int
    stream_id: int
    timestamp_us: int
    io: str
    slot: int
    dtype: str
    data: Array
    format: str = DEFAULT_FORMAT
    iteration: int = 0
    graph_id: int = 0
    key: TensorKey | None = None
    is_parameter: bool = False
    sub_format: int = 0
    is_repeat: bool = False
    original: tuple[str, int] | None = None
    is_constant: bool = False

    @property
    def identity(self) -> Identity | None:
        """What two records of one iteration and graph share when the same file can stand for both; None: with none."""
        return None if self.key is None else (self.key, self.data.shape, self.dtype, self.format)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    @property
    def size_bytes(self) -> int:
        return int(self.data.nbytes)

    @property
    def filled_memory(self) -> tuple[int, int, str] | None:
        """Address, size in bytes and dtype of memory that `data` fills without gaps; None when there are gaps.

        Tensors that fill the same memory at the same time hold the same elements, maybe in another order: one may be
        the transpose of the other.
        """
        memory = None if self.is_repeat else filled_memory(self.data)
        return None if memory is None else (*memory, self.dtype)


made_record = maker(TensorRecord)
"""As `TensorRecord`, where there is one for each tensor of a step."""


class AlreadyWritten(Generic[T]):
    """Which tensors an iteration of a graph has handed over or has on disk, and what stands for each: a job, a file...

    A record that has no identity never stands for another.
    """

    __slots__ = ("_by_identity",)

    def __init__(self) -> None:
        self._by_identity: dict[Identity, T | None] = {}

    def has(self, identity: Identity | None) -> bool:
        return identity in self._by_identity

    def is_new(self, record: TensorRecord) -> bool:
        """Whether its tensor has not come before; it has from now on."""
        identity = record.identity
        if identity is None:
            return True
        if identity in self._by_identity:
            return False
        self._by_identity[identity] = None
        return True

    def get(self, record: TensorRecord) -> T | None:
        """What stands for the tensor."""
        identity = record.identity
        return None if identity is None else self._by_identity.get(identity)

    def put(self, record: TensorRecord, value: T | None) -> None:
        """From now on this stands for the tensor. One assignment, so any thread may do it."""
        identity = record.identity
        if identity is not None:
            self._by_identity[identity] = value


# -- events: one operator is about to run or has just run --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What is known about one operand before anything ran.

    sub_format   group count of FRACTAL_Z
    original     name and output of the operator that it is in the program as the user wrote it; None where unknown
    """

    key: TensorKey
    dtype: str
    shape: tuple[int, ...]
    format: str = DEFAULT_FORMAT
    sub_format: int = 0
    original: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class OpInfo:
    """What is known about one operator before anything ran. `index` is its position in the execution order.

    is_marked   the script asked for it with `set_dump`
    """

    graph_id: int
    index: int
    op_type: str
    full_name: str
    task_id: int
    stream_id: int
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    mutates: tuple[int, ...] = ()
    is_marked: bool = False


@dataclass(frozen=True, slots=True)
class OpEvent:
    """One operator at one moment. Arrays are the executor's own memory: copy what must outlive the call."""

    op: OpInfo
    iteration: int
    inputs: Sequence[Array]
    outputs: Sequence[Array]


made_event = maker(OpEvent)
"""As `OpEvent`, where there is one for each operator of a step."""
