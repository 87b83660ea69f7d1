"""A training step of a small network on the Ascend profile: device formats on disk, host values when converted back."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.kernels  # noqa: F401  (fills the registry)
from msdump.dump.asynchronous import AsyncDumper
from msdump.dump.tally import Tally
from msdump.formats.async_layout import npy_file_name
from msdump.formats.bin_reader import read_bin
from msdump.formats.bin_writer import BinWriter
from msdump.formats.layout import parse_data_file_name
from msdump.formats.npy import NpyWriter, read_npy
from msdump.formats.writer import Writer
from msdump.graph.compile import finish
from msdump.graph.executor import Executor
from msdump.graph.graph import Graph, Parameter, Value
from msdump.graph.primitive import Primitive
from msdump.graph.types import TensorType
from tests.dump.memory_writer import make_plan

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
        dumper = AsyncDumper(make_plan(), writers, tally, 1 << 16, threads)
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
    dumper = AsyncDumper(make_plan(), [BinWriter(lambda _: tmp_path)], Tally(), 1 << 20)
    Executor(graph, (dumper,)).run([np.zeros((2, 8, 6, 6), np.float32)])
    dumper.close()
    [conv] = [read_bin(path) for path in tmp_path.glob("Conv2D*")]
    assert conv.tensors[1].sub_format == (groups if groups > 1 else 0)
