"""`msdump replay DIR OP`: one operator again on its dumped inputs, in numpy, torch and float64; or as a script."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msdump.cli import repro
from msdump.cli.exit_status import FINE, FOUND
from msdump.cli.options import (
    GRAPHS_HELP,
    add_json_option,
    add_model_option,
    add_operator_argument,
    add_output_option,
    add_step_options,
    selected_steps,
    write_json,
)
from msdump.cli.printing import complain, print_table, say, say_answer, say_next
from msdump.cli.repro import TORCH_HELP
from msdump.errors import ConfigError
from msdump.tables.messages import message

if TYPE_CHECKING:
    from msdump.analysis.ranks.vote import Vote
    from msdump.analysis.replay.replay import Replay, ReplayRun

_TITLES = ("run", "output", "relative error", "largest error", "cosine")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Run one operator again on its dumped inputs and say how far the dumped output is from that. With --output: "
        "write a stand-alone script that does, with the inputs beside it."
    )
    parser.add_argument("dump", metavar="DIR", help=GRAPHS_HELP)
    add_operator_argument(parser)
    add_model_option(parser)
    add_step_options(parser)
    add = parser.add_argument
    add(
        "--everywhere", action="store_true", help="run it on every worker and compare the bits: who is outvoted is sick"
    )
    add(
        "--engine", default="processes", metavar="NAME", help="with --everywhere: processes, threads, dask=ADDRESS, ray"
    )
    add("--jobs", type=int, metavar="N", help="for that: workers (one for each core)")
    add_output_option(parser, "new folder for a script; nothing is run", "DIR")
    add("--torch", action="store_true", help=TORCH_HELP)
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    """Replay; the result is the exit status that `--help` explains."""
    if args.output is not None:
        return repro.run(args)
    if args.torch:
        raise ConfigError("--torch: expected --output DIR with it. It chooses the library of a script.")
    if args.everywhere:
        return _vote(args)
    from msdump.analysis.overview.answers import replay_value
    from msdump.analysis.replay.replay import replay_operator

    result = replay_operator(args.dump, args.operator, model=args.model, **selected_steps(args))
    status = FINE if result.is_explained else FOUND
    if not write_json(args, lambda: replay_value(result)):
        _print(result, status)
        say_next(_next_steps(result, args))
    return status


def _next_steps(result: Replay, args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import operator_line

    operator, step = result.found.operator, result.found.key
    yield operator_line("show", args.dump, operator, step), message("its tensors, and what made its inputs")
    yield f"{operator_line('replay', args.dump, operator, step)} -o repro", message("a script of the operator alone")


def _vote(args: argparse.Namespace) -> int:
    from msdump.analysis.ranks.vote import replay_everywhere

    options = {**selected_steps(args), "model": args.model and os.path.abspath(args.model)}
    vote = replay_everywhere(args.dump, args.operator, engine=args.engine, jobs=args.jobs, **options)
    problems = [ballot for ballot in vote.ballots if ballot.problem]
    if len(problems) == len(vote.ballots):
        raise ConfigError(problems[0].problem)
    if not write_json(args, lambda: _vote_value(vote)):
        rows = [
            (
                "equal" if vote.winners.get(run, digest) == digest else "OUTVOTED",
                ballot.host,
                str(ballot.process),
                run,
                digest[:16],
            )
            for ballot in vote.ballots
            for run, digest in ballot.hashes.items()
        ]
        print_table(("verdict", "host", "process", "run", "hash of the outputs"), rows, sys.stdout)
        if vote.is_tied:
            say("\nworkers disagree, without a majority")
        elif vote.outvoted:
            hosts = ", ".join(dict.fromkeys(ballot.host for ballot, _ in vote.outvoted))
            say(f"\noutvoted: {hosts}")
        else:
            say(f"\nall {len(vote.ballots) - len(problems)} workers computed the same bits")
    for ballot in problems:
        complain(f"{ballot.host}: {ballot.problem}")
    return FOUND if vote.outvoted or vote.is_tied else FINE


def _vote_value(vote: Vote) -> dict[str, Any]:
    out = {(id(ballot), run) for ballot, run in vote.outvoted}
    return {
        "workers": [
            {
                "host": ballot.host,
                "process": ballot.process,
                "hashes": dict(ballot.hashes),
                "outvoted": [run for run in ballot.hashes if (id(ballot), run) in out],
                "problem": ballot.problem or None,
            }
            for ballot in vote.ballots
        ]
    }


def _print(result: Replay, status: int) -> None:
    operator = result.found.operator
    if result.is_explained:
        note = f" ({result.reason})" if result.reason else ""
        answer = f"explained: {operator.label} computed what its inputs give{note}; look at its inputs."
    else:
        answer = f"WRONG: {operator.label} did not compute what its inputs give: {result.reason}."
    say_answer([answer], status)
    for note in result.notes:
        say(f"  {note}")
    say("the dumped output against a run in")
    rows = [row for name, replayed in result.runs.items() for row in _rows(name, replayed)]
    print_table(_TITLES, rows, sys.stdout, numbers=(2, 3, 4), wraps=(1,), named=range(len(_TITLES)))


def _rows(name: str, replayed: ReplayRun) -> list[tuple[str, ...]]:
    if replayed.problem:
        return [(name, replayed.problem, "-", "-", "-")]
    return [
        (name, str(slot), f"{pair.relative_error:.3g}", f"{pair.worst_error:.3g}", f"{pair.cosine:.6f}")
        for slot, pair in replayed.errors.items()
    ]
