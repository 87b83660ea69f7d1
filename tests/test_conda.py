"""conda/recipe.yaml says what setup.cfg says, and rattler-build understands it."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import pytest

import msdump

ROOT = Path(__file__).resolve().parent.parent
RECIPE = ROOT / "conda/recipe.yaml"
# Name on PyPI -> on conda-forge, where they differ.
OTHER_NAMES = {"xxhash": "python-xxhash"}


@pytest.fixture(scope="module")
def recipe() -> Any:
    return pytest.importorskip("yaml").safe_load(RECIPE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def setup() -> configparser.ConfigParser:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


def test_the_version_is_that_of_the_package(recipe: Any) -> None:
    assert recipe["context"]["version"] == msdump.__version__


def test_the_requirements_are_those_of_setup_cfg(recipe: Any, setup: configparser.ConfigParser) -> None:
    wanted = {f"python {setup['options']['python_requires']}"}
    for line in filter(None, setup["options"]["install_requires"].splitlines()):
        name, bounds = re.fullmatch(r"([\w-]+)(.*)", line).groups()  # type: ignore[union-attr]
        wanted.add(f"{OTHER_NAMES.get(name, name)} {bounds}")
    assert set(recipe["requirements"]["run"]) == wanted
    build = re.findall(r'"(setuptools)(.*?)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert " ".join(build[0]) in recipe["requirements"]["host"]


def test_the_rest_is_that_of_setup_cfg(recipe: Any, setup: configparser.ConfigParser) -> None:
    scripts = setup["options.entry_points"]["console_scripts"].strip().splitlines()
    assert recipe["build"]["python"]["entry_points"] == scripts
    about = recipe["about"]
    assert about["summary"] == setup["metadata"]["description"]
    assert about["license"] == setup["metadata"]["license_expression"] and (ROOT / about["license_file"]).is_file()


def test_rattler_build_understands_it() -> None:
    rattler_build = pytest.importorskip("rattler_build")
    stage = rattler_build.Stage0Recipe.from_file(str(RECIPE))
    (variant,) = stage.render(rattler_build.VariantConfig())
    assert f"package='msdump', version='{msdump.__version__}'" in str(variant)
