"""Operators of TorchAir's dumps again: eager ones by what files hold, compiled ones with the text of the graph."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import msdump  # noqa: E402
import msdump.torchair as torchair  # noqa: E402
from msdump.analysis import replay_operator, write_repro  # noqa: E402
from msdump.analysis.steps import read_steps  # noqa: E402
from msdump.cli.main import main  # noqa: E402
from msdump.errors import ConfigError, KernelNotFoundError  # noqa: E402
from msdump.process import sessions  # noqa: E402
from msdump.torchair.ranks import rank_folders  # noqa: E402
from tests.analysis.replay.damage import run_script, with_flipped_bit  # noqa: E402

functional = torch.nn.functional


class Net(torch.nn.Module):
    """Numbers, words, dtypes, lists with nothing in places, several results, integers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 2, 3, padding=1)
        self.fc = torch.nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        y = self.fc(torch.max_pool2d(torch.relu(self.conv(x)), 2).flatten(1)).softmax(-1)
        y = torch.cat([y, y * 2.5], dim=1).to(torch.bfloat16).float()
        y = functional.layer_norm(functional.gelu(y, approximate="tanh"), (8,), eps=1e-3)
        counts = (y > 0).sum(1, keepdim=True) * 0.5
        y = torch.where(y > 0, y, -y).pow(2).clamp(max=3.0)[:, 1:7] + torch.full((2, 1), 1.5)
        return y.topk(2)[0] + functional.dropout(counts, 0.5)


def train(config: Any, folder: Path) -> None:
    """A training of two steps, in a folder where TorchAir leaves a file of the options of its dump."""
    before = Path.cwd()
    os.chdir(folder)
    torch.manual_seed(0)
    torch._dynamo.reset()
    sessions.reset_for_tests()
    try:
        compiled = torch.compile(Net(), backend=torchair.get_npu_backend(compiler_config=config))
        for seed in range(2):
            compiled(torch.randn(2, 1, 4, 4, generator=torch.Generator().manual_seed(seed))).sum().backward()
    finally:
        os.chdir(before)
        sessions.close_all()
        rank_folders.reset_for_tests()
        sessions.reset_for_tests()
        torch._dynamo.reset()


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eager")
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = str(folder)
    train(config, folder)
    return folder


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """By graph: the folder of its dump, and the text of its graph."""
    folder = tmp_path_factory.mktemp("compiled")
    config = torchair.CompilerConfig()
    for name in ("dump", "graphs"):
        (folder / name).mkdir()
    config.dump_config.enable_dump = True
    config.dump_config.dump_path = str(folder / "dump")
    config.debug.graph_dump.type = "txt"
    config.debug.graph_dump.path = str(folder / "graphs")
    train(config, folder)
    texts = {
        path.name.split("_rank_")[0].removeprefix("dynamo_optimized_"): path for path in folder.rglob("*_optimized_*")
    }
    return {path.name: (path, texts[path.name]) for path in sorted(folder.glob("dump/*/*/0/graph_*"))}


def operators(dump: Path) -> list[tuple[str, str, int]]:
    """Name, type and graph of each operator of the second step."""
    return [
        (operator.label, operator.op_type, step.key.graph_id or 0)
        for step in read_steps(msdump.open(dump))
        if step.key.iteration == 1
        for operator in step.operators
    ]


def same(result: Any) -> None:
    own = result.runs["torch"]
    assert result.is_explained, result.reason
    assert not own.problem and own.errors and not result.runs["float64"].problem
    for slot, dumped in result.outputs.items():
        again = own.outputs[slot.number]
        assert (again.dtype, again.shape) == (dumped.dtype, dumped.shape)
        np.testing.assert_allclose(again.astype(np.float64), dumped.astype(np.float64), rtol=1e-5, atol=1e-6)


def test_an_operator_of_an_eager_dump_gives_its_results_again(eager: Path) -> None:
    seen = set()
    for name, op_type, graph in operators(eager):
        if op_type == "aten.native_dropout.default":
            with pytest.raises(KernelNotFoundError, match="it draws random numbers"):
                replay_operator(eager, name, graph=graph, iteration=1)
            continue
        same(replay_operator(eager, name, graph=graph, iteration=1))
        seen.add(op_type)
    assert {"aten.convolution.default", "aten.cat.default", "aten._to_copy.default", "aten.clamp.default"} <= seen
    assert {"aten.gelu.default", "aten.convolution_backward.default", "aten.mul.Tensor", "aten.full.default"} <= seen


@pytest.mark.parametrize("name", ["addmm", "_to_copy", "gelu"])
def test_a_flipped_bit_of_an_eager_dump_is_found(eager: Path, tmp_path: Path, name: str) -> None:
    (graph,) = {graph for label, _, graph in operators(eager) if label == name}
    broken = with_flipped_bit(eager, tmp_path / "broken", name)
    words = ["--graph", str(graph), "--iteration", "0"]
    assert main(["replay", str(eager), name, *words]) == 0
    assert main(["replay", str(broken), name, *words]) == 1
    assert run_script(write_repro(eager, name, tmp_path / "right", graph=graph, iteration=0))[0] == 0
    assert run_script(write_repro(broken, name, tmp_path / "wrong", graph=graph, iteration=0))[0] == 1


