"""layout.json: there and back, what follows from placements, and what damaged files give."""

from __future__ import annotations

import contextlib
import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import msdump
from msdump.errors import FormatError
from msdump.formats.sharding_json import (
    LAYOUT_FILE,
    PARTIAL,
    REPLICATE,
    SHARD,
    STRIDED,
    Group,
    Mesh,
    Message,
    MessageOperand,
    Operand,
    Placement,
    RankSharding,
    TensorSharding,
    format_placement,
    parse_placement,
    read_sharding,
    sharding_text,
    write_sharding,
)

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def placements(ndim: int) -> st.SearchStrategy[Placement]:
    kinds = [
        st.just(Placement(REPLICATE)),
        st.builds(Placement, st.just(PARTIAL), operation=st.sampled_from(["sum", "avg", "max"])),
    ]
    if ndim:
        dims = st.integers(0, ndim - 1)
        kinds += [
            st.builds(Placement, st.just(SHARD), dims),
            st.builds(Placement, st.just(STRIDED), dims, split=st.integers(1, 4)),
        ]
    return st.one_of(kinds)


@st.composite
def meshes(draw: st.DrawFn, rank: int, rank_count: int) -> Mesh:
    sizes = draw(st.lists(st.integers(1, 3), max_size=3).filter(lambda sizes: math.prod(sizes) <= rank_count))
    others = draw(st.permutations([each for each in range(rank_count) if each != rank]))[: math.prod(sizes) - 1]
    ranks = tuple(draw(st.permutations([rank, *others])))
    place = np.unravel_index(ranks.index(rank), sizes) if sizes else ()
    texts = tuple(draw(st.lists(names, min_size=len(sizes), max_size=len(sizes))))
    return Mesh(texts, tuple(sizes), ranks, tuple(int(each) for each in place))


@st.composite
def tensor_layouts(draw: st.DrawFn, mesh: Mesh) -> TensorSharding:
    shape = tuple(draw(st.lists(st.integers(0, 9), max_size=3)))
    axes = len(mesh.sizes)
    return TensorSharding(shape, tuple(draw(st.lists(placements(len(shape)), min_size=axes, max_size=axes))), mesh)


@st.composite
def rank_layouts(draw: st.DrawFn) -> RankSharding:
    count = draw(st.integers(1, 9))
    rank = draw(st.integers(0, count - 1))
    places = draw(st.lists(meshes(rank, count), max_size=3, unique=True))
    ranks = st.lists(st.integers(0, count - 1), min_size=1, unique=True).map(tuple)
    groups = draw(st.lists(st.builds(Group, names, ranks), max_size=3))
    number = st.integers(0, 2**40)
    layouts = st.sampled_from(places).flatmap(tensor_layouts) if places else st.nothing()
    sides = st.sampled_from(["input", "output"])
    operand = st.builds(Operand, number, names, sides, number, number, st.none() | layouts)
    ends = st.integers(0, count - 1)
    message = st.builds(Message, names, ends, ends, st.integers(-(2**31), 2**31), number)
    sent = st.builds(MessageOperand, number, names, sides, number, number, message, names)
    operands, messages = (tuple(draw(st.lists(one, max_size=4))) for one in (operand, sent))
    return RankSharding(rank, count, draw(names), tuple(groups), tuple(places), operands, messages)


@given(rank_layouts())
def test_there_and_back(layout: RankSharding) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_sharding(Path(folder) / "new", layout)
        file = Path(folder) / "new" / LAYOUT_FILE
        assert read_sharding(file) == layout
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o400
        assert os.listdir(file.parent) == [LAYOUT_FILE]
        write_sharding(file.parent, RankSharding(0, 1, "other"))
        assert read_sharding(file) == RankSharding(0, 1, "other")


@given(placements(4))
def test_placements_are_texts(placement: Placement) -> None:
    assert parse_placement(format_placement(placement)) == placement


