"""Pairs of operators whose names differ: a mapping file, json or csv.

    {
        "types": {"MatMulBiasAddReluFusion": ["MatMul", "BiasAdd", "ReLU"], "Relu": "ReLU", "Flatten": []},
        "operators": {"Default/fc1-Dense/MatMul-op7": "dense_1"},
        "ignore": ["Dropout:output:1"]
    }

    MatMulBiasAddReluFusion,MatMul,BiasAdd,ReLU
    Flatten

A fused operator may be on either side. An empty list, or a csv row of one cell, says that there is no counterpart.

TorchAir's graph dumps, dynamo_*_graph_*.txt, or a folder of them, say which output of the program each output of the
compiled graph is. They are for dumps whose files do not say it themselves. `gathered` then puts the operators of a
compiled graph under the names that the user's program has for them: one operator of the program may be several of the
compiled graph; each of its outputs is made by one of them, and others lie in between. Only outputs have a counterpart,
because a compiler's operators order their inputs in their own way.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from msdump.analysis.steps import Operator, Slot, Step
from msdump.errors import ConfigError, FormatError, did_you_mean
from msdump.formats.atomic import write_file
from msdump.formats.dump_tensor import DumpedTensor
from msdump.formats.paths.parse import safe_text
from msdump.graph.ge import read_ge_originals
from msdump.storage.plain import read_plain
from msdump.tables.messages import joined, message
from msdump.tensors.records import OUTPUT

_KEYS = ("types", "operators", "ignore")
_IGNORED = re.compile(r"(?P<name>.+?):(?P<io>input|output)(?::(?P<slot>[0-9]{1,9}))?")
_MAX_BYTES = 64 << 20
_MODE = 0o600
# (operator of a compiled graph, output) -> name and output in the program; by the name of the graph in OperatorMap.
GraphOriginals = Mapping[tuple[str, int], tuple[str, int]]
OriginalOf = Callable[[DumpedTensor], "tuple[str, int] | None"]


@dataclass(frozen=True)
class OperatorMap:
    """Content of a mapping file.

    types, operators   name on one side -> names on the other, in execution order; () for "no counterpart"
    ignore             (operator type or name, "input" or "output", slot or None for all)
    originals          of compiled graphs, see `GraphOriginals`
    """

    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignore: frozenset[tuple[str, str, int | None]] = frozenset()
    originals: Mapping[str, GraphOriginals] = field(default_factory=dict)

    @property
    def is_given(self) -> bool:
        """Whether it says anything."""
        return bool(self.types or self.operators or self.ignore or self.originals)

    def ignores(self, names: frozenset[str], io: str, slot: int) -> bool:
        """True for a tensor of an operator that goes by one of `names`."""
        return any((name, io, number) in self.ignore for name in names for number in (slot, None))


def read_mapping(path: str | os.PathLike[str]) -> OperatorMap:
    """Read a mapping file: json or a graph dump when its name ends so, else csv; or a folder of graph dumps.

    Edges:   of graph dumps in a folder, those of optimized graphs win. A csv row holds types or operator names; names
             win. A row "mine,golden" at the top is a title.
    Raises:  ConfigError with key or line; also when the file cannot be opened.
    """
    where = os.fspath(path)
    if os.path.isdir(where):
        return _from_graph_dumps(where, sorted(Path(where).glob("dynamo_*_graph_*.txt"), key=_age_of_stage))
    if where.lower().endswith(".txt"):
        return _from_graph_dumps(where, [Path(where)])
    text = _text_of(where)
    return _from_json(where, text) if where.lower().endswith(".json") else _from_csv(where, text)


def add_pair(path: str | os.PathLike[str], mine: str, golden: str) -> None:
    """Say in a json mapping file that two operators belong together; the file is made when it is not there.

    mine, golden   names as a comparison reports them; an earlier entry of the file for `mine` is replaced
    Raises: ConfigError as `read_mapping`, and for a file that is no json or a name that is empty; WriteError.
    """
    where = os.fspath(path)
    if not where.lower().endswith(".json"):
        raise ConfigError(f"{where}: expected a mapping file that ends in .json, which pairs can be added to.")
    if not mine or not golden:
        raise ConfigError(f"pair: expected two names of operators, got {mine!r} and {golden!r}.")
    content: dict[str, Any] = {}
    if os.path.lexists(where):
        text = _text_of(where)
        _from_json(where, text)
        content = json.loads(text)
    content.setdefault("operators", {})[mine] = golden
    changed = json.dumps(content, indent=4, ensure_ascii=False) + "\n"
    write_file(where, [changed.encode()], _MODE, replace=True)


def mapping_text(pairs: Iterable[tuple[Operator, Operator]]) -> str:
    """A json mapping file that pairs operators as a comparison did; of several iterations each pair once.

    Edges: a chain on both sides, which no rule can say, is left out.
    """
    rules: dict[str, str | list[str]] = {}
    for mine, golden in pairs:
        if mine.is_parameter or (mine.parts and golden.parts):
            continue
        single, other = (golden, mine) if mine.parts else (mine, golden)
        names = [part.label for part in other.parts] or [other.label]
        rules.setdefault(single.label, names[0] if len(names) == 1 else names)
    return json.dumps({"operators": rules}, indent=4, ensure_ascii=False) + "\n"


def unused_rules(mapping: OperatorMap, operators: Iterable[Operator]) -> list[str]:
    """Sentences on names in the rules that no operator of either dump has, each with the nearest name that one has."""
    if not mapping.types and not mapping.operators:
        return []
    types: set[str] = set()
    names: set[str] = set()
    for operator in operators:
        types.add(operator.op_type)
        names |= operator.names
    texts: list[str] = []
    for what, rules, known in (("type", mapping.types, types), ("operator", mapping.operators, names)):
        for name in dict.fromkeys(word for rule in rules.items() for word in (rule[0], *rule[1])):
            # A csv file says types and names in one list.
            if not is_spelled(name, known) and not (mapping.types is mapping.operators and is_spelled(name, names)):
                hint = did_you_mean(name, known)
                text = (
                    message("mapping: no type of either dump is {name}.", name=name)
                    if what == "type"
                    else message("mapping: no operator of either dump is {name}.", name=name)
                )
                texts.append(joined(" ", (text, hint)) if hint else text)
    return texts


def is_spelled(name: str, known: Container[str]) -> bool:
    """Whether one of these types or names is meant: files' names have underscores where ATen has dots."""
    return name in known or (name.startswith("aten.") and name.replace(".", "_") in known)


