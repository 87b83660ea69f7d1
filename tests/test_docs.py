"""The documentation keeps its promises: links lead somewhere, snippets run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from msdump.cli.main import COMMANDS
from msdump.config.sections import CommonDumpSettings, E2eDumpSettings
from tests.readme_block import command_blocks
from tests.snippets import PAGES, ROOT, run_page, snippets

NEEDS_ONNX = {
    *("docs/acl.md", "docs/acl-scenes.md", "docs/acl-story.md", "docs/questions/my-quantised-model-is-worse.md"),
}
NEEDS_TORCH = {
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


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_modules_in_the_text_exist(page: Path) -> None:
    for file in re.findall(
        r"`(msdump/[\w/]+\.py|tests/[\w/]+\.py|proto/[\w/]+\.proto)`", page.read_text(encoding="utf-8")
    ):
        assert (ROOT / file).is_file(), f"{name(page)} names {file}"


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
