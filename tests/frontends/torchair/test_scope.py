"""Scopes that mean something to an NPU alone run anywhere, and leave a note in the graph."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import msdump.torchair as torchair
import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torchair.test_resize import aclgraph_dump, eager_dump, ge_dump  # noqa: E402

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


def test_the_logger_is_where_the_examples_import_it_from() -> None:
    assert importlib.import_module("msdump.torchair.core.utils").logger is torchair.logger
