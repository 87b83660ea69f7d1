"""Makes a release of the last commit: `python -m tests.release FOLDER [--tag]`.

It refuses a tree with changes, a version without a dated section in CHANGELOG.md, notes that are still under
"Unreleased", and lines of the documentation that tell another way to install. Then it writes into FOLDER, which is new:

msdump-VERSION.tar.gz, msdump-VERSION-py3-none-any.whl   the wheel is built from the source distribution
msdump-VERSION.cdx.json                                  what `pip install` of the wheel brings along (CycloneDX)
SHA256SUMS                                               for `sha256sum --check`

With --tag it also makes the annotated tag vVERSION on this commit. It uploads and pushes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests import install_lines, wheel

ROOT = Path(__file__).resolve().parent.parent
_SECTION = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


class ReleaseError(Exception):
    """The commit is not one to release; the text says what to do."""


def notes(root: Path, wanted: str) -> str:
    """Text of a version's section of the changelog, the first one with notes.   Raises: ReleaseError."""
    parts = _SECTION.split((root / "CHANGELOG.md").read_text(encoding="utf-8"))[1:]
    sections = [(parts[i], parts[i + 1], parts[i + 2].strip()) for i in range(0, len(parts), 3)]
    if sections and sections[0][0] == "Unreleased":
        if sections[0][2]:
            raise ReleaseError(
                f'CHANGELOG.md: expected nothing under "Unreleased", got notes. Move them to [{wanted}].'
            )
        del sections[0]
    if not sections or sections[0][0] != wanted or not sections[0][1] or not sections[0][2]:
        got = " - ".join(filter(None, sections[0][:2])) if sections else "none"
        raise ReleaseError(f"CHANGELOG.md: expected a section [{wanted}] with a date and notes first, got {got}.")
    return sections[0][2]


def check(root: Path) -> str:
    """The version of a commit that can be released.   Raises: ReleaseError."""
    changes = _git(root, "status", "--porcelain")
    if changes:
        raise ReleaseError(f"{root}: expected no changes since the last commit, got:\n{changes}")
    wanted = install_lines.version(root)
    notes(root, wanted)
    wrong = install_lines.wrong_lines(root)
    if wrong:
        raise ReleaseError("expected one way to install, got:\n" + "\n".join(wrong) + f"\n{install_lines.ADVICE}")
    tag = f"v{wanted}"
    if _git(root, "tag", "--list", tag) and _git(root, "rev-list", "-n1", tag) != _git(root, "rev-parse", "HEAD"):
        raise ReleaseError(f"{tag}: expected no such tag, or this commit, got another one. Raise the version.")
    return wanted


def write_sbom(built: Path, target: Path) -> None:
    """What the wheel brings along, from a fresh environment that holds nothing else.   Raises: ReleaseError."""
    with tempfile.TemporaryDirectory() as name:
        _run([sys.executable, "-m", "venv", "--without-pip", name], ROOT)
        own = f"{name}/bin/python"
        _run([sys.executable, "-m", "pip", "--python", own, "install", "--quiet", str(built)], ROOT)
        _run(
            [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "-o", str(target), own], ROOT
        )
    found = json.loads(target.read_text(encoding="utf-8"))
    # The tool takes an environment for a heap of equals; this one is what one package needs.
    (subject,) = (part for part in found["components"] if part["name"] == "msdump")
    found["components"].remove(subject)
    found.setdefault("metadata", {})["component"] = {**subject, "type": "application"}
    # Where the wheel lay while this was written concerns nobody.
    found["metadata"]["component"].pop("externalReferences", None)
    target.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def release(folder: Path, has_tag: bool) -> str:
    """Build all files of a release; its version.   Raises: ReleaseError; wheel.WheelError."""
    wanted = check(ROOT)
    if folder.exists() and any(folder.iterdir()):
        raise ReleaseError(f"{folder}: expected a new or an empty folder, got files.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        source, built = wheel.build(Path(name))
        if not source.name.startswith(f"msdump-{wanted}.") or not built.name.startswith(f"msdump-{wanted}-"):
            raise ReleaseError(f"expected files of version {wanted}, got {source.name} and {built.name}.")
        write_sbom(built, Path(name) / f"msdump-{wanted}.cdx.json")
        for path in (source, built, Path(name) / f"msdump-{wanted}.cdx.json"):
            shutil.copy(path, folder)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / "SHA256SUMS").write_text("".join(sums), encoding="ascii")
    if has_tag:
        _git(ROOT, "tag", "--annotate", f"v{wanted}", "--message", f"msdump {wanted}\n\n{notes(ROOT, wanted)}")
    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """What the command line asks for; 1 where the commit is not one to release."""
    parser = argparse.ArgumentParser(description="Make the files of a release from the last commit.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where they go: new, or empty")
    parser.add_argument("--tag", action="store_true", help="also make the annotated tag vVERSION on this commit")
    args = parser.parse_args(arguments)
    try:
        made = release(args.folder.resolve(), args.tag)
    except (ReleaseError, wheel.WheelError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in sorted(args.folder.iterdir()):
        print(path)
    print(f"tag v{made}: {'made' if args.tag else 'not made (--tag)'}")
    return 0


def _git(root: Path, *words: str) -> str:
    return _run(["git", *words], root).strip()


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=wheel.fresh_environment(), capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)}: ended with {done.returncode}.\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
