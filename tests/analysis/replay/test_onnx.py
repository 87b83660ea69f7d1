"""Operators of ONNX models again: tensors of the dump, attributes of the model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

import msdump  # noqa: E402
from msdump.analysis import replay_operator, write_repro  # noqa: E402
from msdump.analysis.replay.replay import runner_of  # noqa: E402
from msdump.analysis.steps import Slot, read_steps  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.errors import ConfigError, FormatError, KernelNotFoundError  # noqa: E402
from tests.analysis.replay.damage import run_script, with_flipped_bit  # noqa: E402
from tests.frontends.onnx.models import model_of, value  # noqa: E402

RNG = np.random.default_rng(3)
node = helper.make_node


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(dtype)


def branch(op_type: str, made: str) -> Any:
    """A body of an If that reads `x` from outside."""
    return helper.make_graph([node(op_type, ["x"], [made])], op_type, [], [onnx.ValueInfoProto(name=made)])


IMAGE = (1, 2, 6, 6)
# One of each kind: attributes, constant operands, several outputs, integers, operands left out, bodies, other domains.
NODES = [
    node("Add", ["x", "half"], ["add"], name="net/add"),
    node("MatMul", ["x", "weight"], ["mm"], name="net/fc.1/mm"),
    node("Gemm", ["x", "weight", "bias"], ["gemm"], name="gemm", alpha=0.5, beta=2.0),
    node("Softmax", ["mm"], ["soft"], name="soft", axis=0),
    node("ReduceSum", ["x", "axes"], ["sum"], name="sum", keepdims=0),
    node("Cast", ["x"], ["int"], name="cast", to=TensorProto.INT32),
    node("Cast", ["x"], ["wide"], name="to_float", to=TensorProto.FLOAT),
    node("Concat", ["x", "add", "x"], ["cat"], name="cat", axis=1),
    node("Split", ["x", "sizes"], ["left", "right"], name="split", axis=1),
    node("Clip", ["x", "", "half"], ["clip"], name="clip"),
    node("Gather", ["x", "places"], ["gather"], name="gather", axis=1),
    node("Conv", ["image", "kernel"], ["conv"], name="conv", pads=[1, 0, 1, 2], strides=[2, 1], group=2),
    node("MaxPool", ["image"], ["pool", "index"], name="pool", kernel_shape=[2, 2], ceil_mode=1),
    node("QuantizeLinear", ["x", "scale", "zero"], ["quantized"], name="quantize"),
    node("DequantizeLinear", ["quantized", "scale", "zero"], ["real"], name="dequantize"),
    node("Dropout", ["x"], ["kept"], name="drop"),
    node("ConstantOfShape", ["sizes"], ["full"], name="full", value=helper.make_tensor("v", 1, [1], [1.5])),
    node("If", ["flag"], ["chosen"], name="if", then_branch=branch("Neg", "a"), else_branch=branch("Abs", "b")),
    node("Gelu", ["x"], ["gelu"], name="gelu", domain="com.microsoft"),
    node("LayerNormalization", ["x", "gamma"], ["norm"], name="norm", epsilon=1e-3),
]
CONSTANTS = {
    "half": np.float32(0.5),
    "weight": numbers(4, 3),
    "bias": numbers(3),
    "axes": np.array([1]),
    "sizes": np.array([1, 3]),
    "places": np.array([3, 0]),
    "kernel": numbers(2, 1, 3, 3),
    "scale": np.float32(0.05),
    "zero": np.uint8(120),
    "gamma": numbers(4),
}
OUTPUTS = [name for each in NODES for name in each.output]


def make_model(path: Path) -> Path:
    shapes = [("x", np.float32, (5, 4)), ("image", np.float32, IMAGE), ("flag", np.bool_, ())]
    model = model_of(
        NODES,
        [value(*shape) for shape in shapes],
        [onnx.ValueInfoProto(name=name) for name in OUTPUTS],
        CONSTANTS,
        domains=[("com.microsoft", 1)],
    )
    onnx.save(model, path)
    return path


def dump_model(folder: Path, path: Path, **keys: str) -> Path:
    """As a user dumps a model from the command line."""
    dump = {"dump_path": str(folder / "dump"), "dump_list": [], "dump_mode": "all", "dump_list_all": None, **keys}
    del dump["dump_list_all"]
    dump["dump_list"] = [{"model_name": path.stem}]
    (folder / "dump").mkdir()
    (folder / "acl.json").write_text(json.dumps({"dump": dump}))
    assert main(["acl", "run", str(path), "--random", "5", "--times", "2", "--dump", str(folder / "acl.json")]) == 0
    return folder / "dump"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("onnx")
    return dump_model(folder, make_model(folder / "net.onnx"))


@pytest.mark.parametrize("name", [each.name for each in NODES])
def test_an_operator_gives_its_dumped_output_again(dump: Path, name: str) -> None:
    """The same bits in onnxruntime; the model is the one that the dump says it was made of."""
    for iteration in range(2):
        result = replay_operator(dump, name, iteration=iteration)
        assert result.is_explained, result.reason
        own = result.runs["onnxruntime"]
        assert not own.problem and own.errors
        for slot, dumped in result.outputs.items():
            again = own.outputs[slot.number]
            assert (again.dtype, again.shape, again.tobytes()) == (dumped.dtype, dumped.shape, dumped.tobytes())


# onnx defines operators of its own domain, and not each set of theirs in numpy.
@pytest.mark.parametrize("name", [each.name for each in NODES if not each.domain and each.name != "dequantize"])
def test_other_libraries_compute_the_same(dump: Path, name: str) -> None:
    result = replay_operator(dump, name, iteration=1)
    for run in ("float64", "numpy"):
        assert not result.runs[run].problem, (run, result.runs[run].problem)
        for slot, dumped in result.outputs.items():
            if (name, run, slot.number) == ("pool", "numpy", 1):
                continue  # onnx counts these indices otherwise in numpy than its own text says
            again = result.runs[run].outputs[slot.number]
            np.testing.assert_allclose(again.astype(np.float64), dumped.astype(np.float64), rtol=2e-5, atol=1e-5)
    exact = result.runs["float64"].outputs[0]
    assert exact.dtype == (np.float64 if result.outputs[Slot(0)].dtype == np.float32 else result.outputs[Slot(0)].dtype)


@pytest.mark.parametrize("name", [each.name for each in NODES])
def test_a_flipped_bit_of_an_output_is_found(dump: Path, tmp_path: Path, name: str) -> None:
    broken = with_flipped_bit(dump, tmp_path / "broken", name)
    assert main(["replay", str(broken), name, "--iteration", "0"]) == 1
    assert main(["replay", str(broken), name, "--iteration", "1"]) == 0


@pytest.mark.parametrize("name", ["net/add", "net/fc.1/mm", "split", "if", "gelu", "quantize", "cat"])
def test_a_script_ends_with_0_for_a_right_operator_alone(dump: Path, tmp_path: Path, name: str) -> None:
    status, said = run_script(write_repro(dump, name, tmp_path / "right", iteration=0))
    assert status == 0 and "are what the inputs give" in said
    broken = with_flipped_bit(dump, tmp_path / "broken", name)
    status, said = run_script(write_repro(broken, name, tmp_path / "wrong", iteration=0))
    assert status == 1 and "the dumped outputs differ" in said


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE])
def test_other_dtypes(tmp_path: Path, dtype: int) -> None:
    """numpy has no bfloat16, and onnxruntime multiplies none: it only casts it."""
    nodes = [node("Cast", ["x"], ["short"], name="shorten", to=dtype)]
    made = "short"
    if dtype != TensorProto.BFLOAT16:
        nodes.append(node("MatMul", ["short", "short"], ["product"], name="product"))
        made = "product"
    nodes.append(node("Cast", [made], ["y"], name="back", to=TensorProto.FLOAT))
    path = tmp_path / "short.onnx"
    onnx.save(model_of(nodes, [value("x", np.float32, (3, 3))], [value("y")]), path)
    dump = dump_model(tmp_path, path)
    for each in nodes:
        result = replay_operator(dump, each.name)
        assert result.is_explained, result.reason
        assert ("float32" in result.runs) == (dtype != TensorProto.DOUBLE)
        assert ("numpy" in result.runs) == (dtype != TensorProto.BFLOAT16)
        status, said = run_script(write_repro(dump, each.name, tmp_path / f"repro_{each.name}"))
        assert status == 0, said
    broken = with_flipped_bit(dump, tmp_path / "broken", nodes[-2].name)
    assert main(["replay", str(broken), nodes[-2].name, "--iteration", "0"]) == 1


# -- where the model is ------------------------------------------------------------------------------------------------


def test_a_script_of_acl_leaves_no_word_of_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It configures itself, and finds CANN's folders alone: the user says which model it was."""
    path = make_model(tmp_path / "net.onnx")
    dump = dump_model(tmp_path, path)
    for metadata in dump.rglob(".dump_metadata"):
        shutil.rmtree(metadata)
    new = tmp_path / "new"
    for command in (["replay", str(dump), "soft"], ["repro", str(dump), "soft", "-o", str(new)]):
        assert main(command) == 2
        assert "--model m.onnx" in capsys.readouterr().err
        assert not new.exists()
        assert main([*command, "--model", str(path)]) == 0
        said = capsys.readouterr().out
    assert said.splitlines()[0] == str(new / "repro.py")
    assert run_script(new / "repro.py")[0] == 0


