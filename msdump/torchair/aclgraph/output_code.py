"""`output_code.py`: a captured graph as a stand-alone script, which needs PyTorch alone."""

from __future__ import annotations

import base64
import logging
import math
import textwrap
import types
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Node

from msdump.frontends.torch.convert import bytes_of

log = logging.getLogger("msdump")

FILE = "output_code.py"
MODE = 0o600

_HEAD = '''\
"""{title}

Run it: python output_code.py makes up inputs and runs the graph once.
{notes}"""

import base64
import types
import zlib

import torch
from torch._C._dynamo.guards import assert_size_stride
from torch._dynamo.testing import rand_strided


class AclGraphCacheInfo:
    """What is known of the graph besides its code."""

    def __init__(self, **facts):
        self.__dict__.update(facts)


class AclGraph:
    """Runs the graph's function. A device would capture the first run and replay it."""

    def __init__(self, fx_forward, config):
        self.fx_forward = fx_forward
        self.config = config
        self.info = None

    def load(self, info):
        self.info = info

    def __call__(self, *args, **kwargs):
        with torch.no_grad():
            return self.fx_forward(*args, **kwargs)


def _constant(text, dtype, shape, device):
    data = bytearray(zlib.decompress(base64.b85decode(text)))
    return torch.frombuffer(data, dtype=dtype).reshape(shape).to(device)

'''
_MIDDLE = """\

{functions}

_attributes = types.SimpleNamespace({attributes})


def forward(*args, node_info=[], is_capturing: bool = False):
    return _forward(_attributes, *args)


compile_configs = {{}}
{configs}
acl_graph = AclGraph(fx_forward=forward, config=compile_configs)

aclgraph_cache_info = AclGraphCacheInfo(
{facts}
)
acl_graph.load(aclgraph_cache_info)

_is_first_run = True


def kernel(*args, **kwargs):
    global _is_first_run
    if _is_first_run:
        _is_first_run = False
{unpack}{checks}
    return acl_graph(*args, **kwargs)


def main():
    torch.manual_seed(0)
{inputs}
    return kernel({names})


if __name__ == "__main__":
    for number, output in enumerate(main()):
        if isinstance(output, torch.Tensor):
            print(f"output {{number}}: {{output.dtype}} {{tuple(output.shape)}}")
        else:
            print(f"output {{number}}: {{output}}")
"""


def output_code(
    module: GraphModule, args: Sequence[object], title: str, options: Mapping[str, str], facts: Mapping[str, object]
) -> str:
    """Text of the script.

    args     what the graph is called with for the first time; only dtypes, shapes and plain numbers are taken
    options  of the compilation, as text;   facts  about the graph
    Edges:   constants of the graph are carried along up to 1 MiB each; operators that a script registered itself must
             be imported by hand, and the head of the script says so. Several graphs in one (`cond`) become functions.
    Source:  TorchAir debug save, output_code.py, and the names of its parts.
    """
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    values = first_run_sizes(module, args)
    imports: dict[str, object] = {}
    functions: list[str] = []
    attributes = _attributes(module, "", functions, imports)
    forward = _function(module, "_forward", imports)
    checks = [check_text(name, value) for name, value in zip(names, values, strict=True)]
    is_dynamic = any(isinstance(node.meta.get("val"), torch.SymInt) for node in module.graph.nodes)
    checks = [] if is_dynamic else [line for line in checks if line]
    notes = [
        f"Import what registers the operators torch.ops.{namespace} before it."
        for namespace in custom_namespaces(module)
    ]
    closure = "".join(f"    {import_text(name, value)}\n" for name, value in sorted(imports.items()))
    head = _HEAD.format(title=title, notes="".join(f"{note}\n" for note in notes))
    head += (
        f"\ndef _get_closure_vars():\n{closure}    return dict(locals())\n\n\nglobals().update(_get_closure_vars())\n"
    )
    return head + _MIDDLE.format(
        functions="\n\n".join([*functions, forward]),
        attributes=", ".join(f"{name}={text}" for name, text in attributes.items()),
        configs="".join(f"compile_configs[{name!r}] = {value!r}\n" for name, value in options.items()),
        facts=textwrap.indent(",\n".join(f"{name}={value!r}" for name, value in facts.items()), "    "),
        unpack=f"        {_tuple(names)} = args\n" if checks else "",
        checks="".join(f"        {line}\n" for line in checks),
        inputs=textwrap.indent("\n".join(map(input_text, names, values)), "    "),
        names=", ".join(names),
    )


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)},)"


def _function(module: GraphModule, name: str, imports: dict[str, object]) -> str:
    """The graph as a function of that name; what its code refers to is added to the imports."""
    code = module.graph.python_code("self", verbose=True)
    imports.update(code.globals)
    return code.src.strip("\n").replace("def forward(", f"def {name}(", 1)


def _attributes(module: GraphModule, prefix: str, functions: list[str], imports: dict[str, object]) -> dict[str, str]:
    """Expression of each attribute that a graph reads; graphs among them are added to the functions."""
    expressions: dict[str, str] = {}
    for node in module.graph.nodes:
        name = str(node.target)
        if node.op != "get_attr" or name in expressions:
            continue
        value = getattr(module, name, None)
        if isinstance(value, GraphModule):
            own = f"_{prefix}{name}"
            inner = _attributes(value, f"{prefix}{name}_", functions, imports)
            functions.append(_function(value, own, imports))
            fields = ", ".join(f"{key}={text}" for key, text in inner.items())
            expressions[name] = f"types.MethodType({own}, types.SimpleNamespace({fields}))"
        elif isinstance(value, torch.Tensor):
            expressions[name] = constant_text(value)
        else:
            expressions[name] = "None"
    return expressions


