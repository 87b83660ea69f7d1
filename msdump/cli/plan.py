"""`msdump plan CONFIG`: explain what a configuration will dump, without running anything."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msdump.cli.exit_status import FINE, NOTHING, REFUSED
from msdump.cli.launch import read_script
from msdump.cli.options import add_json_option, write_json
from msdump.cli.printing import complain, print_table, put
from msdump.cli.report_text import format_count
from msdump.cli.ways import Program, parse_program
from msdump.config.environment import DUMP_CONFIG, KEEP, Environment, format_size
from msdump.errors import ConfigError, FormatError

if TYPE_CHECKING:
    from msdump.cli.dry_run import MeasuredStep
    from msdump.config.explain import Estimate
    from msdump.config.plan import Plan
    from msdump.dumpers.limits import DiskSpace
    from msdump.graph.pb import GraphSummary


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The report on one configuration.

    status   of the command, if it were the only one
    rows     labels and texts
    problem  why it does not hold
    plan     None of an acl.json
    folder   of the dump that an acl.json asks for, where it tells it
    is_off   whether it dumps nothing
    """

    config: str
    status: int
    rows: Sequence[tuple[str, str]] = ()
    estimates: Sequence[Estimate] = ()
    never_matches: Sequence[str] = ()
    problem: str = ""
    plan: Plan | None = None
    folder: Path | None = None
    is_off: bool = False


