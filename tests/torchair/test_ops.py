"""torchair.ops: what is printed, once and in order, in every mode; streams become control edges."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import msdump.torchair as torchair
from msdump.errors import ConfigError
from msdump.torchair.options import OptionTypeError

torch = pytest.importorskip("torch")

from torch import fx  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from msdump.torchair.aclgraph import cuda_graph  # noqa: E402
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph  # noqa: E402
from msdump.torchair.graph_dump.emit import graph_text, tensorboard_text  # noqa: E402
from msdump.torchair.graph_dump.python import python_text  # noqa: E402
from msdump.torchair.ops import library  # noqa: E402
from msdump.torchair.ops.library import filled, placeholder_for, tensor_text  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402
from tests.torchair.test_resize import aclgraph_dump, eager_dump, ge_dump  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")


def plain(_: Path) -> Any:
    return torchair.get_npu_backend()


def own_backend(_: Path) -> Any:
    return "msdump"


MAKERS = [plain, eager_dump, ge_dump, aclgraph_dump, own_backend]


# -- npu_print -----------------------------------------------------------------------------------------------------


def says(x: Any) -> Any:
    torchair.ops.npu_print("x =", x, "of", 3, True)
    y = x.sin()
    torchair.ops.npu_print(y * 0, tensor_detail=True)
    z = x * y
    z.add_(1)
    torchair.ops.npu_print("{}", z * 0 + 2)
    return z.cos()


SAID = "x = [0 1] of 3 True\ntensor([0 0], shape=[2], dtype=torch.float32)\n{} [2 2]\n"


@pytest.mark.parametrize("make", MAKERS)
def test_lines_of_a_training_are_printed_once_and_in_order(
    make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = torch.arange(2.0, requires_grad=True)
    result = torch.compile(says, backend=make(tmp_path), fullgraph=True)(x)
    result.sum().backward()
    assert capsys.readouterr().out == SAID
    assert torch.equal(result, says(x))
    assert capsys.readouterr().out == SAID


@pytest.mark.parametrize("make", MAKERS)
def test_a_function_that_only_prints(make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of TorchAir's documentation."""

    def hello(x: Any) -> None:
        torchair.ops.npu_print("hello, tensor:", x)

    assert torch.compile(hello, backend=make(tmp_path), fullgraph=True)(torch.arange(10)) is None
    assert capsys.readouterr().out == "hello, tensor: [0 1 2 ... 7 8 9]\n"


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
def test_a_print_of_the_backward_stays_there(capsys: pytest.CaptureFixture[str]) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            torchair.ops.npu_print("gradient", gradient)
            return gradient * 2

    x = torch.ones(2, requires_grad=True)
    torch.compile(lambda x: Twice.apply(x).sum(), backend=plain(Path()), fullgraph=True)(x).backward()
    assert capsys.readouterr().out == "gradient [1 1]\n"


