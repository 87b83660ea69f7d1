"""DumpDir: every layout is understood, names are read before bytes, and nothing hostile gets through."""

from __future__ import annotations

import os
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import msdump
from msdump import testing
from msdump.errors import FormatError, TruncatedFileError
from msdump.formats.bin import bin_chunks
from msdump.formats.dump_dir import DumpDir, rank_beside
from msdump.formats.dump_folders import DumpedFolder
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.npy import npy_array, npy_header
from msdump.formats.paths.parse import (
    BARE,
    BIN,
    EXCEPTION,
    FX,
    MODEL,
    NPY,
    OPERATOR,
    OVERFLOW,
    RAW,
    SYNC,
    parse_dump_name,
    parse_folder,
)
from msdump.formats.paths.sync import safe_op_type
from msdump.tensors.arrays import Array
from msdump.tensors.records import INPUT, OUTPUT, TensorRecord

GOLDEN = Path(__file__).parent.parent / "golden"
STAMP = 1_700_000_000_000_000


def write_npy(path: Path, array: Array) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
    return path


def write_bin(path: Path, *records: TensorRecord) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(bin_chunks(records)))
    return path


def record(array: Array, io: str = OUTPUT, slot: int = 0, dtype: str = "float32", form: str = "ND") -> TensorRecord:
    return TensorRecord("Add", "Default/Add-op1", 1, 0, STAMP, io, slot, dtype, array, form)


def plain_name(op: str = "Add-op1", io: str = OUTPUT, slot: int = 0, stamp: int = STAMP) -> str:
    return f"Add.{op}.0.0.{stamp}.{io}.{slot}.DefaultFormat.npy"


# -- where ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "grammar", "rank", "model", "graph", "iteration"),
    [
        ("rank_3/Net/1/7", SYNC, 3, "Net", 1, 7),
        ("rank_3/Net/1/constants", SYNC, 3, "Net", 1, None),
        ("rank_0/debug_files/4", SYNC, 0, None, None, 4),
        ("20240102030405/2/Net/5/6", MODEL, 2, "Net", 5, 6),
        ("8/20240102030405/2/Net/5/6", MODEL, 2, "Net", 5, 8),
        ("8/20240102030405/2", OPERATOR, 2, None, None, 8),
        ("8/20240102030405/2/1", OPERATOR, 2, None, None, 8),
        ("dump/20240102030405/2", OPERATOR, 2, None, None, None),
        ("dump/20240102030405/2/9", OPERATOR, 2, None, None, 9),
        ("worldsize8_global_rank5/20240102030405/2/Net/5/6", MODEL, 5, "Net", 5, 6),
        ("worldsize1_global_rank0/graph_2/3", FX, 0, "graph_2", 2, 3),
        ("extra-info/data-dump/1", EXCEPTION, 1, None, None, None),
        ("20241402030405/2/Net/5/6", BARE, None, None, None, None),
        ("rank_x/Net/1/7", BARE, None, None, None, None),
    ],
)
def test_levels_of_folders(
    folder: str, grammar: str, rank: int | None, model: str | None, graph: int | None, iteration: int | None
) -> None:
    levels = parse_folder(["", "home", "x", *folder.split("/")])
    assert (levels.grammar, levels.rank_id, levels.model, levels.graph_id) == (grammar, rank, model, graph)
    assert levels.iteration == iteration
    assert levels.is_constants == folder.endswith("constants")


