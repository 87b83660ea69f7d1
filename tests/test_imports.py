"""Who may import what. import-linter holds the rules between packages; here are those about other people's packages."""

from __future__ import annotations

import ast
import configparser
import functools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent

# Package -> where it may be imported, as the beginning of a path below msdump/. What is absent here may be
# imported nowhere; the standard library and numpy may be imported everywhere.
ALLOWED = {
    "anyio": ("cli/agents/answers.py", "viewing/server.py"),
    "mcp": ("cli/agents/server.py",),
    "anywidget": ("viewing/widget.py",),
    "traitlets": ("viewing/widget.py",),
    "fsspec": ("storage/remote.py",),
    "obstore": ("storage/remote.py",),
    "xxhash": ("storage/packs.py",),
    "msdump_native": (
        "frontends/torch/eager/native.py",
        "frontends/torch/eager/native_calls.py",
        "frontends/torch/eager/native_tables.py",
    ),
    "starlette": ("viewing/server.py",),
    "uvicorn": ("viewing/server.py", "viewing/serving.py"),
    "transformers": ("integrations/transformers.py",),
    "PIL": ("frontends/acl/media.py", "mindspore/dataset/", "viewing/pictures.py"),
    "google": (
        "graph/_proto/",
        "mindspore/_proto/",
        "graph/ge.py",
        "graph/pb.py",
        "formats/",
        "mindspore/protobuf.py",
        "frontends/onnx/",
        "torchair/graph_dump/",
    ),
    "mindspore": ("cli/samples/",),
    "hypothesis": ("testing/", "mindspore/program/graph_cases.py"),
    "ml_dtypes": ("tensors/dtypes.py",),
    "llvmlite": ("statistics/md5_lanes.py", "statistics/lanes.py", "tensors/tiles.py", "tensors/vector_code.py"),
    "numba": (
        "tensors/compiling.py",
        "statistics/kernels.py",
        "statistics/lanes.py",
        "statistics/md5_lanes.py",
        "tensors/tiles.py",
        "mindspore/kernels/",
        "analysis/",
    ),
    "onnx": ("frontends/acl/", "frontends/onnx/"),
    "onnxruntime": ("frontends/onnx/",),
    "pydantic": ("cli/agents/server.py", "config/", "mindspore/"),
    "pydantic_core": ("config/", "mindspore/"),
    "pytest": ("testing/", "integrations/pytest_plugin.py"),
    "rich": ("cli/",),
    "jieba": ("mindspore/dataset/text/tokenizers.py",),
    "sklearn": ("mindspore/dataset/digits.py",),
    "torch": (
        "analysis/replay/",
        "cli/samples/",
        "analysis/convert/_tensor_form.py",
        "frontends/torch/",
        "frontends/msprobe/",
        "frontends/torch_npu/",
        "torchair/",
        "mindspore/communication/",
        "mindspore/experimental/optim/lr_scheduler.py",
        "mindspore/kernels/torch_operator.py",
        "tensors/torch_arrays.py",
        "tensors/unseen.py",
    ),
}
LATE = {
    "torch", "onnx", "onnxruntime", "google.protobuf", "pydantic", "numba", "rich", "PIL", "sklearn", "hypothesis",
    "llvmlite", "pyarrow", "starlette", "uvicorn", "obstore", "fsspec", "xxhash", "msdump_native",
    "mcp", "jieba",
}  # fmt: skip


def imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield node.module


def foreign_imports() -> list[tuple[str, str]]:
    """(path below msdump/, package) for each import of something that is not ours and not the standard library."""
    found = []
    for file in sorted(PACKAGE.rglob("*.py")):
        for module in imported(file):
            package = module.partition(".")[0]
            if package not in sys.stdlib_module_names and package not in ("msdump", "numpy"):
                found.append((file.relative_to(PACKAGE).as_posix(), package))
    return found


@pytest.mark.parametrize(("path", "package"), sorted(set(foreign_imports())))
def test_a_package_is_imported_only_where_it_is_needed(path: str, package: str) -> None:
    assert package in ALLOWED, f"msdump/{path} imports {package}"
    assert path.startswith(ALLOWED[package]), f"msdump/{path} imports {package}"


def modules_after(code: str) -> set[str]:
    """Names of the modules that are loaded in a fresh interpreter after a line of code."""
    line = f"import json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout))


def test_import_msdump_is_cheap() -> None:
    loaded = modules_after("import msdump")
    assert not loaded & (LATE | {"numpy", "msdump.process.sessions"})
    assert len(loaded - modules_after("")) < 60


@pytest.mark.parametrize(
    "module", ["msdump.process.sessions", "msdump.engine.opening", "msdump.tensors.records", "msdump.cli.main"]
)
def test_the_core_loads_without_the_packages_that_only_some_files_need(module: str) -> None:
    assert not modules_after(f"import {module}") & LATE