@pytest.mark.parametrize("make", [plain, ge_dump])
def test_open_shapes(make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    function = torch.compile(
        lambda x: torchair.ops.npu_print(x + 1, tensor_detail=True), backend=make(tmp_path), dynamic=True
    )
    for size in (2, 3):
        function(torch.zeros(size, dtype=torch.bfloat16))
    assert capsys.readouterr().out == (
        "tensor([1 1], shape=[2], dtype=torch.bfloat16)\ntensor([1 1 1], shape=[3], dtype=torch.bfloat16)\n"
    )


@pytest.mark.parametrize("size", [0, -2])
def test_sizes_that_are_refused(size: int) -> None:
    with pytest.raises(ConfigError, match="summarize_size"):
        torchair.ops.npu_print(torch.ones(2), summarize_size=size)


def test_arguments_that_are_refused() -> None:
    with pytest.raises(OptionTypeError, match="summarize_size"):
        torchair.ops.npu_print(torch.ones(2), summarize_size=3.2)
    with pytest.raises(ConfigError, match="expected a tensor among the arguments"):
        torchair.ops.npu_print("no tensor", 3)


@pytest.mark.parametrize(
    ("tensor", "size", "text"),
    [
        (torch.full((10, 10), -1, dtype=torch.bfloat16), 1, "[[-1 ... -1]\n ...\n [-1 ... -1]]"),
        (torch.full((2, 2), 2, dtype=torch.float16), -1, "[[2 2]\n [2 2]]"),
        (torch.arange(6), 3, "[0 1 2 3 4 5]"),
        (torch.arange(7), 3, "[0 1 2 ... 4 5 6]"),
        (torch.tensor(2.5), 3, "2.5"),
        (torch.tensor(3), 3, "3"),
        (torch.tensor(True), 3, "1"),
        (torch.tensor([True, False]), 3, "[1 0]"),
        (torch.empty((0, 3), dtype=torch.int32), 3, "[]"),
        (torch.tensor([0.1, float("nan"), float("-inf"), 1e10]), 3, "[0.1 nan -inf 10000000000]"),
        (torch.tensor([2**64 - 1], dtype=torch.uint64), 3, "[18446744073709551615]"),
        (torch.tensor([1 + 2j]), 3, "[(1+2j)]"),
        (torch.empty(2, device="meta"), 3, "<a meta tensor has no data>"),
    ],
)
def test_texts(tensor: Any, size: int, text: str) -> None:
    """Source: the examples of TorchAir's documentation, and its tests."""
    assert tensor_text(tensor, size) == text


@given(st.lists(st.floats(width=32)), st.integers(1, 5))
def test_a_text_holds_every_value_that_it_shows(values: list[float], size: int) -> None:
    texts = tensor_text(torch.tensor(values), size).strip("[]").split()
    shown = values if len(values) <= 2 * size else [*values[:size], *values[-size:]]
    np.testing.assert_array_equal(np.float32([float(text) for text in texts if text != "..."]), np.float32(shown))


@given(st.lists(st.text(alphabet="{}01 a", max_size=5), max_size=4), st.lists(st.text(alphabet="{}01", max_size=4)))
def test_texts_are_put_in_order_whatever_they_hold(texts: list[str], values: list[str]) -> None:
    placeholder = placeholder_for(texts)
    template = placeholder.join([*texts, ""])
    given_values = (values * 4)[: len(texts)] + [""] * (len(texts) - len(values) * 4)
    expected = "".join(text + value for text, value in zip(texts, given_values, strict=True))
    assert filled(template, placeholder, given_values) == expected


def graph_of(function: Any, *inputs: Any) -> GeGraph:
    graphs: list[GeGraph] = []
    compiled(function, graphs)(*inputs)
    return graphs[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool])
def test_the_ge_graph_formats_and_prints(dtype: Any) -> None:
    graph = graph_of(lambda x: torchair.ops.npu_print("x", x, summarize_size=2), torch.zeros(3, dtype=dtype))
    kinds = [op.type for op in graph.ops if op.type not in (DATA, CONST)]
    assert kinds == ["Cast"] * (dtype == torch.bfloat16) + ["StringFormat", "PrintV2", NET_OUTPUT]
    by_type = {op.type: op for op in graph.ops}
    assert by_type["StringFormat"].attrs == {"template": "x {}", "placeholder": "{}", "summarize": 2}
    assert by_type[NET_OUTPUT].controls == [by_type["PrintV2"]]
    assert "dtype: DT_STRING" in graph_text(graph) and 'op: "PrintV2"' in tensorboard_text(graph)
    compile(python_text(graph), "graph", "exec")


