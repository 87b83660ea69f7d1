"""A browser that forbids what a page of a viewer must not do, and dumps of each front end to look at.

`BROWSER_TESTS=required` makes a missing browser a failure; without it these tests say why they are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.analysis.exporting.conftest import golden_dump_folder, home, hostile_dump, moved_dump, nan_dump  # noqa: F401
from tests.analysis.small_dump import floats, write_dump

ROOT = Path(__file__).parents[2]
IS_REQUIRED = os.environ.get("BROWSER_TESTS") == "required"
_NAMES = ("chromium", "chromium-browser", "google-chrome")
_VIOLATION = "addEventListener('securitypolicyviolation', e => console.error('policy: ' + e.violatedDirective));"

TORCH = """\
import sys

import torch

import msdump

torch.manual_seed(0)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 16)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x):
        return torch.log(self.head(torch.relu(self.body(x))))


net = Net()
{setup}
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(2):
    optimizer.zero_grad()
    net(torch.randn(4, 8)).sum().backward()
    optimizer.step()
"""
BLOCKS = """\
import numpy as np
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(self.act(self.up(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(0)
x = torch.randn(4, 8)
torch.onnx.export(Net().eval(), (x,), "net.onnx", dynamo=False, input_names=["x"], opset_version=17)
np.save("x.npy", x.numpy())
"""
ONNX = """\
import numpy as np
from onnx import TensorProto, helper, save

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
nodes = [helper.make_node("Sub", ["x", "x"], ["z"]), helper.make_node("Log", ["z"], ["l"]),
         helper.make_node("Sub", ["l", "l"], ["y"])]
graph = helper.make_graph(nodes, "net", [x], [y])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "net.onnx")
np.save("x.npy", np.ones((2, 3), np.float32))
"""


def missing() -> str | None:
    """What these tests need and this machine has not."""
    for package in ("playwright", "starlette", "uvicorn"):
        try:
            __import__(package)
        except ImportError:
            return f"the package {package} (pip install '.[browser-test]')"
    return None if any(map(shutil.which, _NAMES)) else "Chromium (apt-get install chromium)"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lack = missing()
    if lack is not None and not IS_REQUIRED:
        for item in items:
            if Path(item.path).is_relative_to(Path(__file__).parent):
                item.add_marker(pytest.mark.skip(reason=f"needs {lack}"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    lack = missing()
    assert lack is None, f"these tests are required and need {lack}"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, _NAMES)))
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@dataclass
class Sight:
    """A page and what went wrong on it."""

    page: Any
    origin: str
    problems: list[str] = field(default_factory=list)

    def go(self, fragment: str) -> str:
        """Show what is at a fragment; the text of the page once it rests."""
        self.page.evaluate("to => { location.hash = to }", fragment)
        return self.rest()

    def rest(self) -> str:
        """The text of the page when nothing is on its way to it, and nothing moves."""
        before, text = None, ""
        while text != before:
            self.page.wait_for_function(
                "() => document.querySelector('.frame')?.dataset.place === location.hash"
                " && !document.querySelector('[aria-busy=true]') && !document.querySelector('.progress')",
                timeout=60_000,
            )
            before, text = text, str(self.page.inner_text("body"))
            self.page.wait_for_timeout(40)
        return text


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The front end with its packages, away from the checkout."""
    if shutil.which("npm") is None:
        assert not IS_REQUIRED, "these tests are required and need npm"
        pytest.skip("needs npm")
    folder = tmp_path_factory.mktemp("bundle") / "frontend"
    shutil.copytree(ROOT / "frontend", folder, ignore=shutil.ignore_patterns("node_modules"))
    catalogue = folder.parent / "msdump" / "tables" / "chinese.json"
    catalogue.parent.mkdir(parents=True)
    shutil.copy(ROOT / "msdump" / "tables" / "chinese.json", catalogue)
    run_npm(folder, "npm", "ci", "--no-audit", "--no-fund")
    return folder


def run_npm(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[[str], Sight]]:
    """Open an address; at the end of the test, nothing may have gone wrong on any page."""
    seen: list[Sight] = []
    contexts = []

    def opened(
        url: str, language: str = "en", is_offline: bool = False, before: Callable[[Any], None] = lambda page: None
    ) -> Sight:
        context = browser.new_context(locale=language, viewport={"width": 1280, "height": 800})
        contexts.append(context)
        context.set_offline(is_offline)
        page = context.new_page()
        sight = Sight(page, url.partition("?")[0])
        seen.append(sight)
        page.add_init_script(_VIOLATION)
        page.on("console", lambda message: sight.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: sight.problems.append(str(error)))
        page.on("request", lambda request: _check_origin(request.url, sight))
        page.on("dialog", lambda dialog: (sight.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        before(page)
        page.goto(url)
        sight.rest()
        return sight

    yield opened
    for context in contexts:
        context.close()
    for sight in seen:
        assert sight.problems == []


def _check_origin(url: str, sight: Sight) -> None:
    if not url.startswith((sight.origin, "blob:", "data:")):
        sight.problems.append(f"request to {url}")


@contextmanager
def serving(dump: Path, golden: Path | None, folder: Path, has_actions: bool = False, **options: Any) -> Iterator[Any]:
    """A server in a thread of this process."""
    from msdump.viewing.filling import Wanted
    from msdump.viewing.serving import Viewing

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        wanted = Wanted(str(dump), None if golden is None else str(golden), **options)
        viewing = Viewing(wanted, has_actions=has_actions)
    with viewing:
        thread = threading.Thread(target=viewing.serve)
        thread.start()
        try:
            yield viewing
        finally:
            viewing.stop()
            thread.join()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Serve a dump until the test ends; its address."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda dump, golden=None, **options: stack.enter_context(serving(dump, golden, tmp_path, **options)).url


# -- dumps ---------------------------------------------------------------------------------------------------------


def run(folder: Path, *command: str) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def configuration(folder: Path, saved_data: str = "tensor", **more: Any) -> Path:
    """Write `dump.json` of a dump of all iterations; the folder of the dump."""
    settings = {
        "dump_mode": 0, "path": str(folder / "dump"), "net_name": "Net", "iteration": "all", "saved_data": saved_data,
        "input_output": 0, "kernels": [], "support_device": [0], **more,
    }  # fmt: skip
    config = {"common_dump_settings": settings, "e2e_dump_settings": {"enable": True, "trans_flag": True}}
    (folder / "dump.json").write_text(json.dumps(config))
    return folder / "dump"


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """A dump of each front end, made when a test first wants it; each holds a NaN, but for "blocks", which
    is four blocks of a model that PyTorch exported. Of "hashes" nothing is measured."""
    made: dict[str, Path] = {}

    def torch_dump(folder: Path, setup: str, *options: str, **more: Any) -> Path:
        pytest.importorskip("torch")
        dump = configuration(folder, **more)
        (folder / "train.py").write_text(TORCH.replace("{setup}", setup))
        run(folder, "-m", "msdump", "run", "--config", "dump.json", *options, "train.py")
        return dump

    def onnx_dump(folder: Path, script: str = ONNX) -> Path:
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
        (folder / "make.py").write_text(script)
        run(folder, "make.py")
        settings = {"dump_path": str(folder / "dump"), "dump_mode": "all", "dump_list": [{"model_name": "net"}]}
        (folder / "acl.json").write_text(json.dumps({"dump": settings}))
        (folder / "dump").mkdir()
        run(folder, "-m", "msdump", "acl", "run", "net.onnx", "--input", "x.npy", "--dump", "acl.json")
        return folder / "dump"

    def statistics(folder: Path) -> Path:
        dump = configuration(folder, "statistic")
        source = request.getfixturevalue("nan_dump").parent
        (folder / "train.py").write_text((source / "train.py").read_text())
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MIDDLE", "log")
            run(folder, "-m", "msdump", "run", "--config", "dump.json", "train.py")
        return dump

    makers: dict[str, Callable[[Path], Path]] = {
        "mindspore": lambda _: request.getfixturevalue("nan_dump"),
        "torch-compiled": lambda folder: torch_dump(folder, 'net = torch.compile(net, backend="msdump")'),
        "torch-eager": lambda folder: torch_dump(folder, "", "--torch-eager"),
        "onnx": onnx_dump,
        "blocks": lambda folder: onnx_dump(folder, BLOCKS),
        "statistics": statistics,
        "hashes": lambda folder: torch_dump(
            folder, "", "--torch-eager", saved_data="statistic", statistic_category=["md5"]
        ),
    }

    def dump_of(name: str) -> Path:
        if name not in made:
            made[name] = makers[name](tmp_path_factory.mktemp(name))
        return made[name]

    return dump_of


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """Two ranks and three iterations; a matrix too large for a cell an element, with one NaN."""
    for rank in range(2):
        for iteration in range(3):
            matrix = np.linspace(-1, 1, 1_500_000, dtype=np.float32).reshape(1500, 1000) * (iteration + 1)
            if (rank, iteration) == (1, 2):
                matrix[777, 333] = np.nan
            tensors = {("input", 0): matrix, ("output", 0): floats(rank, iteration)}
            write_dump(tmp_path / "series", [("Net/MatMul-op0", tensors)], iteration=iteration, rank=rank)
    return tmp_path / "series"
