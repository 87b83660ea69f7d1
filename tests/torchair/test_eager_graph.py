"""Which operands of an FX graph are one tensor: those of one key have the same bytes, whatever is written in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from msdump.tensors.records import AFTER, BEFORE  # noqa: E402
from msdump.torchair.eager_graph import EagerGraph, plan_nodes  # noqa: E402
from tests.contracts.run_contract import Witness  # noqa: E402
from tests.torchair.dumps import backend_for  # noqa: E402

# Each gets two tensors of six elements and returns one.
STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "add_": lambda x, y: x.add_(y),
    "copy_": lambda x, y: x.copy_(y),
    "view": lambda x, y: x.view(6),
    "write a part": lambda x, y: (x[1:3].zero_(), x)[1],
    "parts": lambda x, y: torch.cat(x.split(2)[::-1]),
    "write through a part": lambda x, y: (x.split(3)[0].mul_(3), x)[1],
    "several results": lambda x, y: x.reshape(2, 3).max(1).values.repeat(3) + y,
    "batch norm": lambda x, y: torch.ops.aten.native_batch_norm(
        x.reshape(2, 3), None, None, y[:3], y[3:].abs(), True, 0.5, 1e-5
    )[0].reshape(6),
}
Program = list[tuple[str, int, int]]


@settings(max_examples=40, deadline=None)
@example(program=[("view", 0, 0), ("add_", 0, 1), ("add", 2, 1)])
@example(program=[("batch norm", 0, 1), ("add", 0, 1)])
@given(program=st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), max_size=8))
def test_operands_of_one_key_have_the_same_bytes(program: Program) -> None:
    def function(x: Any, y: Any) -> list[Any]:
        values = [x, y]
        for name, first, second in program:
            values.append(STEPS[name](values[first % len(values)], values[second % len(values)]))
        return values

    inputs = [torch.linspace(-1, 1, 6), torch.linspace(2, 3, 6)]
    module = make_fx(function)(*(each.clone() for each in inputs))
    witness = Witness((BEFORE | AFTER,))
    graph = EagerGraph(module, plan_nodes(module.graph, None), 1, [witness])
    graph.run(0, [each.clone() for each in inputs])
    seen: dict[object, bytes] = {}
    for told in witness.told:
        infos, arrays = (
            (told.event.op.inputs, told.inputs) if told.name == "before" else (told.event.op.outputs, told.outputs)
        )
        for info, array in zip(infos, arrays, strict=True):
            assert seen.setdefault(info.key, array.tobytes()) == array.tobytes(), (program, told.event.op.full_name)


def test_a_tensor_has_one_file_for_all_who_read_it(tmp_path: Path) -> None:
    def function(x: Any) -> Any:
        y = x.exp()
        first, second = y.split(1)
        return first + second + y.sum()

    x = torch.arange(6.0).reshape(2, 3)
    with torch.no_grad():
        torch.compile(function, backend=backend_for(tmp_path), fullgraph=True)(x)
    files = sorted(tmp_path.rglob("*.npy"))
    by_inode: dict[int, list[str]] = {}
    for file in files:
        name, _, rest = file.name.partition("-")
        io = "IN" if ".INPUT." in rest else "OUT"
        by_inode.setdefault(file.stat().st_ino, []).append(f"{name} {io}")
    groups = sorted(sorted(names) for names in by_inode.values() if len(names) > 1)
    assert groups == [
        ["add IN", "split OUT"],
        ["add IN", "split OUT"],
        ["add OUT", "add_1 IN"],
        ["add_1 IN", "sum_1 OUT"],
        ["exp OUT", "split IN", "sum_1 IN"],
    ]
    np.testing.assert_array_equal(np.load(next(file for file in files if file.name.startswith("exp"))), x)
