"""Names of graph files and FX summaries: what is made parses back, and nothing else parses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.errors import FormatError
from msdump.formats.graph_dump_layout import (
    GraphDumpName,
    SummaryName,
    format_graph_dump_name,
    format_summary_name,
    parse_graph_dump_name,
    parse_summary_name,
)
from tests.formats.test_torchair_layout import TIMESTAMPS

NUMBERS = st.integers(0, 10**7)
NAMES = st.builds(
    GraphDumpName,
    st.sampled_from(["original", "optimized"]),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    TIMESTAMPS,
    st.sampled_from(["txt", "pbtxt", "py"]),
)


@given(NAMES)
def test_names_of_graphs_parse_back(name: GraphDumpName) -> None:
    assert parse_graph_dump_name(format_graph_dump_name(name)) == name


@given(st.builds(SummaryName, NUMBERS, NUMBERS, TIMESTAMPS))
def test_names_of_summaries_parse_back(name: SummaryName) -> None:
    assert parse_summary_name(format_summary_name(name)) == name


@given(st.text(max_size=60) | st.from_regex(r"(dynamo_original_graph_\d|summary)_rank_\d+_pid_\d_ts_\d{20}\.\w{2,5}"))
def test_any_text_is_a_name_that_prints_the_same_or_no_name(text: str) -> None:
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
