"""`print` in a construct that is traced: an operator of the graph, which prints at each run.

A tensor of the graph has no value yet when its text is made, as by an f-string: the text holds its number, and `print`
puts the tensor itself in the place of such a text.
"""

from __future__ import annotations

import builtins
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msdump.graph.primitive import Primitive
from msdump.mindspore.common.tensor import MARK_PATTERN, Tensor
from msdump.mindspore.sources import user_line
from msdump.mindspore.tracer import Tracer, current_tracer

_MARK = re.compile(f"({MARK_PATTERN})")
_lock = threading.Lock()
_traces = 0
_plain: Callable[..., None] = print


@contextmanager
def printing_in_graph() -> Iterator[None]:
    """While this is open, `print` on a thread that traces a graph adds an operator; elsewhere it prints."""
    global _traces, _plain
    with _lock:
        if _traces == 0:
            _plain, builtins.print = builtins.print, _print
        _traces += 1
    try:
        yield
    finally:
        with _lock:
            _traces -= 1
            if _traces == 0 and builtins.print is _print:
                builtins.print = _plain


def _print(*items: Any, **options: Any) -> None:
    tracer = current_tracer()
    if tracer is None or tracer.is_recording:
        _plain(*items, **options)
        return
    if options:
        refused = RuntimeError(
            f"{user_line() or 'print'}: expected no keyword in a graph, got '{next(iter(options))}'. Each item is a "
            "line of its own there; join texts before, or run with set_context(mode=PYNATIVE_MODE)."
        )
        tracer.note_refusal(refused)
        raise refused
    pieces = [piece for item in items for piece in _pieces(item, tracer)]
    if pieces:
        texts = tuple(None if isinstance(piece, Tensor) else piece for piece in pieces)
        tracer.add(Primitive("Print", {"strings": texts}), [piece for piece in pieces if isinstance(piece, Tensor)])


def _pieces(item: Any, tracer: Tracer) -> Iterator[Tensor | str]:
    """Source: MindSpore 2.0 prints each element of a tuple, and each part of an f-string, on a line of its own."""
    if isinstance(item, Tensor):
        yield item
    elif isinstance(item, tuple | list) and any(isinstance(part, Tensor | tuple | list) for part in item):
        for part in item:
            yield from _pieces(part, tracer)
    else:
        for index, piece in enumerate(_MARK.split(str(item))):
            if index % 2:
                number = int(piece.rpartition("%")[2].partition(">")[0])
                tracer.print_text(number)
                yield tracer.tensor_numbered(number)
            elif piece:
                yield piece
