"""`msdump compare MINE GOLDEN`: which operator of a run goes wrong, seen against another run."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from msdump.cli.exit_status import status_of
from msdump.cli.options import (
    FINDINGS,
    add_all_option,
    add_brief_option,
    add_json_option,
    add_sharding_options,
    add_step_options,
    print_lines,
    selected_shardings,
    selected_steps,
    write_json,
    write_text,
)
from msdump.cli.printing import ROWS, complain, print_table, progress_bar, say, say_answer, say_next
from msdump.errors import ConfigError
from msdump.tables.messages import message, messages

_EPILOG = """
The first lines name the first operator in execution order whose inputs agree and whose output does not.
MINE and GOLDEN are any folders of dumps: of MindSpore, CANN, TorchAir or msdump, npy or bin;
or logs of PyTorch's DebugMode with hashes of tensors (*.txt, *.log).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Compare two dumps tensor by tensor and name the first operator that goes wrong."
    parser.epilog = _EPILOG
    add = parser.add_argument
    add("mine", metavar="MINE", help="the dump under test")
    add("golden", metavar="GOLDEN", help="the dump it should agree with")
    add("--reference", metavar="DUMP", help="a third run in high precision: then GOLDEN, a run of the precision of "
        "MINE, shows how large errors of that precision are")  # fmt: skip
    add("--tolerance-from", metavar="DUMP", help="GOLDEN once more, its input changed a little: an error that is at "
        "most twice as large as its error agrees")  # fmt: skip
    add("--merge", action="store_true", help="join the ranks of each job by layout.json, so that shardings may differ")
    add_sharding_options(parser)
    add("--mapping", metavar="FILE", help="json or csv that says which operators belong together; or a graph "
        "dump of TorchAir (dynamo_*_graph_*.txt), or a folder of them, where dump files do not say it")  # fmt: skip
    add("--write-mapping", metavar="FILE", help="write which operators were paired, as a json mapping file")
    add("--tolerance", type=float, metavar="X", help="relative error that still agrees (depends on the dtype)")
    add_step_options(parser)
    add_all_option(parser, "list all operators, those that agree too")
    add("--csv", metavar="FILE", help="write one row per tensor, in the columns of msaccucmp")
    add_json_option(parser)
    add("--fast", action="store_true", help="leave out KullbackLeiblerDivergence, which needs a second pass")
    add("--threads", type=int, metavar="N", help="threads (one for each core)")
    add_brief_option(parser)
    add("-q", "--quiet", action="store_true", help="print nothing, set the exit status only")


def run(args: argparse.Namespace) -> int:
    """Compare; the result is the exit status that `--help` explains."""
    if args.threads is not None and args.threads < 1:
        raise ConfigError(f"--threads: expected a number from 1 on, got {args.threads}.")
    if args.tolerance is not None and not args.tolerance >= 0:
        raise ConfigError(f"--tolerance: expected a number from 0 on, got {args.tolerance}.")
    if args.tolerance_from is not None and args.reference is not None:
        raise ConfigError("--tolerance-from: expected it without --reference, got both. Each of them is a third run.")
    if not args.merge and (args.mesh or args.dims or args.strategy):
        raise ConfigError("--mesh, --dims, --strategy: expected --merge with them. They define how ranks are joined.")
    with ExitStack() as stack:
        paths = [args.mine, args.golden, args.reference or args.tolerance_from]
        if args.merge:
            paths = _merged(paths, args, stack)
        if args.tolerance_from is not None:
            # Errors of mine and of the changed run are those against golden, which so is what both refer to.
            paths = [paths[0], paths[2], paths[1]]
        return _compare(paths, args)


