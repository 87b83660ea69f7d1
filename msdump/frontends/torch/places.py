"""Where an operator comes from: the module that called it, the lines of the script, the name of a parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from torch import fx

from msdump.graph.types import SourceLine

ROOT, BACKWARD_ROOT = "Default", "Gradients/Default"
_FRAME = re.compile(r'\s*File "(?P<path>.*)", line (?P<line>[0-9]+), in .*')
_ITEM = re.compile(r"\[['\"]?([^'\"\]]+)['\"]?\]")
_REGISTRIES = ("_modules", "_parameters", "_buffers")


def scope_of(node: fx.Node) -> str:
    """Modules around an operator, outermost first: `Default/features-Sequential/0-Conv2d`."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    return "/".join([ROOT, *_components(stack)])


def _components(stack: Mapping[str, tuple[str, object]]) -> list[str]:
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
    """Names in Dynamo's path to a module or tensor; without `self`.

    `L['self']._modules['fc']._parameters['weight']` and `L['self'].fc.weight` -> ["fc", "weight"]
    """
    # Wrappers that one version or another puts around: `getattr(L['self'], '0')`.
    text = re.sub(r"getattr\((.*), '([^']*)'\)", r"\1.\2", path)
    items = _ITEM.sub(r".\1", text).split(".")
    # The receiver has the method's name for it; a module in a function is named by its variable.
    for root in (["L", "self"], ["L"], ["G"]):
        if items[: len(root)] == root:
            items = items[len(root) :]
            break
    return [item for item in items if item and item not in _REGISTRIES]


def source_lines(node: fx.Node) -> tuple[SourceLine, ...]:
    """The user's lines, outermost first."""
    lines = (node.meta.get("stack_trace") or node.stack_trace or "").splitlines()
    sources: list[SourceLine] = []
    for index, text in enumerate(lines):
        match = _FRAME.fullmatch(text)
        if match is not None:
            code = lines[index + 1] if index + 1 < len(lines) else ""
            sources.append(SourceLine(match["path"], int(match["line"]), code))
    return tuple(sources)


def drop_wrapper(module: fx.GraphModule) -> None:
    """Let the operators of a graph that Dynamo has captured name their modules as seen from the module that was called.

    Source: PyTorch, `torch._dynamo.external_utils.wrap_inline`: a module whose `forward` is PyTorch's own, such as
    Sequential, is called by a function `inner(*args, **kwargs)` as `fn`.
    """
    if _wrapped_kind(module) is None:
        return
    for node in module.graph.nodes:
        stack = node.meta.get("nn_module_stack")
        if stack:
            node.meta["nn_module_stack"] = {
                key: (path.replace(_WRAPPED, _RECEIVER, 1) if path.startswith(_WRAPPED) else path, kind)
                for key, (path, kind) in stack.items()
            }


_WRAPPED, _RECEIVER = "L['fn']", "L['self']"
_WRAPPER_ARGUMENT = re.compile(r"L\['args'\]\[(?P<index>[0-9]+)\]|L\['kwargs'\]\['(?P<name>[^']*)'\]")


def _wrapped_kind(module: fx.GraphModule) -> type | None:
    """Class of the module that Dynamo's wrapper calls in this graph; None without the wrapper."""
    sources = [_source_text(node) for node in module.graph.nodes if node.op == "placeholder"]
    if not all(text.startswith((_WRAPPED, "L['args']", "L['kwargs']")) for text in sources if text):
        return None
    for node in module.graph.nodes:
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            if path in (_WRAPPED, _RECEIVER) and isinstance(kind, type):
                return kind
    return None


def _argument_name(kind: type, source: str) -> str:
    """Name in `forward` of an argument that the wrapper hands on; "" for anything else."""
    match = _WRAPPER_ARGUMENT.fullmatch(source)
    if match is None:
        return ""
    if match["index"] is None:
        return match["name"]
    names = list(inspect.signature(kind.forward).parameters)[1:]  # type: ignore[attr-defined]
    index = int(match["index"])
    return names[index] if index < len(names) else ""


def input_names(module: fx.GraphModule) -> list[tuple[str, bool]]:
    """(name, whether it is a parameter or buffer) of each input of a graph that Dynamo has captured, in AOT's order."""
    kind = _wrapped_kind(module)
    names: list[tuple[str, bool]] = []
    for own in (module.named_parameters, module.named_buffers):
        # Versions that do not make parameters inputs keep them as attributes of the graph; AOT puts them first.
        names.extend((name, True) for name, _ in own(remove_duplicate=False))
    for node in module.graph.nodes:
        if node.op == "placeholder":
            path = _source_text(node)
            parts = attribute_names(path) if path else []
            if kind is not None:
                own_name = _argument_name(kind, path)
                parts = [own_name] if own_name else parts[1:] if path.startswith(_WRAPPED) else parts
            is_parameter = "_parameters" in path or "_buffers" in path
            names.append((".".join(parts) or str(node.name), is_parameter))
    return names


def _source_text(node: fx.Node) -> str:
    """What Dynamo says where an input comes from; a property in some versions, a method in others."""
    source = getattr(node, "_dynamo_source", None) or getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", None)
    return str(name() if callable(name) else name or "")
