"""docs/api-coverage.md: which names of MindSpore work here, by module and by MindSpore's version.

python -m tests.mindspore_coverage          writes the page anew
python -m tests.mindspore_coverage NAME     prints what a module lacks, such as mindspore.nn or Tensor
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from msdump.mindspore.other_paths import LEFT_OUT, NOT_HERE, left_out
from msdump.mindspore.reference import names_by_module

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api-coverage.md"
# How a name is marked that one version alone has -> that version.
_VERSIONS = ("2.0", "2.7")

_HEAD = """\
# MindSpore, name by name

`python -m tests.mindspore_coverage` writes this page from the modules themselves and from the names of MindSpore 2.0.0
and 2.7.0 in `msdump/mindspore/mindspore_names.txt`. A name that works does what MindSpore's does on one
device, with the differences that [MindSpore](front-ends/mindspore.md#limits) lists; a name that does not raises
`AttributeError` with the nearest one, and where MindSpore has it. Some names are there to raise an error that says why
they cannot work without an Ascend.

"""
# What stays missing beside the modules of NOT_HERE -> what to do instead.
_STAYS_MISSING = {
    "`export` to ONNX and AIR": "Export MINDIR, or load the weights into a PyTorch model and export that.",
    "encrypted checkpoints, MINDIR and MindRecord files (`enc_key`, `dec_key`)": "Encrypt the file as a whole.",
}


def names() -> dict[str, dict[str, str]]:
    """Module or class -> name -> the version that alone has it, "" for a name of both."""
    return names_by_module()


def namespace_of(path: str) -> Any:
    """The module or class of msdump for one of MindSpore; None where there is none."""
    root = "msdump.mindspore"
    if not path.startswith("mindspore"):
        return getattr(importlib.import_module(f"{root}.nn" if path == "Cell" else root), path)
    try:
        return importlib.import_module(root + path.removeprefix("mindspore"))
    except ModuleNotFoundError:
        return None


def missing(path: str) -> dict[str, str]:
    """Names that a script does not get, with the version that alone has each."""
    namespace = namespace_of(path)
    return {name: version for name, version in names()[path].items() if not _has(namespace, name)}


def _has(namespace: Any, name: str) -> bool:
    try:
        return getattr(namespace, name, None) is not None or name in dir(namespace)
    except ImportError:
        return False


def share(path: str) -> tuple[int, int]:
    """Of the names that both versions have: how many work or are left out on purpose, and how many there are."""
    both = [name for name, version in names()[path].items() if not version]
    lacking, module = missing(path), path.removeprefix("mindspore")
    return sum(name not in lacking or left_out(module, name) != "" for name in both), len(both)


def page() -> str:
    """The text of the page."""
    table = ["| module or class | of the names of both versions | of those of 2.0 alone | of those of 2.7 alone |\n"]
    table.append("|---|---|---|---|\n")
    sections = []
    for path, versions in names().items():
        lacking = missing(path)
        cells = []
        for version in ("", *_VERSIONS):
            listed = [name for name, own in versions.items() if own == version]
            works = sum(name not in lacking for name in listed)
            cells.append(f"{works} of {len(listed)}" if listed else "none")
        table.append(f"| [`{path}`](#{path.replace('.', '').lower()}) | {' | '.join(cells)} |\n")
        sections.append(f"\n## {path}\n")
        for title, is_missing in (("Works", False), ("Missing", True)):
            listed = [name for name in versions if (name in lacking) == is_missing]
            if listed:
                sections.append(f"\n{title}: {', '.join(_shown(name, versions[name]) for name in listed)}.\n")
    return _HEAD + "".join(table) + _left_out() + "".join(sections)


def _left_out() -> str:
    """What msdump does not mean to have, and what to do instead."""
    advice = {f"`mindspore.{path}`": text for path, text in NOT_HERE.items()} | _STAYS_MISSING
    for module, listed in LEFT_OUT.items():
        shown = "nn.Cell" if module == "Cell" else module
        for text, left in listed.items():
            advice[f"`{f'mindspore.{shown}'.rstrip('.')}`: {', '.join(f'`{name}`' for name in sorted(left))}"] = text
    rows = "".join(f"| {name} | {text} |\n" for name, text in advice.items())
    return f"\n## What stays missing\n\n| of MindSpore | instead |\n|---|---|\n{rows}"


def _shown(name: str, version: str) -> str:
    return f"`{name}` ({version})" if version else f"`{name}`"


def main(arguments: list[str]) -> int:
    """Write the page, or print what the modules of the command line lack."""
    for path in arguments:
        works, total = share(path)
        print(f"{path}: {works} of {total} of both versions work or are left out on purpose. Missing:")
        print(" ".join(_shown(name, version).replace("`", "") for name, version in missing(path).items()))
    if not arguments:
        PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
