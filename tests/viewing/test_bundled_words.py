"""The bundle of the pages holds the Chinese of today's sentences: a row that changes needs `npm run build`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msdump

PACKAGE = Path(msdump.__file__).parent
TEXT = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
ENTRY = re.compile(rf"({TEXT}|[A-Za-z_$][\w$]*|\d+):({TEXT})")


def unquoted(text: str) -> str:
    if text[0] not in "\"'`":
        return text
    inner = re.sub(r"\\(['`])", r"\1", text[1:-1])
    return str(json.loads('"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'))


def test_the_bundle_has_the_words_of_the_table() -> None:
    table = json.loads((PACKAGE / "tables" / "chinese.json").read_text(encoding="utf-8"))
    expected = {english: chinese for english, chinese in table.items() if "{" not in english}
    bundle = (PACKAGE / "viewing" / "assets" / "app.js").read_text(encoding="utf-8")
    value = re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda code: code[0].upper(), json.dumps(next(iter(expected.values()))))
    first = bundle.rindex("{", 0, bundle.index(value))
    found: dict[str, str] = {}
    place = first + 1
    while (match := ENTRY.match(bundle, place)) is not None:
        found[unquoted(match[1])] = unquoted(match[2])
        place = match.end() + 1
    assert found == expected, "cd frontend && npm ci && npm run build"
