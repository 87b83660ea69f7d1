"""What msdump computes with PyTorch is seen by no observer of the script."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from msdump.tensors import unseen  # noqa: E402


class Seen(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Names of the operators that ran inside of it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), keywords: Any = None) -> Any:
        self.names.append(str(function))
        return function(*args, **(keywords or {}))


def test_what_is_hidden_is_not_seen_and_what_follows_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unseen, "is_anyone_watching", True)
    one = torch.ones(2)

    def outer() -> Any:
        assert unseen.is_unseen()
        return unseen.hidden(torch.add, one, one)

    with Seen() as seen, torch.profiler.profile() as profile:
        assert unseen.hidden(outer).tolist() == [2, 2]
        assert not unseen.is_unseen()
        with pytest.raises(TypeError):
            unseen.hidden(torch.add, "a", "b")
        torch.mul(one, 3)
    assert seen.names == ["aten.mul.Tensor"]
    # Compiled observers hear of operators by the same calls as the profiler.
    heard = {event.name for event in profile.events()}
    assert "aten::mul" in heard and "aten::add" not in heard