def _text_of(where: str) -> str:
    """Raises: ConfigError."""
    try:
        return read_plain(where, _MAX_BYTES).decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{where}: expected a mapping file, got: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{where}: expected UTF-8 text, got byte {error.object[error.start]}.") from error
    except FormatError as error:
        raise ConfigError(str(error)) from error


def _age_of_stage(path: Path) -> tuple[bool, str]:
    return "_optimized_" in path.name, path.name


def _from_graph_dumps(where: str, paths: Sequence[Path]) -> OperatorMap:
    if not paths:
        raise ConfigError(
            f"{where}: expected a mapping file, or a folder with graph dumps of TorchAir (dynamo_*_graph_*.txt), got a "
            'folder without any. Set config.debug.graph_dump.type = "txt".'
        )
    by_graph: dict[str, GraphOriginals] = {}
    for path in paths:
        try:
            name, originals = read_ge_originals(path)
        except OSError as error:
            raise ConfigError(f"{path}: expected a graph dump, got: {error.strerror}.") from error
        except FormatError as error:
            raise ConfigError(str(error)) from error
        by_graph[name] = originals
    return OperatorMap(originals=by_graph)


def _from_json(where: str, text: str) -> OperatorMap:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: expected json, got: {error}.") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: expected an object with {list(_KEYS)}, got {type(content).__name__}.")
    for key in content:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS)
            raise ConfigError(f'{where}: expected keys of {list(_KEYS)}, got "{key}". {hint}'.rstrip())
    ignore = content.get("ignore", [])
    if not isinstance(ignore, list):
        raise ConfigError(f"{where}: ignore: expected a list, got {type(ignore).__name__}.")
    return OperatorMap(
        _chains(where, "types", content.get("types", {})),
        _chains(where, "operators", content.get("operators", {})),
        frozenset(_ignored(where, item) for item in ignore),
    )