def _merged(paths: list[str | None], args: argparse.Namespace, stack: ExitStack) -> list[str | None]:
    from msdump.analysis.ranks.merge import merge_ranks
    from msdump.formats.selection import StepSelection

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="msdump-merged-"))
    if args.rank is not None:
        raise ConfigError("--merge: expected it without --rank, got both. All ranks of a job make one.")
    rules = selected_shardings(args)
    merged: list[str | None] = []
    for number, path in enumerate(paths):
        if path is None:
            merged.append(None)
            continue
        target = os.path.join(folder, str(number))
        result = merge_ranks([path], target, StepSelection(**selected_steps(args)), rules=rules)
        if not args.quiet:
            text = message(
                "{path}: {count} tensors, {joined} of them joined from several ranks",
                path=path, count=result.tensors, joined=result.joined,
            )  # fmt: skip
            complain(text)
        for where, problem in result.problems:
            complain(f"not merged: {where}: {problem}")
        merged.append(target)
    return merged


def _compare(paths: list[str | None], args: argparse.Namespace) -> int:
    from msdump.analysis.compare.dumps import compare_dumps
    from msdump.analysis.compare.judge import verdict_of

    mine, golden, reference = paths
    assert mine is not None and golden is not None  # both are required
    with progress_bar("compare", sys.stderr, args.quiet) as advance:
        comparison = compare_dumps(
            mine,
            golden,
            reference,
            mapping=args.mapping,
            **selected_steps(args),
            tolerance=args.tolerance,
            has_divergence=not args.fast,
            thread_count=args.threads,
            progress=advance,
        )
    verdict = verdict_of(comparison)
    status = status_of(verdict.outcome.value)
    _report(comparison, verdict, args, status)
    return status


def _report(comparison: Any, verdict: Any, args: argparse.Namespace, status: int) -> None:
    from msdump.analysis.compare.mapping import mapping_text
    from msdump.analysis.compare.report import (
        TABLE_NUMBERS,
        TABLE_TITLES,
        csv_text,
        json_value,
        summary,
        table_rows,
    )
    from msdump.analysis.compare.sentences import headline
    from msdump.analysis.steps import operator_id

    if args.write_mapping is not None:
        pairs = ((operator.pair.mine, operator.pair.golden) for operator in comparison.operators)
        write_text(args.write_mapping, mapping_text(pairs))
    if args.csv is not None:
        write_text(args.csv, csv_text(comparison))
    is_brief = not args.shows_all
    if write_json(args, lambda: json_value(comparison, is_brief), is_brief=is_brief) or args.quiet:
        return
    say_answer(headline(comparison, verdict), status)
    if args.brief:
        from msdump.analysis.compare.report import WRONG
        from msdump.analysis.compare.result import DIFFERS

        found = [
            (
                WRONG if each.is_wrong else DIFFERS,
                operator_id(each.step, each.pair.mine),
                _number(each.output_error),
            )
            for each in comparison.differing
        ]
        print_table(messages("verdict", "id", "error"), found, sys.stdout, numbers=(2,), most=FINDINGS)
        return
    rows = list(table_rows(comparison, args.shows_all))
    titles: tuple[str, ...] = TABLE_TITLES
    numbers: tuple[int, ...] = TABLE_NUMBERS
    if comparison.quantised is not None:
        from msdump.analysis.compare.quantised.words import RANKING_NUMBERS, RANKING_TITLES, ranking_rows

        rows = list(ranking_rows(comparison, comparison.quantised, args.shows_all))
        titles, numbers = RANKING_TITLES, RANKING_NUMBERS
    if rows:
        say()
        most = None if args.shows_all else ROWS
        print_table(titles, rows, sys.stdout, numbers=numbers, wraps=(len(titles) - 1,), most=most)
        say()
    print_lines(summary(comparison))
    say_next(_next_steps(comparison, args))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _next_steps(comparison: Any, args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    from msdump.analysis.find.hints import command_line, operator_line, path_word

    result = comparison.first_wrong or comparison.first_differing
    if comparison.hashes is not None:
        return
    if result is not None and not args.merge:
        step, operator = result.step, result.pair.mine
        yield operator_line("show", args.mine, operator, step), message("its tensors, attributes and source")
        if operator.op_type and not operator.is_parameter:
            yield (
                operator_line("replay", args.mine, operator, step),
                message("whether it computed what its inputs give"),
            )
    if not args.merge:
        words = [path_word(args.mine), path_word(args.golden)]
        yield command_line("view", *words), message("both in the browser, down to the elements")
