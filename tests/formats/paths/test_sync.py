"""The grammar of paths: what is made parses back, and no name leaves its folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.errors import ConfigError, FormatError
from msdump.formats.paths.sync import (
    DataFileName,
    SyncPath,
    SyncPaths,
    data_file_name,
    format_data_file_name,
    parse_data_file_name,
    parse_sync_path,
    record_op_name,
    safe_op_name,
    safe_op_type,
    short_op_name,
)
from msdump.testing import op_names, op_types, parameter_names, records
from tests.contracts.writer_contract import record

quick = settings(max_examples=100, deadline=None)
numbers = st.integers(0, 2**63 - 1)
safe_types = op_types().map(safe_op_type)

data_file_names = st.builds(
    DataFileName,
    safe_types,
    st.one_of(op_names(), parameter_names()).map(safe_op_name),
    numbers,
    numbers,
    numbers,
    st.sampled_from(["input", "output"]),
    numbers,
    safe_types,
    st.one_of(st.none(), st.sampled_from(["Float32", "Bool", "Int64"])),
    st.just("npy"),
)


@quick
@given(data_file_names)
def test_names_parse_back(name: DataFileName) -> None:
    assert parse_data_file_name(format_data_file_name(name)) == name


@quick
@given(records(max_size=3))
def test_the_name_of_any_record_parses_back_and_stays_in_its_folder(made: list[object]) -> None:
    for item in made:
        text = data_file_name(item)  # type: ignore[arg-type]
        name = parse_data_file_name(text)
        assert name is not None
        assert name.timestamp_us == item.timestamp_us  # type: ignore[attr-defined]
        assert name.op_name == record_op_name(item)  # type: ignore[arg-type]
        assert name.dtype is None
        assert os.path.normpath(os.path.join("/folder", text)) == f"/folder/{text}"
        assert not text.startswith(".")
        assert not any(ord(character) < 32 for character in text)
        os.fsencode(text)


@quick
@given(st.text(max_size=80))
def test_any_text_parses_or_is_none(text: str) -> None:
    name = parse_data_file_name(text)
    assert name is None or format_data_file_name(name) == text
    assert parse_sync_path(text) is None


@pytest.mark.parametrize(
    ("text", "op_type", "op_name", "dtype"),
    [
        ("Conv2D.Conv2D-op12.0.0.1623124369613540.output.0.DefaultFormat.npy", "Conv2D", "Conv2D-op12", None),
        ("Parameter.moments.conv1.weight.0.0.16.output.0.DefaultFormat.npy", "Parameter", "moments.conv1.weight", None),
        ("Parameter.a.0.0.5.output.0.X.npy.0.0.16.output.0.NCHW.npy", "Parameter", "a.0.0.5.output.0.X.npy", None),
        (
            "Conv2D.Default_network-WithLossCell_conv1-Conv2d_Conv2D-op0.0.0.17.input.1.DefaultFormat.Float32.npy",
            "Conv2D",
            "Default_network-WithLossCell_conv1-Conv2d_Conv2D-op0",
            "Float32",
        ),
    ],
)
def test_names_of_both_eras(text: str, op_type: str, op_name: str, dtype: str | None) -> None:
    name = parse_data_file_name(text)
    assert name is not None
    assert (name.op_type, name.op_name, name.dtype) == (op_type, op_name, dtype)


@pytest.mark.parametrize(
    "text",
    [
        "statistic.csv",
        "1877728873.npy",
        "Conv2D.Conv2D-op12.0.0.16.output.0.npy",
        "Conv2D.Conv2D-op12.0.0.16.other.0.NCHW.npy",
        "Conv2D.Conv2D-op12.00.0.16.output.0.NCHW.npy",
        "Conv2D.a/b.0.0.16.output.0.NCHW.npy",
        "Conv2D.a.0.0." + "9" * 5000 + ".output.0.NCHW.npy",
    ],
)
def test_what_is_no_data_file(text: str) -> None:
    assert parse_data_file_name(text) is None


def test_pieces_that_would_not_parse_back_are_refused() -> None:
    with pytest.raises(FormatError, match="Make them safe first"):
        format_data_file_name(DataFileName("Conv.2D", "a", 0, 0, 1, "input", 0, "NCHW"))


@pytest.mark.parametrize(
    ("full_name", "short"),
    [
        ("Default/conv1-Conv2d/Conv2D-op12", "Conv2D-op12"),
        ("Default--data-1", "data-1"),
        ("Conv2D-op12", "Conv2D-op12"),
        ("trailing/", "trailing/"),
    ],
)
def test_short_names(full_name: str, short: str) -> None:
    assert short_op_name(full_name) == short


def test_parameters_keep_their_whole_name() -> None:
    parameter = record(op_type="Parameter", op_name="moments.a/b.weight", is_parameter=True)
    assert record_op_name(parameter) == "moments.a_b.weight"
    assert record_op_name(replace(parameter, is_parameter=False)) == "b.weight"


layouts = st.builds(SyncPaths, st.just("/root"), numbers, st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True))


@quick
@given(layouts, numbers, numbers, data_file_names)
def test_every_path_of_the_tree_parses_back(
    layout: SyncPaths, graph_id: int, iteration: int, name: DataFileName
) -> None:
    def parse(path: Path) -> SyncPath | None:
        return parse_sync_path(PurePosixPath(path.relative_to("/root")))

    rank, net, text = layout.rank_id, layout.net_name, format_data_file_name(name)
    data_dir = layout.data_dir(graph_id, iteration)
    assert parse(data_dir / text) == SyncPath(rank, "data", text, net, graph_id, iteration)
    assert parse(layout.statistic_file(graph_id, iteration)) == SyncPath(
        rank, "data", "statistic.csv", net, graph_id, iteration
    )
    assert parse(layout.constants_dir(graph_id) / text) == SyncPath(rank, "constants", text, net, graph_id)
    for suffix in ("ir", "pb"):
        graph = layout.graph_file(graph_id, suffix)
        assert parse(graph) == SyncPath(rank, "graph", graph.name, None, graph_id)
    order, history = layout.order_file(graph_id), layout.history_file(graph_id)
    assert parse(order) == SyncPath(rank, "order", order.name, None, graph_id)
    assert parse(history) == SyncPath(rank, "history", history.name, None, graph_id)
    metadata = layout.metadata_dir / "data_dump.json"
    assert parse(metadata) == SyncPath(rank, "metadata", "data_dump.json")


def test_the_tree_of_the_guide() -> None:
    layout = SyncPaths("/dump", 0, "LeNet")
    assert str(layout.data_dir(0, 3)) == "/dump/rank_0/LeNet/0/3"
    assert str(layout.constants_dir(1)) == "/dump/rank_0/LeNet/1/constants"
    assert str(layout.graph_file(0, "pb")) == "/dump/rank_0/graphs/ms_output_trace_code_graph_0.pb"
    assert str(layout.order_file(0)) == "/dump/rank_0/execution_order/ms_execution_order_graph_0.csv"
    assert str(layout.history_file(0)) == "/dump/rank_0/execution_order/ms_global_execution_order_graph_0.csv"
    assert str(layout.metadata_dir) == "/dump/rank_0/.dump_metadata"


@pytest.mark.parametrize("net_name", ["", "..", "a/b", "a b", "net\n"])
def test_net_names_that_are_no_folder_names(net_name: str) -> None:
    with pytest.raises(ConfigError, match="net_name only supports alphabetic"):
        SyncPaths("/dump", 0, net_name)


@pytest.mark.parametrize(
    "path", ["rank_0", "rank_x/Net/0/0/a.npy", "rank_0/Net/0/a.npy", "rank_0/Net/0/0/..", "Net/0/0/a"]
)
def test_foreign_paths(path: str) -> None:
    assert parse_sync_path(path) is None
