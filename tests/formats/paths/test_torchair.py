"""Names of TorchAir's eager data dump: what is made parses back, and nothing else parses."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.paths.torchair import (
    INPUT,
    OUTPUT,
    GraphDumpName,
    SummaryName,
    TorchairFileName,
    TorchairPath,
    format_graph_dump_name,
    format_summary_name,
    format_timestamp,
    format_torchair_name,
    parse_graph_dump_name,
    parse_summary_name,
    parse_timestamp,
    parse_torchair_name,
    parse_torchair_path,
    rank_dir,
    safe_target,
    step_dir,
)

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,12}", fullmatch=True)
TARGETS = st.one_of(
    st.sampled_from(["aten.add.Tensor", "_operator.mul", "_c10d_functional.wait_tensor.default", "math.floor"]),
    st.text(min_size=1, max_size=30).map(safe_target),
)
# From the year 1000 to the year 9999.
TIMESTAMPS = st.integers(-30_610_224_000_000_000, 253_402_300_799_999_999)
NAMES = st.builds(
    TorchairFileName,
    IDENTIFIERS,
    TARGETS,
    st.sampled_from([INPUT, OUTPUT]),
    st.one_of(st.integers(0, 10**6), IDENTIFIERS.filter(lambda name: name not in (INPUT, OUTPUT))),
    st.none() | st.integers(0, 1000),
    TIMESTAMPS,
)


@given(NAMES)
def test_names_parse_back(name: TorchairFileName) -> None:
    assert parse_torchair_name(format_torchair_name(name)) == name


@given(TIMESTAMPS)
def test_timestamps_parse_back(timestamp_us: int) -> None:
    text = format_timestamp(timestamp_us)
    assert len(text) == 20 and text.isdigit()
    assert parse_timestamp(text) == timestamp_us


@given(st.text(max_size=60) | st.from_regex(r"[a-z]-[a-z.]+\.INPUT\.\d+\.\d{20}\.npy", fullmatch=True))
def test_any_text_is_a_name_that_prints_the_same_or_no_name(text: str) -> None:
    name = parse_torchair_name(text)
    assert name is None or format_torchair_name(name) == text


@given(st.text())
def test_a_safe_target_is_safe(text: str) -> None:
    target = safe_target(text)
    assert target and safe_target(target) == target
    assert not set(target) & set('/\\<>:"|?* \n\0')


def test_the_pages_example() -> None:
    text = "add_1-aten.add.Tensor.INPUT.1.20251017071211190258.npy"
    name = TorchairFileName("add_1", "aten.add.Tensor", INPUT, 1, None, 1760685131190258)
    assert parse_torchair_name(text) == name
    assert format_torchair_name(name) == text
    path = step_dir(rank_dir("out", 8, 3), 1, 0) / text
    assert path.as_posix() == f"out/worldsize8_global_rank3/graph_1/0/{text}"
    assert parse_torchair_path(path.relative_to("out")) == TorchairPath(8, 3, 1, 0, text)


@given(st.integers(1, 4096), st.integers(0, 4095), st.integers(1, 10**6), st.integers(0, 10**9), NAMES)
def test_paths_parse_back(world_size: int, rank: int, graph_id: int, step: int, name: TorchairFileName) -> None:
    text = format_torchair_name(name)
    path = PurePosixPath(step_dir(rank_dir("root", world_size, rank), graph_id, step) / text).relative_to("root")
    assert parse_torchair_path(path) == TorchairPath(world_size, rank, graph_id, step, text)


@pytest.mark.parametrize(
    "text",
    [
        "add-aten.add.Tensor.INPUT.0.2025101707121119025.npy",  # 19 digits
        "add-aten.add.Tensor.INPUT.0.20251317071211190258.npy",  # month 13
        "add-aten.add.Tensor.INPUT.00.20251017071211190258.npy",
        "add-aten.add.Tensor.input.0.20251017071211190258.npy",
        "mul-<built-in function mul>.INPUT.0.20251017071211190258.npy",
        "aten.add.Tensor.INPUT.0.20251017071211190258.npy",
        "skipped.txt",
    ],
)
def test_what_is_no_name(text: str) -> None:
    assert parse_torchair_name(text) is None


@pytest.mark.parametrize("path", ["worldsize1_global_rank0/graph_1/x/y", "worldsize1/graph_1/0/y", "graph_1/0/y", ""])
def test_what_is_no_path(path: str) -> None:
    assert parse_torchair_path(path) is None


@pytest.mark.parametrize("node", ["a/b", "a b", "a-b", ""])
def test_pieces_that_would_not_parse_back_are_refused(node: str) -> None:
    with pytest.raises(FormatError, match="Make them safe first"):
        format_torchair_name(TorchairFileName(node, "aten.add.Tensor", INPUT, 0, None, 0))


@pytest.mark.parametrize("timestamp_us", [2**63, -(2**60)])
def test_moments_without_twenty_digits_are_refused(timestamp_us: int) -> None:
    with pytest.raises(FormatError, match="a year from 1000 to 9999"):
        format_timestamp(timestamp_us)


NUMBERS = st.integers(0, 10**7)
GRAPH_NAMES = st.builds(
    GraphDumpName,
    st.sampled_from(["original", "optimized"]),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    TIMESTAMPS,
    st.sampled_from(["txt", "pbtxt", "py"]),
)


@given(GRAPH_NAMES)
def test_names_of_graphs_parse_back(name: GraphDumpName) -> None:
    assert parse_graph_dump_name(format_graph_dump_name(name)) == name


@given(st.builds(SummaryName, NUMBERS, NUMBERS, TIMESTAMPS))
def test_names_of_summaries_parse_back(name: SummaryName) -> None:
    assert parse_summary_name(format_summary_name(name)) == name


@given(st.text(max_size=60) | st.from_regex(r"(dynamo_original_graph_\d|summary)_rank_\d+_pid_\d_ts_\d{20}\.\w{2,5}"))
def test_any_text_is_a_graph_name_that_prints_the_same_or_no_name(text: str) -> None:
    graph, summary = parse_graph_dump_name(text), parse_summary_name(text)
    assert graph is None or format_graph_dump_name(graph) == text
    assert summary is None or format_summary_name(summary) == text


def test_the_originals_example() -> None:
    text = "dynamo_optimized_graph_1_rank_15_pid_421214_ts_20251010083827311204.py"
    name = parse_graph_dump_name(text)
    assert name is not None
    assert (name.stage, name.graph_id, name.rank, name.pid, name.file_type) == ("optimized", 1, 15, 421214, "py")


@pytest.mark.parametrize("change", [{"stage": "final"}, {"file_type": "json"}, {"pid": -1}])
def test_pieces_that_form_no_name_are_refused(change: dict[str, object]) -> None:
    pieces = {"stage": "original", "graph_id": 1, "rank": 0, "pid": 7, "timestamp_us": 0, "file_type": "py", **change}
    with pytest.raises(FormatError, match="expected pieces"):
        format_graph_dump_name(GraphDumpName(**pieces))  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="expected pieces"):
        format_summary_name(SummaryName(-1, 7, 0))
