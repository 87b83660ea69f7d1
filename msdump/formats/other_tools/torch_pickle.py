"""What a pickle of `torch.save` says, without running anything: dictionaries, lists, plain values, places of tensors.

No class or function that a pickle names is looked up: calls that rebuild a tensor are carried out by functions below;
any other becomes a `Foreign`, which stands for a value that only code could make. Dictionaries are lists of pairs, so
nothing of a stranger is hashed or compared.

Source: the pickle format, protocols 0 to 5; torch.serialization.
"""

from __future__ import annotations

import pickletools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msdump.formats.pt_tensor import STORAGE_DTYPES
from msdump.tensors import dtypes
from msdump.tensors.records import MAX_NDIM

_MAX_OPCODES = 1 << 22
_BYTES = "bytes"  # of a storage without a dtype
_MAX_SIZE = 1 << 62
# Words of torch for dtypes that the table calls otherwise.
_DTYPES = {row.name: row.name for row in dtypes.TABLE if row.numpy_type is not None and row.bits >= 8} | {
    "float8_e8m0fnu": "float8_e8m0"
}


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value that only code could make.   name: of the class or function"""

    name: str


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor of the file.

    key      of the storage that holds it
    offset, strides   in elements
    problem  why it cannot be read, else ""
    """

    dtype: str
    key: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    problem: str = ""


