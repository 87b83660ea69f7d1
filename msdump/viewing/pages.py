"""What a viewer shows of a dump, as JSON: one answer for each path of docs/viewer-data.md.

from msdump.viewing.pages import Pages
pages = Pages(Contents("dump", measurements=Measurements(has_exponents=True)))
pages.get("overview")["verdict"]["text"]
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import Any

from msdump._version import __version__
from msdump.analysis.compare.judge import verdict_of
from msdump.analysis.compare.result import NOT_COMPARED, Comparison, StepResult
from msdump.analysis.compare.sentences import headline
from msdump.analysis.compare.verdict import Outcome
from msdump.analysis.find.hints import is_compiled_only
from msdump.analysis.find.nan import HOW, NonFinite
from msdump.analysis.missing import OUTSIDE
from msdump.analysis.overview.contents import Contents, ExportedOperator
from msdump.analysis.overview.findings import Finding, findings
from msdump.analysis.overview.flow import flow_of
from msdump.analysis.overview.health import Health, HealthOfDump
from msdump.analysis.stat.rows import TensorStatistics
from msdump.analysis.steps import Operator, StepKey
from msdump.errors import ConfigError, did_you_mean, value_without_secrets, without_secrets
from msdump.formats.msprobe_json import MSPROBE_FILE
from msdump.formats.paths.sync import STATISTIC_FILE
from msdump.graph.types import SourceLine
from msdump.tables.messages import SEMICOLON, counted, joined, message, translations
from msdump.viewing.answer_parts import NUMBERS as _NUMBERS
from msdump.viewing.answer_parts import Answer, tolerance_of
from msdump.viewing.answer_parts import attributes as _attributes
from msdump.viewing.answer_parts import line as _line
from msdump.viewing.answer_parts import number as _number
from msdump.viewing.answer_parts import table as _table
from msdump.viewing.front_page import cards, lines_around, provenance
from msdump.viewing.golden import GoldenSide
from msdump.viewing.health_map import HealthMap

SCHEMA = 1
_HEALTHS = tuple(Health)


class Pages:
    """The answers for one dump, each made when it is first asked for. One thread."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._answers: dict[str, Answer] = {}

    def paths(self) -> list[str]:
        """All that may be asked for, the most important first.   Raises: as `Contents`."""
        return list(self._makers)

    def tensors(self, path: str) -> list[TensorStatistics]:
        """The rows of `tensors` in the answer for a step.   Raises: as `get`."""
        steps = {f"step/{step_path(key)}": operators for key, operators in self._steps.items()}
        return [row for operator in steps[path] for row in operator.tensors]

    def get(self, path: str) -> Answer:
        """The answer for a path.

        Raises: ConfigError for a path that is not there; else as `Contents`.
        """
        if path not in self._answers:
            make = self._makers.get(path)
            if make is None:
                advice = did_you_mean(path, self._makers)
                raise ConfigError(f"path: expected a page of this dump, got {path!r}. {advice}".rstrip())
            self._answers[path] = make()
        return self._answers[path]

    @cached_property
    def _makers(self) -> Mapping[str, Callable[[], Answer]]:
        makers: dict[str, Callable[[], Answer]] = {"overview": self._overview, "map": self._map_frame, "nan": self._nan}
        ranks = {str(_parts([rank])): rank for rank in self._map.ranks}
        makers.update({f"map/{part}": partial(self._map.health, rank) for part, rank in ranks.items()})
        comparison = self._contents.comparison
        if comparison is not None:
            for step in comparison.steps:
                makers[f"compare/{step_path(step.mine)}"] = partial(self._compare, comparison, step)
        for key in self._steps:
            makers[f"step/{step_path(key)}"] = partial(self._step, key)
        for name in self._map.statistics:
            makers.update(
                {f"map/{part}/{name}": partial(self._map.statistic, rank, name) for part, rank in ranks.items()}
            )
        makers.update(self._series("trend", lambda key: (key.rank_id, key.graph_id), lambda key: key.iteration))
        makers.update(self._series("ranks", lambda key: (key.graph_id, key.iteration), lambda key: key.rank_id))
        if comparison is not None:
            golden = GoldenSide(self._contents)
            for step in comparison.steps:
                if step.mine in self._steps:
                    makers[f"golden/{step_path(step.mine)}"] = partial(golden.answer, step, self._steps[step.mine])
        return makers

    def _series(
        self,
        name: str,
        group_of: Callable[[StepKey], tuple[int | None, ...]],
        column_of: Callable[[StepKey], int | None],
    ) -> Mapping[str, Callable[[], Answer]]:
        """A page for each group of more than one step, which differ in the column alone."""
        groups: dict[tuple[int | None, ...], dict[int, StepKey]] = {}
        for key in self._steps:
            column = column_of(key)
            if column is not None:
                groups.setdefault(group_of(key), {})[column] = key
        pages: dict[str, Callable[[], Answer]] = {}
        for group, keys in groups.items():
            if len(keys) > 1:
                columns = sorted(keys)
                steps = [(keys[column], self._steps[keys[column]]) for column in columns]
                pages[f"{name}/{_parts(group)}"] = partial(series, steps, columns, self._contents.health)
        return pages

    @cached_property
    def _steps(self) -> dict[StepKey, list[ExportedOperator]]:
        groups: dict[StepKey, list[ExportedOperator]] = {}
        for operator in self._contents.operators:
            groups.setdefault(operator.step, []).append(operator)
        return groups

    @cached_property
    def _map(self) -> HealthMap:
        return HealthMap(self._contents)

    @cached_property
    def _found(self) -> list[Finding]:
        return findings(self._contents)

    # -- pages ---------------------------------------------------------------------------------------------------

    def _map_frame(self) -> Answer:
        found = self._found
        return {
            **self._map.frame((found[0].step, found[0].operator.label) if found else None),
            "cards": cards(self._contents, self._map, found, self._at),
            "provenance": provenance(self._contents),
        }

    def _overview(self) -> Answer:
        answer = self._front_page()
        # The table of steps has no sentences, and may be long.
        return {**answer, "words": translations([part for name, part in answer.items() if name != "steps"])}

    def _front_page(self) -> Answer:
        contents = self._contents
        found = self._found
        steps = [self._step_row(key, operators) for key, operators in self._steps.items()]
        names = ("rank", "graph", "iteration", "operators", "tensors", "size_bytes", "health", "counts", "part")
        return {
            "schema": SCHEMA,
            "msdump": __version__,
            "dump": _title(contents.dump.path),
            "golden": None if contents.golden is None else _title(contents.golden.path),
            "path": str(contents.dump.path),
            "golden_path": None if contents.golden is None else str(contents.golden.path),
            "verdict": self._verdict(found),
            "findings": [self._finding(finding) for finding in found],
            "healths": [health.value for health in _HEALTHS],
            "steps": _table(names, steps),
            "disk_bytes": contents.disk_bytes,
            "damaged": [[file, str(error)] for file, error in contents.damaged],
            "foreign": [[path, message("no file of a dump")] for path in contents.dump.foreign],
            "notes": self._notes(),
            "outvoted": self._outvoted(),
            "pages": [path for path in self._makers if path.startswith(("trend/", "ranks/", "golden/"))],
            "left_out": [],
        }

    def _notes(self) -> list[str]:
        """How iterations and steps of optimizers go together, where an iteration is not a step, and ranks with that."""
        ranks: dict[str, list[int]] = {}
        for rank, steps in sorted(self._contents.dump.training_steps.items()):
            if steps.text and any(key.rank_id in (rank, None) for key in self._steps):
                ranks.setdefault(steps.text, []).append(rank)
        report = self._contents.non_finite
        between, notes = report.between, [f"{line}." for line in report.lost_lines]
        if between is not None:
            text = message(
                "{gradients}, which was not dumped, were not finite. {advice}.",
                gradients=between, advice=between.advice,
            )  # fmt: skip
            notes.append(text)
        if len(ranks) == 1:
            return [*notes, *(f"{text}." for text in ranks)]
        return [*notes, *(f"{text} (rank {', '.join(map(str, own))})." for text, own in ranks.items())]

    def _outvoted(self) -> list[list[int | None]]:
        """Each rank that others outvote, and in how many tensors, most first; none where ranks are not asked."""
        job = self._contents.job
        if job is None:
            return []
        tensors: Counter[int | None] = Counter(rank for rank, *_ in job.outvoted)
        by_messages = {rank: count for rank, count in job.suspects.items() if rank not in tensors}
        tensors.update(by_messages)
        return [[rank, count] for rank, count in tensors.most_common()]

    def _step_row(self, key: StepKey, operators: list[ExportedOperator]) -> tuple[Any, ...]:
        rows = [row for operator in operators for row in operator.tensors]
        counts = Counter(health for operator in operators for health in operator.healths)
        size = sum(row.tensor.size_bytes or 0 for row in rows)
        worst = min(counts, key=lambda count: count.rank).value
        part = self._map.parts[key.rank_id, key.graph_id]
        return (*key, len(operators), len(rows), size, worst, [counts[health] for health in _HEALTHS], part)

    @cached_property
    def _judged(self) -> tuple[int, tuple[str, ...]]:
        """How many tensors have numbers that tell NaN and Inf, and the sentences about these and the others."""
        operators = self._contents.operators
        tensors = sum(len(operator.tensors) for operator in operators)
        unmeasured = sum(operator.healths.count(Health.NOT_MEASURED) for operator in operators)
        judged = tensors - unmeasured
        parts = []
        if judged:
            told = message(
                "No NaN and no Inf that was not meant in {tensors} of {operators}",
                tensors=counted(judged, "{count} tensor", "{count} tensors"),
                operators=counted(len(operators), "{count} operator", "{count} operators"),
            )
            parts.append(told)
        if unmeasured:
            parts.append(
                counted(
                    unmeasured,
                    "{count} tensor has no numbers to judge by",
                    "{count} tensors have no numbers to judge by",
                )
            )
        if is_compiled_only(self._contents.dump.path):
            parts.append(OUTSIDE)
        return judged, tuple(parts) or (message("no tensors to judge"),)

    @property
    def _is_compared(self) -> bool:
        """Whether a tensor was compared with one of the golden dump."""
        comparison = self._contents.comparison
        return comparison is not None and any(
            tensor.status != NOT_COMPARED for operator in comparison.operators for tensor in operator.tensors
        )

    def _verdict(self, found: list[Finding]) -> Answer:
        if found:
            first = found[0]
            return {"kind": first.kind, "text": first.title, "at": self._at(first.step, first.operator)}
        judged, sentences = self._judged
        parts = [*sentences]
        if self._contents.comparison is not None:
            compared = message("all that were compared agree with the golden dump")
            parts.append(compared if self._is_compared else message("nothing was compared with the golden dump"))
        elif self._contents.golden is not None:
            parts.append(message("the golden dump is not compared yet"))
        damaged = len(self._contents.damaged)
        if damaged:
            parts.append(counted(damaged, "{count} file is damaged", "{count} files are damaged"))
        lost = self._contents.non_finite.lost
        if lost:
            parts.append(message("the dump is not complete"))
        is_known = judged > 0 and (self._contents.golden is None or self._is_compared) and not damaged and not lost
        kind = "ok" if is_known else "unknown"
        return {"kind": kind, "text": message("{text}.", text=joined(SEMICOLON, parts)), "at": None}

    def _finding(self, finding: Finding) -> Answer:
        at = self._at(finding.step, finding.operator)
        return {
            "kind": finding.kind,
            "title": finding.title,
            "text": finding.text,
            "why": list(finding.why),
            "line": _line(finding.line),
            "lines": lines_around(self._contents, finding.line),
            "at": at,
        }

    def _nan(self) -> Answer:
        found = [self._origin(step) for step in self._contents.non_finite.steps]
        text = message("{text}.", text=joined(SEMICOLON, self._judged[1]))
        return {"found": found, "text": text, "words": translations([text, *(one["how"] for one in found)])}

    def _origin(self, origin: NonFinite) -> Answer:
        def at_all(operators: Iterable[Operator]) -> list[Any]:
            return [self._at(origin.step, operator) for operator in operators]

        return {
            "step": list(origin.step),
            "kind": origin.kind,
            "how": HOW[origin.how],
            "origin": self._at(origin.step, origin.operator),
            "line": _line(origin.line),
            "parameter": origin.parameter,
            "sources": at_all(origin.sources),
            "infected": at_all(origin.infected),
            "also_made": at_all(origin.also_made),
            "stopped": at_all(origin.stopped),
            "parameters": list(origin.parameters),
        }

    def _compare(self, comparison: Comparison, step: StepResult) -> Answer:
        names = (
            "operator",
            "io",
            "slot",
            "status",
            "reason",
            "error",
            "cosine",
            "max_abs_error",
            "golden",
            "tolerance",
        )
        rows = []
        for result in step.operators:
            number = self._at(step.mine, result.pair.mine)["operator"]
            for tensor in result.tensors:
                metrics = tensor.metrics
                rows.append(
                    (number, tensor.io, str(tensor.slot), tensor.status, tensor.reason, _number(tensor.error),
                     _number(getattr(metrics, "cosine", None)), _number(getattr(metrics, "max_absolute_error", None)),
                     result.pair.golden.label, tolerance_of(comparison, tensor))
                )  # fmt: skip
        verdict = verdict_of(comparison)
        lines = headline(comparison, verdict)
        found = next((one for one in self._found if one.kind in ("first-wrong", "first-difference")), None)
        finding: Answer | None = None
        if found is not None:
            at = self._at(found.step, found.operator)
            finding = {"title": found.title, "why": list(found.why), "at": at}
        tensors = _table(names, rows)
        return {
            "headline": lines,
            "finding": finding,
            "outcome": (verdict.outcome if self._is_compared else Outcome.INCOMPLETE).value,
            "words": translations([lines, finding or {}, tensors["reason"]]),
            "tensors": tensors,
            "only_mine": [operator.label for operator in step.only_mine],
            "only_golden": [operator.label for operator in step.only_golden],
        }

    def _step(self, key: StepKey) -> Answer:
        operators = self._steps[key]
        lines: dict[SourceLine, int] = {}
        flow = flow_of(operators)
        traces: dict[tuple[int, ...], int] = {}
        operator_rows: list[tuple[Any, ...]] = []
        tensor_rows: list[tuple[Any, ...]] = []
        for operator, sources, reads in zip(operators, flow.sources, flow.reads, strict=True):
            line = None if operator.line is None else lines.setdefault(operator.line, len(lines))
            calls = () if operator.node is None else operator.node.source
            trace = tuple(lines.setdefault(call, len(lines)) for call in calls)
            operator_rows.append(
                (operator.operator.label, operator.operator.op_type, operator.tensors[0].role.layer or "", line,
                 operator.health.value, len(tensor_rows), _attributes(operator.node), operator.operator.is_parameter,
                 list(reads), traces.setdefault(trace, len(traces)) if trace else None)
            )  # fmt: skip
            parts = zip(operator.tensors, operator.healths, sources, strict=True)
            tensor_rows += [self._tensor(row, health, source) for row, health, source in parts]
        return {
            "operators": _table(
                ("name", "type", "scope", "line", "health", "first", "attrs", "is_parameter", "reads", "trace"),
                operator_rows,
            ),
            "tensors": _table(_TENSOR_COLUMNS, tensor_rows),
            "lines": [_line(line) for line in lines],
            "traces": [list(trace) for trace in traces],
            "flow": flow.how,
        }

    def _tensor(self, row: TensorStatistics, health: Health, source: int | None) -> tuple[Any, ...]:
        tensor, exponents = row.tensor, row.exponents
        return (
            tensor.io, tensor.slot_text, tensor.true_dtype, list(row.shape), tensor.size_bytes,
            _file_name(tensor.path), health.value,
            *(_number(getattr(row.numbers, name)) for name in _NUMBERS),
            source, row.role.parameter, row.role.is_gradient,
            _number(self._contents.health.error(row)),
            None if exponents is None else [exponents.first, list(exponents.positive), list(exponents.negative)],
            _file_name(tensor.path) not in (STATISTIC_FILE, MSPROBE_FILE),
        )  # fmt: skip

    def _at(self, step: StepKey, operator: Operator) -> Answer:
        """Where an operator stands, for a link to it; its number is None for one that no row is about."""
        return {"step": list(step), "operator": self._numbers.get((step, operator.label)), "name": operator.label}

    @cached_property
    def _numbers(self) -> dict[tuple[StepKey, str], int]:
        return {
            (key, operator.operator.label): number
            for key, operators in self._steps.items()
            for number, operator in enumerate(operators)
        }


