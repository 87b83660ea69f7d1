"""Long runs of the targets: `python -m tests.hostile --minutes N [--target NAME ...]`.

With atheris installed (`pip install atheris`, Python 3.11 to 3.13) inputs follow the branches that they reach, each
target in a process of its own; otherwise hypothesis damages the files of the corpus. What breaks a target is written to
the folder --findings: put it into tests/hostile/seeds/TARGET/, where the ordinary tests read it ever after.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings

from tests.hostile.bounds import bounded
from tests.hostile.damaged import damaged
from tests.hostile.targets import TARGETS, feed

_ROUND = 500  # examples between two looks at the clock


def main() -> int:
    """0 when no target broke."""
    parser = argparse.ArgumentParser(description="Feed damaged files to every reader.")
    parser.add_argument("--minutes", type=float, default=5, help="for all targets together")
    parser.add_argument("--target", nargs="*", choices=sorted(TARGETS), default=[], help="all of them without it")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="folder for inputs that break a target")
    parser.add_argument("--with-atheris", choices=("auto", "no"), default="auto")
    args = parser.parse_args()
    seconds = 60 * args.minutes / len(args.target or TARGETS)
    is_guided = args.with_atheris == "auto" and importlib.util.find_spec("atheris") is not None
    broken = []
    for target in args.target or TARGETS:
        print(f"== {target}, {seconds:.0f} s, {'atheris' if is_guided else 'hypothesis'}", flush=True)
        is_whole = (
            _in_own_process(target, seconds, args.findings) if is_guided else _fuzz(target, seconds, args.findings)
        )
        if not is_whole:
            broken.append(target)
    print(f"broken: {', '.join(broken)}; see {args.findings}" if broken else "no target broke")
    return 1 if broken else 0


def _fuzz(target: str, seconds: float, findings: Path) -> bool:
    """Damage files of the corpus until the time is up; the smallest input of a failure is kept."""
    last = b""

    @settings(
        max_examples=_ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(target))
    def survive(data: bytes) -> None:
        nonlocal last
        last = data
        with bounded():
            feed(target, data)

    end = time.monotonic() + seconds
    inputs = 0
    while time.monotonic() < end:
        try:
            survive()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            findings.mkdir(parents=True, exist_ok=True)
            path = findings / f"{target}-{hashlib.sha256(last).hexdigest()[:12]}"
            path.write_bytes(last)
            print(f"{path}: {type(error).__name__}: {error}", flush=True)
            return False
        inputs += _ROUND
    print(f"{inputs} inputs", flush=True)
    return True


def _in_own_process(target: str, seconds: float, findings: Path) -> bool:
    """atheris ends its process, and instruments only what it sees imported."""
    command = [sys.executable, "-m", "tests.hostile.guided", target, str(max(1, round(seconds))), str(findings)]
    return subprocess.run(command).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