@dataclass(slots=True)
class Pairs:
    """A dictionary."""

    items: list[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class _Name:
    """A class or function that the pickle names; nothing was looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"[:160]


@dataclass(frozen=True, slots=True)
class _Storage:
    dtype: str
    key: str


class _Mark:
    """Where the items of a list, tuple or dictionary begin on the stack."""


_MARK = _Mark()


def read_pickle(content: bytes) -> Any:
    """The value of a pickle: str, bytes, int, float, bool, None, list, tuple, `Pairs`, `TensorView` or `Foreign`.

    Edges:  values may hold themselves; equal ones may be one object.
    Raises: ValueError, IndexError or TypeError for what is no pickle of torch.save.
    """
    with warnings.catch_warnings():
        # Python warns of what it finds in damaged names.
        warnings.simplefilter("ignore")
        return _Machine().run(content)


class _Machine:
    """The stack and the memo of one pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, content: bytes) -> Any:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(content)):
            if number >= _MAX_OPCODES:
                raise ValueError(f"a pickle of more than {_MAX_OPCODES} instructions")
            name = opcode.name
            if name == "STOP":
                return self._stack.pop()
            if name in _VALUES:
                self._stack.append(argument)
            else:
                step = _STEPS.get(name)
                if step is None:
                    raise ValueError(f"a pickle with {name}")
                step(self, argument)
        raise ValueError("a pickle without an end")

    # -- steps ----------------------------------------------------------------------------------------------------

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def mark(self, _: Any) -> None:
        self._stack.append(_MARK)

    def pop(self, _: Any) -> None:
        self._stack.pop()

    def pop_mark(self, _: Any) -> None:
        self._since_mark()

    def dup(self, _: Any) -> None:
        self._stack.append(self._stack[-1])

    def put(self, argument: Any) -> None:
        index = len(self._memo) if argument is None else int(argument)
        self._memo[index] = self._stack[-1]

    def get(self, argument: Any) -> None:
        if int(argument) not in self._memo:
            raise ValueError("a pickle that takes what it has not kept")
        self._stack.append(self._memo[int(argument)])

    def as_tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._since_mark()))

    def few(self, count: int) -> None:
        items = [self._stack.pop() for _ in range(count)]
        self._stack.append(tuple(reversed(items)))

    def as_list(self, _: Any) -> None:
        self._stack.append(self._since_mark())

    def as_dict(self, _: Any) -> None:
        self._stack.append(Pairs(_paired(self._since_mark())))

    def append(self, _: Any) -> None:
        value = self._stack.pop()
        self._extend([value])

    def appends(self, _: Any) -> None:
        self._extend(self._since_mark())

    def set_item(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set([(key, value)])

    def set_items(self, _: Any) -> None:
        self._set(_paired(self._since_mark()))

    def name_(self, argument: Any) -> None:
        module, _, name = str(argument).partition(" ")
        self._stack.append(_Name(module, name))

    def stack_name(self, _: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a class without a name")
        self._stack.append(_Name(module, name))

    def storage(self, _: Any) -> None:
        pid = self._stack.pop()
        kind, storage_type, key, *_rest = pid if isinstance(pid, tuple) else (None, None, None)
        if kind != "storage" or not isinstance(storage_type, _Name) or not isinstance(key, str):
            raise ValueError("a storage of unknown type")
        dtype = _BYTES if storage_type.name == "UntypedStorage" else STORAGE_DTYPES.get(storage_type.name)
        if dtype is None or not storage_type.module.startswith("torch"):
            raise ValueError(f"a storage of type {storage_type}")
        self._stack.append(_Storage(dtype, key))

    def call(self, _: Any) -> None:
        arguments, function = self._stack.pop(), self._stack.pop()
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise ValueError("a call of what is no function")
        self._stack.append(_called(function, arguments))

    def call_with_names(self, _: Any) -> None:
        self._stack.pop()
        self.call(None)

    def build(self, _: Any) -> None:
        # The state of a dictionary says nothing of tensors; that of another object would need its class.
        self._stack.pop()

    # -- parts -----------------------------------------------------------------------------------------------------

    def _since_mark(self) -> list[Any]:
        items: list[Any] = []
        while (value := self._stack.pop()) is not _MARK:
            items.append(value)
        items.reverse()
        return items

    def _extend(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, list):
            target.extend(values)
        elif not isinstance(target, Foreign):
            raise ValueError("items of what is no list")

    def _set(self, items: list[tuple[Any, Any]]) -> None:
        target = self._stack[-1]
        if isinstance(target, Pairs):
            target.items.extend(items)
        elif not isinstance(target, Foreign):
            raise ValueError("items of what is no dictionary")


def _called(function: Any, arguments: Any) -> Any:
    """What a call makes, as far as it is one of those below; nothing is looked up."""
    if not isinstance(function, _Name) or not isinstance(arguments, tuple):
        return Foreign("a call of what is no function")
    made = _CALLS.get((function.module, function.name))
    return Foreign(str(function)) if made is None else made(*arguments)


def _paired(items: list[Any]) -> list[tuple[Any, Any]]:
    if len(items) % 2:
        raise ValueError("a key without a value")
    return list(zip(items[::2], items[1::2], strict=True))


def _tensor(
    storage: Any,
    offset: Any,
    shape: Any,
    strides: Any,
    _requires_grad: Any = None,
    _hooks: Any = None,
    marks: Any = None,
) -> Any:
    dtype = storage.dtype if isinstance(storage, _Storage) else ""
    is_turned = isinstance(marks, Pairs) and bool(marks.items)
    problem = "a conjugate or negative view: save `tensor.resolve_conj().resolve_neg()`" if is_turned else ""
    return _view(storage, dtype, offset, shape, strides, problem)


def _tensor_of_dtype(
    storage: Any, offset: Any, shape: Any, strides: Any, _requires_grad: Any = None, _hooks: Any = None,
    dtype: Any = None, *_: Any,
) -> Any:  # fmt: skip
    name = dtype.name if isinstance(dtype, _Name) else ""
    return _view(
        storage, _DTYPES.get(name, ""), offset, shape, strides, "" if name in _DTYPES else f"dtype {name[:80]}"
    )


def _view(storage: Any, dtype: str, offset: Any, shape: Any, strides: Any, problem: str) -> TensorView:
    is_sound = isinstance(storage, _Storage) and isinstance(shape, tuple) and isinstance(strides, tuple)
    if not is_sound or not len(shape) == len(strides) <= MAX_NDIM:
        raise ValueError("a tensor without storage, shape or strides")
    if not all(type(number) is int and 0 <= number < _MAX_SIZE for number in (offset, *shape, *strides)):
        raise ValueError("a tensor with offset, shape or strides that are no sizes")
    return TensorView("uint8" if dtype == _BYTES else dtype, storage.key, offset, shape, strides, problem)


def _old_tensor(storage: Any, offset: Any, shape: Any, strides: Any) -> Any:
    return _tensor(storage, offset, shape, strides)


def _first(value: Any = None, *_: Any) -> Any:
    return value


def _dictionary(*entries: Any) -> Any:
    if entries and isinstance(entries[0], list):
        pairs = [tuple(pair) for pair in entries[0] if isinstance(pair, list | tuple) and len(pair) == 2]
        return Pairs(pairs)
    return Pairs([])


def _size(sizes: Any = (), *_: Any) -> Any:
    return sizes if isinstance(sizes, tuple) else tuple(sizes) if isinstance(sizes, list) else ()


_CALLS: dict[tuple[str, str], Callable[..., Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_dtype,
    ("torch._utils", "_rebuild_tensor"): _old_tensor,
    ("torch._utils", "_rebuild_parameter"): _first,
    ("torch._utils", "_rebuild_parameter_with_state"): _first,
    ("torch._tensor", "_rebuild_from_type_v2"): lambda function, _type, arguments, *_: _called(function, arguments),
    ("collections", "OrderedDict"): _dictionary,
    ("collections", "defaultdict"): lambda *_: Pairs([]),
    ("torch", "Size"): _size,
}
_VALUES = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    )
)
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_DICT": lambda machine, _: machine.push(Pairs([])),
    "EMPTY_SET": lambda machine, _: machine.push([]),
    "MARK": _Machine.mark,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "DUP": _Machine.dup,
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.put,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "TUPLE": _Machine.as_tuple,
    "LIST": _Machine.as_list,
    "FROZENSET": _Machine.as_list,
    "DICT": _Machine.as_dict,
    "TUPLE1": lambda machine, _: machine.few(1),
    "TUPLE2": lambda machine, _: machine.few(2),
    "TUPLE3": lambda machine, _: machine.few(3),
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "ADDITEMS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.name_,
    "STACK_GLOBAL": _Machine.stack_name,
    "BINPERSID": _Machine.storage,
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "NEWOBJ_EX": _Machine.call_with_names,
    "BUILD": _Machine.build,
}