@pytest.mark.parametrize("module", ["find.nan", "compare.dumps"])
def test_a_question_about_a_plain_dump_loads_no_reader_of_other_files(module: str) -> None:
    """Nor what only they need: of a small dump, the start is most of what a question costs."""
    loaded = modules_after(f"import msdump.cli.main, msdump.analysis.{module}")
    others = {name for name in loaded if name.startswith("msdump.formats.other_tools.")}
    assert others == {f"msdump.formats.other_tools.{name}" for name in ("containers", "files", "layouts", "members")}
    assert not loaded & {"importlib.resources", "pickletools", "sqlite3", "statistics", "tempfile", "uuid", "zipfile"}
    assert not loaded & {"msdump.formats.pt_tensor", "msdump.formats.sharding_json"}


@pytest.mark.usefixtures("needs_mindspore")
def test_a_script_without_a_dump_loads_neither_dumper_nor_writers() -> None:
    loaded = modules_after("import msdump.mindspore")
    assert not {module for module in loaded if module.startswith(("msdump.dumpers.", "msdump.formats.npy"))}
    assert not loaded & {"torch", "onnx", "onnxruntime", "rich", "hypothesis", "sklearn"}


# -- circles -------------------------------------------------------------------------------------------------------


def own_imports() -> dict[str, set[str]]:
    """Module -> modules of msdump that it imports anywhere: late imports and those for annotations count."""
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in PACKAGE.rglob("*.py")
    }
    arrows: dict[str, set[str]] = {}
    for name, file in files.items():
        arrows[name] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [each if each in files else node.module for each in inner]
            arrows[name] |= {each for each in names if each in files and each != name}
    return arrows


def circles(arrows: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules each of which leads to every other one of its set."""
    reach = {name: set(direct) for name, direct in arrows.items()}
    is_growing = True
    while is_growing:
        is_growing = False
        for reached in reach.values():
            more = set().union(*(reach[name] for name in reached)) - reached
            if more:
                reached |= more
                is_growing = True
    rings = {
        frozenset({name, *(other for other in reached if name in reach[other])}) for name, reached in reach.items()
    }
    return [set(ring) for ring in rings if len(ring) > 1]


def test_modules_import_in_no_circle() -> None:
    assert circles(own_imports()) == []


# -- tests ---------------------------------------------------------------------------------------------------------

OPTIONAL = ("torch", "onnx", "onnxruntime", "sklearn", "pyarrow", "tensorboard")


def module_file(name: str) -> Path | None:
    """File of a module of the tests."""
    path = ROOT.joinpath(*name.split("."))
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file.is_file()), None) if name.startswith("tests") else None


@functools.cache
def missing_at_import(file: Path) -> frozenset[str]:
    """Optional packages without which the file does not import, although it does not ask for them first."""
    needed: set[str] = set()
    checked: set[str] = set()
    for statement in ast.parse(file.read_text(encoding="utf-8")).body:
        names: list[str] = []
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            names = [statement.module, *(f"{statement.module}.{alias.name}" for alias in statement.names)]
        elif isinstance(statement, ast.Expr | ast.Assign) and "importorskip" in ast.unparse(statement.value):
            checked.update(re.findall(r"importorskip\('([^'.]+)", ast.unparse(statement.value)))
        for name in names:
            inner = module_file(name)
            package = name.partition(".")[0]
            found = missing_at_import(inner) if inner is not None else {package} & set(OPTIONAL)
            needed |= found - checked
    return frozenset(needed)


def test_private_modules_are_used_inside_their_package_alone() -> None:
    for file in sorted(PACKAGE.rglob("*.py")):
        package = ".".join(file.parent.relative_to(ROOT).parts)
        for module in imported(file):
            owner, _, name = module.rpartition(".")
            if owner.startswith("msdump") and name.startswith("_") and name not in ("_proto", "_startup", "_utils"):
                assert f"{package}.".startswith(f"{owner}."), f"{file.relative_to(ROOT)} imports {module}"


def test_tests_that_need_an_optional_package_skip_without_it() -> None:
    files = [file for file in (ROOT / "tests").rglob("*.py") if file.name.startswith(("test_", "conftest", "__init__"))]
    assert not {str(file): needed for file in files if (needed := missing_at_import(file))}


def test_no_module_takes_the_name_of_an_entry_point() -> None:
    """Importing a module sets its name in its package, over a function of that name."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    targets = re.findall(r"= (msdump[\w.]*):(\w+)", "\n".join(config["options.entry_points"].values()))
    assert len(targets) >= 3
    for module, name in targets:
        folder = ROOT.joinpath(*module.split("."))
        assert not (folder / name).exists() and not (folder / f"{name}.py").exists(), f"{module}:{name}"
