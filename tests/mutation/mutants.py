"""The mutants of a module: what cosmic-ray makes of it, without those that no test could tell from the module.

cosmic-ray rather than mutmut: mutmut 3 changes only functions, and of those with decorators only static and class
methods: no table, no default of a data class, no property, no kernel of numba. It chooses tests by one run of the whole
suite. Of cosmic-ray the operators and the places are used; its own run writes into the working tree, has one command
for all modules, and starts Python anew for each mutant.
"""

from __future__ import annotations

import ast
import difflib
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.config import ConfigDict, load_config
from cosmic_ray.modules import filter_paths, find_modules
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

from tests.mutation.operators import RULES, DropCall
from tests.mutation.selection import ROOT

CONFIG = Path(__file__).with_name("cosmic-ray.toml")
_Position = tuple[int, int]


@dataclass(frozen=True)
class Spot:
    """Where one operator can change a module.

    module        path from the root of the repository, with slashes
    occurrence    how many spots of the same operator come before it in the module
    start         line and column
    definition    name of the function or class around it, empty at the top
    """

    module: str
    operator: Operator
    occurrence: int
    start: _Position
    definition: str


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    before, after    the changed lines, stripped and joined by blanks; after is empty where lines are removed
    text             the whole module after the change
    """

    spot: Spot
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        place = f"{self.spot.module}:{self.spot.start[0]} {self.spot.definition}"
        return f"{place}: {self.before} -> {self.after or '(nothing)'}"


def modules(config: ConfigDict | None = None) -> list[str]:
    """Modules that the configuration names, sorted; those with no more than a docstring are left out."""
    config = load_config(str(CONFIG)) if config is None else config
    paths = filter_paths(
        find_modules([ROOT / path for path in config["module-path"]]),
        [str(ROOT / path) for path in config["excluded-modules"]],
    )
    return sorted(path.relative_to(ROOT).as_posix() for path in paths if len(ast.parse(path.read_text()).body) > 1)


def spots(module: str, *, only_rules: bool = False) -> list[Spot]:
    """All of them, or those of constants and rules, but for those that only change annotations that nothing reads."""
    excluded = load_config(str(CONFIG)).sub("filters", "operators-filter")["exclude-operators"]
    text = (ROOT / module).read_text()
    silent, nodes = _annotations(text), list(ast_nodes(get_ast(text)))
    return [
        Spot(module, operator, occurrence, start, ASTQuery(node).get_definition_name() or "")
        for operator in ([each() for each in RULES] if only_rules else _operators(excluded))
        for occurrence, (node, (start, end)) in enumerate(
            (node, position) for node in nodes for position in operator.mutation_positions(node)
        )
        if not any(first <= start and end <= last for first, last in silent)
    ]


def sample(chosen: Iterable[str], size: int | None, seed: str, *, only_rules: bool = False) -> list[Spot]:
    """One spot of each module, then any others, `size` in all (every one without a size); sorted by module."""
    order = random.Random(seed)
    firsts, others = [], []
    for module in chosen:
        each = spots(module, only_rules=only_rules)
        order.shuffle(each)
        firsts += each[:1]
        others += each[1:]
    order.shuffle(firsts)
    order.shuffle(others)
    return sorted((firsts + others)[:size], key=lambda spot: (spot.module, spot.start, spot.occurrence))


def survivors(output: str, *, only_rules: bool = False) -> list[Spot]:
    """Those that an earlier run has printed as `survived`, as long as their lines stand where they stood."""
    lines = re.findall(r"^survived +\d+ s  ((\S+?):(\d+) .*)$", output, re.MULTILINE)
    return [
        spot
        for module in sorted({module for _, module, _ in lines})
        for spot in spots(module, only_rules=only_rules)
        if any(module == of and int(line) == spot.start[0] for _, of, line in lines)
        and str(mutant(spot)) in {text for text, *_ in lines}
    ]


def mutant(spot: Spot) -> Mutant | None:
    """None where the operator fails (`except` of a name with a dot) or changes nothing."""
    text = (ROOT / spot.module).read_text()
    try:
        changed = mutate_code(text, spot.operator, spot.occurrence)
    except AttributeError:
        return None
    if changed is None or changed == text:
        return None
    old, new = text.splitlines(), changed.splitlines()
    changes = [
        each for each in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if each[0] != "equal"
    ]
    first, last = changes[0], changes[-1]
    before, after = (
        " ".join(line.strip() for line in lines) for lines in (old[first[1] : last[2]], new[first[3] : last[4]])
    )
    return Mutant(spot, before, after, changed)


def _operators(excluded: Sequence[str]) -> Iterator[Operator]:
    """Those of cosmic-ray that need no names of variables, and `DropCall`."""
    pattern = re.compile("|".join(excluded))
    for name in operator_names():
        operator = get_operator(name)
        if not operator.arguments() and not pattern.match(name):
            yield operator()
    yield DropCall()


def _annotations(text: str) -> list[tuple[_Position, _Position]]:
    """Where nothing reads the types: in signatures and of variables; those of fields too unless pydantic reads them."""
    tree = ast.parse(text)
    nodes: list[ast.expr | None] = []
    has_models = any("pydantic" in ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            nodes += [node.returns, *(arg.annotation for arg in ast.walk(node.args) if isinstance(arg, ast.arg))]
        if isinstance(node, ast.AnnAssign) and not has_models:
            nodes.append(node.annotation)
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)) for node in nodes if node
    ]
