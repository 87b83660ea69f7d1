"""docs/acl-coverage.md: which names of pyACL work here, name by name.

python -m tests.acl_coverage    writes the page anew
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

from msdump.frontends import acl

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "acl-coverage.md"
NAMES = ROOT / "tests" / "golden" / "pyacl_names.txt"

_HEAD = """\
# pyACL, name by name

`python -m tests.acl_coverage` writes this page from the modules themselves and from the names of pyACL in
`tests/golden/pyacl_names.txt`. A name that works does what pyACL's does, with the differences that
[ACL](acl.md#where-it-differs-from-a-device) lists; a name that does not raises `AttributeError` with what to do.
The modules `blas`, `prof`, `himpi` and `fv` are not there at all.
"""
_WHY_NOT = {
    "acl.media": "an image unit: its bits cannot be had on a host",
    "acl.mdl": "queues, bundles or files of a device",
    "acl.op": "kernels of a device",
}
_SENTENCE = re.compile(r"(.+?)(?:\\. |\\.$|$)", re.DOTALL)


def names() -> dict[str, list[str]]:
    """Names of pyACL by module, in the order of the file."""
    found: dict[str, list[str]] = {}
    for line in NAMES.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = here = []
        elif line and not line.startswith("#"):
            here += line.split()
    return found


def module_of(path: str) -> Any:
    """The module of msdump for one of pyACL."""
    return acl if path == "acl" else getattr(acl, path.partition(".")[2])


def find(path: str, name: str) -> Any:
    """What a script gets; None where it gets an AttributeError."""
    return vars(module_of(path)).get(name)


def page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    for path, listed in names().items():
        there = [name for name in listed if find(path, name) is not None]
        parts.append(f"\n## {path}\n\n{len(there)} of {len(listed)} names work.\n\n| name | works | |\n|---|---|---|\n")
        for name in listed:
            call = find(path, name)
            if call is None:
                parts.append(f"| `{name}` | no | {_WHY_NOT.get(path, 'not there')} |\n")
            else:
                parts.append(f"| `{name}` | yes | {_summary(call)} |\n")
    return "".join(parts)


def _summary(call: Any) -> str:
    """First sentence of a docstring, on one line, fit for a table."""
    first = (inspect.getdoc(call) or "").partition("\n\n")[0].partition("   ")[0]
    match = _SENTENCE.match(" ".join(first.split()))
    return (match[1] if match else "").replace("|", "\\|").rstrip(".:")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
