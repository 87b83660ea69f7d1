"""One variable says from where README and the documentation install; all lines agree with it."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

import msdump
from tests import install_lines
from tests.package import PACKAGE

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("clone", "wheel", "git", "index")
REPOSITORY = "https://example.org/msdump"


def test_all_lines_agree_with_the_variable() -> None:
    assert install_lines.wrong_lines() == [], install_lines.ADVICE


def test_the_lines_are_found() -> None:
    lines = [line for line in install_lines.wrong_lines(source="index") if "pip install" in line]
    pages = {line.partition(":")[0] for line in lines}
    assert {"README.md", "README.zh.md", "docs/getting-started.md", "docs/zh/getting-started.md"} <= pages
    assert len(lines) > 15 and not [line for line in lines if "pip install -e" in line]


@pytest.mark.parametrize("source", SOURCES)
def test_pages_can_be_written_for_each_source_and_back(source: str, tmp_path: Path) -> None:
    for page in install_lines.pages():
        copy = tmp_path / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = page.read_text(encoding="utf-8")
        other = install_lines.rewritten(text, source, "1.2.3", REPOSITORY)
        copy.write_text(other, encoding="utf-8")
        assert install_lines.rewritten(other, "clone", "1.2.3") == text
    (tmp_path / "msdump").mkdir()
    shutil.copy(PACKAGE / "_version.py", tmp_path / "msdump")
    wrong = install_lines.wrong_lines(tmp_path, "clone")
    assert bool(wrong) == (source != "clone")


@pytest.mark.parametrize("source", SOURCES)
def test_pip_understands_each_form(source: str) -> None:
    requirements = pytest.importorskip("packaging.requirements")
    for extras in ("", "[view,mcp]"):
        before = f"pip install '.{extras}'" if extras else "pip install ."
        line = install_lines.rewritten(f"`{before}`, and", source, "1.2.3", REPOSITORY)
        command = re.findall("`(.+)`, and", line)[0]
        words = shlex.split(command)
        assert words[:2] == ["pip", "install"] and len(words) == 3 and words[2].count("[") == bool(extras)
        if source in ("git", "index"):
            asked = requirements.Requirement(words[2])
            assert asked.name == "msdump" and asked.extras == set(extras.strip("[]").split(",")) - {""}
            assert (asked.url or "") == (f"git+{REPOSITORY}@v1.2.3" if source == "git" else "")


def test_git_needs_an_address() -> None:
    with pytest.raises(ValueError, match="REPOSITORY: expected the address"):
        install_lines.rewritten("", "git", "1.2.3")


def test_other_lines_are_left_alone() -> None:
    text = "pip install -e '.[test]'; pip install --no-build-isolation ./native; pip install msdump-native ./x"
    assert install_lines.rewritten(text, "index", "1.2.3") == text


def test_the_version_stands_in_one_place() -> None:
    assert install_lines.version() == msdump.__version__
