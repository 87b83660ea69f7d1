"""The grammar of an ACL dump's paths: what is made parses back."""

from __future__ import annotations

import datetime
from pathlib import PurePosixPath

from hypothesis import given, settings
from hypothesis import strategies as st

from msdump.formats.acl_layout import (
    AclDumpLayout,
    AclPath,
    parse_acl_path,
    parse_stats_file_name,
    stats_file_name,
    watched_of,
    watcher_op_name,
)
from msdump.formats.async_layout import bin_file_name, format_time, parse_bin_file_name, safe_piece
from msdump.formats.dump_place import MODEL, OPERATOR, parse_place
from msdump.records import TensorRecord
from msdump.testing import op_names, records
from tests.contracts.writer_contract import record

quick = settings(max_examples=60, deadline=None)
numbers = st.integers(0, 2**63 - 1)
times = st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(9999, 12, 31)).map(format_time)
named = op_names().filter(bool)
one_record = records(["float32"], max_size=1).filter(bool).map(lambda found: found[0])


@quick
@given(times, numbers, op_names(), numbers, numbers, one_record)
def test_paths_of_models_parse_back(
    time: str, device_id: int, model_name: str, model_id: int, data_index: int, one: TensorRecord
) -> None:
    layout = AclDumpLayout("/root", time, device_id)
    folder = layout.model_dir(model_name, model_id, data_index)
    path = (folder / bin_file_name(one)).relative_to("/root")
    expected = AclPath(time, device_id, bin_file_name(one), safe_piece(model_name), model_id, data_index)
    assert parse_acl_path(path) == parse_acl_path(str(path)) == expected
    place = parse_place(folder.parts)
    assert (place.layout, place.device_id, place.model) == (MODEL, device_id, safe_piece(model_name))
    assert (place.graph_id, place.iteration, place.data_index) == (model_id, data_index, data_index)


@quick
@given(times, numbers, one_record)
def test_paths_of_single_operators_parse_back(time: str, device_id: int, one: TensorRecord) -> None:
    layout = AclDumpLayout("/root", time, device_id)
    path = (layout.operator_dir / bin_file_name(one)).relative_to("/root")
    assert parse_acl_path(path) == AclPath(time, device_id, bin_file_name(one))
    place = parse_place(layout.operator_dir.parts)
    assert (place.layout, place.device_id, place.iteration) == (OPERATOR, device_id, None)


@given(st.text(max_size=60))
def test_no_text_breaks_the_parser(text: str) -> None:
    found = parse_acl_path(text)
    assert found is None or found.file_name == PurePosixPath(text).name
    parse_stats_file_name(text)


def test_other_trees_are_not_taken_for_one() -> None:
    time = "20240102030405"
    for other in (
        f"3/{time}/0/net/1/2/Add.a.1.2.3",
        f"{time}/0/net/1/Add.a.1.2.3",
        f"{time}/0/1/Add.a.1.2.3",
        f"{time}/Add.a.1.2.3",
        "20241302030405/0/Add.a.1.2.3",
        f"{time}/0/..",
    ):
        assert parse_acl_path(other) is None, other


@quick
@given(one_record)
def test_names_of_statistics_parse_back(one: TensorRecord) -> None:
    assert parse_stats_file_name(stats_file_name(one)) == parse_bin_file_name(bin_file_name(one))
    assert parse_stats_file_name(bin_file_name(one)) is None


@quick
@given(named, st.sets(named, min_size=1, max_size=3), st.data())
def test_names_of_the_watcher_parse_back(trigger: str, watched: set[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(watched)))
    text = safe_piece(watcher_op_name(trigger, name))
    found = watched_of(text, frozenset(watched))
    assert found is not None
    # Two watched names may end alike; both readings say the whole name.
    assert f"{found[0]}_To_{safe_piece(found[1])}" == text
    if len(watched) == 1:
        assert found == (safe_piece(trigger), name)
    assert watched_of(safe_piece(name), frozenset({name})) is None


def test_a_file_of_the_watcher_has_the_ids_of_the_one_before() -> None:
    one = record(op_type="MatMul", op_name=watcher_op_name("net/a.1", "net/c"), task_id=4, stream_id=2)
    assert bin_file_name(one).startswith("MatMul.net_a_1_To_net_c.4.2.")
