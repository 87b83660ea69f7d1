"""fx_summary: one line for each operator of an FX graph."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump import torchair  # noqa: E402
from msdump.formats.paths.torchair import parse_summary_name  # noqa: E402
from msdump.torchair.graph_dump.fx_summary import summary_text  # noqa: E402
from tests.torchair.golden_graph import fx_module  # noqa: E402


def rows_of(text: str) -> dict[str, list[str]]:
    assert text.startswith("\ufeff目标函数,函数类型,支持状态,调用次数,输入统计,输出统计")
    return {row[0]: row[1:] for row in list(csv.reader(io.StringIO(text)))[1:]}


def test_each_operator_has_a_line() -> None:
    rows = rows_of(summary_text(fx_module()))
    assert rows["aten.mul.Tensor"] == ["aten", "支持", "1", "1次：(float32(2, 4), 2)", "1次：float32(2, 4)"]
    assert rows["_operator.getitem"][:3] == ["builtin", "支持", "2"]
    assert rows["_operator.getitem"][3].splitlines() == [
        "1次：([float32(2, 2), int64(2, 2)], 0)",
        "1次：([float32(2, 2), int64(2, 2)], 1)",
    ] or rows["_operator.getitem"][3].splitlines()[0].startswith("1次：((float32(2, 2), int64(2, 2)), 0)")


def test_values_are_found_out_where_the_graph_has_none() -> None:
    module = torch.fx.symbolic_trace(lambda x: torch.ops.aten.add.Tensor(x, x))
    rows = rows_of(summary_text(module, [torch.ones(2)]))
    assert rows["aten.add.Tensor"][2:] == ["1", "1次：(float32(2,), float32(2,))", "1次：float32(2,)"]


def test_an_operator_without_a_converter_is_not_supported() -> None:
    module = torch.fx.symbolic_trace(lambda x: torch.ops.aten.special_zeta.default(x, x))
    rows = rows_of(summary_text(module, [torch.ones(2)]))
    assert rows["aten.special_zeta.default"][:2] == ["aten", "不支持"]


@pytest.mark.parametrize("skip_compile", [True, False])
def test_a_summary_of_each_graph_is_written(tmp_path: Path, skip_compile: bool) -> None:
    config = torchair.CompilerConfig()
    config.debug.fx_summary.type = "csv"
    config.debug.fx_summary.skip_compile = skip_compile
    config.debug.fx_summary._path = str(tmp_path / "out")
    config.debug.graph_dump.type, config.debug.graph_dump.path = "py", str(tmp_path / "graphs")

    def function(x: Any) -> Any:
        return (x * 2 + 1).relu()

    model = torch.compile(function, backend=torchair.get_npu_backend(compiler_config=config))
    x = torch.randn(3, requires_grad=True)
    result = model(x)
    assert torch.equal(result, function(x))
    result.sum().backward()
    files = list((tmp_path / "out").iterdir())
    assert len(files) == 2
    assert all(parse_summary_name(file.name) for file in files)
    assert any("aten.relu.default" in rows_of(file.read_bytes().decode()) for file in files)
    assert (tmp_path / "graphs").exists() != skip_compile
