"""Documents that `--json` writes: read strictly, and the keys that docs/json.md has for them."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.snippets import ROOT

SHARED = {"schema", "msdump", "command", "omitted"}


def strict(text: str) -> Any:
    """The value of a text without the names that JSON does not have."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def documented(command: str) -> set[str]:
    """Keys of the table of a command, and those that every document has."""
    page = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {command}$(.*?)(?=^### |\Z)", page, re.DOTALL | re.MULTILINE)[1]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)} | SHARED
