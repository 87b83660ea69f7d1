"""Scopes of eager operators, forward and backward."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import msdump  # noqa: E402
from msdump.frontends.torch.eager.scopes import OperatorScopes, Scopes  # noqa: E402
from msdump.frontends.torch.eager.stage import BACKWARD, FORWARD, UPDATE, Named  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401


def test_a_node_has_the_scope_of_the_operator_that_made_it() -> None:
    scopes = Scopes(lambda module: None)
    operators = OperatorScopes(scopes)
    layer = nn.Tanh()
    model = nn.Sequential(layer)
    x = torch.ones(2, requires_grad=True)
    scopes.enter(model)
    scopes.enter(layer)
    y = x.tanh()
    assert operators.find(FORWARD, None, ()) == "Default/0-Tanh"
    tanh, exp = Named(0, "tanh-op0"), Named(0, "exp-op0")
    operators.note_nodes(tanh)
    scopes.leave()
    z = y.exp()
    assert operators.find(FORWARD, None, ()) == "Default"
    operators.note_nodes(exp)
    scopes.leave()
    with torch.no_grad():
        assert operators.find(BACKWARD, z.grad_fn, ()) == "Gradients/Default" and operators.forward is exp
        assert operators.find(BACKWARD, y.grad_fn, ()) == "Gradients/Default/0-Tanh"
        assert operators.forward is tanh


def test_an_update_has_the_scope_of_the_innermost_optimizer() -> None:
    operators = OperatorScopes(Scopes(lambda module: None))
    assert operators.find(UPDATE, None, ["optimizer-Mine", "optimizer-SGD"]) == "Default/optimizer-SGD"
    assert operators.find(UPDATE, None, []) == "Default"


def test_scopes_are_not_forgotten_inside_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few of earlier steps are kept: each gradient has the modules of its own operator."""
    monkeypatch.setattr("msdump.frontends.torch.eager.scopes._MAX_NODES", 4)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(6)))
    with msdump.watch(model, config(tmp_path, saved_data="statistic")) as watch:
        for _ in range(8):
            model(torch.ones(2, 3)).sum().backward()
            assert len(watch._program._operator_scopes._nodes) <= 4 + 2 * 12 + 2
        scopes = {node.scope for node in watch.graphs[1].nodes if "tanh" in node.full_name}
    assert scopes == {f"Gradients/Default/{block}-Sequential/1-Tanh" for block in range(6)}


def test_a_backward_reaches_back_over_several_iterations(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    with msdump.watch(model, config(tmp_path)) as watch:
        (model(torch.ones(2, 3)) + model(torch.ones(2, 3))).sum().backward()
        found = [node.scope for node in watch.graphs[1].nodes if "tanh" in node.full_name]
    assert found == ["Gradients/Default/1-Tanh"] * 2


def test_gradients_of_gradients_have_the_scope_of_what_they_belong_to(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    x = torch.ones(2, 3, requires_grad=True)
    with msdump.watch(model, config(tmp_path)) as watch:
        (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        gradient.square().sum().backward()
        nodes = watch.graphs[1].nodes
    assert {node.scope for node in nodes if "tanh" in node.full_name} == {"Gradients/Default/1-Tanh"}
    assert {node.scope for node in nodes if ".mm." in node.full_name} == {"Gradients/Default/0-Linear"}
