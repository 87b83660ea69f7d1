"""`msdump native`: builds msdump-native, compiled code that makes dumps of eager PyTorch several times cheaper."""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time

from msdump.cli.exit_status import FINE, NOTHING
from msdump.cli.printing import put, say
from msdump.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Build msdump-native, compiled code that sees the operators of eager PyTorch, against the installed PyTorch: "
        "dumps of eager PyTorch are several times cheaper with it. It goes into the cache of this user (XDG_CACHE_HOME "
        "or ~/.cache), is checked, and is found by all later runs with this PyTorch and this Python; others have their "
        "own builds beside it. It needs a C++ compiler and the headers of Python."
    )
    parser.epilog = (
        "CXX names the compiler, MAX_JOBS how many run side by side; MSDUMP_NATIVE=0 has a run go without it. The four "
        "builds that were used last are kept. An installed package msdump-native comes before a build."
    )
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--check", action="store_true", help="say whether it is there and works; build nothing")
    actions.add_argument("--remove", action="store_true", help="remove all builds from the cache")


def run(args: argparse.Namespace) -> int:
    """Build, check or remove.   Raises: ConfigError where something is missing or does not work; WriteError."""
    if importlib.util.find_spec("torch") is None:
        raise ConfigError("expected PyTorch, for which msdump-native is built, got none. Install it: pip install torch")
    if args.remove:
        return _remove()
    installed = importlib.util.find_spec("msdump_native")
    if installed is not None:
        return _say_installed(str(installed.origin))
    return _check() if args.check else _build()


def _remove() -> int:
    from msdump.frontends.torch.eager.native_building import remove_all

    count = remove_all()
    say(f"builds of msdump-native removed: {count}")
    return FINE if count else NOTHING


def _say_installed(place: str) -> int:
    from msdump.frontends.torch.eager.native import why_not_native

    why = why_not_native()
    if why:
        raise ConfigError(
            f"{place}: {why} An installed package comes before a build: pip uninstall msdump-native, then msdump native"
        )
    say(f"msdump-native is installed as a package, and works: {place}")
    return FINE


def _check() -> int:
    from msdump.frontends.torch.eager.native_building import check
    from msdump.frontends.torch.eager.native_builds import existing_build, purpose

    folder = existing_build()
    if folder is None:
        say(f"msdump-native is not built for PyTorch {purpose()['PyTorch']}: msdump native")
        return NOTHING
    why = check(folder)
    if why:
        raise ConfigError(f"{why} Build it again: msdump native")
    say(f"msdump-native for PyTorch {purpose()['PyTorch']} works: {folder}")
    return FINE


def _build() -> int:
    from msdump.frontends.torch.eager.native_building import build
    from msdump.frontends.torch.eager.native_builds import purpose

    release, began = purpose()["PyTorch"], time.perf_counter()
    folder, is_new = build(
        lambda: put(f"building msdump-native for PyTorch {release}: some 30 s on two cores", sys.stderr, flush=True),
        lambda: put("another process builds msdump-native: waiting for it", sys.stderr, flush=True),
    )
    how = f"is built, checked in a dump, and used from now on ({time.perf_counter() - began:.0f} s)"
    say(f"msdump-native for PyTorch {release} {how if is_new else 'was built before, and works'}: {folder}")
    return FINE