_TENSOR_COLUMNS = (
    "io", "slot", "dtype", "shape", "size_bytes", "file", "health", *_NUMBERS, "source", "parameter", "is_gradient",
    "error", "exponents", "has_elements",
)  # fmt: skip


def encoded(answer: Any) -> bytes:
    """JSON without a number that is none, and without the secrets of addresses."""
    text = json.dumps(answer, allow_nan=False, separators=(",", ":"))
    if ":/" in text:
        text = json.dumps(value_without_secrets(answer), allow_nan=False, separators=(",", ":"))
    return text.encode()


def step_path(key: StepKey) -> str:
    """A step as part of a path."""
    return _parts(key)


def _parts(parts: Iterable[int | None]) -> str:
    return "/".join("-" if part is None else str(part) for part in parts)


def _title(path: Path) -> str:
    """The last two parts: many dumps are folders `dump` of folders that have telling names."""
    return "/".join(PurePath(without_secrets(str(path.absolute()))).parts[-2:]).lstrip("/")


def _file_name(path: str) -> str:
    return os.path.basename(path)


# -- statistics side by side: of one graph over its iterations, of one step over its ranks -----------------------------

STATISTICS = ("max", "min", "avg", "l2norm", "nan", "zero")
MAX_CELLS = 100_000  # of one statistic: what a page shows at a glance and a file has room for
_Name = tuple[str, str, str]
_DIGITS = 6


