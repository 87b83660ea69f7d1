"""A training step of a small network on the Ascend profile: device formats on disk, host values when converted back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore.kernels  # noqa: F401  (fills the registry)
from msdump.dumpers.limits import device_npy_size
from msdump.dumpers.streaming import AsyncDumper
from msdump.dumpers.tally import Tally
from msdump.engine import opening
from msdump.formats.bin import BinWriter, read_bin
from msdump.formats.npy import NpyWriter
from msdump.formats.npy_reader import read_npy
from msdump.formats.paths.acl import npy_file_name
from msdump.formats.paths.sync import parse_data_file_name
from msdump.formats.statistic_csv import read_statistic_csv
from msdump.formats.writer import Writer
from msdump.graph.graph import Graph, Parameter, Value
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from msdump.mindspore.program.compile import finish
from msdump.mindspore.program.executor import Executor
from msdump.process import sessions
from msdump.tensors import dtypes
from msdump.tensors.device_layouts import DEVICE_FORMATS, cube_size, device_shape, from_device
from msdump.tensors.records import TensorRecord
from tests.plans import plain_plan

Key = tuple[str, str, int]
_CONV = {"mode": 1, "pad_mode": "pad", "stride": (1, 1, 1, 1), "dilation": (1, 1, 1, 1), "format": "NCHW"}


def step_graph(channels: int, out_channels: int, kernel: int, groups: int) -> Graph:
    """Convolution, activation, pooling, product, and an in-place update of the convolution's weight."""
    rng = np.random.default_rng(channels)
    graph = Graph()

    def weight(name: str, *shape: int) -> Value:
        return graph.add_parameter(Parameter(name, rng.standard_normal(shape).astype(np.float32), "float32"))

    def node(op_type: str, inputs: list[Value], **attrs: object) -> Value:
        return graph.add_node(Primitive(op_type, attrs), inputs, "Default/network-Net").outputs[0]

    x = graph.add_input("x", TensorType("float32", (2, channels, 6, 6)))
    w = weight("conv.weight", out_channels, channels // groups, kernel, kernel)
    moment = weight("moments.conv.weight", *w.type.shape)
    rate = graph.add_constant(np.array(0.1, np.float32), "float32")
    attrs = {
        **_CONV,
        "out_channel": out_channels,
        "kernel_size": (kernel, kernel),
        "group": groups,
        "pad": (0, 0, 0, 0),
    }
    relu = node("ReLU", [node("Conv2D", [x, w], **attrs)])
    flat = node("Flatten", [relu])
    product = node("MatMul", [flat, weight("fc.weight", 5, flat.type.shape[1])], transpose_a=False, transpose_b=True)
    updated = node("ApplyMomentum", [w, moment, rate, moment, rate])
    graph.outputs = [product, updated]
    return finish(graph, "Ascend")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([(3, 20, 1), (17, 4, 1), (8, 16, 4), (6, 6, 6)]),
    st.integers(1, 3),
)
def test_bin_files_converted_back_are_the_npy_files(threads: int, sizes: tuple[int, int, int], kernel: int) -> None:
    channels, out_channels, groups = sizes
    graph = step_graph(channels, out_channels, kernel, groups)
    with tempfile.TemporaryDirectory() as name:
        bins, arrays, tally = Path(name) / "bin", Path(name) / "npy", Tally()
        writers: list[Writer] = [BinWriter(lambda _: bins), NpyWriter(lambda _: arrays, file_name=npy_file_name)]
        dumper = AsyncDumper(plain_plan(), writers, tally, 1 << 16, threads)
        Executor(graph, (dumper,)).run(
            [np.random.default_rng(1).standard_normal((2, channels, 6, 6)).astype(np.float32)]
        )
        dumper.close()
        assert not tally.error
        expected: dict[Key, bytes] = {}
        for path in arrays.iterdir():
            parsed = parse_data_file_name(path.name)
            assert parsed is not None and parsed.format in ("NCHW", "ND")
            expected[parsed.op_name, parsed.io, parsed.slot] = read_npy(path).tobytes()
        found: dict[Key, bytes] = {}
        formats: dict[str, list[str]] = {}
        for path in bins.iterdir():
            file = read_bin(path)
            op_name = file.op_name.rsplit("/", 1)[-1]
            for tensor in file.tensors:
                found[op_name, tensor.io, tensor.slot] = tensor.host_array().tobytes()
            formats[op_name.split("-")[0]] = [tensor.format for tensor in file.tensors]
        assert found == expected
        assert formats["Conv2D"] == ["NC1HWC0", "FRACTAL_Z", "NC1HWC0"]
        assert formats["MatMul"] == ["FRACTAL_NZ"] * 3
        assert formats["ApplyMomentum"] == ["FRACTAL_Z", "FRACTAL_Z", "ND", "FRACTAL_Z", "ND", "FRACTAL_Z"]


