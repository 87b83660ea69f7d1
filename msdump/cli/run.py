"""`msdump run SCRIPT ARGS...`: an unmodified script, with the dump that its configuration asks for."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE, INCOMPLETE, INTERRUPTED, NOTHING, TERMINATED
from msdump.cli.launch import on_sigterm
from msdump.cli.options import add_json_option, add_verbose_option, tell_skipped, write_json
from msdump.cli.printing import complain
from msdump.cli.report_text import conclude, format_count, print_report, print_warning, say_next_of, wait_for_writers
from msdump.cli.unconfigured import Default, add_default_options, choose_default, effects_of_other_variables
from msdump.cli.ways import Program, add_program, add_way_options, enter, program_of
from msdump.config.environment import DUMP_CONFIG
from msdump.errors import ConfigError, DumpError
from msdump.process.report import GRAPHS, MODELS, Inbox
from msdump.tables.frames import optional_package

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msdump.process.report import ChildReport, Report


_DESCRIPTION = f"""
Run a script as Python would, and dump what it computes. A configuration says what: --config, or {DUMP_CONFIG}.
Without one, statistics of every step go to ./msdump_dump, at most 4 GiB, and the run ends with what `msdump nan` says
of them. What the script imports (MindSpore, PyTorch, TorchAir, acl, msprobe) says how it is run.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.usage = "msdump run [OPTIONS] (SCRIPT | -m MODULE) [ARGS ...]"
    parser.description = _DESCRIPTION
    parser.add_argument("--config", metavar="FILE", help=f"dump configuration; sets {DUMP_CONFIG} for this run")
    add_default_options(parser)
    add_way_options(parser)
    parser.add_argument(
        "--tables",
        metavar="FOLDER",
        help="write a table part for each dumped iteration, as `msdump stat --tables` does, when the script has ended",
    )
    add_json_option(parser)
    # Both take the rest of the line as it is: options behind the script belong to the script.
    add_verbose_option(parser)
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    """Run the script; the result is the exit status that `--help` explains."""
    program = program_of(args)
    _choose_configuration(args)
    tell_skipped(args)
    from msdump.dumpers.limits import check_folder

    # The script may go to another folder.
    if args.json not in (None, "-"):
        args.json = os.path.abspath(args.json)
        check_folder(Path(args.json).parent, "--json")
    if args.tables is not None:
        args.tables = os.path.abspath(args.tables)
        check_folder(Path(args.tables), "--tables")
        optional_package("duckdb", "--tables")  # raised before the first step
    default = choose_default(args, program, tuple(_LAUNCHERS))
    try:
        return _run(args, program if default is None else default.program, default)
    finally:
        if default is not None:
            default.remove_empty()


def _run(args: argparse.Namespace, program: Program, default: Default | None) -> int:
    from msdump.process import sessions

    is_found_out = default is not None and not default.is_way_typed
    why_not_compiled = enter(program, _is_launcher(program.target[0]), is_found_out)
    process_id = os.getpid()
    if not os.environ.get(DUMP_CONFIG):
        sessions.on_no_dump = lambda: _warn_of_no_dump() if os.getpid() == process_id else None
    with Inbox() as inbox:
        status = program.run()
        with on_sigterm(signal.SIG_IGN):
            try:
                if os.getpid() != process_id:
                    # Forked by the script. The parent reports whether a dump was expected.
                    return conclude_run(status, why_not_compiled(), may_be_empty=True)
                return _conclude_all(args, status, inbox.read(), why_not_compiled(), default)
            except MemoryError:
                # What the script holds stays: its module, and the frames of its exception.
                complain(_NO_MEMORY)
                return status or INCOMPLETE


def _conclude_all(
    args: argparse.Namespace, status: int, children: Sequence[ChildReport], not_compiled: str, default: Default | None
) -> int:
    """Report the dumps of this process and of those that it has started; the exit status."""
    from msdump.process import sessions

    if sessions.on_no_dump is not None and not children and not sessions.is_anything_configured():
        _warn_of_no_dump()
    may_be_empty = any(not child.is_empty for child in children)
    status = _conclude_children(children, conclude_run(status, not_compiled, may_be_empty, default))
    status = status or _write_tables(args.tables)
    write_json(args, lambda: _value(status, children), indent=None)
    if default is not None and status not in (INTERRUPTED, TERMINATED):
        reports = [session.report() for session in sessions.used()]
        paths = [report.path for report in reports if report.tensors_written]
        default.answer([*paths, *(child.path for child in children if child.tensors_written)])
    return status


# Modules and commands that start the ranks of a job and tell each of them its number.
_LAUNCHERS = {
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "torchrun",
    "accelerate",
}


def _is_launcher(target: str) -> bool:
    return os.path.basename(target) in _LAUNCHERS


def _value(status: int, children: Sequence[ChildReport]) -> dict[str, Any]:
    from msdump.process import sessions

    return {
        "status": status,
        "reports": [_report_value(session.report()) for session in sessions.used()],
        "remarks": sessions.remarks(),
        "processes": [asdict(child) for child in children],
    }


def _report_value(report: Report) -> dict[str, Any]:
    return {**asdict(report), "kind": report.kind.name}