@pytest.mark.parametrize(
    ("name", "form", "op_type", "op_name", "io", "slot", "tensor_format"),
    [
        ("Conv2D.Conv2D-op12.0.0.1700.output.0.DefaultFormat.npy", NPY, "Conv2D", "Conv2D-op12", OUTPUT, 0,
         "DefaultFormat"),
        ("Parameter.conv1.weight.0.0.1700.output.0.DefaultFormat.npy", NPY, "Parameter", "conv1.weight", OUTPUT, 0,
         "DefaultFormat"),
        ("Conv2D.Default_net_Conv2D-op0.0.0.1700.input.1.DefaultFormat.Float32.npy", NPY, "Conv2D",
         "Default_net_Conv2D-op0", INPUT, 1, "DefaultFormat"),
        ("Conv2D.net_conv1.3.7.1700", BIN, "Conv2D", "net_conv1", None, None, None),
        ("Conv2D.net_conv1.3.1700", BIN, "Conv2D", "net_conv1", None, None, None),
        ("Add.a_lxslice0.0.3.1673383728093446.4.1.0.0", BIN, "Add", "a_lxslice0", None, None, None),
        ("Opdebug.Node_OpDebug.3.7.1700", OVERFLOW, "Opdebug", "Node_OpDebug", None, None, None),
        ("Opdebug.Node_OpDebug.3.7.1700.output.0.json", OVERFLOW, "Opdebug", "Node_OpDebug", None, None, None),
        ("Conv2D.net_conv1.3.7.1700.output.0.npy", NPY, "Conv2D", "net_conv1", OUTPUT, 0, None),
        ("Conv2D.net_conv1.3.7.1700.input.2.1x5x2x3.npy", NPY, "Conv2D", "net_conv1", INPUT, 2, None),
        ("Conv2D.net_conv1.3.7.1700.input.0.96.float16.NC1HWC0.bin", RAW, "Conv2D", "net_conv1", INPUT, 0, "NC1HWC0"),
        ("add_1-aten.add.Tensor.OUTPUT.0.1700.npy", NPY, "aten.add.Tensor", "add_1", OUTPUT, 0, None),
        ("mul-<built-in function mul>.INPUT.0.1700.npy", NPY, "<built-in function mul>", "mul", INPUT, 0, None),
        ("exception_info.7.3.20250611171538370", BIN, "exception_info", "7_3", None, None, None),
        ("MatMul.mm.3.20250611171538370", BIN, "MatMul", "mm", None, None, None),
        ("conv1_relu.0.1700000000000001.npy", NPY, "", "conv1_relu", OUTPUT, 0, None),
        ("weights.npy", NPY, "", "weights", OUTPUT, 0, None),
    ],
)  # fmt: skip
def test_names(
    name: str, form: str, op_type: str, op_name: str, io: str | None, slot: int | None, tensor_format: str | None
) -> None:
    found = parse_dump_name(name)
    assert found is not None
    assert (found.form, found.op_type, found.op_name) == (form, op_type, op_name)
    assert (found.io, found.slot, found.format) == (io, slot, tensor_format)


def test_keyword_arguments_have_slots_of_their_own() -> None:
    names = [f"sum-aten.sum.default.INPUT.{slot}.20240102030405000006.npy" for slot in ("0", "dtype", "out")]
    found = [parse_dump_name(name) for name in names]
    assert [name.keyword for name in found if name is not None] == [None, "dtype", "out"]
    assert len({name.slot for name in found if name is not None}) == 3
    assert {name.timestamp_us for name in found if name is not None} == {1_704_164_645_000_006}


def test_the_slot_of_a_keyword_is_the_same_in_every_dump() -> None:
    found = parse_dump_name("sum-aten.sum.default.INPUT.dtype.20240102030405000006.npy")
    assert found is not None and found.slot == 10**6 + zlib.crc32(b"dtype") % 10**6


def test_elements_of_a_list_keep_their_place() -> None:
    found = parse_dump_name("cat-aten.cat.default.INPUT.0.2.1700.npy")
    assert found is not None
    assert (found.slot, found.part, found.op_type) == (0, 2, "aten.cat.default")


@pytest.mark.parametrize("name", ["statistic.csv", "README", "a.bin", "x.1.bin", "13847561234567890123", "a.json"])
def test_foreign_names(name: str) -> None:
    assert parse_dump_name(name) is None


