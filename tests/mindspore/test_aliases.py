"""Names: one module object under every name, and helpful errors for what is not there."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import msdump
import msdump.mindspore as ms
from msdump.errors import ConfigError
from msdump.mindspore.other_paths import NOT_HERE, OTHER_PATHS, SHOWN

ROOT = Path(msdump.__file__).parent.parent


def _python(code: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={"PYTHONPATH": f"{cwd}:{ROOT}", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_name_gives_the_same_modules(tmp_path: Path) -> None:
    code = """
import sys, msdump
loaded = [name for name in sys.modules if name.startswith(("msdump.frontends", "msdump.mindspore", "pydantic"))]
assert loaded == ["msdump.frontends", "msdump.frontends.aliases"], "not light"
msdump.install_aliases()
import mindspore
import mindspore as ms
import mindspore.nn as nn
from mindspore.common.initializer import TruncatedNormal
from mindspore.train.callback import LossMonitor
import mindspore.dataset.vision
import msdump.mindspore.nn.wrap.cell_wrapper
import msdump.mindspore.nn as own
assert mindspore is msdump.mindspore is sys.modules["msdump.mindspore"]
assert nn is own is msdump.mindspore.nn is mindspore.nn
assert mindspore.train.callback.LossMonitor is LossMonitor is ms.LossMonitor
assert own.__spec__.name == own.__name__ == "msdump.mindspore.nn"
modules = [module for name, module in sys.modules.items() if "mindspore" in name and module.__spec__.origin]
file_by_id = {id(module): module.__file__ for module in modules}
assert len(file_by_id) == len(set(file_by_id.values())) > 100, "a file was loaded twice"
print("ok")
"""
    assert _python(code, tmp_path) == "ok"


REAL = """
import msdump
msdump.install_aliases(prefer_real={prefer})
import mindspore, mindspore.nn
print(mindspore.nn.WHO)
"""


@pytest.mark.parametrize(("prefer", "who"), [(True, "real"), (False, "msdump")])
def test_a_real_package_wins_unless_told_otherwise(tmp_path: Path, prefer: bool, who: str) -> None:
    package = tmp_path / "mindspore" / "nn"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("WHO = 'real'\n")
    code = REAL.format(prefer=prefer)
    if who == "msdump":
        code = code.replace("mindspore.nn.WHO", '"msdump" if mindspore is msdump.mindspore else "real"')
    assert _python(code, tmp_path) == who


def test_unknown_frontends_are_refused() -> None:
    with pytest.raises(ConfigError, match='Did you mean "mindspore"'):
        msdump.install_aliases(["mindspor"])
    with pytest.raises(AttributeError, match='has no attribute "mindspor"'):
        _ = msdump.mindspor  # type: ignore[attr-defined]


def test_missing_names_say_what_there_is() -> None:
    with pytest.raises(AttributeError, match=r"module 'mindspore\.nn' has no attribute 'Conv2D'.*\"Conv2d\"") as caught:
        _ = ms.nn.Conv2D
    assert re.search(r"Supported here: \d+ names; dir\(mindspore\.nn\) has them", str(caught.value))
    assert len(str(caught.value)) < 400
    with pytest.raises(ImportError, match="Did you mean"):
        exec("from msdump.mindspore.ops import softmx")
    with pytest.raises(AttributeError, match=r"'set_dmp'.*\"set_dump\""):
        _ = ms.set_dmp
    with pytest.raises(AttributeError, match=r'"Resize"') as caught:
        _ = ms.dataset.vision.Resice
    assert "geometry" not in str(caught.value)
    with pytest.raises(AttributeError, match=r"Supported here: .*auto_mixed_precision"):
        _ = ms.amp.auto_mixed
    with pytest.raises(AttributeError, match=r"'Dense' object has no attribute 'wieght'.*\"weight\""):
        _ = ms.nn.Dense(1, 1).wieght
    with pytest.raises(ModuleNotFoundError):
        exec("import msdump.mindspore.no_such_module")


@pytest.mark.parametrize("name", ["", ".nn", ".ops", ".train", ".common", ".numpy", ".nn.optim", ".ops.functional"])
def test_all_is_complete_and_true(name: str) -> None:
    module = sys.modules.get(f"msdump.mindspore{name}") or __import__(f"msdump.mindspore{name}", fromlist=["x"])
    assert len(set(module.__all__)) == len(module.__all__)
    assert [entry for entry in module.__all__ if not hasattr(module, entry)] == []


@pytest.mark.parametrize("path", sorted(OTHER_PATHS))
def test_paths_of_older_scripts_show_the_names_of_other_modules(path: str) -> None:
    module = importlib.import_module(f"msdump.mindspore.{path}")
    assert getattr(module, "__file__", None) is None, "a file of its own: the line of OTHER_PATHS can go"
    assert module is importlib.import_module(f"msdump.mindspore.{path}")
    parent, _, name = path.rpartition(".")
    package = importlib.import_module(f"msdump.mindspore.{parent}".rstrip("."))
    # Where the package shows a function of that name, it stays the function.
    own = getattr(module, name, module) if name in package.__all__ else module
    assert getattr(package, name) is own
    sources = [importlib.import_module(f"msdump.mindspore.{source}") for source in OTHER_PATHS[path]]
    assert module.__all__ == sorted({entry for source in sources for entry in source.__all__})
    assert [
        entry
        for entry in module.__all__
        if not any(getattr(module, entry) is getattr(source, entry, None) for source in sources)
    ] == []
    with pytest.raises(AttributeError, match=f"module 'mindspore.{path}' has no attribute 'no_such_name'"):
        _ = module.no_such_name


@pytest.mark.parametrize("path", sorted(NOT_HERE))
def test_modules_that_are_not_here_say_what_to_use(path: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=re.escape(NOT_HERE[path])) as caught:
        importlib.import_module(f"msdump.mindspore.{path}")
    assert caught.value.name == f"mindspore.{path}"


@pytest.mark.parametrize("path", sorted(SHOWN))
def test_modules_show_names_of_others_as_mindspore_does(path: str) -> None:
    module = importlib.import_module(f"msdump.mindspore.{path}")
    for name, source in SHOWN[path].items():
        origin = importlib.import_module(f"msdump.mindspore.{source}".rstrip("."))
        assert getattr(module, name) is getattr(origin, name)
    with pytest.raises(AttributeError, match=f"module 'mindspore.{path}' has no attribute 'no_such_name'"):
        _ = module.no_such_name


def test_settings_of_parallel_training_are_there_for_training_cells() -> None:
    utils = importlib.import_module("msdump.mindspore.parallel._utils")
    assert utils._get_parallel_mode() == ms.ParallelMode.STAND_ALONE
    assert utils._get_gradients_mean() is False and utils._get_device_num() == 1
    ms.set_auto_parallel_context(device_num=4, gradients_mean=True)
    try:
        assert utils._get_gradients_mean() is True and utils._get_device_num() == 4
    finally:
        ms.reset_auto_parallel_context()


def test_an_operator_class_calls_the_function_that_declares_it() -> None:
    assert ms.ops.TensorAdd is ms.ops.Add and ms.ops.operations.Add is ms.ops.Add
    assert ms.ops.Add.__name__ == "Add" and ms.ops.Add.__doc__ == ms.ops.add.__doc__
    assert ms.ops.ReLU()(ms.Tensor([-1.0, 2.0])).asnumpy().tolist() == [0.0, 2.0]
    assert {"Add", "ReLU", "Conv2D"} <= set(ms.ops.operations.__all__)


def _imported(path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path.joinpath("published_here.py").write_text(code)
    monkeypatch.syspath_prepend(str(path))
    monkeypatch.delitem(sys.modules, "published_here", raising=False)
    importlib.invalidate_caches()
    module = importlib.import_module("published_here")
    monkeypatch.delitem(sys.modules, "published_here")
    return module


@pytest.mark.parametrize("call", ["publish(__name__)", "publish_all(__name__)", "publish(__name__, tells_line=False)"])
@pytest.mark.parametrize("before", [1, 300])
def test_a_name_that_a_module_defines_too_late_is_refused(
    call: str, before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "from msdump.mindspore.names import publish, publish_all\n"
    head += "".join(f"def first_{at}(): pass\n" for at in range(before)) + f"{call}\n"
    later = ["def late(): pass", "class Late: pass", "late = first_0", "_private = 1"]
    for at, line in enumerate(later[:3]):
        code = f"{head}_private = 1\n{line}\n"
        folder = tmp_path / str(at)
        folder.mkdir()
        with pytest.raises(
            ImportError, match=r"published_here: expected no public name after the call .*, got (l|L)ate\."
        ):
            _imported(folder, code, monkeypatch)
    module = _imported(tmp_path, f"{head}{later[3]}\n__getattr__ = None\n", monkeypatch)
    assert set(module.__all__) - {"publish", "publish_all"} == {f"first_{at}" for at in range(before)}
