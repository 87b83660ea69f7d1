"""The grammar of the asynchronous dump's paths: what is made parses back, and every reader understands it."""

from __future__ import annotations

import datetime
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.paths.acl import (
    AclDumpPaths,
    AclOperatorPaths,
    AclPaths,
    AsyncPath,
    BinFileName,
    PlainPaths,
    bin_file_name,
    format_bin_file_name,
    format_time,
    npy_file_name,
    overflow_file_name,
    overflow_json_name,
    parse_async_path,
    parse_bin_file_name,
    parse_overflow_json_name,
    parse_stats_file_name,
    safe_piece,
    stats_file_name,
    watcher_op_name,
)
from msdump.formats.paths.parse import MODEL, OPERATOR, parse_folder
from msdump.formats.paths.sync import parse_data_file_name
from msdump.tensors.records import TensorRecord
from msdump.testing import op_names, op_types, parameter_names, records
from tests.contracts.writer_contract import record

quick = settings(max_examples=60, deadline=None)
numbers = st.integers(0, 2**63 - 1)
pieces = st.one_of(op_types(), op_names(), parameter_names()).map(safe_piece)
moments = st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(9999, 12, 31))

# As msaccucmp reads names.
TOOL = re.compile(r"^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([0-9]+)\.?([0-9]+)?\.([0-9]{1,255})")


@st.composite
def bin_file_names(draw: st.DrawFn) -> BinFileName:
    stream_id = draw(st.one_of(st.none(), numbers))
    task_part = () if stream_id is None else tuple(draw(st.lists(numbers, max_size=4)))
    return BinFileName(draw(pieces), draw(pieces), draw(numbers), stream_id, draw(numbers), task_part)


@quick
@given(bin_file_names())
def test_names_parse_back(name: BinFileName) -> None:
    assert parse_bin_file_name(format_bin_file_name(name)) == name


@quick
@given(records(max_size=3))
def test_the_name_of_any_record_is_understood_by_all(made: list[TensorRecord]) -> None:
    for item in made:
        text = bin_file_name(item)
        name = parse_bin_file_name(text)
        assert name is not None
        assert (name.task_id, name.stream_id, name.timestamp_us) == (item.task_id, item.stream_id, item.timestamp_us)
        tool = TOOL.fullmatch(text)
        assert tool is not None
        assert tool.groups() == (
            name.op_type,
            name.op_name,
            *map(str, (name.task_id, name.stream_id, name.timestamp_us)),
        )
        assert PurePosixPath(text).name == text


@quick
@given(records(max_size=3))
def test_npy_names_carry_the_format_of_the_host(made: list[TensorRecord]) -> None:
    for item in made:
        name = parse_data_file_name(npy_file_name(item))
        assert name is not None
        assert name.format == ("NCHW" if item.data.ndim == 4 else "ND")


def test_the_example_of_the_guide() -> None:
    item = record(
        op_type="Conv2D",
        op_name="Default/network-WithLossCell/_backbone-AlexNet/conv3-Conv2d/Conv2D-op12",
        task_id=2,
        stream_id=7,
        timestamp_us=161243956333802,
    )
    assert bin_file_name(item) == (
        "Conv2D.Default_network-WithLossCell__backbone-AlexNet_conv3-Conv2d_Conv2D-op12.2.7.161243956333802"
    )
    four_axes = replace(item, data=np.zeros((1, 2, 3, 4), np.float32), slot=1)
    assert npy_file_name(four_axes) == "Conv2D.Conv2D-op12.2.7.161243956333802.output.1.NCHW.npy"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Add.p0_Add.0.3.1673383728093446.4.1.0.0", BinFileName("Add", "p0_Add", 0, 3, 1673383728093446, (4, 1, 0, 0))),
        ("Add.p0_Add.0.3.1673383728093446.4", BinFileName("Add", "p0_Add", 0, 3, 1673383728093446, (4,))),
        ("Add.p0.5.1673383728093446", BinFileName("Add", "p0", 5, None, 1673383728093446)),
        ("Add.p0.5.7.16.1.2.3.4.5", None),
        ("Add.p0.5", None),
        ("Add.p0.5.7.16.output.0.ND.npy", None),
        ("Add.p0.05.7.16", None),
        ("Add.a/b.5.7.16", None),
        ("mapping.csv", None),
        ("", None),
    ],
)
def test_names_of_other_versions(text: str, expected: BinFileName | None) -> None:
    assert parse_bin_file_name(text) == expected


@given(st.text(max_size=40))
@quick
def test_any_text_parses_or_not(text: str) -> None:
    name = parse_bin_file_name(text)
    assert name is None or format_bin_file_name(name) == text


