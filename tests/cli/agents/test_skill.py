"""The skill file says nothing that the commands do not take."""

from __future__ import annotations

import re
import shlex

import pytest

from msdump.cli.docs import read_sections
from msdump.cli.main import COMMANDS, main, make_parser

LINE = re.compile(r"(?:^|`)(msdump [^`\n#]+)", re.MULTILINE)
WORD = re.compile(r"[A-Z]{4,}")


@pytest.fixture
def skill(capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["skill"]) == 0
    return capsys.readouterr().out


def test_its_front_matter(skill: str) -> None:
    begin, front, body = re.split(r"^---\n", skill, maxsplit=2, flags=re.MULTILINE)
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert begin == "" and set(fields) == {"name", "description"} and fields["name"] == "msdump"
    assert len(fields["description"]) < 1024 and body.strip().startswith("# msdump")
    assert len(skill) < 6000


def test_every_command_line_is_taken(skill: str) -> None:
    lines = [line.strip() for line in LINE.findall(skill)]
    assert len(lines) > 15
    for line in lines:
        words = shlex.split(line.replace("...", "x"))[1:]
        assert words[0] in COMMANDS, line
        if words[0] == "mcp" or "--help" in words or len(words) == 1:
            continue
        if words[:2] == ["ls", "--dumps"]:
            words.append("DUMP")
        args = make_parser({words[0]}).parse_args(words)
        assert args.command == words[0]


def test_the_page_about_agents_has_the_same_workflows(skill: str) -> None:
    page = "\n".join(section.text for section in read_sections() if section.page == "agents.md")
    for tool in ("first_nan", "list_dumps"):
        assert tool in skill and tool in page