@pytest.mark.parametrize("text", ["", "shard", "shard(-1)", "shard(0", "Replicate", "partial()", "replicate "])
def test_texts_that_are_no_placements(text: str) -> None:
    with pytest.raises(FormatError, match=r'^placement: expected "shard\(0\)"'):
        parse_placement(text)


# -- what follows from placements --------------------------------------------------------------------------------------


@given(st.data())
def test_blocks_cover_a_tensor_as_often_as_it_is_copied(data: st.DataObject) -> None:
    mesh = data.draw(meshes(0, 9))
    layout = data.draw(tensor_layouts(mesh))
    blocks = {rank: layout.block(rank) for rank in mesh.ranks}
    if any(placement.kind == STRIDED for placement in layout.placements):
        assert set(blocks.values()) == {None}
        return
    covered = np.zeros(layout.shape, int)
    for block in blocks.values():
        assert block is not None
        covered[block] += 1
    copies = math.prod(
        size for size, placement in zip(mesh.sizes, layout.placements, strict=True) if placement.kind != SHARD
    )
    assert (covered == copies).all()
    assert layout.is_partial == any(placement.kind == PARTIAL for placement in layout.placements)


@given(st.data())
def test_equal_ranks_differ_along_copied_axes_alone(data: st.DataObject) -> None:
    layout = data.draw(meshes(0, 9).flatmap(tensor_layouts))
    mesh = layout.mesh
    copies = math.prod(
        size for size, placement in zip(mesh.sizes, layout.placements, strict=True) if placement.kind == REPLICATE
    )
    equal = layout.equal_ranks
    assert len(equal) == copies and 0 in equal and list(equal) == sorted(equal)
    assert all(layout.block(rank) == layout.block(0) for rank in equal)
    for rank in equal:
        for placement, one, other in zip(
            layout.placements, mesh.coordinates_of(0), mesh.coordinates_of(rank), strict=True
        ):
            assert placement.kind == REPLICATE or one == other


def test_rows_that_do_not_divide() -> None:
    """As `torch.chunk`: five rows over four ranks are two, two, one and none."""
    mesh = Mesh(("data",), (4,), (0, 1, 2, 3), (0,))
    layout = TensorSharding((5, 2), (Placement(SHARD, 0),), mesh)
    whole = slice(0, 2)
    rows = [slice(0, 2), slice(2, 4), slice(4, 5), slice(5, 5)]
    assert [layout.block(rank) for rank in range(4)] == [(row, whole) for row in rows]
    with pytest.raises(ValueError, match="not in tuple"):
        layout.block(7)


def test_what_was_known_of_an_operand_holds_until_something_else_is() -> None:
    mesh = Mesh(("",), (2,), (0, 1), (1,))
    cut, copied = (
        TensorSharding((4,), (placement,), mesh) for placement in (Placement(SHARD, 0), Placement(REPLICATE))
    )
    name = "Default/0-Linear/aten.mm.default-op3"
    changes = ((2, cut), (5, copied), (7, None))
    layout = RankSharding(1, 2, "node", operands=tuple(Operand(0, name, "input", 1, *change) for change in changes))
    found = [layout.find(0, name, "input", 1, iteration) for iteration in range(9)]
    assert found == [None, None, cut, cut, cut, copied, copied, None, None]
    for form in (name, "aten.mm.default-op3", "Default_0-Linear_aten_mm_default-op3"):
        assert layout.find(0, form, "input", 1, 3) == cut
    assert layout.find(1, name, "input", 1, 3) is layout.find(0, name, "output", 1, 3) is None
    assert layout.find(0, name, "input", 0, 3) is None


# -- damaged files -----------------------------------------------------------------------------------------------------

