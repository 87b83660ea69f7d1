"""Make the reports of docs/gallery.md: `python -m tests.browser.gallery`.

Each is what `msdump report --redact` writes of a failure that is made small. They are looked at, not compared.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser.scenes import GALLERY, ROOT, Scene

TARGET = ROOT / "docs" / "gallery"


def write_report(scene: Scene, target: Path) -> str:
    """Write the report; the result is its verdict."""
    with tempfile.TemporaryDirectory(prefix=f"{scene.name}-") as name:
        dump, golden = scene.make(Path(name))
        command = [sys.executable, "-m", "msdump", "report", str(dump), *([str(golden)] if golden else [])]
        done = subprocess.run(
            [*command, "--redact", "-o", str(target / f"{scene.name}.html")],
            cwd=name,
            env=None,
            capture_output=True,
            text=True,
        )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout.strip().splitlines()[0]


def main() -> None:
    """Write all of them, over earlier ones."""
    TARGET.mkdir(exist_ok=True)
    for scene in GALLERY:
        (TARGET / f"{scene.name}.html").unlink(missing_ok=True)
        print(f"{scene.name}: {write_report(scene, TARGET)}", flush=True)
        (TARGET / f"{scene.name}.html").chmod(0o644)


if __name__ == "__main__":
    main()
