"""One operator of a GE graph alone, with the attributes that the text of a graph dump has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump.errors import ConfigError, FormatError  # noqa: E402
from msdump.torchair.ge import lone_op  # noqa: E402
from msdump.torchair.ge.lone_op import GraphText, run_kernel, takes_no_attributes, variants  # noqa: E402

X = np.array([[1.5, -2.0], [0.25, 3.0]], np.float32)
TEXT = """
name: "graph_1"
op { name: "x" type: "Data" }
op { name: "Const" type: "Const" attr { key: "value" value { t { desc { dtype: DT_INT64 shape { dim: 1 } }
  data: "\\001\\000\\000\\000\\000\\000\\000\\000" } } } }
op { name: "Const_1" type: "Const" attr { key: "_readable_value" value { s: "0.1" } } attr { key: "value" value { t {
  desc { dtype: DT_FLOAT shape { } } data: "\\315\\314\\314=" } } } }
op { name: "Shape" type: "Shape" input: "x:0" input_desc { name: "x" dtype: DT_FLOAT shape { dim: 2 dim: 2 } } }
op { name: "ReduceSum" type: "ReduceSum" input: "x:0" input: "Const:0"
  attr { key: "keep_dims" value { b: true } }
  input_desc { name: "x" dtype: DT_FLOAT shape { dim: -1 dim: 2 } }
  input_desc { name: "axes" dtype: DT_INT64 shape { dim: 1 } } }
op { name: "Mul" type: "Mul" input: "x:0" input: "Const_1:0"
  input_desc { name: "x1" dtype: DT_FLOAT shape { dim: 2 dim: 2 } }
  input_desc { name: "x2" dtype: DT_FLOAT shape { } } }
op { name: "MatMulV2" type: "MatMulV2" input: "x:0" input: "x:0" input: "" input: ""
  attr { key: "transpose_x1" value { b: false } } attr { key: "transpose_x2" value { b: true } }
  input_desc { name: "x1" dtype: DT_FLOAT shape { dim: 2 dim: 2 } }
  input_desc { name: "x2" dtype: DT_FLOAT shape { dim: 2 dim: 2 } }
  input_desc { name: "bias" dtype: DT_FLOAT } input_desc { name: "offset_w" dtype: DT_FLOAT } }
"""


@pytest.fixture
def text(tmp_path: Path) -> GraphText:
    path = tmp_path / "graph.txt"
    path.write_text(TEXT)
    return GraphText.read(path)


def test_what_a_dump_does_not_show_comes_from_the_text(text: GraphText) -> None:
    total = text.find(["ReduceSum"], "ReduceSum")
    for dumped in ([X], [X, np.array([1])]):
        made = run_kernel("ReduceSum", text.arguments(total, dumped), total.attrs)
        np.testing.assert_array_equal(made[0], X.sum(1, keepdims=True))
    assert text.constants["Shape"].tolist() == [2, 2]
    # In more digits than a float32 has.
    assert text.arguments(text.find(["Mul"], "Mul"), [X, np.float32(0.1).reshape(())])[1] == 0.1
    product = text.find(["MatMulV2"], "MatMulV2")
    assert text.arguments(product, [X, X])[2:] == [None, None]
    np.testing.assert_allclose(run_kernel("MatMulV2", text.arguments(product, [X, X]), product.attrs)[0], X @ X.T)


def test_inputs_that_do_not_fit_are_refused(text: GraphText) -> None:
    product = text.find(["MatMulV2"], "MatMulV2")
    for dumped in ([X], [X, X, X], [X, X[:1]], [X, X.astype(np.float64)]):
        with pytest.raises(ConfigError, match="expected the inputs x1, x2"):
            text.arguments(product, dumped)
    with pytest.raises(ConfigError, match="of type Relu, got MatMulV2"):
        text.find(["MatMulV2"], "Relu")
    with pytest.raises(ConfigError, match='Did you mean "MatMulV2"'):
        text.find(["MatMulV3"], "MatMulV2")


def test_another_precision(text: GraphText) -> None:
    half = X.astype(np.float16)
    assert run_kernel("Relu", [half], {}, "float64")[0].dtype == np.float64
    assert run_kernel("Cast", [X], {"dst_type": 1}, "float64")[0].dtype == np.float64
    assert run_kernel("Cast", [X], {"dst_type": 9}, "float64")[0].dtype == np.int64


def test_which_types_are_known_by_their_inputs() -> None:
    assert takes_no_attributes("Relu", 1) and takes_no_attributes("Add", 2)
    for op_type, inputs in (("Add", 3), ("MatMulV2", 2), ("Cast", 1), ("ReduceSum", 1), ("Assign", 2), ("None", 1)):
        assert not takes_no_attributes(op_type, inputs), op_type


def test_formulas_that_the_text_leaves_open() -> None:
    assert [one["approximate"] for one in variants("Gelu", {})] == ["none", "tanh"]
    assert variants("Relu", {}) == [{}]
    with pytest.raises(ConfigError, match="expected its attributes"):
        variants("ThresholdGradV2D", {})
    with pytest.raises(ConfigError, match="no kernel"):
        variants("NoSuchType", {})


def test_random_numbers_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.torchair.ge.registry import Kernel

    monkeypatch.setattr(lone_op, "kernel_of", lambda _: Kernel(torch.rand_like))
    state = torch.get_rng_state()
    with pytest.raises(ConfigError, match="it draws random numbers"):
        run_kernel("Any", [X], {})
    assert torch.equal(state, torch.get_rng_state())


def test_a_damaged_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    for content in (TEXT[:-200], TEXT.replace("dim: 1 } }", "dim: 7 } }", 1), "\x00", "op {" * 2000):
        path.write_text(content)
        with pytest.raises(FormatError):
            GraphText.read(path)
