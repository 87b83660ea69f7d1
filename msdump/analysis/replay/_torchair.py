"""Operators of TorchAir's eager data dump again: its files hold every argument, tensors, numbers and words alike."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from msdump.analysis.find.look_up import FoundOperator
from msdump.analysis.replay import _aten as aten
from msdump.analysis.replay._call import DumpedCall, load_narrow
from msdump.analysis.steps import Slot
from msdump.errors import ConfigError, FormatError
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_folders import is_plain_below
from msdump.formats.dump_tensor import DumpedFile
from msdump.formats.paths.torchair import SKIPPED_FILE
from msdump.formats.selection import StepSelection
from msdump.storage.files import exists, read_file
from msdump.storage.plain import readable
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT

_TEXT_BYTES = 1 << 16
_LIST_BYTES = 1 << 24
_NONE = "None"
# Arrays that a Python number becomes.
_NUMBERS = tuple(np.dtype(kind).name for kind in (float, int, bool, complex))


def torchair_call(dump: DumpDir, target: FoundOperator) -> DumpedCall:
    """The call of an operator; what no file holds has the default of the operator's schema.

    Raises: ConfigError for an operator that is not PyTorch's, an argument that no file could hold, or one that is
            missing.
    """
    operator = target.operator
    op_type, label = operator.op_type, operator.label
    schema = aten.overload_of(op_type)._schema
    arguments = list(schema.arguments)
    by_name = {argument.name: argument for argument in arguments}
    files = _files(dump, target)
    reason = _skipped(files[0], operator.op_name, op_type)
    if reason:
        raise ConfigError(f"{label}: expected all its arguments in the dump, got none of {reason}")
    operands: list[tuple[str, Array]] = []
    attrs: dict[str, Any] = {}
    notes: list[str] = []
    loaded = {tensor.file.path: load_narrow(tensor) for _, _, tensor in operator.all_tensors()}
    for file in files:
        name = file.name.keyword
        if name is None and file.slot is not None and file.slot < len(arguments):
            name = arguments[file.slot].name
        if name is None or name not in by_name:
            raise ConfigError(
                f"{label}: expected arguments of its schema, got {file.original_name}: another version's?"
            )
        array = loaded[file.path] if file.path in loaded else _text(file)
        if array is None:
            is_dtype = "ScalarType" in str(getattr(by_name[name], "real_type", by_name[name].type)) and operator.outputs
            if is_dtype:
                attrs[name] = next(iter(operator.outputs.values())).true_dtype
            taken = "taken as that of the result" if is_dtype else "taken as None"
            notes.append(f"argument {name} is a pickle, which is not opened: {taken}")
            continue
        if "Tensor" in str(by_name[name].type) and not isinstance(array, str):
            operands.append((name if file.name.part is None else f"{name}[{file.name.part}]", array))
        elif isinstance(array, np.ndarray) or array != _NONE:
            attrs[name] = _value(array)
    outputs = {Slot(n): loaded[tensor.file.path] for n, tensor in enumerate(operator.outputs.values())}
    plain = DumpedCall(op_type, (), (), {}, outputs, notes=(*notes, *_defaults(by_name, operands, attrs)))
    return _with_numbers(plain, operands, attrs)


def _with_numbers(call: DumpedCall, operands: list[tuple[str, Array]], attrs: Mapping[str, Any]) -> DumpedCall:
    """A number in the place of a tensor promotes no dtype, a tensor of no axes may: the one that gives the dumped
    dtypes."""

    def made(numbers: Mapping[str, Array]) -> DumpedCall:
        tensors = [(name, array) for name, array in operands if name not in numbers]
        values = {**attrs, **{name: _value(array) for name, array in numbers.items()}}
        return replace(
            call, inputs=tuple(array for _, array in tensors), names=tuple(name for name, _ in tensors), attrs=values
        )

    numbers = {name: array for name, array in operands if array.ndim == 0 and array.dtype.name in _NUMBERS}
    is_first = bool(operands) and operands[0][0] in numbers
    if not numbers or is_first:
        return made({})
    with_numbers = made(numbers)
    try:
        results = aten.run_aten(with_numbers)
    except ConfigError:
        return made({})
    fits = all(
        slot.number < len(results) and results[slot.number].dtype == array.dtype for slot, array in call.outputs.items()
    )
    return with_numbers if fits else made({})


def _files(dump: DumpDir, target: FoundOperator) -> list[DumpedFile]:
    """Of its arguments, in their order."""
    operator = target.operator
    place = next(tensor.file.levels for _, _, tensor in operator.all_tensors())
    selection = StepSelection(target.key.rank_id, target.key.graph_id, target.key.iteration)
    newest: dict[tuple[Any, ...], DumpedFile] = {}
    for file in dump.files_of(selection):
        is_own = file.levels == place and (file.op_type, file.op_name) == (operator.op_type, operator.op_name)
        if is_own and file.io == INPUT:
            newest[file.slot, file.name.keyword or "", -1 if file.name.part is None else file.name.part] = file
    if not newest:
        raise ConfigError(f"{operator.label}: expected its inputs in the dump, got none.")
    return [newest[key] for key in sorted(newest)]


def _text(file: DumpedFile) -> str | None:
    """A word; None for a pickle, as which TorchAir itself writes None and dtypes.

    Raises: ConfigError for a damaged file, or one that holds something else.
    """
    try:
        with readable(file.path):
            array = np.load(io.BytesIO(read_file(file.path, _TEXT_BYTES)), allow_pickle=False)
    except (FormatError, ValueError, EOFError) as error:
        if "Object arrays" in str(error):
            return None
        raise ConfigError(f"{file.path}: expected an argument, got a damaged file. Dump again.") from error
    if array.dtype.kind != "U" or array.ndim:
        raise ConfigError(f"{file.path}: expected an argument, got an array of {array.dtype}.")
    return str(array)


def _value(array: Array | str) -> Any:
    """Of an argument that is no tensor: numbers, lists, words; a dtype is its name, a complex number text."""
    if isinstance(array, str):
        return array.removeprefix("torch.")
    value = array.tolist()
    return str(value) if isinstance(value, complex) else tuple(value) if isinstance(value, list) else value


def _skipped(file: DumpedFile, node: str, op_type: str) -> str:
    """The argument of an operator that no file could hold, with the reason; "" where all have one."""
    folder, _, _ = file.path.rpartition("/")
    path = f"{folder}/{SKIPPED_FILE}"
    if not exists(path) or not is_plain_below(path, folder):
        return ""
    lines = read_file(path, _LIST_BYTES).decode(errors="replace").splitlines()
    before = f"{node}-{op_type}.INPUT."
    return next((line.removeprefix(before)[:300] for line in lines if line.startswith(before)), "")


def _defaults(by_name: Mapping[str, Any], operands: list[tuple[str, Array]], attrs: Mapping[str, Any]) -> Iterator[str]:
    """Arguments by name alone that no file holds: TorchAir itself writes none of these."""
    given = {name.partition("[")[0] for name, _ in operands} | set(attrs)
    for name, argument in by_name.items():
        if argument.kwarg_only and name not in given and argument.has_default_value() and argument.default_value:
            yield f"argument {name} is not in the dump: {argument.default_value!r} is its default"
