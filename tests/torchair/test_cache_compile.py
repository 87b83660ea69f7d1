"""cache_compile: the method computes what it computes, in every process; its file says what it became."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair
from msdump.errors import ConfigError, FormatError

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("own_dump")


class Model(torch.nn.Module):
    def __init__(self, is_negated: bool = False) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.is_negated = is_negated
        torch.nn.init.ones_(self.layer.weight)
        torch.nn.init.ones_(self.layer.bias)

    def prompt(self, x: Any, kv: Any) -> Any:
        y = self.layer(x) + self.layer(kv[0])
        return -y if self.is_negated else y

    def loop(self, x: Any, times: int) -> Any:
        for _ in range(times):
            x = x.sin()
        return x


X, KV = torch.ones(2, 2), [torch.full((2, 2), 2.0)]


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(logging.getLogger("torchair"), "propagate", True)
    caplog.set_level(logging.INFO, "torchair")
    return caplog


def lines(said: pytest.LogCaptureFixture) -> list[str]:
    messages = [
        record.getMessage()
        for record in said.records
        if record.name in ("torchair", "msdump") and "ache" in record.getMessage()
    ]
    said.clear()
    return messages


def run(model: Any = None, **options: Any) -> Any:
    """One process, as far as caches go."""
    torch._dynamo.reset()
    model = model or Model()
    return torchair.inference.cache_compile(model.prompt, **options)(X, KV)


def only_file(root: Path) -> Path:
    (file,) = [path for path in root.rglob("*") if path.is_file()]
    return file


def test_the_file_is_kept_and_found_again(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    expected = Model().prompt(X, KV)
    assert torch.equal(run(), expected)
    file = only_file(tmp_path / ".torchair_cache")
    assert re.fullmatch(r"Model_dynamic_[0-9a-f]{32}/prompt/compiled_module", "/".join(file.parts[-3:]))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (line,) = lines(said)
    assert re.fullmatch(
        r"Cache ModelCacheMeta\(name=.Model\.prompt.*, date='.*', version='.*', fx=None\) saved to .*", line
    )
    content, node = file.read_bytes(), file.stat().st_ino
    result = run()
    assert torch.equal(result, expected) and not result.requires_grad
    assert lines(said) == [line.replace("saved to", "loaded from")]
    assert (file.read_bytes(), file.stat().st_ino) == (content, node)


@pytest.mark.parametrize("damage", ["cut", "empty", "other json", "bytes", "version", "code", "torch"])
def test_a_stale_or_damaged_file_is_written_anew(damage: str, tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    run(cache_dir="cache")
    file = only_file(tmp_path / "cache")
    good = file.read_bytes()
    content = json.loads(good)
    broken = {"cut": good[:-9], "empty": b"", "other json": b"[1]", "bytes": b"\x80\x04\xff"}.get(damage)
    file.write_bytes(broken if broken is not None else json.dumps({**content, damage: "other"}).encode())
    lines(said)
    assert torch.equal(run(cache_dir="cache"), Model().prompt(X, KV))
    warned, saved = lines(said)
    assert warned.startswith(f"Clear broken cache {file} as ") and "saved to" in saved
    assert {**json.loads(file.read_bytes()), "date": 0} == {**content, "date": 0}


def test_another_graph_under_the_same_path_is_no_hit(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    """What the text of the module does not say is in the graph."""
    run()
    assert torch.equal(run(Model(is_negated=True)), -Model().prompt(X, KV))
    assert "it is of another graph: code differs" in lines(said)[1]


def test_a_second_graph_takes_the_file_away(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    model = Model()
    cached = torchair.inference.cache_compile(model.loop, cache_dir="cache")
    for times in (1, 2, 3):
        assert torch.equal(cached(X, times), model.loop(X, times))
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    (line,) = [line for line in lines(said) if line.startswith("Skip")]
    assert line.startswith("Skip cache as Model.loop") and "recompiled" in line


def test_each_choice_has_a_path_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHAIR_CACHE_HOME", str(tmp_path / "home"))
    captured = torchair.CompilerConfig()
    captured.mode = "npugraph_ex"
    run(dynamic=False)
    run(tp_rank=1, pp_rank=2)
    run(config=captured)
    run(ge_cache=True, fullgraph=True)
    names = sorted(path.relative_to(tmp_path / "home").parts for path in (tmp_path / "home").rglob("compiled_module"))
    assert [re.sub("[0-9a-f]{32}", "*", "/".join(parts[:-1])) for parts in names] == sorted(
        [
            "Model_static_*/prompt",
            "Model_dynamic_*/tp_rank1_pp_rank2/prompt",
            "Model_dynamic_aclgraphcache_*/prompt",
            "Model_dynamic_gecache_*/prompt",
        ],
        key=lambda name: name.replace("_*", "_0"),
    )


def test_arguments_without_effect_are_named(said: pytest.LogCaptureFixture) -> None:
    torchair.inference.cache_compile(Model().prompt, ge_cache=True, fullgraph=True, mode="x")
    assert lines(said) == ["cache_compile: these arguments have no effect here: mode, ge_cache."]


def test_a_rank_of_a_job_is_in_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from msdump.torchair.inference import cached_function

    monkeypatch.setattr(cached_function, "process_rank", lambda: (4, 3))
    run(cache_dir="a")
    run(cache_dir="b", global_rank=1)
    assert only_file(tmp_path / "a").parts[-3] == "world4global_rank3"
    assert only_file(tmp_path / "b").parts[-3] == "world4global_rank1"


def test_decompositions_and_dumps_work_as_without_it(tmp_path: Path) -> None:
    config = torchair.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = str(tmp_path / "dump")
    backend = torchair.get_npu_backend(compiler_config=config)
    model = Model()
    split = {torch.ops.aten.addmm.default: lambda b, x, w, **_: torch.ops.aten.mm.default(x, w) + b}
    cached = torchair.inference.cache_compile(model.prompt, backend=backend, custom_decompositions=split)
    torch.testing.assert_close(cached(X, KV), model.prompt(X, KV))
    names = {path.name.split("-")[1].split(".")[1] for path in (tmp_path / "dump").rglob("*.npy")}
    assert "mm" in names and "addmm" not in names


def test_a_folder_that_takes_no_file_stops_nothing(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert torch.equal(run(cache_dir="cache"), Model().prompt(X, KV))
    assert lines(said)[0].startswith("Skip cache of Model.prompt")


def test_a_link_is_not_followed(tmp_path: Path, said: pytest.LogCaptureFixture) -> None:
    run(cache_dir="cache")
    file, victim = only_file(tmp_path / "cache"), tmp_path / "victim"
    victim.write_text("kept")
    file.unlink()
    file.symlink_to(victim)
    run(cache_dir="cache")
    assert victim.read_text() == "kept" and not file.is_symlink()


def test_what_is_refused() -> None:
    model, config = Model(), torchair.CompilerConfig()
    backend = torchair.get_npu_backend(compiler_config=config)
    for wrong in (Model.prompt, lambda x: x, [].append):
        with pytest.raises(ConfigError, match=r"expected a method of a torch\.nn\.Module"):
            torchair.inference.cache_compile(wrong)
    with pytest.raises(ConfigError, match="got another one"):
        torchair.inference.cache_compile(model.prompt, config=torchair.CompilerConfig(), backend=backend)
    with pytest.raises(ConfigError, match="expected backend to come from"):
        torchair.inference.cache_compile(model.prompt, backend="inductor")
    torchair.inference.cache_compile(model.prompt, config=config, backend=backend)
    with pytest.raises(AttributeError, match="dynamic=True"):
        torchair.inference.set_dim_gears  # noqa: B018


def test_the_file_is_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(cache_dir="cache")
    file = only_file(tmp_path / "cache")
    text = torchair.inference.readable_cache(str(file), file="out/prompt.py")
    assert capsys.readouterr().out == f"{text}\n"
    assert "Model.prompt(x" in text and "torch.float32[2, 2]" in text
    source = (tmp_path / "out" / "prompt.py").read_text()
    compile(source, "prompt.py", "exec")
    assert "linear" in source and source.startswith("# ====")
    torchair.inference.readable_cache(str(file), print_output=False)
    assert not capsys.readouterr().out
    (tmp_path / "link").symlink_to(file)
    for wrong in ("link", "missing"):
        with pytest.raises(ConfigError, match=wrong):
            torchair.inference.readable_cache(wrong)
    (tmp_path / "other").write_text("{}")
    with pytest.raises(FormatError, match="other"):
        torchair.inference.readable_cache("other")


SCRIPT = """
import dataclasses
import logging
from typing import List
import torch
import torch_npu
import torchair
from torchair import logger
from torchair.configs.compiler_config import CompilerConfig