MESH = {"names": ["data"], "sizes": [2], "ranks": [0, 1], "coordinates": [1]}
LAYOUT = {"shape": [4], "placements": ["shard(0)"], "mesh": 0}
TENSOR = {"graph": 0, "name": "w", "io": "output", "slot": 0, "iteration": 0, "layout": 0}
WHOLE = {
    "version": 1, "rank": 1, "rank_count": 2, "host": "node", "groups": [{"name": "0", "ranks": [0, 1]}],
    "meshes": [MESH], "layouts": [LAYOUT], "tensors": [TENSOR],
}  # fmt: skip


def test_a_message_holds_until_another_one_is_sent_by_the_operand() -> None:
    first, second = Message("0", 0, 1, 0, 0), Message("0", 0, 1, 0, 1)
    sent = [MessageOperand(2, "Net/send-op0", "input", 0, step, one) for step, one in ((1, first), (4, second))]
    layout = RankSharding(0, 2, "host", messages=tuple(sent))
    found = [layout.find_message(2, "send-op0", "input", 0, step) for step in (0, 1, 3, 4, 9)]
    assert found == [None, sent[0], sent[0], sent[1], sent[1]]
    assert layout.find_message(2, "Net/send-op0", "output", 0, 9) is None


def test_a_message_of_a_rank_that_does_not_exist(tmp_path: Path) -> None:
    row = {"graph": 0, "name": "a", "io": "input", "slot": 0, "iteration": 0, "group": "0", "source": 0,
           "destination": 2, "tag": 0, "number": 0, "misuse": ""}  # fmt: skip
    content = {"version": 1, "rank": 0, "rank_count": 2, "host": "", "groups": [], "meshes": [], "layouts": [],
               "tensors": [], "messages": [row]}  # fmt: skip
    with pytest.raises(FormatError, match=r"messages\[0\].destination: expected an integer from 0 to 1, got 2"):
        read(tmp_path, content)


def read(folder: Path, content: Any) -> RankSharding:
    file = folder / LAYOUT_FILE
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_sharding(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, r"version: expected 1, got 2. Read it with the msdump that wrote it"),
        ({"version": "1"}, r"the file.version: expected an integer"),
        ({"rank": 2}, r"the file.rank: expected an integer from 0 to 1, got 2"),
        ({"rank": True}, r"the file.rank: expected an integer"),
        ({"rank_count": 0}, r"the file.rank_count: expected an integer from 1"),
        ({"host": 3}, r"the file.host: expected a text"),
        ({"host": "x" * 5000}, r"the file.host: expected a text of at most 4096"),
        ({"groups": {}}, r"the file.groups: expected a list"),
        ({"groups": [{"name": "0", "ranks": [0, 2]}]}, r"groups\[0\].ranks: expected an integer from 0 to 1, got 2"),
        ({"groups": [{"name": "0", "ranks": [0, 0]}]}, r"groups\[0\].ranks: expected ranks that differ"),
        ({"groups": [{"name": "0", "ranks": []}]}, r"groups\[0\].ranks: expected ranks that differ"),
        ({"groups": [7]}, r"groups\[0\]: expected an object with 'name', got 7"),
        ({"meshes": [{**MESH, "sizes": [3]}]}, r"meshes\[0\]: expected a name, a size and a coordinate"),
        ({"meshes": [{**MESH, "names": []}]}, r"meshes\[0\]: expected a name"),
        ({"meshes": [{**MESH, "names": [1]}]}, r"meshes\[0\].names: expected texts"),
        ({"meshes": [{**MESH, "coordinates": [0]}]}, r"meshes\[0\].coordinates: expected those of rank 1"),
        ({"meshes": [{**MESH, "sizes": [1] * 17}]}, r"meshes\[0\].sizes: expected a list of at most 16"),
        ({"layouts": [{**LAYOUT, "mesh": 1}]}, r"layouts\[0\].mesh: expected an integer from 0 to 0, got 1"),
        ({"layouts": [{**LAYOUT, "mesh": -1}]}, r"layouts\[0\].mesh: expected an integer"),
        ({"layouts": [{**LAYOUT, "placements": []}]}, r"layouts\[0\].placements: expected one for each of 1 axes"),
        ({"layouts": [{**LAYOUT, "placements": ["shard(1)"]}]}, r"layouts\[0\].placements: expected one"),
        ({"layouts": [{**LAYOUT, "placements": [0]}]}, r"layouts\[0\].placement: expected \"shard"),
        ({"layouts": [{**LAYOUT, "shape": [-1]}]}, r"layouts\[0\].shape: expected an integer"),
        ({"layouts": [{**LAYOUT, "shape": [1] * 65}]}, r"layouts\[0\].shape: expected a list of at most 64"),
        ({"tensors": [{**TENSOR, "io": "both"}]}, r"tensors\[0\].io: expected \"input\" or \"output\""),
        ({"tensors": [{**TENSOR, "layout": 1}]}, r"tensors\[0\].layout: expected an integer from 0 to 0"),
        ({"tensors": [{**TENSOR, "slot": 1.5}]}, r"tensors\[0\].slot: expected an integer"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE).operands[0].sharding is not None
    with pytest.raises(FormatError, match=rf"^{tmp_path / LAYOUT_FILE}, {message}"):
        read(tmp_path, WHOLE | change)


