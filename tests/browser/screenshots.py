"""Make the pictures of the viewer that README and docs show: `python -m tests.browser.screenshots`.

They are looked at, not compared: each browser draws letters in its own way.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.browser.conftest import serving

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
TRAIN = """\
import os

import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        scores = self.head(self.body(x))
        if os.environ["WHAT"] == "nan":
            return torch.log(scores)
        return torch.nn.functional.gelu(scores, approximate=os.environ["WHAT"])


net = Classifier()
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
for step in range(3):
    optimizer.zero_grad()
    net(torch.randn(4, 6, 32)).mean().backward()
    optimizer.step()
"""


def dump_of(folder: Path, what: str) -> Path:
    """The dump of a run that makes a NaN ("nan"), or computes GELU in one of two ways ("none", "tanh")."""
    home = folder / {"nan": "training", "none": "mine", "tanh": "golden"}[what]
    home.mkdir()
    (home / "train.py").write_text(TRAIN)
    settings = {
        "dump_mode": 0, "path": str(home / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 0, "kernels": [], "support_device": [0],
    }  # fmt: skip
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (home / "dump.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "msdump", "run", "--config", "dump.json", "--torch-eager", "train.py"]
    subprocess.run(command, cwd=home, env={**os.environ, "PYTHONPATH": str(ROOT), "WHAT": what}, check=True)
    return home / "dump"


def take(page: Any, fragment: str, name: str) -> None:
    page.evaluate("to => { location.hash = to }", fragment)
    page.wait_for_function(
        "() => !document.querySelector('[aria-busy=true], .progress') && document.querySelector('main')"
    )
    page.wait_for_timeout(600)
    page.screenshot(path=IMAGES / name)


def main() -> None:
    """Write all pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1240, "height": 860}, locale="en")
        with serving(dump_of(folder, "nan"), None, folder) as viewing:
            page.goto(viewing.url)
            page.wait_for_selector(".verdict.bad h1 a", timeout=60_000)
            target = page.get_attribute(".verdict h1 a", "href")
            page.wait_for_selector(".legend .key")
            take(page, "#/overview", "viewer-overview.png")
            take(page, target, "viewer-operator.png")
        with serving(dump_of(folder, "none"), dump_of(folder, "tanh"), folder) as viewing:
            page.goto(viewing.url)
            page.wait_for_selector(".verdict.bad", timeout=60_000)
            step = page.get_attribute("table.plain a", "href").removeprefix("#/operators/")
            take(page, f"#/compare/{step}?bad=1", "viewer-compare.png")
        browser.close()


if __name__ == "__main__":
    main()