# Constants up to this size go into the script; larger ones are made up.
_CONSTANT_LIMIT_BYTES = 1 << 20


def first_run_sizes(module: GraphModule, real: Sequence[Any]) -> list[object]:
    """Inputs of the script: shapes and strides of tensors as fakes, numbers for the rest.

    A symbolic integer gets 2 + its index, and shapes follow from that; where the graph does not run with such sizes,
    everything gets the sizes of the first call.   Source: TorchAir, the inputs of output_code.py.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    numbers: dict[object, int] = {}
    for index, node in enumerate(placeholders):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            numbers.setdefault(value.node.expr, 2 + index)
    with FakeTensorMode() as mode:
        actual = [_fake(value, tuple(value.shape), value.stride()) if _is_tensor(value) else value for value in real]
        if not numbers:
            return actual
        try:
            made_up = [
                _substituted(node.meta.get("val"), value, numbers)
                for node, value in zip(placeholders, real, strict=True)
            ]
            with torch.no_grad(), mode:
                constants = GraphModule(module, module.graph)
                torch.fx.Interpreter(_faked(constants, mode)).run(*made_up)
        except Exception as error:  # noqa: BLE001 - any complaint means that the graph wants other sizes
            log.debug("%s: it holds the sizes of the first run, as %s", FILE, error)
            return actual
    return made_up


def _faked(module: GraphModule, mode: FakeTensorMode) -> GraphModule:
    """The module with fakes for constants; the graph is the same."""
    for node in module.graph.nodes:
        if node.op == "get_attr" and "." not in str(node.target):
            value = getattr(module, str(node.target))
            if _is_tensor(value):
                delattr(module, str(node.target))
                setattr(module, str(node.target), mode.from_tensor(value))
    return module


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _fake(tensor: torch.Tensor, shape: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    return torch.empty_strided(tuple(shape), tuple(stride), dtype=tensor.dtype, device=tensor.device)


def _substituted(symbolic: Any, real: Any, numbers: dict[Any, int]) -> Any:
    if _is_tensor(symbolic) and _is_tensor(real):
        shape = [_number(size, numbers) for size in symbolic.shape]
        return _fake(real, shape, [_number(size, numbers) for size in symbolic.stride()])
    return _number(symbolic, numbers) if isinstance(symbolic, torch.SymInt) else real


def _number(size: Any, numbers: dict[Any, int]) -> int:
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    return int(size) if expression is None else int(expression.subs(numbers))


def input_text(name: str, value: Any) -> str:
    """Line that makes an input up: values are random for floats and 0 for integers, which are always legal indices."""
    if _is_tensor(value):
        shape, stride = tuple(value.shape), tuple(value.stride())
        return f"{name} = rand_strided({shape}, {stride}, device={str(value.device)!r}, dtype={value.dtype})"
    return f"{name} = {_literal(value)}"


def check_text(name: str, value: Any) -> str:
    """Line that refuses a tensor of another shape; "" for what is no tensor."""
    if not _is_tensor(value):
        return ""
    return f"assert_size_stride({name}, {tuple(value.shape)}, {tuple(value.stride())})"


def _literal(value: object) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value) if isinstance(value, (int, float, bool, str, type(None))) else "None"


def constant_text(value: torch.Tensor) -> str:
    """Expression that gives a constant of the graph again, to the last bit."""
    tensor = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    shape, dtype, device = tuple(value.shape), value.dtype, str(value.device)
    size = tensor.numel() * tensor.element_size()
    if not size:
        return f"torch.empty({shape}, dtype={dtype}, device={device!r})"
    if size > _CONSTANT_LIMIT_BYTES:
        return f"rand_strided({shape}, {tuple(tensor.stride())}, dtype={dtype}, device={device!r})  # {size} bytes"
    packed = base64.b85encode(zlib.compress(bytes_of(tensor))).decode()
    return f"_constant({packed!r}, {dtype}, {shape}, {device!r})"


def import_text(name: str, value: object) -> str:
    """Line that binds a name that the graph's code uses."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}" if "." in value.__name__ else f"import {value.__name__}"
    if isinstance(value, float):
        return f"{name} = float({str(value)!r})"
    if value is type(None):
        return f"{name} = type(None)"
    module, qualified = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if module in (None, "__main__") or qualified is None or "." in qualified:
        return f"{name} = None  # {type(value).__name__}: bind it yourself, this script cannot import it"
    return f"from {module} import {qualified} as {name}" if qualified != name else f"from {module} import {name}"


def custom_namespaces(module: GraphModule) -> list[str]:
    """Namespaces of operators that PyTorch does not bring along."""
    own = {"aten", "prims", "_c10d_functional", "higher_order", "prim", "quantized", "mkldnn", "profiler"}
    namespaces = {node.target.namespace for node in module.graph.nodes if _is_operator(node)}
    return sorted(namespaces - own)


def _is_operator(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)
