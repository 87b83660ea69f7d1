"""`msdump docs`: what a page says is found by its words, and every section has an address."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msdump.cli import docs
from msdump.cli.docs import found_sections, page_sections, parse_sections, read_sections
from msdump.cli.main import main
from msdump.errors import ConfigError, NothingFoundError

ALL = list(read_sections())
_WORD = st.text("abcdefgh", min_size=1, max_size=5)


@given(st.lists(st.tuples(st.integers(2, 4), _WORD, st.lists(_WORD, max_size=3)), max_size=6))
def test_a_page_is_its_sections(parts: list[tuple[int, str, list[str]]]) -> None:
    text = "# Page\nfirst\n" + "".join(f"{'#' * n} {title}\n{' '.join(words)}\n" for n, title, words in parts)
    sections = list(parse_sections("x.md", text))
    assert (sections[0].title, sections[0].place) == ("Page", "x.md")
    kept = [(section.level, section.title) for section in sections[1:]]
    assert [entry for entry in kept if entry in [(n, title) for n, title, _ in parts]] == kept
    assert [w for section in sections[1:] for w in section.text.split()] == [w for *_, words in parts for w in words]


def test_code_and_comments_hold_no_titles() -> None:
    page = "# A\nx\n<!-- run -->\n```sh\n# no title\n```\n## B `c`: d?\ny\n"
    assert [(s.anchor, s.text) for s in parse_sections("a.md", page)] == [
        ("", "x\n```sh\n# no title\n```"),
        ("b-c-d", "y"),
    ]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("my loss is NaN", "questions/my-loss-is-nan.md"),
        ("exit status", "exit-status.md"),
        ("quantised models worse", "questions/my-quantised-model-is-worse.md"),
        ("sampling", "configuration.md#sampling"),
        ("how do I dump a pytorch model", "torch.md"),
        ('"; DROP TABLE sections (', ""),
        ("--tensors", "without-a-file.md#what-else-it-can-do"),
        ("what does --ops do", "without-a-file.md#what-else-it-can-do"),
        ("--replicated", "ranks.md#jobs-that-declare-nothing"),
    ],
)
def test_words_find_their_section(words: str, place: str) -> None:
    found = found_sections(ALL, words)
    assert not place or place in [section.place for section in found[:2]]
    assert len(found) <= 6 and all(len(section.text) < 2000 for section in found)


def test_every_link_into_a_page_is_an_address() -> None:
    """The anchors are those of the builder of the documentation, which checks these links."""
    places = {section.place for section in ALL} | {section.page for section in ALL}
    links = [
        (link, (Path(section.page).parent / link).as_posix())
        for section in ALL
        for link in re.findall(r"\]\(([\w./-]+\.md#[\w-]+)\)", section.text)
        if ".." not in link and "zh/" not in link
    ]
    assert len(links) > 30
    assert [link for link, place in links if place not in places] == []


def test_a_section_has_those_below_it_and_a_wrong_name_a_hint() -> None:
    sections = list(parse_sections("a.md", "# A\nx\n## B\ny\n### C\nz\n## D\nw\n"))
    assert [section.title for section in page_sections(sections, "a.md#b")] == ["B", "C"]
    assert len(page_sections(sections, "a.md")) == 4
    for name, hint in (("a.md#bb", "a.md#b"), ("aa.md", "a.md")):
        with pytest.raises(NothingFoundError, match=f'Did you mean "{hint}"'):
            page_sections(sections, name)
    with pytest.raises(NothingFoundError, match="Try others"):
        found_sections(sections, "qqqq")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["docs", "--page", "ranks.md#questions"]) == 0
    assert capsys.readouterr().out.startswith("## Questions\n")
    assert main(["docs", "exit", "status", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["sections"][0]["page"] == "exit-status.md"
    assert main(["docs"]) == 2 and main(["docs", "zzzz"]) == 3


def test_without_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs.msdump, "__file__", str(tmp_path / "msdump" / "__init__.py"))
    with pytest.raises(ConfigError, match="Install msdump again"):
        docs.pages_folder()
