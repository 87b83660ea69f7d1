"""The code in the documentation, taken out of its pages so that it can be run.

A comment line above a fenced block says what it is: `<!-- file: train.py -->` is written to that file,
`<!-- run -->` is run. The blocks of one page share one folder and run in their order, as a reader types them: those for
the shell go on in the folder and with the variables that the one before left.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_SNIPPET = re.compile(
    r"^<!-- (?:file: (?P<file>\S+)|(?P<run>run)) -->\n```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_MARK = re.compile(r"^<!-- (?:file:|run\b)", re.MULTILINE)


class Snippet(NamedTuple):
    """One marked block. `file` is None for a block that is run."""

    file: str | None
    language: str
    text: str


def snippets(page: Path) -> list[Snippet]:
    """The marked blocks of a page, in order.   Raises: ValueError for a mark without a block."""
    text = page.read_text(encoding="utf-8")
    found = [Snippet(match["file"], match["language"], match["text"]) for match in _SNIPPET.finditer(text)]
    if len(found) != len(_MARK.findall(text)):
        raise ValueError(f"{page.name}: expected a fenced block right below each mark.")
    return found


def run_page(page: Path, folder: Path) -> str:
    """Run the snippets of a page in a folder; all that they printed.   Raises: AssertionError when one fails."""
    environment = _environment(folder)
    state = folder / ".tools" / "state"
    state.write_text(f"cd {shlex.quote(str(folder))}\n")
    printed = []
    for snippet in snippets(page):
        if snippet.file is not None:
            (folder / snippet.file).write_text(snippet.text, encoding="utf-8")
            continue
        text = snippet.text if snippet.language == "bash" else f"python -c {shlex.quote(snippet.text)}\n"
        script = f'. "{state}"\n{text}\n{{ export -p; printf "cd %q\\n" "$PWD"; }} > "{state}"'
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"{page.name}:\n{snippet.text}\n{done.stdout}\n{done.stderr}"
        printed.append(done.stdout + done.stderr)
    return "\n".join(printed)


def _environment(folder: Path) -> dict[str, str]:
    """`msdump` and `python` are those of this test run, and $CLONE is the folder that the reader cloned."""
    tools = folder / ".tools"
    tools.mkdir()
    for name, command in {"msdump": f'"{sys.executable}" -m msdump', "python": f'"{sys.executable}"'}.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "CLONE": str(ROOT)}
