"""Where an operator comes from: the module that called it, the lines of the script, the name of a parameter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from torch import fx

from msdump.graph_files.source_line import SourceLine

ROOT, BACKWARD_ROOT = "Default", "Gradients/Default"
_FRAME = re.compile(r'\s*File "(?P<path>.*)", line (?P<line>[0-9]+), in .*')
_ITEM = re.compile(r"\[['\"]?([^'\"\]]+)['\"]?\]")
_REGISTRIES = ("_modules", "_parameters", "_buffers")


def scope_of(node: fx.Node) -> str:
    """Modules around an operator, outermost first: `Default/features-Sequential/0-Conv2d`."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    return "/".join([ROOT, *_components(stack)])


def _components(stack: Mapping[str, Any]) -> list[str]:
    components: list[str] = []
    above: list[str] = []
    for path, kind in stack.values():
        names = attribute_names(path)
        if names == above:
            continue
        own = names[len(above) :] if names[: len(above)] == above else names
        class_name = kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
        components.append(f"{'.'.join(own)}-{class_name}".replace("/", "_"))
        above = names
    return components


def attribute_names(path: str) -> list[str]:
    """Names in the way to a module or tensor, as Dynamo says it; without `self`.

    `L['self']._modules['fc']._parameters['weight']` and `L['self'].fc.weight` -> ["fc", "weight"]
    """
    # Wrappers that one version or another puts around: `getattr(L['self'], '0')`.
    text = re.sub(r"getattr\((.*), '([^']*)'\)", r"\1.\2", path)
    items = _ITEM.sub(r".\1", text).split(".")
    # The receiver is whatever the method called it; a module that a function met is named by its variable.
    for root in (["L", "self"], ["L"], ["G"]):
        if items[: len(root)] == root:
            items = items[len(root) :]
            break
    return [item for item in items if item and item not in _REGISTRIES]


def source_lines(node: fx.Node) -> tuple[SourceLine, ...]:
    """The user's lines, outermost first."""
    lines = (node.meta.get("stack_trace") or node.stack_trace or "").splitlines()
    found: list[SourceLine] = []
    for at, text in enumerate(lines):
        match = _FRAME.fullmatch(text)
        if match is not None:
            code = lines[at + 1] if at + 1 < len(lines) else ""
            found.append(SourceLine(match["path"], int(match["line"]), code))
    return tuple(found)


def input_names(module: Any) -> list[tuple[str, bool]]:
    """(name, whether it is a parameter or buffer) of each input of a graph that Dynamo has captured, in AOT's order."""
    names: list[tuple[str, bool]] = []
    for own in (module.named_parameters, module.named_buffers):
        # Versions that do not make parameters inputs keep them as attributes of the graph; AOT puts them first.
        names.extend((name, True) for name, _ in own(remove_duplicate=False))
    for node in module.graph.nodes:
        if node.op == "placeholder":
            path = _source_text(node)
            parts = attribute_names(path) if path else []
            is_parameter = "_parameters" in path or "_buffers" in path
            names.append((".".join(parts) or str(node.name), is_parameter))
    return names


def _source_text(node: fx.Node) -> str:
    """What Dynamo says where an input comes from; a property in some versions, a method in others."""
    source = getattr(node, "_dynamo_source", None) or getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", None)
    return str(name() if callable(name) else name or "")
