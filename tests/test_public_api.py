"""What others may build on does not move by accident: names, signatures, packages, the version."""

from __future__ import annotations

import configparser
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import msdump
from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent
LISTED = Path(__file__).parent / "golden" / "public_api.txt"
PUBLIC = ("msdump", "msdump.analysis", "msdump.testing")


def signature_lines() -> list[str]:
    """One line for each public name: a function with its signature, a class with that of its constructor."""
    lines = []
    for module_name in PUBLIC:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            member = getattr(module, name)
            if callable(member):
                # What a hypothesis strategy returns is spelled differently from version to version.
                signature = str(inspect.signature(member).replace(return_annotation=inspect.Signature.empty))
            else:
                signature = f": {type(member).__name__}"
            lines.append(f"{module_name}.{name}{signature}")
    return lines


def test_signatures_equal_the_checked_in_list() -> None:
    """After an intended change: `python -m tests.test_public_api` writes the list anew."""
    assert signature_lines() == LISTED.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", PUBLIC)
def test_all_is_sorted_and_nothing_in_it_is_missing(name: str) -> None:
    module = importlib.import_module(name)
    assert list(module.__all__) == sorted(set(module.__all__))
    assert all(hasattr(module, member) for member in module.__all__)


def test_the_list_of_names_is_the_public_one() -> None:
    assert dir(msdump) == list(msdump.__all__)


def test_help_shows_every_name_and_loads_no_framework() -> None:
    code = (
        "import msdump, pydoc, sys; print(pydoc.render_doc(msdump, renderer=pydoc.plaintext)); "
        'print([name for name in ("torch", "onnx", "numba", "rich", "hypothesis") if name in sys.modules])'
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.rstrip().endswith("[]")
    for name in msdump.__all__:
        assert name == "__version__" or name in result.stdout


def test_short_names_are_those_of_the_analysis() -> None:
    from msdump import analysis

    assert msdump.compare is analysis.compare_dumps
    assert msdump.convert is analysis.convert_dump
    assert msdump.find_nan is analysis.find_non_finite
    assert msdump.stat is analysis.tensor_statistics
    assert issubclass(msdump.open.__self__, msdump.DumpDir)


def test_no_module_takes_the_name_of_a_function() -> None:
    """Importing it would put the module in the place of the function."""
    for name in set(msdump.__all__) - {"errors"}:
        package = PACKAGE / name
        assert not (package / "__init__.py").exists() and not package.with_suffix(".py").exists(), name


def test_a_misspelled_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match=r'no attribute "compair"\. Did you mean "compare"'):
        _ = msdump.compair


def test_frontends_resolve_on_first_use() -> None:
    assert msdump.torchair is importlib.import_module("msdump.torchair")
    with pytest.raises(AttributeError, match="mindspor3"):
        _ = msdump.mindspor3


def test_every_folder_with_code_is_a_package() -> None:
    for file in PACKAGE.rglob("*.py"):
        assert (file.parent / "__init__.py").is_file(), f"{file} would be left out of the wheel"


def test_files_that_are_no_code_are_declared_as_package_data() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    declared = {
        (package, pattern)
        for package, patterns in parser["options.package_data"].items()
        for pattern in patterns.split()
    }
    for file in PACKAGE.rglob("*"):
        if file.is_dir() or file.suffix == ".py" or file.parent.name == "__pycache__":
            continue
        if file.is_relative_to(PACKAGE / "pages") or file == PACKAGE / "native.zip":  # which setup.py makes
            continue
        folder = next(parent for parent in file.parents if (parent / "__init__.py").is_file())
        package = ".".join(folder.relative_to(PACKAGE.parent).parts)
        assert any(owner == package and file.relative_to(folder).match(pattern) for owner, pattern in declared), file


def test_the_version_is_a_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", msdump.__version__)


if __name__ == "__main__":
    LISTED.write_text("\n".join(signature_lines()) + "\n", encoding="utf-8")
