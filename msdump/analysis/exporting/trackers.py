"""Runs of W&B and MLflow: curves over the iterations, what was found, and the HTML report, by their own clients.

Where a run goes, and who may see it, say the variables and settings of the clients (WANDB_PROJECT, WANDB_MODE,
MLFLOW_TRACKING_URI, ...), as for a training that logs by itself.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump._version import __version__
from msdump.analysis.exporting import Written
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.overview.curves import Curves, largest_of, magnitude, size_of
from msdump.analysis.overview.findings import findings
from msdump.analysis.overview.parts import PARTS, graph_parts, part_of
from msdump.errors import ConfigError
from msdump.formats.atomic import make_dirs
from msdump.tables.frames import optional_package, utf8_text
from msdump.tables.printable import printable
from msdump.tensors.records import OUTPUT

# Pages of both tools draw a chart for each.
MOST_CURVES = 2000
_LARGEST_BATCH = 1000  # of MLflow's server
_NAME_LENGTH = 250
REPORT = "msdump_report.html"
# What both tools take in the name of a metric; `/` makes groups.
_OTHER = re.compile(r"[^\w.\- ]", re.ASCII)
WriteReport = Callable[[Contents, Path], object]
Values = dict[int, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """One number over the iterations.

    name    with the groups that it stands in, such as `forward/encoder/l2norm`
    values  by iteration; NaN and Inf are values
    rank    of the worst health of what it measures: the healthiest are left out where there are too many
    """

    name: str
    values: Values
    rank: int


def curves(contents: Contents) -> list[Curve]:
    """Loss, norm of the gradients, largest value and elements that are not finite; then the same by layer.

    A layer has `l2norm` and `largest`, the largest ones of its operators' outputs, and `not_finite`, the number of
    elements. Names begin with `rank_N` where there are several ranks.   Raises: as `Contents`.
    """
    parts = graph_parts(contents.operators)
    ranks = sorted({one.step.rank_id or 0 for one in contents.operators})
    found: list[Curve] = []
    for rank in ranks:
        own = [one for one in contents.operators if (one.step.rank_id or 0) == rank]
        prefix = f"rank_{rank}/" if len(ranks) > 1 else ""
        iterations = sorted({one.step.iteration for one in own}, key=lambda iteration: iteration or 0)
        _, whole = Curves(contents, parts, iterations).numbers(own[0].step.rank_id)
        for name, numbers in whole.items():
            known = () if numbers is None else zip(iterations, numbers, strict=True)
            values = {iteration or 0: value for iteration, value in known if value is not None}
            found.append(Curve(prefix + name, values, -1))
        layers: dict[str, list[ExportedOperator]] = {}
        for one in own:
            layer = next((row.role.layer for row in one.tensors if row.role.layer), "")
            layers.setdefault("/".join(filter(None, (part_of(one, parts), layer))), []).append(one)
        places = {part: number for number, part in enumerate(PARTS)}
        order = sorted(layers, key=lambda name: places[name.partition("/")[0]])
        found.append(Curve(f"{prefix}not_finite", _measured(own)["not_finite"], -1))
        for layer in order:
            worst = min(one.health.rank for one in layers[layer])
            found += [
                Curve(f"{prefix}{layer}/{name}", values, worst) for name, values in _measured(layers[layer]).items()
            ]
    return [curve for curve in found if curve.values]


def _measured(operators: list[ExportedOperator]) -> dict[str, Values]:
    """Numbers of the outputs of operators, by iteration; parameters count as outputs."""
    found: dict[str, Values] = {"l2norm": {}, "largest": {}, "not_finite": {}}
    for one in operators:
        iteration = one.step.iteration or 0
        for row in one.tensors:
            if row.tensor.io != OUTPUT:
                continue
            for name, value in (("l2norm", size_of(row.numbers.l2norm)), ("largest", magnitude(row))):
                best = largest_of((value, found[name].get(iteration)))
                if best is not None:
                    found[name][iteration] = best
            counts = [getattr(row.numbers, name) for name in ("nan", "negative_inf", "positive_inf")]
            if any(count is not None for count in counts):
                sum_before = found["not_finite"].get(iteration, 0.0)
                found["not_finite"][iteration] = sum_before + sum(count or 0 for count in counts)
    return found


def chosen(found: list[Curve]) -> tuple[list[Curve], list[str]]:
    """At most MOST_CURVES, the unhealthiest, in their order, with names that the tools take; notes on the others."""
    order = {id(curve): number for number, curve in enumerate(found)}
    kept = sorted(sorted(found, key=lambda curve: curve.rank)[:MOST_CURVES], key=lambda curve: order[id(curve)])
    notes = []
    if len(found) > len(kept):
        notes.append(f"Left out: {len(found) - len(kept)} of {len(found)} curves; the pages hold {MOST_CURVES} well.")
    taken: set[str] = set()
    named = []
    for curve in kept:
        name = base = metric_name(curve.name)
        number = 2
        while name in taken:
            name, number = f"{base[: _NAME_LENGTH - 8]}_{number}", number + 1
        taken.add(name)
        named.append(Curve(name, curve.values, curve.rank))
    return named, notes


def metric_name(name: str) -> str:
    """A name of untrusted parts as both tools take it: no other characters, and no path that leads elsewhere."""
    words = [_OTHER.sub("_", printable(utf8_text(word))).strip() for word in name.split("/")]
    return "/".join("_" if set(word) <= {"."} else word for word in words)[:_NAME_LENGTH].rstrip("/. ") or "_"


def export(contents: Contents, to: str, path: str, write_report: WriteReport | None = None) -> Written:
    """Send a run.

    path          folder for a run of its own on this disk; "" sends it where the client's settings say
    write_report  makes the HTML report, which becomes an artefact of the run
    Raises: as `Contents`; ConfigError when the client is not installed, or does not take the run.
    """
    if path == "-":
        raise ConfigError(f"export --to {to}: expected a folder, or no -o at all, got standard output.")
    package = optional_package(to, f"export --to {to}")
    named, notes = chosen(curves(contents))
    facts = {"msdump": __version__, "dump": _text(Path(contents.dump.path).name)}
    said = [_text(finding.title) for finding in findings(contents)]
    with tempfile.TemporaryDirectory(prefix="msdump-export-") as folder:
        report = None
        if write_report is not None:
            report = Path(folder) / REPORT
            write_report(contents, report)
        if path:
            make_dirs(Path(path), 0o755)
        with _errors_of(to):
            where = _SENDERS[to](package, path, named, facts, said, report)
    return Written((), tuple(notes), f"{printable(where)}\n")


@contextmanager
def _errors_of(to: str) -> Iterator[None]:
    """What goes wrong in a client is one line.   Raises: ConfigError."""
    try:
        yield
    except Exception as error:  # errors of the client and of all libraries below it
        first = printable(str(error).strip().partition("\n")[0])
        raise ConfigError(f"export --to {to}: expected {to} to take a run, got: {first}") from error


def _send_wandb(
    wandb: Any, path: str, named: list[Curve], facts: Mapping[str, str], said: list[str], report: Path | None
) -> str:
    """One step of the run is one iteration. Nothing of this process is recorded: no output, no code, no machine."""
    settings = wandb.Settings(
        console="off", silent=True, save_code=False, disable_git=True, x_disable_stats=True, x_save_requirements=False
    )
    run = wandb.init(dir=path or None, config=dict(facts), settings=settings, job_type="msdump")
    try:
        for iteration in sorted({iteration for curve in named for iteration in curve.values}):
            values = {curve.name: curve.values[iteration] for curve in named if iteration in curve.values}
            run.log(values, step=iteration)
        run.summary["findings"] = said
        if report is not None:
            artifact = wandb.Artifact("msdump-report", type="report")
            artifact.add_file(str(report), name=report.name)
            run.log_artifact(artifact)
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish()
    return str(Path(run.dir).parent if run.offline else run.url)


def _send_mlflow(
    mlflow: Any, path: str, named: list[Curve], facts: Mapping[str, str], said: list[str], report: Path | None
) -> str:
    """A run that MLFLOW_RUN_ID names goes on; else it is a new one of the experiment that the variables name."""
    before = mlflow.get_tracking_uri()
    if path:
        mlflow.set_tracking_uri(f"sqlite:///{Path(path).absolute()}/mlflow.db")
    try:
        experiment = None
        if path:
            known = mlflow.get_experiment_by_name("msdump")
            place = (Path(path).absolute() / "artifacts").as_uri()
            experiment = known.experiment_id if known else mlflow.create_experiment("msdump", place)
        with mlflow.start_run(experiment_id=experiment) as run:
            client, run_id, now = mlflow.MlflowClient(), run.info.run_id, int(time.time() * 1000)
            metrics = [
                mlflow.entities.Metric(curve.name, float(value), now, iteration)
                for curve in named
                for iteration, value in sorted(curve.values.items())
            ]
            for first in range(0, len(metrics), _LARGEST_BATCH):
                client.log_batch(run_id, metrics=metrics[first : first + _LARGEST_BATCH])
            mlflow.set_tags({**facts, "findings": "\n".join(said)})
            if report is not None:
                mlflow.log_artifact(str(report))
            return f"{mlflow.get_tracking_uri()} run {run_id}"
    finally:
        mlflow.set_tracking_uri(before)


_SENDERS = {"wandb": _send_wandb, "mlflow": _send_mlflow}


def _text(text: object) -> str:
    return printable(utf8_text(text))
