"""`msdump plan CONFIG`: what a configuration will dump, in words and numbers, before anything runs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msdump.cli.main import FAILED, NOTHING_DUMPED
from msdump.cli.printing import complain, print_table, put, say
from msdump.cli.report_text import format_count
from msdump.config.environment import DUMP_CONFIG, KEEP, Environment, format_size
from msdump.errors import ConfigError, FormatError

if TYPE_CHECKING:
    from msdump.cli.dry_run import Measured
    from msdump.config.explain import Estimate
    from msdump.config.plan import Plan
    from msdump.dumpers.limits import DiskSpace
    from msdump.graph.pb import GraphSummary

CONFIG_WRONG, NEVER_MATCHES = FAILED, 3
_EPILOG = """
exit status: 0 the configuration holds; 1 it does not, its path cannot be made, or a graph file cannot be read;
3 something in it can never match. Environment variables that change what a configuration means are read as a run would
read them: MS_DIAGNOSTIC_DATA_PATH, RANK_ID, DEVICE_ID, MSDUMP_STRICT; and the limits
MSDUMP_DISK_BUDGET, MSDUMP_DISK_FLOOR, MSDUMP_KEEP_ITERATIONS, MSDUMP_ASYNC_BUFFER.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Say in words what a dump configuration will dump; with graph files or a dry run also how much."
    )
    parser.epilog = _EPILOG
    parser.add_argument("config", metavar="CONFIG", nargs="?", help="dump configuration, a .json file; an acl.json too")
    parser.add_argument(
        "--graph",
        action="append",
        default=[],
        metavar="FILE.pb",
        help="a graph of an earlier run (rank_0/graphs/ms_output_trace_code_graph_0.pb); may be given several times",
    )
    parser.add_argument(
        "--device-target", choices=("CPU", "GPU", "Ascend"), default="CPU", help="device profile of the run (CPU)"
    )
    parser.add_argument("--device-id", type=int, default=None, metavar="N", help="device of the run (DEVICE_ID, or 0)")
    parser.add_argument(
        "--dry-run",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT",
        help="run the first two steps of a script (the rest of the line: its arguments) and say how many bytes and "
        "files one step leaves and how much time it adds; what was written is removed. Without CONFIG: for a script of "
        "TorchAir or ACL that configures its dump itself",
    )


def run(args: argparse.Namespace) -> int:
    """Explain the configuration; the result is the exit status that `--help` explains."""
    from msdump.config.explain import describe, estimate, known_names, never_matches
    from msdump.config.mindspore import plan_mindspore
    from msdump.config.plan import SYNC

    if args.dry_run == []:
        raise ConfigError("--dry-run: expected a script, got nothing. Give it as the last option.")
    if args.config is None and args.dry_run is None:
        raise ConfigError("expected a configuration, or --dry-run SCRIPT, got neither.")
    if args.config is None or is_acl_json(args.config):
        return _plan_of_script(args.config, args.dry_run)
    try:
        environment = Environment.from_os({**os.environ, DUMP_CONFIG: args.config})
        plan = plan_mindspore(environment, args.device_target, args.device_id)
    except ConfigError as error:
        complain(f"msdump plan: {error}")
        return CONFIG_WRONG
    if plan is None:
        complain('msdump plan: CONFIG: expected a file name, got "".')
        return CONFIG_WRONG
    graphs = _read_graphs(args.graph)
    from msdump.dumpers.limits import space_below, space_rows

    space = space_below(plan.where.path / f"rank_{plan.where.rank_id}", plan.how.engine != SYNC)
    print_table((), [*describe(plan), *space_rows(space)], sys.stdout)
    for graph in graphs:
        _print_estimate(plan, estimate(plan, graph), space, sys.stdout)
    if space.problem:
        complain(f"msdump plan: path: {space.problem}")
        return CONFIG_WRONG
    if args.dry_run is not None:
        from msdump.cli.dry_run import measure

        say()
        print_table(
            (), _measured_rows(plan.when.iterations.count, args.dry_run[0], measure(plan, args.dry_run)), sys.stdout
        )
    unmatched = never_matches(plan, known_names(graphs) if graphs else None)
    for sentence in unmatched:
        say(f"never matches: {sentence}")
    return NEVER_MATCHES if unmatched else 0


def _plan_of_script(acl_json: str | None, dry_run: Sequence[str] | None) -> int:
    """Explain an acl.json, and measure a script with it, or with what the script itself configures."""
    near = Path.cwd()
    if acl_json is not None:
        status, folder = check_acl_json(acl_json)
        near = folder or near
        if status or dry_run is None:
            return status
        say()
    if dry_run is not None:
        from msdump.cli.dry_run import measure_script

        step = measure_script(dry_run, None if acl_json is None else Path(acl_json).resolve(), near)
        print_table((), _measured_rows(1, dry_run[0], step), sys.stdout)
    return 0


def _read_graphs(paths: Sequence[str]) -> list[GraphSummary]:
    """Graph files as values.   Raises: FormatError, also for a file that cannot be opened."""
    from msdump.graph.pb import read_model

    if paths:
        import msdump.kernels  # noqa: F401  fills the registry, which knows what an operator overwrites
    graphs = []
    for path in paths:
        try:
            graphs.append(read_model(Path(path)))
        except OSError as error:
            raise FormatError(f"{path}: expected a graph file (.pb), got: {error.strerror}.") from error
    return graphs


