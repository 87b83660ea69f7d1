"""docs/troubleshooting.md quotes messages that msdump prints, word for word."""

from __future__ import annotations

import ast
import re

from tests.package import PACKAGE
from tests.snippets import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
SOME = "…"
# What a message leaves open: a field of an f-string or a template, and of the logger.
_OPEN = re.compile(r"\{\w*\}|%[sd]")
_ROW = re.compile(r"^\| (`+)(.+?)\1 \| ", re.MULTILINE)


def quoted() -> list[str]:
    """The messages in the first column of the tables."""
    return [match[2].replace("\\|", "|") for match in _ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def templates() -> list[str]:
    """Every text in msdump's code, with `…` where something is put in, and one line for each."""
    found: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant | ast.JoinedStr):
                found += _OPEN.sub(SOME, _template(node)).splitlines()
    return [text for text in found if " " in text]


def _template(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(value) for value in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else SOME


def test_msdump_prints_every_message_of_the_page() -> None:
    messages = quoted()
    assert len(messages) > 25 and len(set(messages)) == len(messages)
    texts = templates()
    assert not [message for message in messages if not any(message in text for text in texts)]
