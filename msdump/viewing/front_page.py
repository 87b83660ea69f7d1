"""What the first page shows beside the map: cards of findings, lines around the first one, how the dump was made."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from msdump.analysis.find.nan import NonFinite
from msdump.analysis.overview.contents import Contents
from msdump.analysis.overview.findings import Finding
from msdump.analysis.overview.health import Health
from msdump.analysis.steps import Operator, StepKey, count_iterations
from msdump.errors import FormatError
from msdump.formats.paths.sync import METADATA_FOLDER
from msdump.formats.sidecars import read_command, read_metadata
from msdump.graph.types import SourceLine
from msdump.process.command import PYTHON, Command
from msdump.viewing.health_map import HealthMap

_LINES_AROUND = 2
_IS_TIME = 10**15  # microseconds, in 2001: msprobe's records have their places instead
Answer = dict[str, Any]
At = Callable[[StepKey, Operator], Answer]


def cards(contents: Contents, health_map: HealthMap, found: Iterable[Finding], at: At) -> list[Answer]:
    """What was found, one entry for each kind that is there: `kind`, `count`, `text` (a name, or ""), `at`."""
    report = contents.non_finite
    made: list[Answer] = []

    def add(kind: str, count: int, text: str = "", where: Answer | None = None) -> None:
        made.append({"kind": kind, "count": count, "text": text, "at": where})

    def first(results: tuple[NonFinite, ...]) -> Answer:
        return at(results[0].step, results[0].operator)

    for kind, results in (("nan", report.nan), ("inf", report.inf), ("skipped", report.skipped)):
        if results:
            count = count_iterations(result.step for result in results)
            add(kind, count, results[0].operator.label, first(results))
    by_kind = {finding.kind: finding for finding in found}
    for rank, count in _votes(health_map):
        finding = by_kind.get("rank")
        add("outvoted", count, str(rank), None if finding is None else at(finding.step, finding.operator))
    different = sum(1 for one in contents.operators if Health.DIFFERS in one.healths)
    if different and contents.comparison is not None:  # those of an outvoted rank are counted above
        finding = by_kind.get("first-wrong") or by_kind.get("first-difference")
        name = "" if finding is None else finding.operator.label
        add("differs", different, name, None if finding is None else at(finding.step, finding.operator))
    if report.grew is not None:
        grew = report.grew
        add("grew", round(grew.factor), grew.operator.label, at(grew.step, grew.operator))
    dead = health_map.dead
    if dead:
        row = health_map.rows[dead[0]]
        one = next(
            one for one in contents.operators if (one.step.graph_id, one.operator.label) == (row.graph, row.name)
        )
        add("dead", len(dead), row.name, at(one.step, one.operator))
    if contents.damaged:
        add("damaged", len(contents.damaged))
    return made


def _votes(health_map: HealthMap) -> list[tuple[int | None, int]]:
    votes: dict[int | None, int] = {}
    for rank, _, count in health_map.outvoted:
        votes[rank] = votes.get(rank, 0) + count
    return sorted(votes.items(), key=lambda entry: (-entry[1], str(entry[0])))


def lines_around(contents: Contents, line: SourceLine | None) -> list[list[Any]]:
    """Lines of the same file at most two away, that line among them, as `[path, line, code]`, in order.

    Edges: only lines that the dump holds: those that made an operator.
    """
    if line is None:
        return []
    found = {line.line: line}
    for one in contents.operators:
        for other in () if one.node is None else one.node.source:
            if other.path == line.path and abs(other.line - line.line) <= _LINES_AROUND:
                found.setdefault(other.line, other)
    return [[one.shown_path, one.line, one.code.rstrip()] for _, one in sorted(found.items())]


def provenance(contents: Contents) -> Answer:
    """How the dump was made, as far as its files tell: null or empty where they do not.

    `command`, `folder`, `configuration` (text), `device`, `version` (of MindSpore, or what stood in for it), `hosts`,
    `begin` and `end` (microseconds since 1970, of the first and the last tensor).
    """
    dump = contents.dump
    answer: Answer = {"command": None, "folder": None, "configuration": None, "device": None, "version": None}
    for rank_dir in dump.rank_dirs():
        folder = rank_dir / METADATA_FOLDER
        try:
            metadata = read_metadata(folder)
        except (FormatError, OSError):
            continue
        answer["configuration"] = _configuration(metadata.config_text)
        answer["device"], answer["version"] = metadata.device_target, metadata.ms_version
        command = read_command(folder)
        if command is not None and command.target:
            answer["command"], answer["folder"] = command_text(command), command.folder
        break
    times = [time for row in contents.statistics.rows if (time := row.tensor.timestamp_us or 0) > _IS_TIME]
    hosts = {sharding.host for sharding in dump.layouts.values() if sharding.host is not None}
    return {**answer, "hosts": sorted(hosts), "begin": min(times, default=None), "end": max(times, default=None)}


def command_text(command: Command) -> str:
    """As it was typed."""
    start = ["python"] if command.entry == PYTHON else ["msdump", *command.entry.split(), *command.options]
    return shlex.join([*start, *command.target])


def _configuration(text: bytes) -> str:
    try:
        return json.dumps(json.loads(text), indent=1, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text.decode(errors="replace")
