"""Scopes that mean something to an NPU alone run anywhere, and leave a note in the graph."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair

torch = pytest.importorskip("torch")

from tests.torchair.test_resize import aclgraph_dump, eager_dump, ge_dump  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")


def model(x: Any) -> Any:
    with torchair.scope.npu_stream_switch("1", 3):
        y = x.sin()
    with torchair.scope.limit_core_num(4, 8), torchair.scope.super_kernel("fused"):
        y = y + 1
    with torchair.scope.op_never_timeout():
        return y.cos()


@pytest.mark.parametrize("make", [eager_dump, ge_dump, aclgraph_dump])
def test_a_model_runs_as_without_them(make: Any, tmp_path: Path) -> None:
    x = torch.linspace(-1, 1, 6)
    compiled = torch.compile(model, backend=make(tmp_path), fullgraph=True)
    assert torch.equal(compiled(x), (x.sin() + 1).cos())
    assert torch.equal(model(x), (x.sin() + 1).cos())


@pytest.mark.skipif(not hasattr(torch.fx.traceback, "annotate"), reason="this PyTorch marks nothing that is traced")
def test_the_graph_says_what_was_asked() -> None:
    seen: dict[str, Any] = {}

    def note(module: Any, *_: Any) -> None:
        seen.update({str(node.target): node.meta.get("custom") for node in module.graph.nodes})

    config = torchair.CompilerConfig()
    config.post_grad_custom_post_pass = note
    torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config), fullgraph=True)(torch.ones(2))
    assert seen["aten.sin.default"] == {"_user_stream_label": "1", "_user_stream_priority": "3"}
    assert seen["aten.add.Tensor"]["_op_aicore_num"] == "4"
    assert seen["aten.add.Tensor"]["_super_kernel_scope"] == "fused"
    assert seen["aten.cos.default"] == {"_op_exec_never_timeout": "True"}


def ge_text(function: Any, folder: Path, *args: Any, **settings: Any) -> dict[str, dict[str, Any]]:
    """Attributes that scopes can set, by the name of the operator, of the graph dump of a function."""
    config = torchair.CompilerConfig()
    config.debug.graph_dump.type = "txt"
    config.debug.graph_dump.path = str(folder)
    for name, value in settings.items():
        setattr(config, name, value)
    torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config), fullgraph=True)(*args)
    (file,) = folder.glob("dynamo_original_graph_*.txt")
    found: dict[str, dict[str, Any]] = {}
    for part in file.read_text().split("op {")[1:]:
        (name,) = re.findall(r'^\s*name: "([^"]+)"', part, re.MULTILINE)[:1]
        pairs = re.findall(r'key: "(_[^"]+)"\s*value \{\s*(?:s: "([^"]*)"|b: (true))?', part)
        found[name] = {key: text if not is_set else True for key, text, is_set in pairs if key in KEYS}
    return found


KEYS = {
    "_user_stream_label", "_user_stream_priority", "_super_kernel_scope", "_super_kernel_options", "_op_aicore_num",
    "_op_vectorcore_num", "_op_exec_never_timeout", "_mine",
}  # fmt: skip


@pytest.mark.skipif(not hasattr(torch.fx.traceback, "annotate"), reason="this PyTorch marks nothing that is traced")
def test_operators_of_a_ge_graph_have_the_attributes(tmp_path: Path) -> None:
    found = ge_text(model, tmp_path, torch.ones(2))
    assert found["Sin"] == {"_user_stream_label": "1", "_user_stream_priority": "3"}
    assert found["Add"] == {
        "_op_aicore_num": "4", "_op_vectorcore_num": "8", "_super_kernel_scope": "fused", "_super_kernel_options": "",
    }  # fmt: skip
    assert found["Cos"] == {"_op_exec_never_timeout": True}


@pytest.mark.skipif(not hasattr(torch.fx.traceback, "annotate"), reason="this PyTorch marks nothing that is traced")
def test_an_inner_scope_wins(tmp_path: Path) -> None:
    def nested(x: Any) -> Any:
        with torchair.scope.npu_stream_switch("outer"), torchair.scope.op_never_timeout():
            y = x.sin()
            with torchair.scope.npu_stream_switch("inner"), torchair.scope.op_never_timeout(False):
                z = y.cos()
            return z.tan()

    found = ge_text(nested, tmp_path, torch.ones(2))
    assert [found[name]["_user_stream_label"] for name in ("Sin", "Cos", "Tan")] == ["outer", "inner", "outer"]
    # protobuf's text has no false.
    assert [found[name]["_op_exec_never_timeout"] for name in ("Sin", "Cos", "Tan")] == [True, "", True]


def with_scopes(*places: tuple[Any, Any, tuple[Any, ...]]) -> Any:
    """A pass that puts a call of an operator before the first node of each of some targets."""

    def put(module: Any, *_: Any) -> None:
        for before, operator, args in places:
            (node,) = [node for node in module.graph.nodes if node.target is before]
            with module.graph.inserting_before(node):
                module.graph.call_function(operator, args=args)

    return put


@pytest.mark.parametrize("namespace", ["air", "npugraph_ex"])
def test_a_pass_may_put_scopes_into_the_graph(namespace: str, tmp_path: Path) -> None:
    operators = getattr(torch.ops, namespace)
    put = with_scopes(
        (torch.ops.aten.sin.default, operators.scope_enter.default, (["_user_stream_label", "_mine"], ["a", "b"])),
        (torch.ops.aten.cos.default, operators.scope_exit.default, ()),
    )
    found = ge_text(lambda x: x.sin().cos(), tmp_path, torch.ones(2), post_grad_custom_pre_pass=put)
    assert found["Sin"] == {"_user_stream_label": "a", "_mine": "b"}
    assert found["Cos"] == {}


def test_an_exit_without_an_enter_is_an_error(tmp_path: Path) -> None:
    put = with_scopes((torch.ops.aten.cos.default, torch.ops.air.scope_exit.default, ()))
    with pytest.raises(Exception, match=r"expected an air\.scope_enter before it, got none"):
        ge_text(lambda x: x.sin().cos(), tmp_path, torch.ones(2), post_grad_custom_pre_pass=put)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_a_switch_takes_bools_alone(value: Any) -> None:
    with pytest.raises(TypeError, match=r"op_never_timeout: expected enable to be a bool, got"):
        torchair.scope.op_never_timeout(value)
    with pytest.raises(TypeError, match=r"npu_print: expected tensor_detail to be a bool, got"):
        torchair.ops.npu_print(torch.ones(2), tensor_detail=value)


def test_the_logger_is_where_the_examples_import_it_from() -> None:
    assert importlib.import_module("msdump.torchair.core.utils").logger is torchair.logger
