"""Statistics of every tensor of a dump: one pass each, all cores; as values, as statistic.csv, as a table.

from msdump.analysis import tensor_statistics
for row in tensor_statistics("dump").rows:
    row.tensor.op_name, row.numbers.max, row.numbers.nan
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msdump.analysis._payload import Key, Progress, all_in_order, in_runs, key_of, loaded, loaded_each
from msdump.analysis.graph_info import GraphFiles, GraphNode
from msdump.analysis.measurements import Measurements
from msdump.analysis.memory_state import UnsetTensors, same_in
from msdump.analysis.missing import lost_of
from msdump.analysis.roles import Role, Roles
from msdump.analysis.stat.rows import StatisticReport, TensorStatistics, tensor_statistics_row
from msdump.analysis.steps import Operator, Step, StepKey, nothing_selected, opened, read_statistic_steps, read_steps
from msdump.errors import ConfigError, DtypeError, FormatError, NothingFoundError, did_you_mean
from msdump.formats.dump_dir import DumpDir
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.sync import STATISTIC_FILE, selected_op_types
from msdump.formats.selection import StepSelection
from msdump.formats.statistic_csv import StatisticWriter
from msdump.formats.statistic_row import StatisticRow
from msdump.statistics.batches import measure_each
from msdump.statistics.exponents import ExponentHistogram, exponent_histogram
from msdump.statistics.md5 import md5_many
from msdump.statistics.stats import Statistics
from msdump.storage import files
from msdump.storage.plain import unreadable
from msdump.tensors import dtypes
from msdump.tensors.arrays import Array
from msdump.tensors.records import TensorKey, TensorRecord


def tensor_statistics(
    dump: DumpDir | str | os.PathLike[str],
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    op_type: str | Collection[str] | None = None,
    has_md5: bool = False,
    is_raw: bool = False,
    has_exponents: bool = False,
    is_strict: bool = True,
    measurements: Measurements | None = None,
    thread_count: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> StatisticReport:
    """Statistics of all tensors of a dump; where a step has no tensors, what its statistic.csv says.

    op_type    only operators of these types
    has_md5    also the MD5 of the bytes, which takes longer than all other columns together
    is_raw     measure data in a device format as they are stored, with their padding, not as the host has them
    has_exponents  also count the elements by sign and exponent, in a second pass
    is_strict  leave out only memory that certainly no operator has written, else all that may be
    measurements  shared with others who ask about the same bytes. They decide about exponents, and what they leave
               unmeasured has a row without numbers. Not with has_md5 or is_raw
    progress   called with (bytes done, bytes in all)

    Edges:   tensors without order (complex, strings) are named in `damaged`; the same bytes are measured once. Memory
             that no operator has written yet (`empty`) has a row without numbers.
    Raises:  ConfigError when there is nothing to measure; FormatError when there is nothing at the path.
    """
    dump = opened(dump)
    selection = StepSelection(rank, graph, iteration)
    with dump.listed_once():
        steps = read_steps(dump, selection)
        table, damaged = read_statistic_steps(dump, selection)
        graphs, lost = GraphFiles(dump), lost_of(dump, selection)
    covered = {step.key for step in steps}
    roles = Roles(graphs)
    listed = [
        (step, tensor)
        for step in steps
        for tensor in _tensors(
            step, op_type, roles, graphs, UnsetTensors(step, graphs.of(step.key), is_strict=is_strict)
        )
    ]
    measure = partial(_measure_group, has_md5=has_md5, is_raw=is_raw, has_exponents=has_exponents)
    if measurements is not None:
        if has_md5 or is_raw:
            raise ConfigError("measurements: expected None where has_md5 or is_raw is set, which they do not have.")
        measure = partial(_known_group, measurements)
    keys = [key_of(pair[0]) for _, pair in listed]
    distinct = dict(zip(keys, (pair[0] for _, pair in listed), strict=True))
    measured, problems = _measure_all(distinct, measure, thread_count, progress, has_md5)
    rows = [
        _row(step.key, pair, *measured[key]) for key, (step, pair) in zip(keys, listed, strict=True) if key in measured
    ]
    for step in table.steps:
        if step.key not in covered:
            unset = UnsetTensors(step, graphs.of(step.key), same_in(table), is_strict)
            for tensor in _tensors(step, op_type, roles, graphs, unset):
                row = table.row(tensor[0])
                rows.append(_row(step.key, tensor, row, row.md5, tensor[0].shape, None))
    problem_list = (*dump.damaged, *damaged, *problems)
    if not rows and not problem_list:
        types = {operator.op_type for step in (*steps, *table.steps) for operator in step.operators}
        if types and op_type is not None:
            raise _unknown_type(op_type, types)
        raise nothing_selected(dump, selection, expected="tensors or statistics")
    return StatisticReport(tuple(rows), problem_list, lost)


_Listed = tuple[DumpedTensor, Role, Operator, int, GraphNode | None, bool]


def _tensors(
    step: Step, op_type: str | Collection[str] | None, roles: Roles, graphs: GraphFiles, unset: UnsetTensors
) -> Iterator[_Listed]:
    """Tensors of a step, each with its role and its operator, that one's number, what a graph file says of it, and
    whether it is unset.
    """
    types = selected_op_types(op_type)
    has_graph = graphs.of(step.key) is not None
    for number, operator in enumerate(step.operators):
        if types is None or operator.op_type in types:
            node = graphs.node(step.key, operator) if has_graph else None
            for io, slot, tensor in operator.all_tensors():
                role = roles.of(step.key, operator, io, slot)
                yield tensor, role, operator, number, node, unset.has(operator, io, slot)


def _row(
    step: StepKey,
    listed: _Listed,
    numbers: Statistics | StatisticRow,
    md5: str | None,
    shape: tuple[int, ...],
    exponents: ExponentHistogram | None,
) -> TensorStatistics:
    tensor, role, operator, number, node, is_unset = listed
    if is_unset:
        numbers, exponents = _unmeasured(tensor), None
    return tensor_statistics_row(step, tensor, numbers, md5, shape, role, operator, number, node, exponents, is_unset)


def _unknown_type(op_type: str | Collection[str], types: Collection[str]) -> NothingFoundError:
    selected = (op_type,) if isinstance(op_type, str) else tuple(op_type)
    hint = " ".join(dict.fromkeys(filter(None, (did_you_mean(name, types) for name in selected))))
    text = f"op_type: expected the type of a dumped operator, got {', '.join(selected)}. {hint}".rstrip()
    some = f"{', '.join(sorted(types)[:20])}{', ...' if len(types) > 20 else ''}"
    return NothingFoundError(f"{text} The dump holds {some}.")


_Measured = tuple[Statistics | StatisticRow, str | None, tuple[int, ...], ExponentHistogram | None]


# Tensors that are digested together, and bytes that they may have then: enough to fill the lanes of `md5_many`.
_GROUP_TENSORS, _GROUP_BYTES = 48, 512 << 20


def _measure_all(
    distinct: Mapping[Key, DumpedTensor],
    measure: Callable[[Sequence[DumpedTensor]], list[_Measured | FormatError]],
    thread_count: int | None,
    progress: Progress | None,
    has_md5: bool,
) -> tuple[dict[Key, _Measured], list[tuple[str, FormatError]]]:
    sizes = {key: tensor.size_bytes for key, tensor in distinct.items()}
    parts = _md5_groups(sizes) if has_md5 else None
    measured: dict[Key, _Measured] = {}
    problems: dict[Key, FormatError] = {}
    for key, result in in_runs(measure, distinct, sizes, thread_count, progress, parts):
        if isinstance(result, FormatError):
            problems[key] = result
        else:
            measured[key] = result
    return measured, [(tensor.path, problems[key]) for key, tensor in distinct.items() if key in problems]


def _md5_groups(sizes: Mapping[Key, int]) -> Iterator[list[Key]]:
    """Tensors of similar size together."""
    group: list[Key] = []
    filled = 0
    for key in sorted(sizes, key=lambda key: -sizes[key]):
        if group and (len(group) == _GROUP_TENSORS or filled + sizes[key] > _GROUP_BYTES):
            yield group
            group, filled = [], 0
        group.append(key)
        filled += sizes[key]
    if group:
        yield group


def _measure_group(
    tensors: Sequence[DumpedTensor], has_md5: bool, is_raw: bool, has_exponents: bool
) -> list[_Measured | FormatError]:
    arrays, problems = loaded_each(tensors, is_raw=is_raw)
    results: dict[int, _Measured | FormatError] = {**problems}
    names = [dtypes.dtype_from_numpy(array.dtype).name for array in arrays.values()]
    digests = md5_many(list(arrays.values())) if has_md5 else [None] * len(arrays)
    for (index, array), name, numbers, digest in zip(
        arrays.items(), names, measure_each(list(arrays.values()), names), digests, strict=True
    ):
        if isinstance(numbers, DtypeError):
            results[index] = FormatError(f"{tensors[index].where}: {numbers}")
        else:
            exponents = exponent_histogram(array, name) if has_exponents else None
            results[index] = numbers, digest, tuple(array.shape), exponents
    return [results[index] for index in range(len(tensors))]


def _known_group(measurements: Measurements, tensors: Sequence[DumpedTensor]) -> list[_Measured | FormatError]:
    return [_known(measurements, tensor) for tensor in tensors]


def _known(measurements: Measurements, tensor: DumpedTensor) -> _Measured | FormatError:
    result = measurements.of(tensor)
    if result is None:
        return _unmeasured(tensor), None, tensor.original_shape or tensor.shape, None
    if isinstance(result, FormatError):
        return result
    return result.numbers, None, result.shape, result.exponents


def _unmeasured(tensor: DumpedTensor) -> StatisticRow:
    """A row without numbers."""
    return StatisticRow(
        tensor.op_type,
        tensor.op_name,
        tensor.task_id or 0,
        tensor.stream_id or 0,
        tensor.timestamp_us or 0,
        tensor.io,
        tensor.slot,
        tensor.size_bytes,
        tensor.true_dtype,
        tensor.shape,
    )


# -- files ---------------------------------------------------------------------------------------------------------


def write_statistic_files(
    dump: DumpDir | str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    is_raw: bool = False,
    thread_count: int | None = None,
) -> tuple[list[Path], list[tuple[str, FormatError]]]:
    """Write the statistic.csv that the dump would have had: one for each folder of tensors, in the same place below
    `target`; the files, and what could not be measured.

    is_raw  as in `tensor_statistics`

    Raises:  ConfigError when a file is there already or there are no tensors; WriteError.
    """
    dump = opened(dump)
    selection = StepSelection(rank, graph, iteration)
    root = dump.path if files.is_folder(dump.path) else dump.path.parent
    by_folder: dict[str, list[DumpedTensor]] = {}
    for tensor in dump.tensors_of(selection):
        if not tensor.file.levels.is_constants:
            by_folder.setdefault(files.folder_below(root, tensor.path), []).append(tensor)
    if not by_folder:
        raise nothing_selected(dump, selection, expected="tensors")
    written: list[Path] = []
    problems: list[tuple[str, FormatError]] = []
    for folder, tensors in by_folder.items():
        path = Path(target, folder, STATISTIC_FILE)
        if path.exists():
            raise ConfigError(f"{path}: expected a path for a new file, got an existing one. Choose another folder.")
        problems += _write_statistics(path.parent, tensors, is_raw, thread_count)
        written.append(path)
    return written, [*dump.damaged, *problems]


def _write_statistics(
    folder: Path, tensors: Sequence[DumpedTensor], is_raw: bool, thread_count: int | None
) -> list[tuple[str, FormatError]]:
    # Rows keep the order of the dump, which execution order files tell better than time stamps.
    writer = StatisticWriter(lambda record: folder, mode=0o600, thread_count=1)

    def write(tensor: DumpedTensor) -> FormatError | None:
        try:
            writer.write([_record(tensor, loaded(tensor, is_raw))])
        except FormatError as error:
            return error
        except DtypeError as error:
            return FormatError(f"{tensor.where}: {error}")
        except OSError as error:
            return unreadable(tensor.path, error)
        return None

    try:
        results = all_in_order(write, tensors, thread_count)
    finally:
        writer.close()
    return [(tensor.path, error) for tensor, error in zip(tensors, results, strict=True) if error is not None]


def _record(tensor: DumpedTensor, array: Array) -> TensorRecord:
    """The record that had led to this file."""
    device, inode, offset = tensor.content_id
    return TensorRecord(
        tensor.op_type,
        tensor.op_name,
        tensor.task_id or 0,
        tensor.stream_id or 0,
        tensor.timestamp_us or 0,
        tensor.io,
        tensor.slot,
        dtypes.dtype_from_numpy(array.dtype).name,
        array,
        tensor.format,
        key=TensorKey(hash((device, inode)), offset) if offset >= 0 else None,
        is_parameter=True,  # the name is taken as it is
    )