def test_pieces_that_would_not_parse_back_are_refused() -> None:
    with pytest.raises(FormatError, match="Make them safe first"):
        format_bin_file_name(BinFileName("Conv.2D", "x", 0, 0, 1))


@quick
@given(numbers, numbers, numbers)
def test_overflow_names_parse_back(task_id: int, stream_id: int, timestamp_us: int) -> None:
    expected = BinFileName("Opdebug", "Node_OpDebug", task_id, stream_id, timestamp_us)
    assert expected.is_overflow
    assert parse_bin_file_name(overflow_file_name(task_id, stream_id, timestamp_us)) == expected
    assert parse_overflow_json_name(overflow_json_name(task_id, stream_id, timestamp_us)) == expected
    assert parse_overflow_json_name(f"Add.x.1.2.{timestamp_us}.output.0.json") is None


@quick
@given(moments, numbers, op_names(), numbers, numbers, numbers)
def test_folders_parse_back(
    moment: datetime.datetime, device_id: int, model: str, model_id: int, iteration: int, step_id: int
) -> None:
    time = format_time(moment)
    root = Path("dump")
    name = safe_piece(model)
    plain = PlainPaths(root, time, device_id).data_dir(model, model_id, iteration)
    acl = AclPaths(root, device_id).data_dir(step_id, time, model, model_id, iteration)
    operators = AclOperatorPaths(root, device_id)
    made = {
        plain: AsyncPath(time, device_id, "file", name, model_id, iteration),
        acl: AsyncPath(time, device_id, "file", name, model_id, iteration, step_id),
        operators.data_dir(step_id, time): AsyncPath(time, device_id, "file", step_id=step_id),
        operators.data_dir(step_id, time, iteration): AsyncPath(
            time, device_id, "file", iteration=iteration, step_id=step_id
        ),
    }
    for folder, expected in made.items():
        assert parse_async_path((folder / "file").relative_to(root)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "20231301000000/0/Net/0/0/file",  # no such month
        "20231201000000/0/Net/0/file",
        "rank_0/Net/0/0/file",
        "20231201000000/0/a.b/0/0/file",
        "20231201000000/0/Net/0/0/..",
        "3/20231201000000/0/1/2/file",
        "/20231201000000/0/Net/0/0/file",
        "",
    ],
)
def test_other_paths_are_no_asynchronous_dump(text: str) -> None:
    assert parse_async_path(text) is None


def test_the_tree_of_the_guide() -> None:
    paths = PlainPaths("/dump", "20231201103000", 3)
    assert paths.data_dir("kernel_graph_0", 1, 5) == Path("/dump/20231201103000/3/kernel_graph_0/1/5")
    assert paths.data_dir("a/../b", 1, 5) == Path("/dump/20231201103000/3/a____b/1/5")


times = st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(9999, 12, 31)).map(format_time)
one_record = records(["float32"], max_size=1).filter(bool).map(lambda found: found[0])


@quick
@given(times, numbers, op_names(), numbers, numbers, one_record)
def test_paths_of_models_parse_back(
    time: str, device_id: int, model_name: str, model_id: int, data_index: int, one: TensorRecord
) -> None:
    paths = AclDumpPaths("/root", time, device_id)
    folder = paths.model_dir(model_name, model_id, data_index)
    levels = parse_folder(folder.parts)
    assert (levels.grammar, levels.device_id, levels.model) == (MODEL, device_id, safe_piece(model_name))
    assert (levels.graph_id, levels.iteration, levels.data_index) == (model_id, data_index, data_index)


@quick
@given(times, numbers, one_record)
def test_paths_of_single_operators_parse_back(time: str, device_id: int, one: TensorRecord) -> None:
    paths = AclDumpPaths("/root", time, device_id)
    levels = parse_folder(paths.operator_dir.parts)
    assert (levels.grammar, levels.device_id, levels.iteration) == (OPERATOR, device_id, None)


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    parse_stats_file_name(text)


@quick
@given(one_record)
def test_names_of_statistics_parse_back(one: TensorRecord) -> None:
    assert parse_stats_file_name(stats_file_name(one)) == parse_bin_file_name(bin_file_name(one))
    assert parse_stats_file_name(bin_file_name(one)) is None


def test_a_file_of_the_watcher_has_the_ids_of_the_one_before() -> None:
    one = record(op_type="MatMul", op_name=watcher_op_name("net/a.1", "net/c"), task_id=4, stream_id=2)
    assert bin_file_name(one).startswith("MatMul.net_a_1_To_net_c.4.2.")