config = CompilerConfig()
logger.setLevel(logging.INFO)

@dataclasses.dataclass
class InputMeta:
    data: torch.Tensor
    is_prompt: bool

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = torch.nn.Linear(2, 1)
        self.linear2 = torch.nn.Linear(2, 1)
        for param in self.parameters():
            torch.nn.init.ones_(param)
        self.cached_prompt = torchair.inference.cache_compile(self.prompt, config=config)
        self.cached_decode = torchair.inference.cache_compile(self.decode, config=config)

    def forward(self, x: InputMeta, kv: List[torch.Tensor]):
        if x.is_prompt:
            return self.cached_prompt(x, kv)
        return self.cached_decode(x, kv)

    def _forward(self, x, kv):
        return self.linear2(x.data) + self.linear2(kv[0])

    def prompt(self, x, y):
        return self._forward(x, y)

    def decode(self, x, y):
        return self._forward(x, y)

x = InputMeta(data=torch.ones(2, 2).npu(), is_prompt=True)
kv = [torch.ones(2, 2).npu()]
model = Model().npu()
res_prompt = model(x, kv)
x.is_prompt = False
res_decode = model(x, kv)
print("results", res_prompt.tolist(), res_decode.tolist())
"""


def test_the_script_of_the_documentation_in_two_processes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    for word in ("saved to", "loaded from"):
        command = [sys.executable, "-m", "msdump", "run", "script.py"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        assert "results [[6.0], [6.0]] [[6.0], [6.0]]" in done.stdout
        methods = re.findall(
            rf"Cache ModelCacheMeta\(.*\) {word} .*/Model_dynamic_\w+/(\w+)/compiled_module", done.stdout
        )
        assert methods == ["prompt", "decode"], done.stdout
