"""One command for everything that must hold before a change is done; CI runs it too.

python tests/check.py                  format, lint, types, imports, documentation, tests
python tests/check.py --fix            let ruff repair what it can, then the same
python tests/check.py --without-tests  all but the tests
python tests/check.py --deep [MINUTES] every property with many times its examples, 60 minutes long; nothing else
python tests/check.py --machines [NAME ...]
                                       the tests as on other machines: all variants, those named, or with the name
                                       "commit" the one that is this commit's turn, without the stand-in for
                                       MindSpore and then its tests alone, and no slow tests; nothing else
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import deep, machines  # noqa: E402  (found through the line before)

PROCESSES = "auto"  # one for each core


def commands(is_fixing: bool, has_tests: bool) -> list[tuple[str, list[str]]]:
    """(name, command) in the order they run: cheap ones first."""
    python = sys.executable
    ruff = [python, "-m", "ruff"]
    chosen = [
        ("format", [*ruff, "format", *([] if is_fixing else ["--check"])]),
        ("lint", [*ruff, "check", *(["--fix"] if is_fixing else [])]),
        ("imports", [python, "-c", "from importlinter.cli import lint_imports_command as c; c()"]),
        ("types", [python, "-m", "mypy", "--strict", "msdump"]),
        ("documentation", [python, "-m", "zensical", "build", "--strict"]),
    ]
    return (
        [*chosen, ("tests", [python, "-m", "pytest", "-n", PROCESSES, "--dist", "loadfile"])] if has_tests else chosen
    )


def main() -> int:
    """What the command line asks for; 0 when all of it passed."""
    parser = argparse.ArgumentParser(description="Format, lint, imports, types, documentation, tests.")
    parser.add_argument("--fix", action="store_true", help="let ruff repair what it can")
    parser.add_argument("--without-tests", action="store_true")
    parser.add_argument("--deep", type=float, nargs="?", const=deep.MINUTES, metavar="MINUTES", help="properties only")
    names = ["commit", *(variant.name for variant in machines.VARIANTS)]
    parser.add_argument("--machines", nargs="*", choices=names, metavar="NAME", help=f"any of {', '.join(names)}")
    args = parser.parse_args()
    if args.deep is not None:
        return deep.run_deep(args.deep, PROCESSES)
    if args.machines is not None:
        return machines.run_machines(_variants(args.machines), PROCESSES, has_slow="commit" not in args.machines)
    return run_all(args.fix, not args.without_tests)


def _variants(names: Sequence[str]) -> list[machines.Variant]:
    chosen = [variant for variant in machines.VARIANTS if not names or variant.name in names]
    return [*chosen, *(machines.variants_of_commit() if "commit" in names else ())]


def run_all(is_fixing: bool, has_tests: bool) -> int:
    """Format, lint, imports, types, documentation and tests, also after a failure; 0 when each of them passed."""
    failed = []
    for name, command in commands(is_fixing, has_tests):
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