@pytest.mark.parametrize("kind", ["npu", "torchair"])
def test_the_script_of_the_documentation(kind: str, tmp_path: Path) -> None:
    """backend="npu" is TorchAir's with its defaults."""
    backend = '"npu"' if kind == "npu" else "torchair.get_npu_backend()"
    (tmp_path / "script.py").write_text(
        f"""
import torch
import torch_npu, torchair

@torch.compile(backend={backend}, fullgraph=True)
def hello_tensor(x):
    torchair.ops.npu_print("hello, tensor:", x)

@torch.compile(backend={backend}, fullgraph=True)
def hello_tensor_detail(x):
    torchair.ops.npu_print("hello, tensor_detail:", x, tensor_detail=True)

v = torch.arange(10).npu()
hello_tensor(v)
hello_tensor_detail(v)
"""
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    command = [sys.executable, "-m", "msdump", "run", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "hello, tensor: [0 1 2 ... 7 8 9]\n"
        "hello, tensor_detail: tensor([0 1 2 ... 7 8 9], shape=[10], dtype=torch.int64)\n"
    )


def test_a_graph_that_prints_is_not_captured() -> None:
    """A replay would not print, and a capture prints what its warm-up computes."""
    with FakeTensorMode():
        value = torch.empty(2, device="cuda")
    graph = fx.Graph()
    node = graph.placeholder("x")
    node.meta["val"] = value
    output = graph.output((node,))
    assert cuda_graph.fits(fx.GraphModule({}, graph))
    with graph.inserting_before(output):
        graph.call_function(library.print_op, ([node], "{}", "{}", 3))
    assert not cuda_graph.fits(fx.GraphModule({}, graph))


# -- record, wait --------------------------------------------------------------------------------------------------


def demo(x: Any) -> Any:
    """The example of TorchAir's documentation."""
    with torchair.scope.npu_stream_switch("1"):
        mm = torch.mm(x, x)
        absolute = torch.abs(mm)
        record = torchair.ops.record()
    add = torch.add(absolute, 1)
    torchair.ops.wait([record])
    sub = torch.sub(x, mm)
    return add, sub


@pytest.mark.parametrize("make", MAKERS)
def test_a_function_with_streams_computes_the_same(make: Any, tmp_path: Path) -> None:
    x = torch.linspace(-1, 1, 4).view(2, 2)
    results = torch.compile(demo, backend=make(tmp_path), dynamic=False, fullgraph=True)(x)
    assert all(torch.equal(a, b) for a, b in zip(results, demo(x), strict=True))


has_streams = pytest.mark.skipif(
    not hasattr(fx.traceback, "annotate"), reason="this PyTorch marks nothing that is traced"
)


def controls_of(graph: GeGraph) -> dict[str, list[str]]:
    return {op.name: [before.name for before in op.controls] for op in graph.ops if op.controls}


@has_streams
def test_what_comes_next_waits_for_the_mark() -> None:
    assert controls_of(graph_of(demo, torch.ones(2, 2))) == {"Sub": ["Abs"]}


@has_streams
def test_each_stream_has_marks_of_its_own() -> None:
    def function(x: Any) -> Any:
        first = torchair.ops.record()  # nothing has run
        y = x.sin()
        with torchair.scope.npu_stream_switch("a"):
            torchair.ops.wait([first, y])
            z = x.cos()
            mark = torchair.ops.record()
        u = x.tan()
        with torchair.scope.npu_stream_switch("b"):
            torchair.ops.wait([mark])
            torchair.ops.wait([u])
            v = u.abs()
        return y, z, u, v, mark

    graph = graph_of(function, torch.ones(2, 2))
    assert controls_of(graph) == {"Cos": ["Sin"], "Abs": ["Cos"]}
    # A mark is an empty tensor to its readers.
    assert graph.outputs[-1].op.type == CONST and graph.outputs[-1].shape == (0,)


@has_streams
def test_a_tensor_waits_for_another() -> None:
    """The example of TorchAir's documentation of several streams."""

    def function(in1: Any, in2: Any) -> Any:
        total = torch.add(in1, in2)
        with torchair.scope.npu_stream_switch("1"):
            torchair.scope.npu_wait_tensor(in2, total)
            product = torch.mm(in1, in2)
        with torchair.scope.npu_stream_switch("2"):
            waited = torchair.scope.npu_wait_tensor(in2, product)
            return total, product, torch.sub(in1, waited)

    assert controls_of(graph_of(function, torch.ones(2, 2), torch.ones(2, 2))) == {"MatMul": ["Add"], "Sub": ["MatMul"]}


def test_a_pass_may_put_them_into_the_graph(tmp_path: Path) -> None:
    """The example of TorchAir's documentation of passes."""

    def into_a_stream(module: Any, *_: Any) -> None:
        air, graph, marks = torch.ops.air, module.graph, []
        for node in list(graph.nodes):
            if node.target is torch.ops.aten.mm.default:
                with graph.inserting_before(node):
                    graph.call_function(air.scope_enter.default, args=(["_user_stream_label"], ["stream_1"]))
            if node.target is torch.ops.aten.abs.default:
                with graph.inserting_after(node):
                    marks.append(graph.call_function(air.record.default))
                with graph.inserting_after(marks[0]):
                    graph.call_function(air.scope_exit.default)
            if node.target is torch.ops.aten.sub.Tensor:
                with graph.inserting_before(node):
                    graph.call_function(air.wait.default, args=(marks,))

    def function(x: Any) -> Any:
        mm = torch.mm(x, x)
        return torch.abs(mm) + 1, x - 2

    config = torchair.CompilerConfig()
    config.post_grad_custom_pre_pass = into_a_stream
    config.debug.graph_dump.type = "txt"
    config.debug.graph_dump.path = str(tmp_path)
    x = torch.ones(2, 2)
    results = torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config), fullgraph=True)(x)
    assert all(torch.equal(a, b) for a, b in zip(results, function(x), strict=True))
    (file,) = tmp_path.glob("dynamo_original_graph_*.txt")
    assert [line.strip() for line in file.read_text().splitlines() if ":-1" in line] == ['input: "Abs:-1"']


