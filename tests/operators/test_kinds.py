"""The words of frameworks: what computes the same has one kind, and attributes are read alike.

That ATen and ONNX compute the same under one kind is shown on their kernels here; that MindSpore does, by
tests/mindspore/test_operator_kinds.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msdump.analysis.compare.chains import CHAINS
from msdump.operators.attributes import differing_attributes
from msdump.operators.kinds import (
    ATEN,
    MINDSPORE,
    MSPROBE,
    ONNX,
    argument_name,
    dialects_of,
    has_transposed_weight,
    is_mover,
    kind_of,
    kinds,
    names_of,
    output_role,
)
from msdump.operators.table import row_of, rows
from tests.operators.kind_cases import CASES, arguments

_ONNX_OPSET = 18


@pytest.mark.parametrize(
    ("op_type", "kind"),
    [
        ("aten_addmm_default", "linear"),
        ("aten.addmm.default", "linear"),
        ("Gemm", "linear"),
        ("aten_add__Tensor", "add"),
        ("aten_native_batch_norm_default", "batch_norm"),
        ("aten_max_pool2d_with_indices_default", "max_pool"),
        ("aten_sum_dim_IntList", "sum"),
        ("aten__log_softmax_default", "log_softmax"),
        ("aten_pow_Tensor_Scalar", "pow"),
        ("aten__to_copy_default", "cast"),
        ("Functional.gelu", "gelu"),
        ("Torch.matmul", "matmul"),
        ("Tensor.add_", "add"),
        ("MatMulV2", "matmul"),
        ("MatMulV3", "matmul"),
        ("SomethingElse", "SomethingElse"),
        ("aten_something_else_default", "something_else"),
    ],
)
def test_what_a_type_computes(op_type: str, kind: str) -> None:
    assert kind_of(op_type) == kind


@pytest.mark.parametrize(
    ("op_type", "dialects"),
    [
        ("BiasAdd", {MINDSPORE}),
        ("Gemm", {ONNX}),
        ("Add", {MINDSPORE, ONNX}),
        ("aten_add_Tensor", {ATEN}),
        ("Functional.gelu", {MSPROBE}),
        ("x", set()),
    ],
)
def test_whose_word_a_type_is(op_type: str, dialects: set[str]) -> None:
    assert dialects_of(op_type) == dialects


def test_no_name_stands_for_two_kinds() -> None:
    for dialect in (MINDSPORE, ATEN, ONNX):
        listed = [name for kind in kinds() for name in names_of(kind, dialect)]
        assert len(set(listed)) == len(listed)
    assert len(set(kinds())) == len(kinds()) >= 200


def test_chains_are_made_of_kinds() -> None:
    for chain in CHAINS:
        assert {chain.kind, *chain.parts} <= set(kinds())


def test_what_only_moves() -> None:
    assert all(map(is_mover, ("Reshape", "aten_t_default", "Cast", "aten.view.default", "Identity")))
    assert not any(map(is_mover, ("MatMul", "aten_addmm_default", "Gather", "Functional.gelu")))


@pytest.mark.parametrize(
    ("mine", "golden", "texts"),
    [
        (("GeLU", {}), ("aten_gelu_default", {}), ["approximate: tanh against none"]),
        (("GeLU", {}), ("aten_gelu_default", {"approximate": "tanh"}), []),
        (
            ("Conv2D", {"pad_mode": "pad", "pad": (1, 1, 1, 1), "stride": (1, 1, 2, 2), "group": 1}),
            ("aten_convolution_default", {"padding": (1, 1), "stride": (2, 2), "groups": 1}),
            [],
        ),
        (
            ("Conv2D", {"pad_mode": "same", "pad": (0, 0, 0, 0)}),
            ("aten_convolution_default", {"padding": (1, 1)}),
            ["padding: same against 1"],
        ),
        (
            ("Conv", {"strides": [2, 1], "pads": [1, 0, 1, 0]}),
            ("aten_convolution_default", {"stride": (2, 2), "padding": (1, 0)}),
            ["stride: (2, 1) against 2"],
        ),
        (
            ("BatchNorm", {"is_training": False, "epsilon": 1e-5, "momentum": 0.1}),
            ("aten_native_batch_norm_default", {"training": True, "eps": 1e-3, "momentum": 0.1}),
            ["training: False against True", "epsilon: 1e-05 against 0.001"],
        ),
        # ONNX keeps the share that PyTorch takes away.
        (("BatchNormalization", {"momentum": 0.9}), ("aten_native_batch_norm_default", {"momentum": 0.1}), []),
        (("Softmax", {"axis": (-1,)}), ("aten__softmax_default", {"dim": -2}), ["axis: -1 against -2"]),
        (("aten_mse_loss_default", {"reduction": 2}), ("Functional.mse_loss", {}), ["reduction: sum against mean"]),
        (("aten_relu_default", {}), ("aten_gelu_default", {}), []),
        # A default that is not that of all who have the word is not known.
        (("LayerNorm", {"epsilon": 1e-5}), ("aten_native_layer_norm_default", {"eps": 1e-5}), []),
    ],
)
def test_attributes_that_say_different_things(
    mine: tuple[str, dict[str, Any]], golden: tuple[str, dict[str, Any]], texts: list[str]
) -> None:
    assert [f"{name}: {x} against {y}" for name, x, y in differing_attributes(mine, golden)] == texts
    assert [f"{name}: {y} against {x}" for name, x, y in differing_attributes(golden, mine)] == texts


def test_outputs_that_are_other_quantities() -> None:
    assert output_role("LayerNorm", 0) == output_role("aten_native_layer_norm_default", 0)
    assert output_role("LayerNorm", 1) == output_role("aten_native_layer_norm_default", 1)
    assert output_role("LayerNorm", 2) != output_role("aten_native_layer_norm_default", 2)


def test_who_transposes_its_weight() -> None:
    assert has_transposed_weight("MatMul", {"transpose_b": True}) and has_transposed_weight("Gemm", {"transB": 1})
    assert has_transposed_weight("aten_linear_default", {})
    assert not has_transposed_weight("aten_addmm_default", {}) and not has_transposed_weight("MatMul", {})


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in CASES for name in CASES[kind].onnx])
def test_onnx_computes_what_aten_does(kind: str, name: str) -> None:
    """Each row that both have, on the kernels of PyTorch and onnxruntime."""
    torch = pytest.importorskip("torch")
    onnx, onnxruntime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    assert name in names_of(kind, ONNX)
    case = CASES[kind]
    operands = arguments(kind)
    expected = case.aten(torch, *map(torch.from_numpy, operands))
    names = [f"x{number}" for number in range(len(operands))]
    attributes, constants = case.onnx[name]
    extra = [onnx.numpy_helper.from_array(np.asarray(value), f"c{number}") for number, value in enumerate(constants)]
    node = onnx.helper.make_node(name, [*names, *(one.name for one in extra)], ["y"], **attributes)
    values = [
        onnx.helper.make_tensor_value_info(one, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for one, array in zip(names, operands, strict=True)
    ]
    result = onnx.helper.np_dtype_to_tensor_dtype(expected.numpy().dtype)
    ends = [onnx.helper.make_tensor_value_info("y", result, None)]
    graph = onnx.helper.make_graph([node], "one", values, ends, extra)
    opset = [onnx.helper.make_opsetid("", 20 if name == "Gelu" else _ONNX_OPSET)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, dict(zip(names, operands, strict=True)))
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for row in rows() if row.arguments for name in row.names["aten"]])
def test_arguments_are_called_as_pytorch_calls_them(name: str) -> None:
    torch = pytest.importorskip("torch")
    row = row_of(f"aten.{name}.default")
    assert row is not None
    packet = getattr(torch.ops.aten, name)
    called = [[argument.name for argument in getattr(packet, one)._schema.arguments] for one in packet.overloads()]
    assert any(tuple(arguments[: len(row.arguments)]) == row.arguments for arguments in called)
    assert argument_name(f"aten.{name}.default", 0) == row.arguments[0]


def test_an_argument_without_a_row_has_no_name() -> None:
    assert argument_name("aten.softshrink.default", 1) is None and argument_name("MatMul", 0) is None
    assert argument_name("aten._softmax.default", 9) is None
