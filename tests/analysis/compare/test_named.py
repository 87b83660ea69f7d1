"""Tensors that somebody named against a dump of operators: by names of operators, parameters and modules, by values,
and in the order of the dump."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import msdump
from msdump.analysis.compare.named import is_named_only
from msdump.analysis.compare.pairing import BY_MAPPING, BY_NAME, BY_VALUES
from msdump.analysis.steps import opened, read_steps
from msdump.errors import ConfigError

torch = pytest.importorskip("torch")


class Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(width, out)
        self.norm = torch.nn.LayerNorm(out)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(self.fc(x)))


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(4, 8), Block(8, 8), torch.nn.Linear(8, 2))


def config(folder: Path) -> dict[str, Any]:
    common = {
        "dump_mode": 0, "path": str(folder), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0],
    }  # fmt: skip
    return {"common_dump_settings": common, "e2e_dump_settings": {"enable": True, "trans_flag": True}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A dump of two iterations of a training, and the activations that hooks saw in the first."""
    folder = tmp_path_factory.mktemp("named")
    data = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    hooked: dict[str, Any] = {}
    net = model()
    for name, module in net.named_modules():
        if name:
            module.register_forward_hook(lambda _m, _i, out, name=name: hooked.setdefault(name, out.detach().clone()))
    net(data)
    hooked["logits"] = hooked.pop("2").clone()
    net = model()
    with msdump.watch(net, config(folder / "dump")):
        for _ in range(2):
            net(data).square().mean().backward()
    return folder / "dump", hooked


def how(comparison: Any) -> dict[str, str]:
    return {result.pair.mine.op_name: result.pair.how for result in comparison.operators}


def test_activations_agree_with_the_dump_by_name_and_by_value(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    dump, hooked = run
    torch.save(hooked, tmp_path / "acts.pt")
    comparison = msdump.compare(tmp_path / "acts.pt", dump, iteration=None)
    assert comparison.is_agreeing
    found = how(comparison)
    assert set(found) == set(hooked)
    assert found == {name: BY_VALUES if name == "logits" else BY_NAME for name in hooked}
    turned = msdump.compare(dump, tmp_path / "acts.pt")
    assert turned.is_agreeing
    operators = list(turned.operators)
    assert len(operators) == len(hooked)
    assert operators[0].pair.mine.op_type == "aten_addmm_default"


def test_the_first_wrong_activation_is_named_in_the_order_of_the_dump(
    run: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    dump, hooked = run
    for name, value in hooked.items():
        is_wrong = name.startswith("1") or name == "logits"
        np.save(tmp_path / f"{name}.npy", (value * 1.5 + 0.1 if is_wrong else value).numpy())
    comparison = msdump.compare(tmp_path, dump)
    first = comparison.first_differing
    assert first is not None
    assert first.pair.mine.op_name == "1.fc"
    assert first.pair.golden.op_type == "aten_addmm_default"
    assert [one.op_name for step in comparison.steps for one in step.only_mine] == ["logits"]
    first = msdump.compare(dump, tmp_path).first_differing
    assert first is not None
    assert "1-Block/fc-Linear" in str(first.pair.mine.full_name)


def test_parameters_are_found_by_name(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    dump, _ = run
    torch.save({"state_dict": {}, **model().state_dict()}, tmp_path / "model.pth")
    comparison = msdump.compare(tmp_path / "model.pth", dump)
    assert comparison.is_agreeing
    assert set(how(comparison)) == set(model().state_dict())


def test_inputs_that_a_name_tells_of_are_not_taken_for_those_of_an_operator(
    run: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    dump, hooked = run
    torch.save({"0.fc.input": torch.randn(8), "0.fc.output": hooked["0.fc"]}, tmp_path / "acts.pt")
    assert msdump.compare(tmp_path / "acts.pt", dump).is_agreeing


def test_a_mapping_file_comes_first(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    dump, hooked = run
    torch.save({"mine": hooked["0.fc"] + 1}, tmp_path / "acts.pt")
    (tmp_path / "map.json").write_text('{"operators": {"mine": ["aten.addmm.default-op0"]}}')
    comparison = msdump.compare(tmp_path / "acts.pt", dump, mapping=tmp_path / "map.json")
    assert how(comparison) == {"mine": BY_MAPPING}
    assert not comparison.is_agreeing


def test_nothing_in_common_is_said(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    dump, _ = run
    torch.save({"stranger": torch.arange(77.0)}, tmp_path / "acts.pt")
    with pytest.raises(ConfigError, match="operators in common"):
        msdump.compare(tmp_path / "acts.pt", dump)


def test_two_folders_of_names_compare_by_name(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    _, hooked = run
    torch.save(hooked, tmp_path / "acts.pt")
    (tmp_path / "npy").mkdir()
    for name, value in hooked.items():
        np.save(tmp_path / "npy" / f"{name}.npy", value.numpy())
    comparison = msdump.compare(tmp_path / "acts.pt", tmp_path / "npy")
    assert comparison.is_agreeing
    assert set(how(comparison).values()) == {BY_NAME}


def test_which_dumps_have_names_alone(run: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    torch.save({"x": torch.ones(1)}, tmp_path / "x.pt")
    assert is_named_only(read_steps(opened(tmp_path / "x.pt")))
    assert not is_named_only(read_steps(opened(run[0])))
