"""Findings on the lines of the user's script: workflow commands of GitHub Actions, and SARIF 2.1.0.

Source: GitHub, workflow commands (`::error file=...,line=...::text`) and their escapes; OASIS, SARIF 2.1.0.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from msdump._version import __version__
from msdump.analysis.exporting import Written, write_text
from msdump.analysis.overview.contents import Contents
from msdump.analysis.overview.findings import KINDS, Finding, findings
from msdump.graph.types import SourceLine
from msdump.tables.printable import LINE_ENDS, printable

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"  # how code scanning calls the folder of the checkout
_IN_TEXT = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_IN_PROPERTY = {**_IN_TEXT, ":": "%3A", ",": "%2C"}
_MAX_TEXT = 4000


def export(contents: Contents, to: str, path: str) -> Written:
    """Write the findings.   Raises: as `Contents`; WriteError."""
    found = findings(contents)
    notes = [f"{finding.title}: the dump has no source line of it." for finding in found if finding.line is None]
    text = github_commands(found) if to == "github" else sarif(found)
    return write_text(path, text, notes)


def github_commands(found: Sequence[Finding]) -> str:
    """One command for each finding, ready to be printed by a step of a job.

    Edges: a path below the current folder becomes relative to it, as in the checkout; nothing in a name ends a
           command or begins another.
    """
    return "".join(f"::error {_properties(finding)}::{_text(finding.text, _IN_TEXT)}\n" for finding in found)


def _properties(finding: Finding) -> str:
    line = finding.line
    properties = {} if line is None else {"file": _local(line.path), "line": str(line.line)}
    return ",".join(
        f"{name}={_text(text, _IN_PROPERTY)}" for name, text in {**properties, "title": finding.title}.items()
    )


def _text(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(letter, letter) for letter in printable(text[:_MAX_TEXT], "\n"))


def sarif(found: Sequence[Finding]) -> str:
    """One run of a SARIF log."""
    rules = [
        {"id": kind, "shortDescription": {"text": title}, "fullDescription": {"text": meaning}}
        for kind, (title, meaning) in KINDS.items()
    ]
    driver = {"name": "msdump", "version": __version__, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding) for finding in found],
    }
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(finding: Finding) -> dict[str, Any]:
    name = printable(finding.operator.label)
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name, "kind": "function"}]}
    if finding.line is not None:
        location["physicalLocation"] = _location(finding.line)
    return {
        "ruleId": finding.kind,
        "ruleIndex": list(KINDS).index(finding.kind),
        "level": "error",
        "message": {"text": _plain(f"{finding.title}\n{finding.text}")},
        "locations": [location],
        # The same finding of two runs is one for code scanning: iterations and numbers may move.
        "partialFingerprints": {"msdump/v1": f"{finding.kind}/{name}"},
    }


def _location(line: SourceLine) -> dict[str, Any]:
    local = _local(line.path)
    artifact: dict[str, str]
    if os.path.isabs(local):
        artifact = {"uri": f"file://{_uri(local)}"}
    else:
        artifact = {"uri": _uri(local), "uriBaseId": _ROOT}
    return {
        "artifactLocation": artifact,
        "region": {"startLine": max(1, line.line), "snippet": {"text": printable(line.code)}},
    }


def _uri(path: str) -> str:
    # A file name may hold any byte; a name out of a dump may hold halves of characters, which no file has.
    text = PurePath(path).as_posix()
    try:
        return quote(os.fsencode(text))
    except UnicodeEncodeError:
        return quote(text.encode("utf-8", "surrogatepass"))


def _plain(text: str) -> str:
    """Text of a message in which nothing is a link (`[text](place)`) or stands for an argument (`{0}`)."""
    return printable(text[:_MAX_TEXT], LINE_ENDS).replace("](", "] (").replace("{", "{{").replace("}", "}}")


def _local(path: str) -> str:
    """A path relative to the current folder if it is below it; else unchanged."""
    if not os.path.isabs(path):
        return path
    local = os.path.relpath(path)
    return path if local.startswith(os.pardir) else local