def test_a_model_that_has_moved_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_model(tmp_path / "net.onnx")
    dump = dump_model(tmp_path, path)
    path.rename(tmp_path / "moved.onnx")
    assert main(["replay", str(dump), "soft"]) == 2
    assert f"expected the model at {path}" in capsys.readouterr().err
    assert main(["replay", str(dump), "soft", "--model", str(tmp_path / "moved.onnx"), "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["notes"] == [f"attributes of {tmp_path / 'moved.onnx'}"]
    assert set(document["runs"]) == {"onnxruntime", "float64", "numpy"}


def test_another_model_is_refused_or_named(dump: Path, tmp_path: Path) -> None:
    def saved(name: str, *nodes: Any, **constants: Any) -> Path:
        path = tmp_path / f"{name}.onnx"
        made = [onnx.ValueInfoProto(name=one) for each in nodes for one in each.output]
        onnx.save(model_of(nodes, [value("x", np.float32, (5, 4))], made, constants), path)
        return path

    without = saved("without", node("Abs", ["x"], ["y"], name="net/ad"), node("Abs", ["x"], ["z"], name="z"))
    with pytest.raises(ConfigError, match=r'without an operator net/add\. Did you mean "net/ad"\?'):
        replay_operator(dump, "net/add", model=without)
    narrow = saved("narrow", node("Abs", ["x"], ["y"], name="net/add"), node("Abs", ["x"], ["z"], name="z"))
    with pytest.raises(ConfigError, match=r"with 1 inputs, got 2 in the dump\. Is it another model"):
        replay_operator(dump, "net/add", model=narrow)
    weights = saved("weights", node("Add", ["x", "half"], ["y"], name="net/add"), half=np.float32(0.25))
    result = replay_operator(dump, "net/add", model=weights)
    assert result.is_explained and "input 1 (half) is not what the model has" in result.notes[1]
    with pytest.raises(FormatError):
        replay_operator(dump, "net/add", model=tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises(FormatError):
        replay_operator(dump, "net/add", model=tmp_path / "text.onnx")


def test_an_attribute_of_another_value_makes_it_wrong(dump: Path, tmp_path: Path) -> None:
    path = make_model(tmp_path / "net.onnx")
    model = onnx.load(path)
    (soft,) = (each for each in model.graph.node if each.name == "soft")
    soft.attribute[0].i = 1
    onnx.save(model, path)
    assert not replay_operator(dump, "soft", model=path).is_explained


def test_operators_that_a_fused_one_stands_for_find_it(tmp_path: Path) -> None:
    fused = node("Relu", ["x"], ["y"], name="conv_relu")
    fused.metadata_props.add(key="_datadump_original_op_names", value='["conv", "relu"]')
    path = tmp_path / "fused.onnx"
    onnx.save(model_of([fused], [value("x", np.float32, (2, 2))], [value("y")]), path)
    dump = dump_model(tmp_path, path)
    assert replay_operator(dump, "relu").is_explained
    # Of the model before the fusion, the node whose output it is.
    before = tmp_path / "before.onnx"
    nodes = [node("Neg", ["x"], ["n"], name="conv"), node("Relu", ["x"], ["y"], name="relu")]
    onnx.save(model_of(nodes, [value("x", np.float32, (2, 2))], [value("y"), value("n")]), before)
    assert replay_operator(dump, "conv_relu", model=before).is_explained


# -- what cannot be replayed -------------------------------------------------------------------------------------------


def one_node(tmp_path: Path, each: Any, constants: dict[str, Any] | None = None, **keys: str) -> Path:
    path = tmp_path / "one.onnx"
    nodes = [each, node("Identity", ["x"], ["same"], name="same")]
    outputs = [*(onnx.ValueInfoProto(name=name) for name in each.output), value("same")]
    onnx.save(model_of(nodes, [value("x", np.float32, (4, 4))], outputs, constants), path)
    return dump_model(tmp_path, path, **keys)


@pytest.mark.parametrize(
    ("each", "constants"),
    [
        (node("RandomNormalLike", ["x"], ["y"], name="op"), {}),
        (node("Bernoulli", ["p"], ["y"], name="op"), {"p": np.full((4,), 0.5, np.float32)}),
        (node("Dropout", ["x", "p", "t"], ["y"], name="op"), {"p": np.float32(0.5), "t": np.bool_(True)}),
    ],
)
def test_random_operators_are_refused(tmp_path: Path, each: Any, constants: Any) -> None:
    dump = one_node(tmp_path, each, constants)
    with pytest.raises(KernelNotFoundError, match="it draws random numbers"):
        replay_operator(dump, "op")
    with pytest.raises(KernelNotFoundError, match="it draws random numbers"):
        write_repro(dump, "op", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_what_a_dump_does_not_hold_is_named(tmp_path: Path) -> None:
    for folder in ("outputs", "sequence", "inputs"):
        (tmp_path / folder).mkdir()
    dump = one_node(tmp_path / "outputs", node("Abs", ["x"], ["y"], name="op"), dump_mode="output")
    with pytest.raises(ConfigError, match=r'none of number 0 \(x\).*"dump_mode": "all"'):
        replay_operator(dump, "op")
    dump = one_node(tmp_path / "inputs", node("Abs", ["x"], ["y"], name="op"), dump_mode="input")
    with pytest.raises(ConfigError, match="expected dumped outputs to compare with"):
        replay_operator(dump, "op")
    with pytest.raises(ConfigError, match="expected dumped outputs to compare with"):
        write_repro(dump, "op", tmp_path / "new")
    path = tmp_path / "sequence" / "list.onnx"
    nodes = [
        node("SequenceConstruct", ["x"], ["list"], name="list"),
        node("SequenceLength", ["list"], ["y"], name="length"),
    ]
    onnx.save(model_of(nodes, [value("x", np.float32, (2,))], [value("y", np.int64, ())]), path)
    dump = dump_model(tmp_path / "sequence", path)
    with pytest.raises(KernelNotFoundError, match="a dump holds no value of type sequence"):
        replay_operator(dump, "length")
    with pytest.raises(ConfigError, match="nothing computes it"):
        replay_operator(dump, "Data.x")


def test_no_name_of_a_model_is_code(tmp_path: Path) -> None:
    name = '"""; open("HERE", "w"); """'
    dump = one_node(tmp_path, node("Abs", ["x"], [name], name=name))
    (operator,) = (one for one in read_steps(msdump.open(dump))[0].operators if one.op_type == "Abs")
    script = write_repro(dump, operator.label, tmp_path / "new")
    assert run_script(script)[0] == 0
    assert not Path("/HERE").exists() and not (tmp_path / "HERE").exists()


def test_every_run_of_a_call_is_made_for_it(dump: Path) -> None:
    from msdump.analysis.find.look_up import find_operator
    from msdump.analysis.replay.replay import call_of

    opened = msdump.open(dump)
    call = call_of(opened, find_operator(opened, "gemm"))
    runner = runner_of(call)
    assert runner.fresh in runner.runs and call.names == ("x", "weight", "bias")
