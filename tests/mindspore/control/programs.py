"""Random programs with nested control flow on tensors, as source text, and how to load them."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.mindspore import nn, ops

_numbers = itertools.count()
# A gradient reads no parameter that the program writes: in PyNative MindSpore's reads what it holds in the end.
_EXPRESSIONS = (
    "x + y",
    "x * 0.5 - y",
    "ops.sin(x)",
    "y * self.w",
    "x",
    "ops.tanh(x * y)",
    "self.helper(y)",
    "x * n",
    "x + self.state",
)
_INTEGERS = ("n + 1", "m - 1", "n", "m + n")


@st.composite
def _test(draw: Any, depth: int = 0) -> str:
    kind = draw(st.sampled_from(["x", "n", "known", "and", "or", "not", "chain"] if depth < 2 else ["x", "n"]))
    if kind == "x":
        return f"{draw(st.sampled_from('xy'))}.sum() > {draw(st.integers(-2, 2))}"
    if kind == "n":
        return f"{draw(st.sampled_from('nm'))} < {draw(st.integers(-1, 4))}"
    if kind == "known":
        return draw(st.sampled_from(["self.flag", "self.count > 2", "len(self.items) == 2"]))
    if kind == "chain":
        return f"{draw(st.integers(-2, 0))} < {draw(st.sampled_from('nm'))} <= {draw(st.integers(0, 3))}"
    if kind == "not":
        return f"not ({draw(_test(depth + 1))})"
    return f"({draw(_test(depth + 1))} {kind} {draw(_test(depth + 1))})"


@st.composite
def _block(draw: Any, depth: int, loops: tuple[str, ...], can_return: bool) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3 if depth < 2 else 2))):
        lines += draw(_statement(depth, loops, can_return))
    return lines


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


@st.composite
def _statement(draw: Any, depth: int, loops: tuple[str, ...], can_return: bool) -> list[str]:
    kinds = ["x", "x", "y", "n", "choose", "state"]
    if depth < 3:
        kinds += ["if", "if", "while", "for", "range"]
    kinds += ["break", "continue"] if loops else []
    kinds += ["return"] if can_return else []
    kind = draw(st.sampled_from(kinds))
    if kind in ("x", "y"):
        return [f"{kind} = {draw(st.sampled_from(_EXPRESSIONS))}"]
    if kind == "n":
        return [f"{draw(st.sampled_from('nm'))} = {draw(st.sampled_from(_INTEGERS))}"]
    if kind == "state":
        return [f"self.state = {draw(st.sampled_from(['self.state * 0.5 + y', 'x - y', 'self.state + self.w']))}"]
    if kind == "choose":
        return [f"x = y if {draw(_test())} else x + 1"]
    if kind in ("break", "continue"):
        return [f"if {draw(_test())}:", f"    {kind}"]
    if kind == "return":
        return [f"if {draw(_test())}:", "    return x * 2, n"]
    if kind == "if":
        lines = [f"if {draw(_test())}:", *_indented(draw(_block(depth + 1, loops, can_return)))]
        if draw(st.booleans()):
            lines += [f"elif {draw(_test())}:", *_indented(draw(_block(depth + 1, loops, can_return)))]
        if draw(st.booleans()):
            lines += ["else:", *_indented(draw(_block(depth + 1, loops, can_return)))]
        return lines
    index = f"i{len(loops)}"
    body = draw(_block(depth + 1, (*loops, index), can_return))
    if kind == "range":
        head = [f"for {index} in range({draw(st.sampled_from(['n % 3', '0, m % 4', '3, n % 3, -1']))}):"]
        body = [f"y = y + {index}", *body]
    elif kind == "for":
        head = [f"for {index} in {draw(st.sampled_from(['(1, 2)', 'self.items', 'range(2)', 'x']))}:"]
        body = [f"y = y + {index}", *body]
    else:
        # Counted first, and to a bound of its own, so that it is never endless.
        start, bound = draw(st.sampled_from(["n * 0", "m - m", "0"])), draw(st.sampled_from(["3", "n % 3", "m % 4"]))
        head = [f"{index}, last_{index} = {start}, {bound}", f"while {index} < last_{index}:"]
        body = [f"{index} = {index} + 1", *body]
    return [*head, *_indented(body)]


@st.composite
def programs(draw: Any) -> str:
    """Source of a class Net whose construct takes x, y float32 (2,) and n, m int32 () and returns x and n."""
    body = draw(_block(0, (), True))
    return "\n".join(
        [
            "class Net(nn.Cell):",
            "    def __init__(self):",
            "        super().__init__()",
            "        self.w = ms.Parameter(ms.Tensor([0.5, -1.5]), name='w')",
            "        self.state = ms.Parameter(ms.Tensor([1.0, 0.25]), name='state', requires_grad=False)",
            "        self.flag, self.count, self.items = True, 3, [0.5, 2.0]",
            "    def helper(self, y):",
            "        if y.sum() < 0:",
            "            return y * self.w",
            "        return y - self.w",
            "    def construct(self, x, y, n, m):",
            *_indented(_indented([*body, "return x, n + m"])),
            "",
        ]
    )


def load(source: str, name: str = "Net") -> Any:
    """What the source calls `name`, with its lines where Python looks for them."""
    path = f"<program {next(_numbers)}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    names: dict[str, Any] = {"nn": nn, "ops": ops, "ms": ms, "np": np, "__name__": "program"}
    exec(compile(source, path, "exec"), names)
    return names[name]
