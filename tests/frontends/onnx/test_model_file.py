"""What is refused, and how: one clear line each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from msdump.errors import ExecutionError, FormatError, GraphError, MsdumpError
from msdump.frontends.onnx import load_model
from tests.frontends.onnx import models
from tests.frontends.onnx.models import model_of, value

X = np.ones((2, 20), np.float32)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.onnx: expected an ONNX file, got No such file or directory\. Check"):
        load_model(tmp_path / "none.onnx")
    with pytest.raises(FormatError, match="expected a plain file, got a folder"):
        load_model(tmp_path)


@pytest.mark.parametrize("data", [b"", b"\x00\x01\x02", b"#!/bin/sh\n", b"\x89PNG\r\n\x1a\n" + bytes(50)])
def test_a_file_that_is_not_onnx(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=r"model\.onnx: expected an ONNX model, got .*\. Is the file whole\?"):
        load_model(str(path))


def test_om_files_need_a_device(tmp_path: Path) -> None:
    path = tmp_path / "resnet50.om"
    message = r"resnet50\.om: expected an ONNX model, got an \.om file, which only a device can run\. Give the \.onnx"
    with pytest.raises(FormatError, match=message):
        load_model(path)
    with pytest.raises(FormatError, match=r"model in memory: expected an ONNX model, got an \.om file"):
        load_model(b"IMOD" + bytes(300))


def test_operator_sets(tmp_path: Path) -> None:
    proto = models.names()
    proto.opset_import[0].version = 999
    with pytest.raises(GraphError, match=r"model: expected an operator set from 1 to \d+, got 999\. Export the model"):
        load_model(proto)
    del proto.opset_import[:]
    with pytest.raises(FormatError, match="expected the operator sets in opset_import, got none"):
        load_model(proto)


def test_nodes_out_of_order() -> None:
    nodes = [helper.make_node("Neg", ["later"], ["y"], name="early"), helper.make_node("Neg", ["x"], ["later"])]
    proto = model_of(nodes, [value("x", np.float32, [1])], [value("y")])
    with pytest.raises(GraphError, match=r"^%early = Neg\(later\): expected operands that .* got later\. Is the file"):
        load_model(proto)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, r"model small: expected input x as float32\[2, 20\], got nothing\. Give it as well\."),
        ({"X": X}, r"model small: expected inputs x, got X\. Did you mean \"x\"\?"),
        ({"x": X[:1]}, r"model small: expected input x as float32\[2, 20\], got shape \[1, 20\]\. Give it the shape"),
        ({"x": X[0]}, r"got shape \[20\]\."),
        ({"x": X.astype(np.float64)}, r"expected input x as float32\[2, 20\], got float64\[2, 20\]\. Convert it"),
        ({"x": [["a"] * 20] * 2}, r"got <U1\[2, 20\]"),
    ],
)
def test_inputs_that_do_not_fit(feeds: dict[str, Any], message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        load_model(models.names()).run(feeds)


def test_inputs_by_place() -> None:
    with pytest.raises(ExecutionError, match=r"model small: expected 1 inputs \(x\), got 2\."):
        load_model(models.names())(X, X)


def test_open_sizes_are_free_and_shown() -> None:
    model = load_model(models.convolutions(np.random.default_rng(0)))
    assert [str(spec) for spec in model.inputs] == ["float32[N, 3, 8, 8]"]
    with pytest.raises(ExecutionError, match=r"expected input data as float32\[N, 3, 8, 8\], got shape \[1, 3, 8, 9\]"):
        model.run({"data": np.ones((1, 3, 8, 9), np.float32)})


def test_weights_that_are_cut_short() -> None:
    proto = models.names()
    proto.graph.initializer[0].raw_data = proto.graph.initializer[0].raw_data[:-4]
    with pytest.raises(FormatError, match=r"initializer w: expected data for shape \[20, 20\], got "):
        load_model(proto)


_BYTES = models.convolutions(np.random.default_rng(0)).SerializeToString()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(_BYTES) - 1))
def test_any_prefix_loads_or_is_refused(size: int) -> None:
    lines = 1
    try:
        load_model(_BYTES[:size])
    except MsdumpError as error:
        lines = len(str(error).splitlines())
    assert lines == 1


def test_importing_msdump_needs_no_onnx() -> None:
    import subprocess
    import sys

    code = (
        "import sys, msdump, msdump.frontends; sys.exit(any(m.split('.')[0].startswith('onnx') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_onnx_is_what_it_says() -> None:
    """The message types are onnx's own: a model can be given as one."""
    assert isinstance(models.names(), onnx.ModelProto)
