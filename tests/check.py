"""One command for everything that must hold before a change is done; CI runs it too.

python tests/check.py                  format, lint, types, imports, documentation, tests
python tests/check.py --fix            let ruff repair what it can, then the same
python tests/check.py --without-tests  all but the tests
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def commands(site: str, is_fixing: bool, has_tests: bool) -> list[tuple[str, list[str]]]:
    """(name, command) in the order they run: cheap ones first."""
    python = sys.executable
    ruff = [python, "-m", "ruff"]
    chosen = [
        ("format", [*ruff, "format", *([] if is_fixing else ["--check"])]),
        ("lint", [*ruff, "check", *(["--fix"] if is_fixing else [])]),
        ("imports", [python, "-c", "from importlinter.cli import lint_imports_command as c; c()"]),
        ("types", [python, "-m", "mypy", "--strict", "msdump"]),
        ("documentation", [python, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", site]),
    ]
    return [*chosen, ("tests", [python, "-m", "pytest", "-n", "4", "--dist", "loadfile"])] if has_tests else chosen


def main() -> int:
    """Run all, also after a failure; 0 when each of them passed."""
    parser = argparse.ArgumentParser(description="Format, lint, imports, types, documentation, tests.")
    parser.add_argument("--fix", action="store_true", help="let ruff repair what it can")
    parser.add_argument("--without-tests", action="store_true")
    args = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as site:
        for name, command in commands(site, args.fix, not args.without_tests):
            print(f"== {name}", flush=True)
            started = time.monotonic()
            if subprocess.run(command, cwd=ROOT).returncode:
                failed.append(name)
            print(f"== {name}: {'failed' if name in failed else 'ok'}, {time.monotonic() - started:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
