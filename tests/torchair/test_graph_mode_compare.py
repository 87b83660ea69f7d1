"""The eager dump of a model against the dump of its compiled graphs: every output is found again, with its values."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
import msdump.torchair as torchair  # noqa: E402
from msdump.analysis.compare.dumps import compare_dumps  # noqa: E402
from msdump.analysis.compare.result import Comparison  # noqa: E402
from msdump.analysis.find.look_up import find_operator  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.errors import ConfigError  # noqa: E402
from msdump.graph.ge import read_ge_originals  # noqa: E402
from msdump.process import sessions  # noqa: E402
from tests.torchair.dumps import backend_for  # noqa: E402
from tests.torchair.graph_mode_dumps import Net, backend, files, steps  # noqa: E402
from tests.torchair.test_ge_zoo import step  # noqa: E402
from tests.torchair.zoo import ZOO, Model  # noqa: E402
from tests.torchair.zoo_data import DATA_ZOO  # noqa: E402

# A sample of each kind; the others differ in what they compute, not in how their names are handed on.
_MODELS = {
    "ResNet block", "transformer block", "statistics", "gather and scatter", "int and bool logic", "input mutation",
    "step of an optimizer",
}  # fmt: skip
# What it holds is whatever was in that memory.
_UNSET = "empty"


@pytest.fixture(autouse=True)
def own_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    sessions.reset_for_tests()
    for name in ("eager", "compiled"):
        (tmp_path / name).mkdir()
    yield
    sessions.close_all()
    sessions.reset_for_tests()


def assert_all_found(found: Comparison) -> None:
    """Nothing that is an output of the FX graph is left over, and all that was found has its values."""
    assert found.steps
    assert not found.only_mine
    assert not found.only_golden
    assert not found.damaged
    for one in found.steps:
        assert not one.only_mine, [operator.label for operator in one.only_mine]
    for result in found.operators:
        assert result.pair.how == "original name"
        assert result.outputs, result.pair.golden.label
        for tensor in result.outputs:
            if _UNSET not in result.pair.golden.op_type:
                mine, golden = (torch.from_numpy(np.array(side.load())) for side in (tensor.mine, tensor.golden))
                torch.testing.assert_close(mine, golden, msg=lambda text, result=result: f"{result.pair}: {text}")


@pytest.mark.parametrize("model", [model for model in (*ZOO, *DATA_ZOO) if model.name in _MODELS], ids=str)
def test_every_output_is_found(tmp_path: Path, model: Model) -> None:
    torch.manual_seed(0)
    module, inputs = model.build()
    twin = copy.deepcopy(module)
    for one, chosen in ((module, backend_for(tmp_path / "eager")), (twin, backend(tmp_path / "compiled"))):
        torch._dynamo.reset()
        torch.manual_seed(1)
        step(torch.compile(one, backend=chosen), one, copy.deepcopy(inputs))
    sessions.close_all()
    assert_all_found(compare_dumps(tmp_path / "compiled", tmp_path / "eager"))


def train(tmp_path: Path, count: int = 3, **options: Any) -> None:
    """The same training twice, dumped in both ways; the second has the higher graph numbers."""
    for chosen in (backend_for(tmp_path / "eager"), backend(tmp_path / "compiled", **options)):
        torch._dynamo.reset()
        torch.manual_seed(0)
        steps(torch.compile(Net(), backend=chosen), count)
    sessions.close_all()


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path)
    assert main(["compare", "compiled", "eager", "--all"]) == 0
    text = capsys.readouterr().out
    assert "all 36 pairs of operators and parameters agree" in text
    assert "original name" in text
    assert "only in mine" not in text
    # And the other way round.
    assert main(["compare", "eager", "compiled", "--quiet"]) == 0


def test_the_operator_that_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path, 1)
    file = next(path for path in (tmp_path / "eager").rglob("relu-*.OUTPUT.0.*.npy"))
    np.save(file, np.load(file) + 1)
    assert main(["compare", "compiled", "eager"]) == 1
    assert "first difference: Relu (Relu)" in capsys.readouterr().out


def test_chosen_steps_and_layers(tmp_path: Path) -> None:
    train(tmp_path, 4, dump_step="1|3", dump_layer="Relu ReluGrad", dump_mode="output")
    found = compare_dumps(tmp_path / "compiled", tmp_path / "eager")
    assert {one.mine.iteration for one in found.steps} == {1, 3}
    assert all(one.mine.iteration == one.golden.iteration for one in found.steps)
    assert {result.pair.golden.op_name for result in found.operators} == {"relu", "threshold_backward"}
    assert all(tensor.status == "identical" for result in found.operators for tensor in result.outputs)


def test_an_operator_is_shown_by_its_first_name(tmp_path: Path) -> None:
    train(tmp_path, 1)
    found = find_operator(msdump.open(tmp_path / "compiled"), "addmm")
    assert found.operator.op_name == "Add"


def _forget_originals(path: Path) -> None:
    """As a device writes them: nothing is said of the FX graph."""
    from msdump.formats._proto import dump_data_pb2

    for of_folder in files(path).values():
        for file in of_folder:
            raw = file.read_bytes()
            end = 8 + int.from_bytes(raw[:8], "little")
            message = dump_data_pb2.DumpData.FromString(raw[8:end])
            for output in message.output:
                output.ClearField("original_op")
            header = message.SerializeToString()
            file.chmod(0o600)
            file.write_bytes(len(header).to_bytes(8, "little") + header + raw[end:])


def test_a_graph_dump_tells_what_files_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = torchair.CompilerConfig()
    config.debug.graph_dump.type = "txt"
    config.debug.graph_dump.path = "graphs"
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = "compiled"
    for chosen in (backend_for(tmp_path / "eager"), torchair.get_npu_backend(compiler_config=config)):
        torch._dynamo.reset()
        torch.manual_seed(0)
        steps(torch.compile(Net(), backend=chosen), 2)
    sessions.close_all()
    known = compare_dumps(tmp_path / "compiled", tmp_path / "eager")
    _forget_originals(tmp_path / "compiled")
    # Values alone tell of most operators; graph dumps tell of each.
    alone = compare_dumps(tmp_path / "compiled", tmp_path / "eager")
    assert alone.is_agreeing and {one.pair.how for one in alone.operators} == {"values"}
    assert main(["compare", "compiled", "eager", "--mapping", "graphs", "--all"]) == 0
    assert "all 24 pairs of operators" in capsys.readouterr().out
    found = compare_dumps(tmp_path / "compiled", tmp_path / "eager", mapping=tmp_path / "graphs")
    assert_all_found(found)
    pairs = [[(one.pair.mine.label, one.pair.golden.label) for one in side.operators] for side in (found, known)]
    assert pairs[0] == pairs[1]
    # One file is about one graph.
    name, originals = read_ge_originals(next((tmp_path / "graphs").glob("dynamo_original_graph_*.txt")))
    assert name.startswith("graph_")
    assert originals


def test_a_mapping_that_is_no_graph_dump(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("op { nam")
    for path, text in ((tmp_path / "bad.txt", "GraphDef as text"), (tmp_path / "eager", "folder without any")):
        with pytest.raises(ConfigError, match=text):
            main_compare(tmp_path, path)
    with pytest.raises(ConfigError, match="No such file"):
        main_compare(tmp_path, tmp_path / "none.txt")


def main_compare(tmp_path: Path, mapping: Path) -> Comparison:
    np.save(tmp_path / "eager" / "add.0.1626345629146478.npy", np.ones(3))
    return compare_dumps(tmp_path / "eager", tmp_path / "eager", mapping=mapping)
