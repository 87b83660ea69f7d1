"""The scoreboard: `python -m tests.answers [NAME ...] [--write] [--jobs N]`.

Each program holds one kind of failure and states the right answer. It is run with the fault and without, as its user
would type it, and msdump is asked about it: found, half or wrong.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.answers import table
from tests.answers.judging import WRONG, Verdict, first_sentence, judge
from tests.answers.program import Program, load, names
from tests.answers.running import run_program

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
    by_name = {name: load(name) for name in listed}
    programs = [by_name[name] for name in args.names or listed]
    results = []
    with ThreadPoolExecutor(args.jobs) as pool:
        for result, said in pool.map(answered, programs):
            results.append(result)
            print(table.text_line(result), flush=True)
            if args.said:
                print(*said.splitlines()[:_SHOWN], sep="\n", flush=True)
    words = {result.program.name: result.verdict.word for result in results}
    print(*(table.count_line(*row) for row in table.counts(programs, words)), sep="\n")
    page = table.PAGE.read_text(encoding="utf-8")
    worse = table.worse(page, results)
    for name in worse:
        print(f"worse than {table.PAGE.name} says: {name}", file=sys.stderr)
    if args.write:
        table.PAGE.write_text(table.made(page, list(by_name.values()), results), encoding="utf-8")
    return 1 if worse else 0


def answered(program: Program) -> tuple[table.Result, str]:
    """Run a program and judge the answer.   Returns: with all that was said of the faulty run."""
    outcome = run_program(program)
    if outcome.broken:
        return table.Result(program, "", Verdict(WRONG, outcome.broken)), ""
    verdict = judge(program, outcome.faulty, outcome.healthy)
    return table.Result(program, first_sentence(outcome.faulty.text), verdict), outcome.faulty.text


if __name__ == "__main__":
    sys.exit(main())