_EPILOG = """
Of several configurations the exit status is the smallest that is not 0.
Environment variables that change what a configuration means are read as a run would read them:
MS_DIAGNOSTIC_DATA_PATH, RANK_ID, DEVICE_ID, MSDUMP_STRICT; and the limits
MSDUMP_DISK_BUDGET, MSDUMP_DISK_FLOOR, MSDUMP_KEEP_ITERATIONS, MSDUMP_ASYNC_BUFFER.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = (
        "Say in words what a dump configuration will dump; with graph files or a dry run also how much."
    )
    parser.epilog = _EPILOG
    parser.add_argument(
        "config",
        metavar="CONFIG",
        nargs="*",
        help="dump configuration, a .json file; an acl.json too; several are reported one by one",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say only what is wrong, or can never match")
    add_json_option(parser)
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
        help="run the first two steps of a script (the rest of the line, as `msdump run` takes it: options such as "
        "--torch-eager, the script, its arguments) and say how many bytes and files one step leaves and how much time "
        "it adds; what was written is removed. Without CONFIG: for a script that configures its dump itself",
    )


def run(args: argparse.Namespace) -> int:
    """Explain the configurations; the result is the exit status that `--help` explains."""
    program = None if args.dry_run is None else parse_program("msdump plan --dry-run", args.dry_run)
    if not args.config and program is None:
        raise ConfigError("expected a configuration, or --dry-run SCRIPT, got neither.")
    if program is not None:
        _check_program(program, args.config)
    out = None if args.quiet or args.json == "-" else sys.stdout
    graphs = cache(lambda: _read_graphs(args.graph))
    answers: list[PlanReport] = []
    for number, path in enumerate(args.config):
        if number:
            put("", out)
        answers.append(_explain(path, args, graphs, out))
    measured = None
    if program is not None and not any(answer.status == REFUSED or answer.is_off for answer in answers):
        measured = _measure(answers[0] if answers else None, program, out)
    write_json(args, lambda: _value(answers, measured))
    return min((answer.status for answer in answers if answer.status), default=0)


def _check_program(program: Program, configs: Sequence[str]) -> None:
    """Raises: ConfigError for a script that is not there, or that will not read the configuration."""
    if len(configs) > 1:
        raise ConfigError(f"--dry-run: expected one configuration, got {len(configs)}.")
    if not program.is_module:
        read_script(program.target[0])
    if configs and program.look_alike is not None:
        raise ConfigError(
            f"--as {program.look_alike}: expected no CONFIG with it, got {configs[0]}. The script names its own."
        )


def _explain(
    path: str, args: argparse.Namespace, graphs: Callable[[], list[GraphSummary]], out: TextIO | None
) -> PlanReport:
    """One configuration; what is wrong with it goes to standard error.   Raises: FormatError of a graph file."""
    from msdump.config.acl_file import AclConfigError

    try:
        answer = explain_acl_json(path, out) if is_acl_json(path) else _explain_mindspore(path, args, graphs, out)
    except AclConfigError as error:
        answer = PlanReport(path, REFUSED, problem=str(error))
    if answer.problem:
        where = f"{path}: " if len(args.config) > 1 else ""
        complain(f"msdump plan: {where}{answer.problem}")
    for sentence in answer.never_matches:
        if args.quiet:
            complain(f"msdump plan: {path}: never matches: {sentence}")
        else:
            put(f"never matches: {sentence}", out)
    return answer


def _explain_mindspore(
    path: str, args: argparse.Namespace, graphs: Callable[[], list[GraphSummary]], out: TextIO | None
) -> PlanReport:
    """Raises: ConfigError of limits that the environment sets; FormatError of a graph file."""
    from msdump.config.explain import describe, estimate, known_names, never_matches
    from msdump.config.mindspore import plan_mindspore
    from msdump.config.plan import SYNC
    from msdump.dumpers.limits import space_below, space_rows

    try:
        environment = Environment.from_os({**os.environ, DUMP_CONFIG: path})
        plan = plan_mindspore(environment, args.device_target, args.device_id)
    except ConfigError as error:
        return PlanReport(path, REFUSED, problem=str(error))
    if plan is None:
        return PlanReport(path, REFUSED, problem='CONFIG: expected a file name, got "".')
    summaries = graphs()
    space = space_below(
        plan.where.path / f"rank_{plan.where.rank_id}", plan.how.engine != SYNC, budget_bytes=plan.where.budget_bytes
    )
    rows = [*describe(plan), *space_rows(space)]
    print_table((), rows, out)
    estimates = [estimate(plan, graph) for graph in summaries]
    for one in estimates:
        _print_estimate(plan, one, space, out)
    if space.problem:
        return PlanReport(path, REFUSED, rows, estimates, problem=f"path: {space.problem}")
    unmatched = never_matches(plan, known_names(summaries) if summaries else None)
    return PlanReport(path, NOTHING if unmatched else FINE, rows, estimates, unmatched, plan=plan)


def _measure(answer: PlanReport | None, program: Program, out: TextIO | None) -> MeasuredStep:
    """Run a script with what a configuration asks for, or with what the script itself configures."""
    from msdump.cli.dry_run import measure, measure_script

    count = 1
    if answer is not None and answer.plan is not None:
        step, count = measure(answer.plan, program), answer.plan.when.iterations.count
    elif answer is not None:
        step = measure_script(program, Path(answer.config).resolve(), answer.folder or Path.cwd())
    else:
        step = measure_script(program, None, Path.cwd())
    if answer is not None:
        put("", out)
    print_table((), _measured_rows(count, program.target[0], step), out)
    return step


def _value(answers: Sequence[PlanReport], measured: MeasuredStep | None) -> dict[str, Any]:
    return {
        "configurations": [
            {
                "config": answer.config,
                "status": answer.status,
                "problem": answer.problem or None,
                "rows": answer.rows,
                "graphs": [_estimate_value(estimate) for estimate in answer.estimates],
                "never_matches": answer.never_matches,
            }
            for answer in answers
        ],
        "measured": None if measured is None else asdict(measured),
    }


def _estimate_value(estimate: Estimate) -> dict[str, Any]:
    names = ("operators", "selected", "tensors", "size_bytes", "distinct_tensors", "distinct_bytes", "unsized")
    return {
        "name": estimate.name,
        **{name: getattr(estimate, name) for name in names},
        "op_types": [asdict(row) for row in estimate.rows],
    }


def _read_graphs(paths: Sequence[str]) -> list[GraphSummary]:
    """Graph files as values.   Raises: FormatError, also for a file that cannot be opened."""
    from msdump.graph.pb import read_model

    graphs = []
    for path in paths:
        try:
            graphs.append(read_model(Path(path)))
        except OSError as error:
            raise FormatError(f"{path}: expected a graph file (.pb), got: {error.strerror}.") from error
    return graphs


def _print_estimate(plan: Plan, estimate: Estimate, space: DiskSpace, stream: TextIO | None) -> None:
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


def _measured_rows(count: int, script: str, step: MeasuredStep) -> list[tuple[str, str]]:
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


def explain_acl_json(path: str, out: TextIO | None) -> PlanReport:
    """Print what it asks for; the status is 3 when nothing is dumped.   Raises: AclConfigError."""
    from msdump.config.acl import load_acl_config, plan_acl
    from msdump.config.acl_rules import WATCHER

    config = load_acl_config(path)
    for text in config.warnings:
        complain(f"warning: {text}")
    plan = plan_acl(config)
    if plan is None:
        put("nothing is dumped", out)
        return PlanReport(path, NOTHING, is_off=True)
    trigger, folder = plan.trigger, plan.where.path if plan.where.is_path_given else None
    kind = trigger.exception or (WATCHER if trigger.is_watcher else "overflow" if trigger.overflow else "operators")
    rows = [("kind", kind), ("folder", "chosen by the environment, or this one" if folder is None else str(folder))]
    if not trigger.op_debug_mode:
        models = (
            ", ".join(dict.fromkeys(operator_list.model_name or "every model" for operator_list in plan.which.lists))
            or "none"
        )
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
    print_table(("acl.json", path), rows, out)
    return PlanReport(path, FINE, rows, folder=folder)