def series(
    steps: Sequence[tuple[StepKey, Sequence[ExportedOperator]]], columns: Sequence[int], health: HealthOfDump
) -> dict[str, Any]:
    """One row for each tensor that at least one step has, one column for each step.

    steps    in the order of the columns
    columns  what the steps are called: iterations or ranks
    Edges:   with more cells than MAX_CELLS the healthiest tensors are left out, and of these the last ones; `left_out`
             counts them. A step that has not the tensor has None. Numbers have six digits.
    """
    found: dict[_Name, list[TensorStatistics | None]] = {}
    operators: dict[_Name, int] = {}
    for column, (_, step) in enumerate(steps):
        for operator in step:
            for row in operator.tensors:
                name = operator.operator.label, row.tensor.io, row.tensor.slot_text
                found.setdefault(name, [None] * len(steps))[column] = row
                operators.setdefault(name, operator.number)
    worst = {name: min(health.of(row).rank for row in rows if row is not None) for name, rows in found.items()}
    room = max(1, MAX_CELLS // max(1, len(steps)))
    order = {name: place for place, name in enumerate(found)}
    kept = sorted(sorted(found, key=lambda name: (worst[name], order[name]))[:room], key=order.__getitem__)
    firsts = {name: next(row for row in found[name] if row is not None) for name in kept}
    return {
        "columns": list(columns),
        "tensors": {
            "operator": [operators[name] for name in kept],
            "name": [name[0] for name in kept],
            "io": [name[1] for name in kept],
            "slot": [name[2] for name in kept],
            "parameter": [firsts[name].role.parameter for name in kept],
            "is_gradient": [firsts[name].role.is_gradient for name in kept],
            "health": [
                min((health.of(row) for row in found[name] if row is not None), key=_rank).value for name in kept
            ],
        },
        "statistics": {
            statistic: [[_shown_number(row, statistic) for row in found[name]] for name in kept]
            for statistic in STATISTICS
        },
        "left_out": len(found) - len(kept),
    }


def _rank(health: Any) -> int:
    return int(health.rank)


def _shown_number(row: TensorStatistics | None, statistic: str) -> float | int | str | None:
    value = None if row is None else getattr(row.numbers, statistic)
    if value is None or isinstance(value, int):
        return value
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else str(value)