def _chains(where: str, key: str, table: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(table, dict):
        raise ConfigError(f"{where}: {key}: expected an object, got {type(table).__name__}.")
    chains = {}
    for name, value in table.items():
        chain = [value] if isinstance(value, str) else value
        if not isinstance(chain, list) or not all(isinstance(item, str) and item for item in chain):
            raise ConfigError(f"{where}: {key}.{name}: expected a name or a list of names, got {value!r}.")
        chains[name] = tuple(chain)
    return chains


def _ignored(where: str, item: object) -> tuple[str, str, int | None]:
    match = _IGNORED.fullmatch(item) if isinstance(item, str) else None
    if match is None:
        raise ConfigError(f'{where}: ignore: expected entries such as "ApplyMomentum:input:0", got {item!r}.')
    return match["name"], match["io"], None if match["slot"] is None else int(match["slot"])


def _from_csv(where: str, text: str) -> OperatorMap:
    rules: dict[str, tuple[str, ...]] = {}
    try:
        for number, row in enumerate(csv.reader(text.splitlines(), strict=True), 1):
            cells = [cell.strip() for cell in row]
            while cells and not cells[-1]:
                cells.pop()
            if not cells or cells[0].startswith("#") or (number == 1 and cells == ["mine", "golden"]):
                continue
            if not all(cells):
                raise ConfigError(f"{where}, line {number}: expected a name in every cell, got {row}.")
            rules[cells[0]] = tuple(cells[1:])
    except csv.Error as error:
        raise ConfigError(f"{where}: expected csv, got: {error}.") from error
    return OperatorMap(rules, rules)


def gathered(sides: Sequence[Sequence[Step]], graphs: Mapping[str, GraphOriginals]) -> list[list[Step]]:
    """The steps of each dump; where some are of compiled graphs and others of the program, the former gathered.

    graphs   what graph dumps tell of tensors whose files tell nothing
    """
    original_of = _lookup(graphs)
    names = [_original_names(steps, original_of) for steps in sides]
    if not any(names):
        return [list(steps) for steps in sides]
    plain = {
        operator.op_name
        for steps, originals in zip(sides, names, strict=True)
        if not originals
        for step in steps
        for operator in step.operators
    }
    return [
        [_gathered(step, original_of) for step in steps] if originals & plain else list(steps)
        for steps, originals in zip(sides, names, strict=True)
    ]


def _lookup(graphs: Mapping[str, GraphOriginals]) -> OriginalOf:
    tables = {
        graph: {(safe_text(name), slot): original for (name, slot), original in originals.items()}
        for graph, originals in graphs.items()
    }

    if not tables:
        return attrgetter("original")

    def original_of(tensor: DumpedTensor) -> tuple[str, int] | None:
        if tensor.original is not None or tensor.io != OUTPUT or tensor.model not in tables:
            return tensor.original
        return tables[tensor.model].get((safe_text(tensor.full_name or tensor.op_name), tensor.slot))

    return original_of


def _original_names(steps: Sequence[Step], original_of: OriginalOf) -> set[str]:
    tensors = [tensor for step in steps for operator in step.operators for tensor in operator.outputs.values()]
    return {original[0] for original in map(original_of, tensors) if original is not None}


def _gathered(step: Step, original_of: OriginalOf) -> Step:
    """Operators at the index of the last operator that they are made of, behind all earlier operators."""
    outputs: dict[str, dict[Slot, DumpedTensor]] = {}
    parts: dict[str, dict[int, Operator]] = {}
    operators: dict[str | int, Operator] = {}
    times = [0]
    for operator in step.operators:
        names = set()
        for tensor in operator.outputs.values():
            original = original_of(tensor)
            if original is not None:
                name, index = original
                names.add(name)
                outputs.setdefault(name, {})[Slot(index)] = tensor
                parts.setdefault(name, {})[id(operator)] = operator
            times.append(tensor.timestamp_us or 0)
        for name in names:
            operators.pop(name, None)
            operators[name] = _whole(name, tuple(parts[name].values()), outputs[name])
        if not names:
            operators[id(operator)] = operator if operator.is_parameter else replace(operator, original="")
    return replace(step, operators=tuple(operators.values()), time_us=max(times))


def _whole(name: str, parts: tuple[Operator, ...], outputs: Mapping[Slot, DumpedTensor]) -> Operator:
    first = parts[0]
    if len(parts) == 1:
        return replace(first, inputs={}, outputs=dict(sorted(outputs.items())), parts=parts, original=name)
    return Operator(
        "+".join(part.op_type for part in parts),
        "+".join(part.op_name for part in parts),
        position=first.position,
        task_id=first.task_id,
        stream_id=first.stream_id,
        outputs=dict(sorted(outputs.items())),
        parts=parts,
        original=name,
    )