@pytest.mark.parametrize("groups", [1, 4])
def test_files_say_in_how_many_groups_a_filter_lies(tmp_path: Path, groups: int) -> None:
    graph = step_graph(8, 16, 3, groups)
    dumper = AsyncDumper(plain_plan(), [BinWriter(lambda _: tmp_path)], Tally(), 1 << 20)
    Executor(graph, (dumper,)).run([np.zeros((2, 8, 6, 6), np.float32)])
    dumper.close()
    [conv] = [read_bin(path) for path in tmp_path.glob("Conv2D*")]
    assert conv.tensors[1].sub_format == (groups if groups > 1 else 0)


# -- the synchronous dump on this profile ------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "dump.json"
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", str(path))
    sessions.reset_for_tests()
    yield path
    sessions.reset_for_tests()


def sync_dump(config: Path, name: str, trans_flag: bool, device_id: int = 0) -> dict[Key, Path]:
    """Files of a synchronous dump of one step, by operator, side and slot."""
    common = {
        "dump_mode": 0, "path": str(config.parent / name), "net_name": "Net", "iteration": "all",
        "saved_data": "full", "input_output": 0, "kernels": [], "support_device": [0],
    }  # fmt: skip
    e2e = {"enable": True, "trans_flag": trans_flag}
    config.write_text(json.dumps({"common_dump_settings": common, "e2e_dump_settings": e2e}))
    sessions.reset_for_tests()
    opened = opening.open_mindspore("Ascend", device_id)
    if opened is None:
        return {}
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    Executor(step_graph(3, 20, 3, 1), opened.observers).run([x], opened.next_iteration())
    opened.close()
    found = {}
    for path in (config.parent / name / "rank_0/Net/0/0").glob("*.npy"):
        parsed = parse_data_file_name(path.name)
        assert parsed is not None
        found[f"{parsed.op_type}.{parsed.op_name}", parsed.io, parsed.slot] = path
    return found


def test_trans_flag_chooses_the_layout_of_a_synchronous_dump(config: Path) -> None:
    host, device = sync_dump(config, "host", True), sync_dump(config, "device", False)
    assert host.keys() == device.keys()
    formats: dict[str, set[str]] = {}
    for key, path in device.items():
        array, expected = read_npy(path), read_npy(host[key])
        assert host[key].name.endswith(".DefaultFormat.npy")
        format_name = path.name.split(".")[-2]
        formats.setdefault(key[0].split(".")[0], set()).add(format_name)
        if format_name in DEVICE_FORMATS:
            assert array.shape == device_shape(expected.shape, format_name, cube_size("float32"))
            array = from_device(array, format_name, expected.shape)
        np.testing.assert_array_equal(array, expected)
    assert formats["Conv2D"] == {"NC1HWC0", "FRACTAL_Z"}
    assert formats["MatMul"] == {"FRACTAL_NZ"}
    assert formats["Parameter"] == {"DefaultFormat"}
    tables = [config.parent / name / "rank_0/Net/0/0/statistic.csv" for name in ("host", "device")]
    assert [len(read_statistic_csv(table)) for table in tables] == [len(host)] * 2


def test_support_device_acts_on_a_synchronous_dump(config: Path) -> None:
    assert sync_dump(config, "other", True, device_id=5) == {}
    assert not (config.parent / "other").exists()


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["NC1HWC0", "FRACTAL_Z", "FRACTAL_NZ", "DefaultFormat"]),
    st.tuples(*[st.integers(1, 9)] * 4),
    st.sampled_from(["float16", "float32", "bfloat16"]),
)
def test_the_limit_of_the_disk_knows_the_padding(format_name: str, shape: tuple[int, ...], dtype: str) -> None:
    data = np.zeros(shape, dtypes.dtype(dtype).numpy)
    record = TensorRecord("Add", "Default/Add-op1", 0, 0, 1, "output", 0, dtype, data, format_name)
    with tempfile.TemporaryDirectory() as name:
        writer = NpyWriter(lambda _: Path(name), is_device_format=True)
        writer.write([record])
        writer.close()
        [path] = Path(name).iterdir()
        assert path.stat().st_size <= device_npy_size(record) <= path.stat().st_size + 4096
    assert device_npy_size(record, is_repeat=True) == 0