def test_what_an_eager_dump_lacks_is_named(eager: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(eager, copy)
    for path in copy.rglob("addmm-aten.addmm.default.INPUT.1.*"):
        path.unlink()
    for path in copy.rglob("gelu-aten.gelu.default.INPUT.approximate.*"):
        path.unlink()
        line = "gelu-aten.gelu.default.INPUT.approximate.20260101000000000000.npy: no file holds it\n"
        (path.parent / "skipped.txt").write_text(line)
    for path in copy.rglob("clamp-aten.clamp.default.INPUT.1.*"):
        path.chmod(0o600)
        path.write_bytes(b"damaged")
    for name, missing in {
        "addmm": "expected its argument mat1 in the dump, got none",
        "gelu": "expected all its arguments in the dump, got none of approximate",
        "clamp": "expected an argument, got a damaged file",
    }.items():
        assert main(["replay", str(copy), name]) == 2
        assert missing in capsys.readouterr().err


def test_words_that_torchair_itself_does_not_write_are_named(eager: Path, tmp_path: Path) -> None:
    """It writes no arguments by name: those have their defaults, and the answer says so."""
    copy = tmp_path / "copy"
    shutil.copytree(eager, copy)
    for path in copy.rglob("gelu-aten.gelu.default.INPUT.approximate.*"):
        path.unlink()
    result = replay_operator(copy, "gelu")
    assert not result.is_explained
    assert result.notes == ("argument approximate is not in the dump: 'none' is its default",)


def test_pickles_of_torchair_itself_are_not_opened(eager: Path, tmp_path: Path) -> None:
    """It writes None and dtypes so."""
    copy = tmp_path / "copy"
    shutil.copytree(eager, copy)
    for pattern, content in (("clamp-*.INPUT.1.*", None), ("_to_copy-*.INPUT.dtype.*", torch.bfloat16)):
        for path in copy.rglob(pattern):
            path.unlink()
            np.save(path, np.array(content, dtype=object), allow_pickle=True)
    for name, taken in (("clamp", "taken as None"), ("_to_copy", "taken as that of the result")):
        result = replay_operator(copy, name)
        same(result)
        assert result.notes[0].endswith(f"is a pickle, which is not opened: {taken}")


def test_an_operator_of_a_compiled_graph_gives_its_results_again(compiled: dict[str, tuple[Path, Path]]) -> None:
    seen = set()
    for dump, text in compiled.values():
        for name, op_type, _ in operators(dump):
            if op_type == "Data":
                with pytest.raises(ConfigError, match="nothing computes it"):
                    replay_operator(dump, name, model=text)
            elif op_type == "StatelessDropOutGenMask":
                with pytest.raises(ConfigError, match="draws random numbers"):
                    replay_operator(dump, name, model=text)
            else:
                same(replay_operator(dump, name, iteration=1, model=text))
                seen.add(op_type)
    assert {"Conv2D", "MatMulV2", "ReduceSum", "TopKV2", "GeluGrad", "Conv2DBackpropFilter", "Cast"} <= seen


def test_without_the_text_operators_without_attributes_run_alone(
    compiled: dict[str, tuple[Path, Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    dump, _ = next(iter(compiled.values()))
    assert main(["replay", str(dump), "Relu"]) == 0
    capsys.readouterr()
    for name in ("Conv2D", "MatMulV2", "Cast", "ReduceSum"):
        assert main(["replay", str(dump), name]) == 2
        assert 'config.debug.graph_dump.type = "txt", and give the file' in capsys.readouterr().err


def test_the_text_of_another_graph_is_refused(compiled: dict[str, tuple[Path, Path]], tmp_path: Path) -> None:
    (dump, _), (_, other) = compiled.values()
    with pytest.raises(ConfigError, match="without an operator Conv2D"):
        replay_operator(dump, "Conv2D", model=other)
    (tmp_path / "no.txt").write_text("no graph {")
    with pytest.raises(msdump.errors.FormatError, match="expected a GraphDef as text"):
        replay_operator(dump, "Conv2D", model=tmp_path / "no.txt")


@pytest.mark.parametrize("name", ["Conv2D", "Cast_1"])
def test_a_flipped_bit_of_a_compiled_graph_is_found(
    compiled: dict[str, tuple[Path, Path]], tmp_path: Path, name: str
) -> None:
    dump, text = next(iter(compiled.values()))
    (place,) = {path.parent for path in dump.rglob(f"*.{name}.*") if path.parent.name == "0"}
    broken = with_flipped_bit(place.parents[4], tmp_path / "broken", f"{name}", iteration=0)
    words = [name, "--iteration", "0", "--graph", dump.name.removeprefix("graph_")]
    model = ["--model", str(text)]
    assert main(["replay", str(place.parents[4]), *words, *model]) == 0
    assert main(["replay", str(broken), *words, *model]) == 1
    script = write_repro(dump, name, tmp_path / "right", iteration=0, model=text)
    assert run_script(script, has_msdump=True)[0] == 0
