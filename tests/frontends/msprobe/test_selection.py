"""Scopes, lists and risk levels: which records are dumped."""

from __future__ import annotations

import pytest

from msdump.errors import ConfigError
from msdump.frontends.msprobe.config import Settings
from msdump.frontends.msprobe.function_names import (
    CORE,
    DISTRIBUTED,
    FUNCTIONAL,
    MOVING,
    TENSOR_METHODS,
    TORCH,
    names_of,
)
from msdump.frontends.msprobe.selection import Selection


def selection(level: str = "L1", risk: str = "FOCUS", **chosen: tuple[str, ...]) -> Selection:
    return Selection(Settings("out", level=level, risk_level=risk, **chosen))  # type: ignore[arg-type]


def test_risk_levels() -> None:
    names = ["Torch.matmul.0.forward", "Functional.relu.3.backward", "Tensor.reshape.0.forward", "Module.a.A.forward.0"]
    assert [selection().takes(name) for name in names] == [True, True, False, True]
    assert [selection(risk="CORE").takes(name) for name in names] == [True, False, False, True]
    assert [selection(risk="ALL").takes(name) for name in names] == [True] * 4
    assert selection(risk="CORE").takes("Distributed.all_reduce.0.forward")
    assert selection("L0", "CORE").takes("Functional.relu.0.forward")


def test_a_list_chooses_by_parts_of_names() -> None:
    chosen = selection(names=("relu", "Tensor.reshape.1"))
    assert chosen.takes("Functional.relu.0.backward") and chosen.takes("Tensor.reshape.1.forward")
    assert not chosen.takes("Tensor.reshape.0.forward") and not chosen.takes("Torch.matmul.0.forward")


def test_a_range_of_functions_closes_behind_the_input_of_its_last() -> None:
    chosen = selection(scope=("Torch.add.0.forward", "Torch.mul.0.forward"))
    order = ["Torch.sub.0", "Torch.add.0", "Torch.sub.1", "Torch.mul.0"]
    sides = [[chosen.takes(f"{name}.forward") for _ in ("input", "output")] for name in order]
    assert sides == [[False, False], [True, True], [True, True], [True, False]]
    assert not chosen.takes("Torch.sub.2.forward")


def test_a_range_of_modules_is_open_from_call_to_end() -> None:
    for level in ("L0", "mix"):
        chosen = selection(level, scope=("Module.a.A.forward.0", "Module.b.B.forward.0"))
        assert not chosen.takes("Module.c.C.forward.0")
        chosen.begin_module("Module.a.A.forward.0")
        chosen.end_module("Module.a.A.forward.0")
        assert chosen.takes("Module.c.C.forward.1")
        chosen.begin_module("Module.b.B.forward.0")
        assert chosen.takes("Module.c.C.forward.2")
        chosen.end_module("Module.b.B.forward.0")
        assert not chosen.takes("Module.c.C.forward.3")


def test_at_level_mix_a_module_of_the_list_takes_what_it_calls() -> None:
    chosen = selection("mix", names=("Module.a.A",))
    assert not chosen.takes("Torch.add.0.forward")
    chosen.begin_module("Module.a.A.forward.0")
    assert chosen.takes("Torch.add.0.forward")
    chosen.end_module("Module.a.A.forward.0")
    assert not chosen.takes("Torch.add.1.forward")
    alone = selection("L0", names=("Module.a.A",))
    alone.begin_module("Module.a.A.forward.0")
    assert alone.takes("Module.a.A.forward.0") and not alone.takes("Module.a.b.B.forward.0")


def test_gradients_of_parameters_follow_the_list() -> None:
    assert selection().takes_parameters("Module.a.A")
    assert selection(names=("a.A",)).takes_parameters("Module.a.A")
    assert not selection(names=("b.B",)).takes_parameters("Module.a.A")


@pytest.mark.parametrize(
    ("level", "scope", "message"),
    [
        ("L1", ("Torch.add.0.forward",), "expected the first and the last record, got 1"),
        ("L1", ("Module.a.A.forward.0", "Module.b.B.forward.0"), "records of level L1, such as Functional"),
        ("L0", ("Torch.add.0.forward", "Torch.add.1.forward"), "records of level L0, such as Module"),
        ("mix", ("Torch.add", "Torch.mul.0.forward"), "got 'Torch.add'"),
    ],
)
def test_a_scope_of_other_names_is_refused(level: str, scope: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        selection(level, scope=scope)


def test_tables_of_names() -> None:
    assert {"linear", "conv2d"} <= names_of(FUNCTIONAL) and "__add__" in names_of(TENSOR_METHODS)
    assert "linalg.norm" in names_of(TORCH) and "all_reduce" in names_of(DISTRIBUTED)
    assert not names_of(CORE) & names_of(MOVING)
