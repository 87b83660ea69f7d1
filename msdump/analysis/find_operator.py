"""One operator of a dump by whatever name a user has for it."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection
from dataclasses import dataclass

from msdump.analysis.graph_info import GraphFiles, GraphNode
from msdump.analysis.operators import Operator, Step, StepKey, read_steps
from msdump.errors import ConfigError, did_you_mean
from msdump.formats.dump_dir import DumpDir


@dataclass(frozen=True, slots=True)
class FoundOperator:
    """An operator of one step, and its node of the graph file when there is one."""

    step: Step
    operator: Operator
    node: GraphNode | None

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
) -> FoundOperator:
    """The operator that a name means, in the first step that has it.

    name   full name, last part of it, `type.name` as in file names, the name that it had before the graph was compiled,
           or a glob of any of the first three

    Raises: ConfigError when no operator or more than one goes by that name.
    """
    steps = read_steps(dump, rank=rank, graph=graph, iteration=iteration)
    if not steps:
        raise ConfigError(f"{dump.path}: expected a dump with tensors, got none. Is it the folder that holds rank_0?")
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
            return FoundOperator(step, found[0], GraphFiles(dump).node(step.key, found[0]))
    names = [known for step in steps for operator in step.operators for known in (operator.op_name, operator.label)]
    hint = did_you_mean(name, names)
    raise ConfigError(f'OP: expected the name of a dumped operator, got "{name}". {hint}'.rstrip())
