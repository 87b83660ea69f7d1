"""What tells eager operators apart from one iteration to the next, and the lines of the script that they have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
from msdump.analysis.graph_info import GraphFiles, GraphNode  # noqa: E402
from msdump.frontends.torch.eager.call_sites import call_lines, call_site, source_lines  # noqa: E402
from msdump.frontends.torch.eager.stage import FORWARD, Stage  # noqa: E402
from tests.frontends.torch.eager.test_watch import config, pytestmark  # noqa: E402, F401

HERE = Path(__file__).read_text(encoding="utf-8").splitlines()


def line_of(mark: str) -> int:
    """Number of the line of this file that ends with this mark."""
    (number,) = [number for number, line in enumerate(HERE, 1) if line.endswith(f"# {mark}")]
    return number


def operators(folder: Path, graph: int) -> dict[str, GraphNode]:
    """Operators of a part of the step by the last part of their names."""
    files = {file.graph_id: file for file in GraphFiles(msdump.open(folder))}
    return {node.full_name.rpartition("/")[2]: node for node in files[graph].nodes}


def own_line(node: GraphNode) -> int:
    line = node.own_line
    assert line is not None and line.path == __file__
    return line.line


def test_what_runs_in_one_iteration_alone_shifts_no_name(tmp_path: Path) -> None:
    net = torch.nn.Linear(3, 3)
    with msdump.watch(net, config(tmp_path)):
        for step in range(3):
            y = net(torch.ones(2, 3))
            if step == 1:
                print((y - 1).abs().max())  # the check
            error = y - 2  # the error
            error.square().mean().backward()
    nodes = operators(tmp_path, 0)
    assert own_line(nodes["aten.sub.Tensor-op0"]) == line_of("the error")
    assert own_line(nodes["aten.sub.Tensor-op1"]) == line_of("the check")
    found: dict[int, set[str]] = {}
    for tensor in msdump.open(tmp_path).tensors():
        if tensor.op_type == "aten_sub_Tensor" and tensor.iteration is not None:
            found.setdefault(tensor.iteration, set()).add(tensor.op_name.rpartition("-")[2])
    assert found == {0: {"op0"}, 1: {"op0", "op1"}, 2: {"op0"}}


def root(x: Any) -> Any:
    return torch.sqrt(x)  # the root


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2  # the gradient by hand


def test_a_backward_operator_has_the_line_of_its_forward_operator(tmp_path: Path) -> None:
    x = torch.ones(3, requires_grad=True)
    with msdump.watch(config=config(tmp_path)):
        y = Doubled.apply(root(x)).exp()  # the call
        y.sum().backward()  # the backward
    nodes = operators(tmp_path, 1)
    (division,) = [node for name, node in nodes.items() if name.startswith("aten.div")]
    assert own_line(division) == line_of("the root")
    assert [line.line for line in division.source] == [line_of("the backward"), line_of("the root")]
    lines = {own_line(node) for name, node in nodes.items() if name.startswith("aten.mul")}
    # A root's own gradient is 1 / (2 * root).
    assert lines == {line_of("the gradient by hand"), line_of("the call"), line_of("the root")}


def test_lines_of_libraries_stand_beside_the_users(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    library = folder / "library.py"
    library.write_text("def half(x):\n    return x / 2\n")
    names: dict[str, Any] = {}
    exec(compile(library.read_text(), str(library), "exec"), names)
    with msdump.watch(config=config(tmp_path / "dump")):
        names["half"](torch.ones(3))  # the use
    node = operators(tmp_path / "dump", 0)["aten.div.Tensor-op0"]
    assert own_line(node) == line_of("the use")
    assert [(Path(line.path).name, line.line) for line in node.source] == [
        (Path(__file__).name, line_of("the use")),
        ("library.py", 2),
    ]


def test_pytorchs_own_formulas_are_lines_of_a_library(tmp_path: Path) -> None:
    """Not what lies between an operator and every script, such as torch.nn.functional."""
    with msdump.watch(config=config(tmp_path)):
        normal = torch.distributions.Normal(torch.zeros(3), torch.ones(3), validate_args=False)
        normal.log_prob(torch.ones(3))  # the probability
        torch.nn.functional.softplus(torch.ones(3))  # the function
    nodes = operators(tmp_path, 0)
    node = nodes["aten.log.default-op0"]
    assert own_line(node) == line_of("the probability")
    assert node.inner_line is not None and Path(node.inner_line.path).name == "normal.py"
    function = nodes["aten.softplus.default-op0"]
    assert own_line(function) == line_of("the function") and function.inner_line is None


def test_a_call_site_is_the_code_and_not_the_call() -> None:
    def one() -> Any:
        return call_site(0)

    first, second = [one() for _ in range(2)]
    other = one()
    assert first == second != other
    lines = call_lines()  # the lines
    assert lines[-1] == (__file__, line_of("the lines"))
    assert source_lines(lines)[-1].code == HERE[line_of("the lines") - 1]


CALLS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(("add", "mul")), st.integers(0, 2)), max_size=8)


@given(st.lists(CALLS, max_size=6))
@settings(deadline=None)
def test_a_name_stands_for_one_thing(iterations: list[list[tuple[str, str, int]]]) -> None:
    """The same place among the calls of one scope, type and site has one number in each iteration, and no other has."""
    stage = Stage(FORWARD, 0, ())
    owners: dict[tuple[str, int], tuple[object, ...]] = {}
    for iteration, calls in enumerate(iterations):
        stage.begin(iteration)
        counts: dict[tuple[str, str, int], int] = {}
        for scope, op_type, site in calls:
            count = counts[scope, op_type, site] = counts.get((scope, op_type, site), -1) + 1
            operator = stage.named(scope, op_type, (site,))
            assert operator.name == f"{scope}/{op_type}-op{operator.number}"
            owner = scope, op_type, site, count
            assert owners.setdefault((op_type, operator.number), owner) == owner
    for op_type in ("add", "mul"):
        numbers = sorted(number for kind, number in owners if kind == op_type)
        assert numbers == list(range(len(numbers)))
    assert len(set(owners.values())) == len(owners)


def test_two_optimizers_of_one_class_have_operators_and_lines_of_their_own(tmp_path: Path) -> None:
    nets = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    makes, judges = (torch.optim.Adam(net.parameters()) for net in nets)
    with msdump.watch(nets[0], config(tmp_path)):
        for _ in range(2):
            nets[1](nets[0](torch.ones(2, 3)).detach()).sum().backward()
            judges.step()  # the judge
            judges.zero_grad()
            nets[1](nets[0](torch.ones(2, 3))).sum().backward()
            makes.step()  # the maker
            makes.zero_grad()
    lines: dict[str, set[int]] = {}
    for node in operators(tmp_path, 2).values():
        lines.setdefault(node.full_name.rpartition("/")[0], set()).add(own_line(node))
    assert lines["Default/optimizer-Adam"] == {line_of("the judge")}
    assert lines["Default/optimizer-Adam-1"] == {line_of("the maker")}


class TwoLayers(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        x = self.up(x)  # the upper layer
        return self.down(x)  # the lower layer


def test_layers_of_a_library_have_the_lines_that_call_them(tmp_path: Path) -> None:
    net = TwoLayers()
    with msdump.watch(net, config(tmp_path)):
        for _ in range(2):
            net(torch.ones(2, 3)).sum().backward()
    nodes = {name: own_line(node) for name, node in operators(tmp_path, 0).items() if name.startswith("aten.addmm")}
    assert sorted(nodes.values()) == [line_of("the upper layer"), line_of("the lower layer")]


def test_an_optimizer_that_is_made_anew_has_the_operators_of_the_last_one(tmp_path: Path) -> None:
    net = torch.nn.Linear(3, 3)
    with msdump.watch(net, config(tmp_path)) as watch:
        for _ in range(3):
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            net(torch.ones(2, 3)).sum().backward()
            optimizer.step()
            del optimizer
        assert {node.scope for node in watch.graphs[2].nodes} == {"Default/optimizer-SGD"}