@has_streams
@pytest.mark.parametrize("is_method", [False, True])
def test_tagged_events_order_streams(is_method: bool) -> None:
    """The example of TorchAir's documentation: a stream waits for an event that another one has recorded."""
    first = torchair.ops.npu_create_tagged_event(tag=f"first {is_method}")
    second = torchair.ops.npu_create_tagged_event(tag=f"second {is_method}")

    def function(in1: Any, in2: Any) -> Any:
        total = torch.add(in1, in2)
        torchair.ops.npu_tagged_event_record(first)
        with torchair.scope.npu_stream_switch("1"):
            torchair.ops.npu_tagged_event_wait(first)
            product = torch.mm(in1, in2)
            torchair.ops.npu_tagged_event_record(second)
            torchair.ops.npu_record_tagged_stream(product, "1")
        torchair.ops.npu_tagged_event_wait(second)
        return total, product, torch.sub(in1, product)

    x = torch.ones(2, 2)
    assert controls_of(graph_of(function, x, x)) == {"MatMul": ["Add"]}
    assert [each.tolist() for each in function(x, x)] == [each.tolist() for each in (x + x, x @ x, x - x @ x)]


@pytest.mark.parametrize("make", [eager_dump, ge_dump, aclgraph_dump])
def test_tagged_events_change_no_result(make: Any, tmp_path: Path) -> None:
    event = torchair.ops.npu_create_tagged_event(f"{make.__name__}")

    def function(x: Any) -> Any:
        y = x.sin()
        torchair.ops.npu_tagged_event_record(event)
        torchair.ops.npu_record_tagged_stream(y, "side")
        torchair.ops.npu_tagged_event_wait(event)
        return y.cos()

    x = torch.linspace(-1, 1, 5)
    assert torch.equal(torch.compile(function, backend=make(tmp_path), fullgraph=True)(x), x.sin().cos())


def test_events_that_are_none() -> None:
    event = torchair.ops.npu_create_tagged_event("once")
    event.record()
    event.wait()
    event.synchronize()
    assert event.query()
    with pytest.raises(ValueError, match=r"expected a tag that is free, got 'once', which is in use"):
        torchair.ops.npu_create_tagged_event("once")
    with pytest.raises(TypeError, match=r"expected tag to be a str, got int"):
        torchair.ops.npu_create_tagged_event(66)
    for function in (torchair.ops.npu_tagged_event_record, torchair.ops.npu_tagged_event_wait):
        with pytest.raises(ValueError, match=r"expected an event of torchair\.ops\.npu_create_tagged_event, got str"):
            function("once")
    with pytest.raises(TypeError, match=r"expected a tensor and the label of a stream, got Tensor and int"):
        torchair.ops.npu_record_tagged_stream(torch.ones(2), 1)


def test_operators_have_both_names() -> None:
    from msdump.torchair.ops import library

    for name in library._SCHEMAS:
        assert getattr(torch.ops.npugraph_ex, name).default._schema.name == f"npugraph_ex::{name}"
        assert library.name_of(getattr(torch.ops.npugraph_ex, name).default) == name
        assert library.name_of(getattr(torch.ops.air, name).default) == name
    assert library.name_of(torch.ops.aten.sin.default) == ""


def test_what_cannot_be_waited_for() -> None:
    with pytest.raises(AttributeError, match=r"Did you mean \"npu_print\"\?"):
        torchair.ops.npu_prin  # noqa: B018
    for tensors in ([], None, [3], "x"):
        with pytest.raises(ConfigError, match=r"torchair\.ops\.wait"):
            torchair.ops.wait(tensors)  # type: ignore[arg-type]