# -- reading -------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(testing.dump_trees() | testing.dump_trees(is_hostile=True))
def test_what_was_written_is_read(tree: testing.DumpTree) -> None:
    with tempfile.TemporaryDirectory() as folder:
        testing.write_dump(tree, folder)
        dump = msdump.open(folder)
        found = list(dump.tensors())
        assert (dump.damaged, dump.foreign) == ([], [])
        expected = {
            (r.iteration, safe_op_type(r.op_type), r.timestamp_us, r.io, r.slot): npy_array(r.data, r.dtype)
            for r in tree.records
        }
        actual = {(t.iteration, t.op_type, t.timestamp_us, t.io, t.slot): t for t in found}
        assert actual.keys() == expected.keys()
        for key, array in expected.items():
            assert actual[key].shape == array.shape
            testing.assert_same_array(actual[key].load(), array)
        # A folder below tells the same, and so does each filter.
        for iteration in tree.records_by_iteration:
            of_iteration = [t.path for t in found if t.iteration == iteration]
            assert [t.path for t in dump.tensors(iteration=iteration)] == of_iteration
            deep = Path(folder) / "rank_0" / tree.net_name / "0" / str(iteration)
            if deep.is_dir():
                below = [(t.path, t.position, t.full_name) for t in DumpDir.open(deep)]
                assert below == [(t.path, t.position, t.full_name) for t in found if t.iteration == iteration]


def test_order_and_full_names_come_from_the_execution_order(tmp_path: Path) -> None:
    data = tmp_path / "rank_0/Net/0/2"
    for number, op in enumerate(["Add-op9", "Add-op1", "Add-op5"]):
        write_npy(data / plain_name(op, OUTPUT, 0, STAMP + 10 * number), np.zeros(1, np.float32))
        write_npy(data / plain_name(op, INPUT, 0, STAMP + 10 * number + 1), np.zeros(1, np.float32))
    write_npy(data / f"Parameter.w.0.0.{STAMP}.output.0.DefaultFormat.npy", np.zeros(1, np.float32))
    order = tmp_path / "rank_0/execution_order/ms_execution_order_graph_0.csv"
    order.parent.mkdir()
    order.write_text("NodeExecutionOrder-FullNameWithScope\nDefault/a/Add-op1\nDefault/b/Add-op5\nDefault/c/Add-op9\n")
    found = list(DumpDir.open(tmp_path))
    assert [(t.op_name, t.io) for t in found] == [
        ("Add-op1", INPUT), ("Add-op1", OUTPUT), ("Add-op5", INPUT), ("Add-op5", OUTPUT),
        ("Add-op9", INPUT), ("Add-op9", OUTPUT), ("w", OUTPUT),
    ]  # fmt: skip
    assert [t.full_name for t in found[::2]] == ["Default/a/Add-op1", "Default/b/Add-op5", "Default/c/Add-op9", None]
    assert [t.position for t in found] == [0, 0, 1, 1, 2, 2, None]
    assert found[-1].is_parameter
    assert [t.op_name for t in DumpDir.open(tmp_path).tensors(op_name="Default/b/*")] == ["Add-op5"] * 2
    assert [t.op_name for t in DumpDir.open(tmp_path).tensors(op_name="*op9", io=INPUT)] == ["Add-op9"]


def test_ambiguous_short_names_get_no_full_name(tmp_path: Path) -> None:
    """MindSpore 2.7 counts per scope: a last part may stand for several operators, the whole scope never does."""
    data = tmp_path / "rank_0/Net/0/0"
    write_npy(data / plain_name("Add-op0"), np.zeros(1))
    write_npy(data / f"Add.Default_b_Add-op0.0.0.{STAMP}.output.0.DefaultFormat.Float64.npy", np.zeros(1))
    order = tmp_path / "rank_0/execution_order/ms_execution_order_graph_0.csv"
    order.parent.mkdir()
    order.write_text("NodeExecutionOrder-FullNameWithScope\nDefault/a/Add-op0\nDefault/b/Add-op0\n")
    assert {t.op_name: t.full_name for t in DumpDir.open(tmp_path)} == {
        "Add-op0": None,
        "Default_b_Add-op0": "Default/b/Add-op0",
    }


