"""tests/lowest.txt holds the floors of setup.cfg, so that CI can install exactly what users are allowed to have."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_REQUIREMENT = re.compile(r"([A-Za-z0-9_.-]+)\s*(?:\[[^]]*\])?\s*([^;]*)")
# Stubs: they say what another package is like, and no version of theirs can break anything at run time.
_WITHOUT_FLOOR = {"types-protobuf"}
# Its CPU builds are few: the extra `test` names the one that it runs with.
_PINNED = {"torch"}


def _requirements() -> Iterator[tuple[str, str, str]]:
    """(where, package, specifiers) of each requirement of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lists = {"install_requires": config["options"]["install_requires"], **config["options.extras_require"]}
    for where, text in lists.items():
        for line in filter(None, map(str.strip, text.splitlines())):
            match = _REQUIREMENT.match(line)
            assert match is not None, line
            yield where, match[1], match[2].replace(" ", "")


def _floor(specifiers: str) -> str | None:
    return next((part[2:] for part in specifiers.split(",") if part.startswith(">=")), None)


def _release(version: str) -> tuple[int, ...]:
    """("1.16", "1.16.0") -> (1, 16): zeros at the end say nothing."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _lowest() -> dict[str, str]:
    lines = (ROOT / "tests" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    assert [name for name, _ in pairs] == sorted((name for name, _ in pairs), key=str.lower), "keep the lines sorted"
    return dict(pairs)


def test_the_constraints_are_the_floors_of_setup_cfg() -> None:
    floors: dict[str, tuple[int, ...]] = {}
    for where, package, specifiers in _requirements():
        floor = _floor(specifiers)
        if package in _WITHOUT_FLOOR | _PINNED:
            continue
        assert floor is not None, f"{where}: {package} has no floor"
        assert floors.setdefault(package, _release(floor)) == _release(floor), f"{where}: {package} has two floors"
    assert {package: _release(version) for package, version in _lowest().items()} == floors


def test_pydantic_tells_checks_of_the_fields_before() -> None:
    """2.0 to 2.3 do not (`ValidationInfo` has no `data`), so every MindSpore configuration crashes."""
    assert _release(_lowest()["pydantic"]) >= (2, 4)


def test_the_documented_command_installs_them() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "-c tests/lowest.txt" in text and "python3.10 -m venv" in text


def test_the_table_of_support_has_the_floors() -> None:
    text = (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    pythons = re.findall(r"Python :: (3\.\d+)$", config["metadata"]["classifiers"], re.MULTILINE)
    assert f"| Python | {pythons[0]} | {pythons[-1]} |" in text
    assert config["options"]["python_requires"] == f">={pythons[0]}"
    floors = {(where, package): _floor(specifiers) for where, package, specifiers in _requirements()}
    pins = {package: specifiers for where, package, specifiers in _requirements() if where == "test"}
    newest = pins["torch"].removeprefix("==").rpartition(".")[0]
    assert f"| PyTorch, for the extra `torch` | {floors['torch', 'torch']} | {newest} |" in text
    assert f"| numpy | {floors['install_requires', 'numpy']} | " in text
    assert f"torch=={floors['torch', 'torch']}.0" in (ROOT / ".ci" / "wheel").read_text(encoding="utf-8")
