"""The documentation keeps its promises: links lead somewhere, snippets run."""

from __future__ import annotations

import argparse
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

import msdump
from msdump.cli.main import COMMANDS, make_parser
from msdump.config.sections import CommonDumpSettings, E2eDumpSettings
from tests.package import PACKAGE
from tests.readme_block import command_blocks
from tests.snippets import PAGES, ROOT, run_page, snippets

NEEDS_ONNX = {
    *("docs/acl.md", "docs/acl-scenes.md", "docs/acl-story.md", "docs/questions/my-quantised-model-is-worse.md"),
}
NEEDS_TORCH = {
    "docs/which-tool.md",
    *("docs/msprobe.md", "docs/reload.md", "docs/torch-eager.md", "docs/torchair-debug-save.md"),
    *("docs/torchair-graph-dump.md", "docs/torchair-graph-mode.md"),
    *("docs/without-a-file.md", "docs/questions/one-rank-of-my-job-is-wrong.md"),
}
_CODE = re.compile(r"^(`{3,})(\w*).*?\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    return re.sub(r"`[^`\n]*`", "", _CODE.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(prose(page)):
        if link.startswith("https://"):
            continue
        target, _, anchor = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        assert file.is_file(), f"{name(page)} links to {link}"
        assert not anchor or anchor in anchors(file), f"{name(page)} links to {link}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CHANGELOG.md"], ids=name)
def test_no_page_has_marks_of_a_merge(page: Path) -> None:
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=name)
def test_snippets_run(page: Path, tmp_path: Path) -> None:
    if name(page) in NEEDS_ONNX:
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
    if name(page) in NEEDS_TORCH:
        pytest.importorskip("torch")
    assert run_page(page, tmp_path)


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)], ids=name)
def test_names_of_files_are_seen(page: Path) -> None:
    """The comment that names a file is not shown: the line above says the name."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^<!-- file: (\S+) -->$", text, re.MULTILINE):
        above = text[: match.start()].rstrip().rpartition("\n")[2]
        assert above == f"File `{match[1]}`:", f"{name(page)}: {match[1]}"


def test_pages_that_must_hold_runnable_snippets_do() -> None:
    pages = {name(page) for page in PAGES if snippets(page)}
    assert pages >= {"docs/getting-started.md", "docs/walkthrough/index.md", "docs/testing.md"}
    assert pages >= {f"docs/questions/{path.name}" for path in ROOT.glob("docs/questions/*.md")}


def test_readme_has_two_command_blocks_for_install_and_for_tests() -> None:
    first, second = command_blocks()
    assert first.rstrip().splitlines()[-1] == "msdump demo"
    assert second.rstrip().splitlines()[-1].startswith("python -m pytest")
    assert "pip install -e" in second


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_the_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    spans = [
        line for _, language, body in _CODE.findall(text) if language in ("bash", "sh") for line in body.splitlines()
    ]
    spans += re.findall(r"(?<!`)`([^`\n]+)`(?!`)", _CODE.sub("", text))
    for span in spans:
        if span.startswith("msdump "):
            word = shlex.split(span, comments=True)[1]
            assert word in COMMANDS or word.startswith("-"), f"{name(page)}: {span}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name)
def test_files_in_the_text_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    folders = "msdump|tests|proto|benchmarks|sample_code|docs|native|frontend|fuzz|\\.ci"
    for file in re.findall(rf"`(?:python )?((?:{folders})/[\w./-]+)(?: [^`]*)?`", text):
        # A file of the user's cache, and a place for any name.
        is_elsewhere = file.endswith(".sqlite") or "/NAME" in file
        place = PACKAGE / file.removeprefix("msdump/") if file.startswith("msdump/") else ROOT / file
        assert is_elsewhere or place.exists(), f"{name(page)} names {file}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name)
def test_variables_in_the_text_exist(page: Path) -> None:
    known = (PACKAGE / "config" / "environment.py").read_text(encoding="utf-8")
    for variable in set(re.findall(r"\bMSDUMP_[A-Z][A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8"))):
        assert f'"{variable}"' in known, f"{name(page)} names {variable}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name)
def test_names_of_the_package_in_the_text_exist(page: Path) -> None:
    """`msdump.x` is a public name or a module, unless it is the address or file of something else."""
    for found in re.findall(r"`(?:with |import |from )?msdump\.(\w+)", page.read_text(encoding="utf-8")):
        there = hasattr(msdump, found) or (PACKAGE / found).is_dir() or (PACKAGE / f"{found}.py").is_file()
        assert there, f"{name(page)}: msdump.{found}"


def test_every_guarantee_names_tests_that_exist() -> None:
    text = (ROOT / "docs/guarantees.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", text)
    assert len(named) > 40 and len(named) == text.count("::test_")
    for file, test in named:
        assert re.search(rf"^ *def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), (
            f"{file}::{test}"
        )


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/**/*.md"):
        assert page.relative_to(ROOT / "docs").as_posix() in navigation


@pytest.mark.parametrize("words", ["gradient norm", "hook", "notebook", "histogram", "pandas", "CI"])
def test_a_search_for_what_people_do_with_a_dump_finds_a_heading(words: str) -> None:
    headings = re.findall(r"^#+ (.*)$", (ROOT / "docs" / "how-to.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert any(words.lower() in heading.lower() for heading in headings)


def test_every_key_of_the_configuration_is_explained() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for section in (CommonDumpSettings, E2eDumpSettings):
        for key in section.model_fields:
            assert f"| `{key}`" in page or f", `{key}`" in page, key


def test_the_readme_names_every_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    # Each of these is an option of another command, which help names beside it.
    other_names = {name for name, summary in COMMANDS.items() if ": see " in summary and name != "skill"}
    assert not [name for name in COMMANDS if name not in other_names and f"msdump {name}" not in text]


@cache
def _options(command: str) -> set[str]:
    parser = make_parser({command})
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    parsers, found = [commands.choices[command]], set()
    while parsers:
        for action in parsers.pop()._actions:
            found |= set(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_options_in_the_text_exist(page: Path) -> None:
    """Behind a script, options are those of the script, behind --run and --dry-run of a run; msaccucmp's are CANN's."""
    text = page.read_text(encoding="utf-8")
    lines = [line for _, language, body in _CODE.findall(text) if language in ("bash", "sh")
             for line in body.replace("\\\n", " ").splitlines()]  # fmt: skip
    for span in [*lines, *re.findall(r"(?<!`)`([^`\n]+)`(?!`)", _CODE.sub("", text))]:
        for call in re.findall(r"(?:^|[;&|(] *)(msdump [^;&|)]*)", span):
            _, command, *words = re.split(r"\s+", re.sub(r"\s#.*", "", call).strip())
            if command not in COMMANDS or command == "msaccucmp":
                continue
            for word in words:
                if re.search(r"\.py\"?$|^\"\$|^-m$|^--(dry-)?run$", word):
                    break
                option = re.match(r"(--[a-z][\w-]*)", word)
                assert not option or option[1] in _options(command), f"{name(page)}: {span}"


def test_the_number_of_tests_is_the_same_everywhere() -> None:
    texts = [(ROOT / file).read_text(encoding="utf-8") for file in ("README.md", "README.zh.md", "CONTRIBUTING.md")]
    numbers = [re.findall(r"(\d+(?:,\d{3})*) (?:tests|个测试)", text) for text in texts]
    assert numbers[0] and len({number.replace(",", "") for found in numbers for number in found}) == 1, numbers