def test_several_ranks_graphs_and_iterations(tmp_path: Path) -> None:
    for rank in (1, 0):
        for graph, iterations in ((0, (0, 2, 10)), (1, (1, 3))):
            for iteration in iterations:
                path = tmp_path / f"rank_{rank}/Net/{graph}/{iteration}" / plain_name()
                write_npy(path, np.full(1, iteration))
    dump = DumpDir.open(tmp_path)
    found = [(t.rank_id, t.iteration, t.graph_id) for t in dump]
    assert found == [(r, i, g) for r in (0, 1) for i, g in ((0, 0), (1, 1), (2, 0), (3, 1), (10, 0))]
    assert [t.iteration for t in dump.tensors(rank=1, graph=1)] == [1, 3]
    assert [t.iteration for t in dump.tensors(rank={1}, iteration=range(2, 11))] == [2, 3, 10]
    assert not list(dump.tensors(graph="Other*"))
    assert len(list(dump.tensors(graph="Ne?"))) == 10
    assert dump.rank_dirs() == [tmp_path / "rank_0", tmp_path / "rank_1"]


def test_a_dump_file_holds_several_tensors(tmp_path: Path) -> None:
    array = np.arange(20 * 18, dtype=np.float16).reshape(20, 18)
    path = tmp_path / "20240102030405/0/Net/1/2" / f"Add.Default_Add-op1.1.0.{STAMP}"
    write_bin(
        path,
        record(array, INPUT, 0, "float16", "FRACTAL_NZ"),
        record(array, OUTPUT, 0, "float16"),
        record(np.arange(3, dtype=np.int32), OUTPUT, 1, "int32"),
    )
    dump = DumpDir.open(tmp_path)
    found = list(dump)
    assert [(t.io, t.slot, t.dtype, t.format) for t in found] == [
        (INPUT, 0, "float16", "FRACTAL_NZ"),
        (OUTPUT, 0, "float16", "ND"),
        (OUTPUT, 1, "int32", "ND"),
    ]
    assert found[0].full_name == "Default/Add-op1"
    assert (found[0].shape, found[0].original_shape) == ((2, 2, 16, 16), (20, 18))
    testing.assert_same_array(found[0].load_host(), array)
    testing.assert_same_array(found[1].load(), array)
    assert [t.slot for t in dump.tensors(io=OUTPUT, slot=1)] == [1]
    assert len({t.content_id for t in found}) == 3


def test_hard_links_are_known_without_reading(tmp_path: Path) -> None:
    one = write_npy(tmp_path / plain_name("Add-op1"), np.arange(4.0))
    os.link(one, tmp_path / plain_name("Add-op2", INPUT))
    write_npy(tmp_path / plain_name("Add-op3"), np.arange(4.0))
    ids = [t.content_id for t in DumpDir.open(tmp_path)]
    assert len(set(ids)) == 2


def test_tensors_are_mapped(tmp_path: Path) -> None:
    write_npy(tmp_path / plain_name(), np.arange(4.0))
    array = next(iter(DumpDir.open(tmp_path))).load()
    assert not array.flags.writeable
    assert not array.flags.owndata


def test_listing_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / plain_name(f"Add-op{number}")).write_bytes(b"")
    monkeypatch.setattr("msdump.formats.dump_tensor.read_npy", lambda path: pytest.fail("opened"))
    assert len(list(DumpDir.open(tmp_path).files())) == 20


def test_long_names_are_restored(tmp_path: Path) -> None:
    long_name = plain_name("A" * 300)
    write_npy(tmp_path / "123.npy", np.zeros(2))
    (tmp_path / "mapping.csv").write_text(f"123.npy,{long_name}\n")
    (found,) = DumpDir.open(tmp_path)
    assert (found.op_name, found.file.original_name) == ("A" * 300, long_name)
    (sample,) = DumpDir.open(GOLDEN / "msaccucmp/samples/mapdir").tensors(op_type="LongType")
    assert sample.op_name == "n" * len(sample.op_name)


def test_raw_files_of_the_converter_are_read() -> None:
    dump = DumpDir.open(GOLDEN / "msaccucmp/out/mainbin")
    plain = {(t.io, t.slot): t for t in DumpDir.open(GOLDEN / "msaccucmp/samples/main")}
    for tensor in dump:
        assert tensor.load().tobytes() == plain[tensor.io, tensor.slot].load().tobytes()
    assert dump.damaged == []
    assert len(list(dump)) == 3