def _choose_configuration(args: argparse.Namespace) -> None:
    """Put --config into the environment, and refuse a wrong file before the script runs, which may read it late."""
    if args.config is not None:
        path = os.path.abspath(args.config)
        if not os.path.isfile(path):
            raise ConfigError(f"--config: expected a file, got {args.config!r}. There is no such file.")
        os.environ[DUMP_CONFIG] = path
    # A script may write the file that the environment names, and the real MindSpore reads its own way.
    is_read = not args.real_mindspore and not args.no_dump
    if is_read and os.path.isfile(os.environ.get(DUMP_CONFIG, "")):
        from msdump.config.environment import Environment
        from msdump.config.mindspore import check_mindspore_config
        from msdump.dumpers.limits import check_folder

        config = check_mindspore_config(Environment.from_os())
        if config is not None:
            check_folder(Path(config.common.path), "common_dump_settings.path")


def _warn_of_no_dump() -> None:
    """Say, in this process, that no dump is configured, and which variables keep the default from being dumped."""
    complain(
        f"msdump run: no dump is configured: neither --config nor {DUMP_CONFIG} is given, and the script turns "
        "none on. It leaves nothing behind but what it writes itself."
    )
    for sentence in effects_of_other_variables():
        complain(f"msdump run: {sentence}")


def conclude_run(status: int, not_compiled: str, may_be_empty: bool, default: Default | None = None) -> int:
    """Finish the dumps of this process, report them, and choose between the script's exit status and theirs.

    not_compiled   why a module that the command names was not compiled; ""
    may_be_empty   nothing need be dumped here: other processes of the script dump
    default        what took the place of a configuration, if anything did
    """
    from msdump.process import sessions

    sessions.settle_all()
    used = sessions.used()
    is_drained = True
    for session in used:
        is_drained = is_drained and all(wait_for_writers(pool, sys.stderr) for pool in session.pools)
    with contextlib.suppress(DumpError):  # the reports say it, with everything else that is known
        sessions.close_all()
    reports = [session.report() for session in used]
    is_graph_dumped = any(report.kind == GRAPHS for report in reports)
    for report in reports:
        print_report(report, sys.stderr)
    for what, folder in sessions.left():
        complain(f"msdump: {what} lies in {folder}")
    if not is_graph_dumped:
        for line in sessions.remarks():
            complain(f"outside  {line}")
    if not_compiled:
        print_warning(not_compiled, sys.stderr)
        status = status or NOTHING
    if not is_drained:
        lost = format_count(sum(report.lost for report in reports), "tensor")
        print_warning(f"Interrupted: {lost} not written. Every file on disk is whole.", sys.stderr)
        return status or INTERRUPTED
    may_be_empty = may_be_empty or status != 0
    if default is not None and default.folder is not None:
        own = [report for report in reports if default.is_in_folder(report.path)]
        code = conclude(own, may_be_empty or not default.is_chosen, sys.stderr)
        code = code or conclude([report for report in reports if report not in own], may_be_empty, sys.stderr)
        has_other = bool(sessions.left()) and not default.is_chosen
        if not reports and not may_be_empty and not has_other:
            print_warning(default.why_nothing, sys.stderr)
            code = code or (NOTHING if default.is_chosen else FINE)
        return status or code
    code = conclude(reports, may_be_empty, sys.stderr)
    say_next_of(reports, sys.stderr)
    status = status or code
    if status == 0 and os.environ.get(DUMP_CONFIG) and not is_graph_dumped and not may_be_empty:
        print_warning(_NO_GRAPH, sys.stderr)
        return NOTHING
    return status


def _write_tables(folder: str | None) -> int:
    """A table part for each iteration that this process has dumped; the exit status."""
    if folder is None:
        return FINE
    from msdump.analysis.ranks.job import write_tables
    from msdump.engine.graphs import GraphSession
    from msdump.formats.selection import StepSelection
    from msdump.process import sessions

    lost = []
    for session in sessions.used():
        report = session.report()
        if report.kind in (GRAPHS, MODELS) and report.tensors_written:
            # Other ranks of the job may dump into the same folder.
            rank = session.plan.where.rank_id if isinstance(session, GraphSession) else None
            parts = write_tables([report.path], folder, StepSelection(rank), jobs=1)
            complain(f"msdump: {format_count(sum(part.is_new for part in parts), 'table part')} in {folder}")
            lost += [f"{part.path}: {part.problem}" for part in parts if part.problem]
    if lost:
        print_warning("\n".join(["Not all tables are there.", *lost]), sys.stderr)
    return INCOMPLETE if lost else FINE


def _conclude_children(children: Sequence[ChildReport], status: int) -> int:
    """Report the dumps of processes that the script started."""
    for child in children:
        tensors = format_count(child.tensors_written, "tensor")
        complain(f"msdump: process {child.process_id} dumped {tensors} to {child.path}")
    errors = [f"Process {child.process_id}: {child.error}" for child in children if child.error]
    if errors:
        print_warning("\n".join(["The dump is not complete.", *errors]), sys.stderr)
        return status or INCOMPLETE
    return status


_NO_MEMORY = (
    "msdump run: the report is not complete: expected memory for it, got none. Every file on disk is whole: "
    "`msdump ls` and `msdump nan` read them in a process of their own. Raise `ulimit -v`."
)
_NO_GRAPH = """\
Nothing was dumped: a dump is configured, but no graph was compiled on a device that it names.
Does the script call a cell or a gradient? Does `support_device` list this device? Does `import mindspore`
give msdump's (it does unless --real-mindspore is given)? A PyTorch script must call torch.compile with the backend
msdump, which --torch-backend msdump and --torch-module NAME do for it; or run it with --torch-eager, which compiles
nothing."""
