"""`output_code.py`: a captured graph as a script of its own. It needs PyTorch, and nothing else."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from msdump.frontends.torchair.aclgraph.script_values import (
    check_text,
    constant_text,
    custom_namespaces,
    first_run_sizes,
    import_text,
    input_text,
)

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
    module: GraphModule, args: Sequence[Any], title: str, options: Mapping[str, str], facts: Mapping[str, Any]
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
    imports: dict[str, Any] = {}
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


def _function(module: GraphModule, name: str, imports: dict[str, Any]) -> str:
    """The graph as a function of that name; what its code refers to is added to the imports."""
    code = module.graph.python_code("self", verbose=True)
    imports.update(code.globals)
    return code.src.strip("\n").replace("def forward(", f"def {name}(", 1)


def _attributes(module: GraphModule, prefix: str, functions: list[str], imports: dict[str, Any]) -> dict[str, str]:
    """Expression of each attribute that a graph reads; graphs among them are added to the functions."""
    found: dict[str, str] = {}
    for node in module.graph.nodes:
        name = str(node.target)
        if node.op != "get_attr" or name in found:
            continue
        value = getattr(module, name, None)
        if isinstance(value, GraphModule):
            own = f"_{prefix}{name}"
            inner = _attributes(value, f"{prefix}{name}_", functions, imports)
            functions.append(_function(value, own, imports))
            fields = ", ".join(f"{key}={text}" for key, text in inner.items())
            found[name] = f"types.MethodType({own}, types.SimpleNamespace({fields}))"
        elif isinstance(value, torch.Tensor):
            found[name] = constant_text(value)
        else:
            found[name] = "None"
    return found