def test_one_file_is_a_dump(tmp_path: Path) -> None:
    write_npy(tmp_path / "other.npy", np.zeros(1))
    (found,) = DumpDir.open(write_npy(tmp_path / "x.npy", np.zeros(3)))
    assert (found.op_name, found.shape, found.iteration) == ("x", (3,), None)


def test_side_files_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0/Net/0/1"
    write_npy(folder / plain_name(), np.zeros(1))
    (folder / "statistic.csv").write_text("x\n")
    graphs = tmp_path / "rank_0/graphs"
    graphs.mkdir()
    (graphs / "ms_output_trace_code_graph_0.pb").write_bytes(b"")
    (folder / f"Add.op.1.2.{STAMP}.csv").write_text("x\n")
    (folder / f"Opdebug.Node_OpDebug.1.2.{STAMP}").write_bytes(b"")
    dump = DumpDir.open(tmp_path)
    assert [path.name for _, path in dump.statistic_files()] == ["statistic.csv"]
    assert [path.name for path in dump.graph_files()] == ["ms_output_trace_code_graph_0.pb"]
    assert [path.name for _, path, _ in dump.statistic_dump_files()] == [f"Add.op.1.2.{STAMP}.csv"]
    assert [file.task_id for file in dump.overflow_files()] == [1]
    assert [t.op_name for t in dump] == ["Add-op1"]
    assert dump.foreign == []


# -- damage and malice ---------------------------------------------------------------------------


def test_damaged_files_are_named_and_the_rest_goes_on() -> None:
    dump = DumpDir.open(GOLDEN / "msaccucmp/samples")
    assert {t.file.op_name for t in dump} >= {"net_conv1", "r1", "op_bf16"}
    damaged = {Path(path).parent.name: type(error) for path, error in dump.damaged}
    assert damaged == {"bad_hdrlen": FormatError, "bad_trunc": TruncatedFileError}
    assert len(list(dump)) == len(list(dump))
    assert len(dump.damaged) == 2
    with pytest.raises(FormatError, match="bad_"):
        list(DumpDir.open(GOLDEN / "msaccucmp/samples", strict=True))


def test_a_block_that_is_too_short_takes_no_other_with_it(tmp_path: Path) -> None:
    good = record(np.arange(4, dtype=np.float32))
    chunks = [bytes(chunk) for chunk in bin_chunks([good])]
    # Shape (4,) becomes (5,) where the protobuf holds a packed list of one number; the file keeps its size.
    header = chunks[1].replace(b"\x0a\x01\x04", b"\x0a\x01\x05")
    assert header != chunks[1]
    (tmp_path / f"Add.a.1.0.{STAMP}").write_bytes(chunks[0] + header + chunks[2])
    dump = DumpDir.open(tmp_path)
    assert list(dump) == []
    ((_, error),) = dump.damaged
    assert "expected 20 data bytes for float32 (5,), got 16" in str(error)


@pytest.mark.parametrize("ndim", [32, 33, 64])
@pytest.mark.parametrize("kind", ["npy", "bin"])
def test_tensors_of_many_axes_are_read_back(kind: str, ndim: int, tmp_path: Path) -> None:
    if ndim > 32 and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("this numpy has no arrays of so many axes")
    array = np.arange(6, dtype=np.float32).reshape((1,) * (ndim - 2) + (2, 3))
    if kind == "npy":
        (tmp_path / plain_name()).write_bytes(npy_header("float32", array.shape) + array.tobytes())
    else:
        write_bin(tmp_path / f"Add.a.1.0.{STAMP}", record(array))
    (tensor,) = DumpDir.open(tmp_path)
    assert (tensor.shape, tensor.load().tobytes()) == (array.shape, array.tobytes())


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([None, 1], object))
    dump = DumpDir.open(tmp_path)
    assert list(dump) == []
    assert "'|O'" in str(dump.damaged[0][1])


