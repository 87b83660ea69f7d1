"""One operator of a dump by whatever name a user has for it."""

from __future__ import annotations

import fnmatch
import shlex
from collections.abc import Collection
from dataclasses import dataclass

from msdump.analysis.graph_info import GraphFiles, GraphNode
from msdump.analysis.operators import Operator, Step, StepKey, read_steps
from msdump.analysis.selection import nothing_selected
from msdump.analysis.statistic_steps import StatisticSteps, read_statistic_steps
from msdump.errors import ConfigError, did_you_mean
from msdump.formats.dump_dir import DumpDir


@dataclass(frozen=True, slots=True)
class FoundOperator:
    """An operator of one step, and its node of the graph file when there is one.

    table   statistics of its tensors, where the dump holds nothing else
    """

    step: Step
    operator: Operator
    node: GraphNode | None
    table: StatisticSteps | None = None

    @property
    def key(self) -> StepKey:
        return self.step.key


def find_operator(
    dump: DumpDir,
    name: str,
    *,
    rank: int | Collection[int] | None = None,
    graph: int | Collection[int] | None = None,
    iteration: int | Collection[int] | None = None,
    takes_statistics: bool = False,
) -> FoundOperator:
    """The operator that a name means, in the first step that has it.

    name   full name, last part of it, `type.name` as in file names, the name that it had before the graph was compiled,
           or a glob of any of the first three
    takes_statistics  statistics will do where a dump has no tensors

    Raises: ConfigError when no operator or more than one goes by that name.
    """
    steps = read_steps(dump, rank=rank, graph=graph, iteration=iteration)
    table = None
    if not steps:
        table, damaged = read_statistic_steps(dump, rank=rank, graph=graph, iteration=iteration)
        steps = list(table.steps)
        if damaged and not steps:
            raise damaged[0][1]
        if steps and not takes_statistics:
            raise ConfigError(
                f"{dump.path}: expected a dump with tensors, got statistics only. Dump the tensors of this operator: "
                f"{shlex.join(['msdump', 'zoom', str(dump.path), name])} --run SCRIPT."
            )
    if not steps:
        raise nothing_selected(dump, expected="a dump with tensors", rank=rank, graph=graph, iteration=iteration)
    for step in steps:
        found = [operator for operator in step.operators if name in operator.names]
        found = found or [o for o in step.operators if any(original == name for original, _ in o.originals)]
        found = found or [o for o in step.operators if any(fnmatch.fnmatchcase(known, name) for known in o.names)]
        if len(found) > 1:
            listed = ", ".join(operator.label for operator in found[:5]) + (", ..." if len(found) > 5 else "")
            raise ConfigError(
                f'OP: expected the name of one operator, got "{name}", which {len(found)} have: {listed}.'
            )
        if found:
            return FoundOperator(step, found[0], GraphFiles(dump).node(step.key, found[0]), table)
    names = [known for step in steps for operator in step.operators for known in (operator.op_name, operator.label)]
    hint = did_you_mean(name, names)
    raise ConfigError(f'OP: expected the name of a dumped operator, got "{name}". {hint}'.rstrip())
