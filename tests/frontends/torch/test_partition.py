"""What a forward operator does beside its result happens once in a training."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump import torchair  # noqa: E402

_calls: list[float] = []
_library = torch.library.Library("msdump_partition", "DEF")
_library.define("note(Tensor x) -> ()")
_library.impl("note", lambda x: _calls.append(float(x.sum())), "CompositeExplicitAutograd")
torch.library.register_fake("msdump_partition::note", lambda x: None, lib=_library)
torch.fx.node.has_side_effect(torch.ops.msdump_partition.note.default)


def function(x: Any) -> Any:
    torch.ops.msdump_partition.note.default(x * 2)
    y = torch.nn.functional.dropout(x.sin(), 0.5)
    torch.ops.msdump_partition.note.default(y * 0)
    return (y * y).sum()


@pytest.mark.parametrize("name", ["msdump", "torchair"])
def test_an_effect_happens_in_the_forward_graph_alone(name: str) -> None:
    torch._dynamo.reset()
    _calls.clear()
    torch.manual_seed(0)
    x = torch.ones(4, requires_grad=True)
    compiled = torch.compile(function, backend="msdump" if name == "msdump" else torchair.get_npu_backend())
    loss = compiled(x)
    loss.backward()
    assert _calls == [8.0, 0.0]
    # The backward has the mask of the forward.
    torch.testing.assert_close((x.grad * torch.tan(x)).sum() / 2, loss)
