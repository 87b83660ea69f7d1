"""The plug-in of vLLM and SGLang: a function without arguments, in each process, several times in one."""

from __future__ import annotations

import configparser
import json
import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

pytest.importorskip("torch")

from msdump.errors import ConfigError
from msdump.integrations import serving
from tests.frontends.torch.eager.test_watch import config

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import msdump.integrations.serving as serving
serving.register()
serving.register()
import sys
if "torch" in sys.modules or len(sys.argv) > 1:
    import torch
    torch.nn.Linear(3, 2)(torch.ones(4, 3))
"""


@pytest.mark.parametrize("group", ["vllm.general_plugins", "sglang.srt.plugins"])
def test_both_engines_find_it(group: str) -> None:
    """Read from the file: a package that is installed for editing has the entry points of the day when it was."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    (line,) = settings["options.entry_points"][group].strip().splitlines()
    name, _, value = line.partition(" = ")
    assert EntryPoint(name, value, group).load() is serving.register


def test_it_is_off_and_free_unless_it_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSPORE_DUMP_CONFIG", "/nowhere.json")
    serving.register()
    monkeypatch.setenv("MSDUMP_SERVING", "perhaps")
    with pytest.raises(ConfigError, match="MSDUMP_SERVING"):
        serving.register()
    monkeypatch.delenv("MSDUMP_SERVING")
    script = f"{PROGRAM}\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_it_dumps_what_a_process_computes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "c.json").write_text(json.dumps(config(tmp_path / "dump")))
    variables = {"MSDUMP_SERVING": "1", "MINDSPORE_DUMP_CONFIG": str(tmp_path / "c.json"), "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", PROGRAM, "run"], cwd=ROOT, check=True, env=os.environ | variables)
    names = [file.name for file in (tmp_path / "dump").rglob("*addmm*.output.0.*.npy")]
    assert len(names) == 1