def _print_estimate(plan: Plan, estimate: Estimate, space: DiskSpace, stream: TextIO) -> None:
    if plan.which.takes_marked:
        put(f"\n{estimate.name}: which operators are marked is known only when the script runs", stream)
        return
    header = ("op type", "operators", "dumped", "tensors", "bytes")
    cells = [
        (row.op_type, str(row.operators), str(row.selected), str(row.tensors), format_size(row.size_bytes))
        for row in estimate.rows
        if row.selected
    ]
    heading = f"\n{estimate.name}: {estimate.selected} of {format_count(estimate.operators, 'operator')} will be dumped"
    if cells:
        print_table(header, cells, stream, numbers=(1, 2, 3, 4), heading=heading)
    else:
        put(heading, stream)
    print_table((), _totals(plan, estimate, space), stream)


def _totals(plan: Plan, estimate: Estimate, space: DiskSpace) -> list[tuple[str, str]]:
    tensors = f"{format_count(estimate.tensors, 'tensor')}, {estimate.distinct_tensors} of them different"
    if not plan.saved.tensors:
        return [("per iteration", f"{tensors}: one row of statistic.csv each")]
    on_disk = estimate.distinct_bytes
    sizes = f"{format_size(estimate.size_bytes)} named, {format_size(on_disk)} on disk"
    rows = [("per iteration", f"{tensors}: {sizes}")]
    if 1 < plan.when.iterations.count <= 2**32:
        count = plan.when.iterations.count
        rows.append(("all iterations", f"{count} times that: {format_size(on_disk * count)} on disk"))
    rows += _fit(plan, on_disk, space)
    if estimate.unsized:
        rows.append(
            ("not counted", f"{format_count(estimate.unsized, 'tensor')} whose size the graph file does not say")
        )
    return rows


def _fit(plan: Plan, size_bytes: int, space: DiskSpace) -> list[tuple[str, str]]:
    """Where the disk or the environment ends the dump."""
    keep = space.limits.keep_iterations
    count = plan.when.iterations.count if keep is None else min(plan.when.iterations.count, keep)
    if not size_bytes or size_bytes * count <= space.writable_bytes:
        return []
    fits = format_count(space.writable_bytes // size_bytes, "iteration")
    space_text = format_size(space.writable_bytes)
    return [("room", f"{space_text}, {fits}: then the dump ends. Dump less, or set {KEEP}")]


def _measured_rows(count: int, script: str, step: Measured) -> list[tuple[str, str]]:
    """Rows of a step that is one of `count`."""

    def amount(times: int) -> str:
        names = f", {step.links * times} further names of them" if step.links else ""
        return f"{format_size(step.bytes_written * times)} in {format_count(step.files * times, 'file')}{names}"

    plain = max(step.step_seconds - step.dump_seconds, 1e-9)
    rows = [
        ("measured", f"iteration {step.iteration} of {script}"),
        ("per iteration", amount(1)),
        (
            "time",
            f"a step of {1e3 * plain:.1f} ms takes {1e3 * step.dump_seconds:.1f} ms more "
            f"({1 + step.dump_seconds / plain:.2f} times as long)",
        ),
    ]
    if step.waiting_seconds >= 1e-3:
        rows.append(("", f"its files were written {1e3 * step.waiting_seconds:.1f} ms after it had ended"))
    if 1 < count <= 2**32:
        rows.append(("all iterations", f"{count} times that: {amount(count)}"))
    return rows


def is_acl_json(path: str) -> bool:
    """True for a file with ACL's section and without MindSpore's; False also for one that cannot be read."""
    from msdump.config.acl_rules import DUMP
    from msdump.config.json_file import read_json_file
    from msdump.config.sections import COMMON

    try:
        content = read_json_file(path).value
    except ConfigError:
        return False
    return isinstance(content, dict) and DUMP in content and COMMON not in content


def check_acl_json(path: str) -> tuple[int, Path | None]:
    """Print what it asks for; the result is 0 and the folder of the dump, or 3 when nothing is dumped.

    Raises: AclConfigError.
    """
    from msdump.config.acl import load_acl_config, plan_acl
    from msdump.config.acl_rules import WATCHER

    config = load_acl_config(path)
    for text in config.warnings:
        complain(f"warning: {text}")
    plan = plan_acl(config)
    if plan is None:
        say("nothing is dumped")
        return NOTHING_DUMPED, None
    trigger, folder = plan.trigger, plan.where.path if plan.where.is_path_given else None
    kind = trigger.exception or (WATCHER if trigger.is_watcher else "overflow" if trigger.overflow else "operators")
    rows = [("kind", kind), ("folder", "chosen by the environment, or this one" if folder is None else str(folder))]
    if not trigger.op_debug_mode:
        models = ", ".join(dict.fromkeys(each.model_name or "every model" for each in plan.which.lists)) or "none"
        columns = plan.saved.columns
        rows += [
            ("models", models),
            ("single operators", "yes" if plan.which.takes_single_operators else "no"),
            ("dumped", " and ".join(f"{side}s" for side in plan.operands.sides)),
            ("as", f"statistics: {', '.join(columns)}" if columns else "tensors"),
        ]
    if folder is not None:
        from msdump.dumpers.limits import space_below, space_rows

        rows += space_rows(space_below(folder, is_async=True))
    print_table(("acl.json", path), rows, sys.stdout)
    return 0, folder