def test_a_graph_file_that_leads_out_of_its_rank_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "outside.pb").write_bytes(b"")
    graphs = tmp_path / "dump" / "rank_0" / "graphs"
    graphs.mkdir(parents=True)
    (graphs / "own.pb").write_bytes(b"")
    (graphs / "secret.pb").symlink_to(tmp_path / "outside.pb")
    write_npy(tmp_path / "dump/rank_0/Net/0/0" / plain_name(), np.zeros(1))
    for opened in ("dump", "dump/rank_0/Net/0/0"):
        dump = DumpDir.open(tmp_path / opened)
        assert dump.graph_files() == [graphs / "own.pb"]
        assert str(graphs / "secret.pb") in dump.foreign


@pytest.mark.parametrize("steps", ["", "7"])
def test_an_asynchronous_dump_has_the_rank_of_its_device_beside_it(tmp_path: Path, steps: str) -> None:
    root = tmp_path / steps / "20240102030405"
    for rank in (0, 1):
        (root / f"rank_{rank}" / "graphs").mkdir(parents=True)
    for device, rank in ((0, "rank_0"), (1, "rank_1"), (2, None)):
        path = os.fspath(root / str(device) / "Net" / "0" / "3")
        folder = DumpedFolder(path, parse_folder(path.split(os.sep)), ())
        beside = rank_beside(folder)
        assert (beside and os.path.basename(beside)) == rank
    (root / "rank_1" / "graphs").rmdir()
    assert rank_beside(folder) == os.fspath(root / "rank_0")
    (root / "rank_0" / "graphs").rmdir()
    assert rank_beside(folder) is None


def test_a_damaged_mapping_restores_what_it_can(tmp_path: Path) -> None:
    write_npy(tmp_path / "1.npy", np.zeros(1))
    (tmp_path / "mapping.csv").write_bytes(b"nonsense\n1.npy," + plain_name().encode() + b"\n\xff\xfe\n")
    dump = DumpDir.open(tmp_path)
    assert [t.op_name for t in dump] == ["Add-op1"]
    assert "line 1" in str(dump.damaged[0][1])


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="got nothing"):
        msdump.open(tmp_path / "missing")
    assert list(msdump.open(tmp_path)) == []


@pytest.mark.parametrize("kind", ["npy", "bin"])
def test_any_cut_and_any_flip_is_a_tensor_or_damage(tmp_path: Path, kind: str) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    if kind == "npy":
        content, name = npy_header("float32", (2, 3)) + array.tobytes(), plain_name()
    else:
        content, name = b"".join(bytes(chunk) for chunk in bin_chunks([record(array)])), f"Add.a.1.0.{STAMP}"
    path = tmp_path / name
    rng = np.random.default_rng(5)
    variants = [content[:size] for size in range(0, len(content), 3)]
    for position in range(len(content)):
        flipped = bytearray(content)
        flipped[position] ^= int(rng.integers(1, 256))
        variants.append(bytes(flipped))
    for variant in variants:
        path.write_bytes(variant)
        dump = DumpDir.open(tmp_path)
        for tensor in dump:
            assert isinstance(tensor, DumpedTensor)
            try:
                tensor.load_host()
            except FormatError:
                continue
        assert all(isinstance(error, FormatError) for _, error in dump.damaged)
        if len(variant) < len(content):
            assert dump.damaged


def test_headers_are_read_once_where_they_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0" / "Net" / "0" / "0"
    folder.mkdir(parents=True)
    for slot in range(2):
        np.save(folder / f"Add.Add-op0.0.0.17.output.{slot}.DefaultFormat.npy", np.ones(3, np.float32))
    (broken,) = folder.glob("*output.1*")
    broken.write_bytes(b"nothing")
    kept, other = DumpDir.open(tmp_path, keeps_headers=True), DumpDir.open(tmp_path)
    first = list(kept.tensors())
    assert len(first) == 1 and list(kept.tensors()) == first == list(other.tensors())
    (folder / Path(first[0].path).name).unlink()
    broken.unlink()
    (folder / "Add.Add-op0.0.0.17.output.0.DefaultFormat.npy").write_bytes(b"changed")
    assert list(kept.tensors()) == first and list(other.tensors()) == []
    assert [Path(path).name for path, _ in kept.damaged] == [broken.name]