@pytest.mark.parametrize("key", WHOLE)
def test_every_key_is_needed(key: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=f"expected an object with '{key}'"):
        read(tmp_path, {name: value for name, value in WHOLE.items() if name != key})


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"a":' * 900 + "1" + "}" * 900, "9" * 5000, "\0"])
def test_files_that_are_something_else(text: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=str(tmp_path / LAYOUT_FILE)):
        read(tmp_path, text)


def test_no_plain_file_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected to read it"):
        read_sharding(tmp_path / "missing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="expected a plain file, got a pipe"):
        read_sharding(tmp_path / "pipe")


@settings(max_examples=200)
@example(0, 0, b"\xff")
@given(st.integers(0, 2000), st.integers(0, 3), st.binary(max_size=3))
def test_any_damage_gives_a_layout_or_a_format_error(start: int, length: int, other: bytes) -> None:
    data = json.dumps(WHOLE).encode()
    start %= len(data)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / LAYOUT_FILE
        file.write_bytes(data[:start] + other + data[start + length :])
        with contextlib.suppress(FormatError):
            assert sharding_text(read_sharding(file))


# -- in a dump ---------------------------------------------------------------------------------------------------------


def test_a_dump_tells_the_layouts_of_its_ranks(tmp_path: Path) -> None:
    for rank in (0, 1, 2):
        place = tmp_path / f"rank_{rank}" / ".dump_metadata"
        write_sharding(place, RankSharding(rank, 4, f"node{rank}"))
    assert {rank: layout.host for rank, layout in msdump.open(tmp_path).layouts.items()} == {
        0: "node0", 1: "node1", 2: "node2",
    }  # fmt: skip
    assert list(msdump.open(tmp_path / "rank_2").layouts) == [2]
    write_sharding(tmp_path / "rank_1" / ".dump_metadata", RankSharding(3, 4, "node1"))
    os.unlink(tmp_path / "rank_2" / ".dump_metadata" / LAYOUT_FILE)
    (tmp_path / "rank_2" / ".dump_metadata" / LAYOUT_FILE).symlink_to("/etc/hostname")
    (tmp_path / "rank_2" / "other").touch()
    dump = msdump.open(tmp_path)
    assert list(dump.layouts) == [0]
    ((path, error),) = dump.damaged
    assert path.endswith("rank_1/.dump_metadata/layout.json") and "expected the layout of rank 1, got" in str(error)
    assert any(path.endswith("rank_2/.dump_metadata/layout.json") for path in dump.foreign)
    with pytest.raises(FormatError, match="expected the layout of rank 1"):
        msdump.open(tmp_path, strict=True).layouts  # noqa: B018
