"""Mutation testing: `python -m tests.mutation [--sample N] [--seed WORD] [--module PATH ...] [--rules] [--again FILE]`.

Each mutant is one small change of one module, made by cosmic-ray; the test files that mirror the module must fail, or
the programs of docs/answers.md where they are its tests. Without --sample every mutant is tested, which takes a night.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path, PurePosixPath

from tests.mutation.laboratory import BaselineError, laboratory
from tests.mutation.mutants import Spot, modules, mutant, sample, survivors
from tests.mutation.survivors import reason_for


def main() -> int:
    """0 when every mutant was killed or is explained in survivors.py; 1 when not; 2 when the tests fail without one."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the copy of the repository goes with this process
    names = modules()
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation", description="Change the code; the tests must fail."
    )
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants, at least one of each module; else all")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(2**32)), help="chooses another sample")
    parser.add_argument("--module", nargs="*", metavar="PATH", default=names, choices=names, help="these modules only")
    parser.add_argument("--rules", action="store_true", help="only constants, rows of tables, and conditions")
    parser.add_argument("--again", type=Path, metavar="FILE", help="the survivors in the output of an earlier run only")
    args = parser.parse_args()
    if args.again is None:
        chosen = sample(args.module, args.sample, args.seed, only_rules=args.rules)
    else:
        chosen = survivors(args.again.read_text(), only_rules=args.rules)
    print(f"{len(chosen)} mutants of {len({spot.module for spot in chosen})} modules, seed {args.seed}", flush=True)
    try:
        return _report(_test(chosen))
    except BaselineError as error:
        print(error, file=sys.stderr)
        return 2


def _test(chosen: list[Spot]) -> dict[str, Counter[str]]:
    """Results for each package; each mutant is printed."""
    results: dict[str, Counter[str]] = defaultdict(Counter)
    with laboratory() as place:
        for changed in filter(None, map(mutant, chosen)):
            started = time.monotonic()
            result = place.test(changed)
            if result == "survived" and reason_for(changed.spot.module, changed.before, changed.after) is not None:
                result = "explained"
            results[str(PurePosixPath(changed.spot.module).parent)][result] += 1
            print(f"{result:9} {time.monotonic() - started:4.0f} s  {changed}", flush=True)
    return results


def _report(results: dict[str, Counter[str]]) -> int:
    names = ("killed", "timeout", "explained", "survived")
    for package, counter in sorted(results.items()):
        print(f"{package}: " + ", ".join(f"{counter[name]} {name}" for name in names))
    survivors = sum(counter["survived"] for counter in results.values())
    print(f"{survivors} unexplained survivors" if survivors else "no unexplained survivor")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
