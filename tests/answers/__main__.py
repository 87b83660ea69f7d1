"""The scoreboard: `python -m tests.answers [NAME ...] [--write] [--jobs N]`.

Each program holds one kind of failure and states the right answer. It is run with the fault and without, as its user
would type it, and msdump is asked about it: found, half or wrong.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

from tests.answers import table
from tests.answers.judging import WRONG, Verdict, first_sentence, judge
from tests.answers.program import Program, load, names, programs
from tests.answers.running import Shell, run_program

_SHOWN = 25


def main() -> int:
    """0 when no program is answered worse than docs/answers.md says, else 1."""
    listed = names()
    parser = argparse.ArgumentParser(prog="python -m tests.answers", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*listed, []], help="programs; all without it")
    parser.add_argument("--write", action="store_true", help="put the results into docs/answers.md")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at a time (%(default)s)")
    parser.add_argument("--said", action="store_true", help=f"print the first {_SHOWN} lines of msdump as well")
    args = parser.parse_args()
    chosen = [load(name) for name in args.names or listed]
    results = _results(chosen, args.jobs, _SHOWN if args.said else 0)
    verdicts = {result.program.name: result.verdict for result in results}
    print(*(table.count_line(*row) for row in table.counts(chosen, verdicts)), sep="\n")
    page = table.PAGE.read_text(encoding="utf-8")
    worse, better = table.changes(page, results)
    for word, changed in (("worse", worse), ("better", better)):
        for name in changed:
            print(f"{word} than {table.PAGE.name} says: {name}", file=sys.stderr)
    if args.write:
        table.PAGE.write_text(table.made(page, list(programs().values()), results), encoding="utf-8")
    return 1 if worse else 0


def _results(chosen: list[Program], jobs: int, shown: int) -> list[table.Result]:
    """Of each program, in their order; each is printed, with the first lines of what was said."""
    results = []
    shells: SimpleQueue[Shell] = SimpleQueue()

    def work(program: Program) -> tuple[table.Result, str]:
        shell = shells.get()
        try:
            return answered(program, shell)
        finally:
            shells.put(shell)

    with ExitStack() as stack, ThreadPoolExecutor(jobs) as pool:
        for _ in range(jobs):
            shells.put(stack.enter_context(Shell()))
        for result, said in pool.map(work, chosen):
            results.append(result)
            print(table.text_line(result), flush=True)
            if shown:
                print(*said.splitlines()[:shown], sep="\n", flush=True)
    return results


def answered(program: Program, shell: Shell) -> tuple[table.Result, str]:
    """Run a program and judge the answer.   Returns: with all that was said of the faulty run."""
    outcome = run_program(program, shell)
    if outcome.broken:
        return table.Result(program, "", Verdict(WRONG, outcome.broken)), ""
    verdict = judge(program, outcome.faulty, outcome.healthy)
    return table.Result(program, first_sentence(outcome.faulty.text), verdict), outcome.faulty.text


if __name__ == "__main__":
    sys.exit(main())
